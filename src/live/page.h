/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `culprit view --serve`: the page for a browser on this machine, brought up to date
 * while the recording goes on.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct arg_list;
struct err;

struct page_options {
	FILE *out; /* for the address of the page */
	const char *path;
	uint16_t port; /* 0: any */
	bool no_open, no_source, debuginfod;
	const struct arg_list *source_dirs, *path_maps;
};

/* Until it is told to stop. `*busy`: a thread is in the middle of something that nobody waits for, leave by _exit. */
struct err *page_run(const struct page_options *options, bool *busy);
