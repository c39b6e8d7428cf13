/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The debug information of the running kernel (a file "vmlinux"), for inlined functions and lines of the kernel's
 * functions. A recording has their names, with addresses that are valid for one boot: so it is of use only for
 * recordings of this boot. modules.c uses it.
 */
#include <stdbool.h>
#include <stdint.h>

struct image;
struct places;
struct profile_module;

struct kernel_debug {
	struct image *image;
	struct places *places; /* NULL: there is none */
	uint64_t shift;        /* address in the recording = address in the file + shift */
};

/* Finds it for the kernel of a recording. */
void kernel_debug_open(const struct profile_module *kernel, struct kernel_debug *out);
void kernel_debug_close(struct kernel_debug *debug);
