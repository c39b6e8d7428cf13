/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is put into the memory of a running process so that it loads a library (inject/), as the new thread there sees it.
 * The library's function gets it, and unmaps it and the code (agent/late.c). The assembly code of inject/ knows these
 * numbers, too.
 */
#define LATE_TEXT_SIZE 1024
#define LATE_DLOPEN 1024
#define LATE_DLSYM 1032
#define LATE_DLERROR 1040
#define LATE_STATE 1048
#define LATE_LIBRARY 1280
#define LATE_FUNCTION 5376
#define LATE_WHY 5440
#define LATE_WHY_SIZE 512
#define LATE_FLAGS 0x1002 /* RTLD_NOW | RTLD_NODELETE */

#define LATE_BEGUN 1
#define LATE_LOADED 2 /* from here on, it belongs to the library */
#define LATE_FAILED 3

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct late {
	char text[LATE_TEXT_SIZE]; /* for the library's function */
	uint64_t dlopen, dlsym, dlerror;
	uint32_t state;
	uint32_t back;   /* the borrowed thread has left `code`: it may be unmapped */
	uint64_t thread; /* its pthread_t */
	uint64_t code, code_size, data, data_size;
	uint8_t more[LATE_LIBRARY - 1096];
	char library[4096];
	char function[64];
	char why[LATE_WHY_SIZE]; /* LATE_FAILED: what dlerror says */
};
_Static_assert(offsetof(struct late, dlopen) == LATE_DLOPEN &&
		       offsetof(struct late, dlsym) == LATE_DLSYM &&
		       offsetof(struct late, dlerror) == LATE_DLERROR &&
		       offsetof(struct late, state) == LATE_STATE &&
		       offsetof(struct late, library) == LATE_LIBRARY &&
		       offsetof(struct late, function) == LATE_FUNCTION &&
		       offsetof(struct late, why) == LATE_WHY,
	       "as in code_CPU.S");
#endif
