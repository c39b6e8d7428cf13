/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What text.c needs of each CPU: internal to isa/. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct text_cpu {
	struct err *(*open)(void **state);
	struct err *(*open_intel)(void **state); /* in Intel's syntax; NULL: there is but one */
	void (*close)(void *state);
	/* False where it is no instruction. The target of a direct jump or call ends the text, as 0x… */
	bool (*format)(void *state, const uint8_t *code, size_t size, uint64_t address, char *out,
		       size_t out_size);
};

extern const struct text_cpu text_x86_64, text_aarch64;
