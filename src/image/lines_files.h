/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Paths and their numbers: equal paths have equal numbers, from 1. For several threads. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define FILES_PAGE 1024
#define FILES_PAGES 4096

struct lines_files {
	pthread_mutex_t lock;
	char **pages[FILES_PAGES]; /* they never move: a number once given can be looked up */
	uint32_t count;
	uint32_t *slots; /* hash */
	size_t slot_count;
	uint64_t text; /* bytes of all paths */
};

void lines_files_init(struct lines_files *files);
void lines_files_free(struct lines_files *files);
/* 0: too many, or no memory. */
uint32_t lines_files_number(struct lines_files *files, const char *path, size_t length);
/* NULL for 0. */
const char *lines_files_path(const struct lines_files *files, uint32_t number);
