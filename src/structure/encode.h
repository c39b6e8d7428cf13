/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One procedure's structure as a few bytes, and back. The bytes may be foreign: a cache file. */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct structure_procedure;

/* Numbers for texts and back: 0 is NULL. */
struct encode_texts {
	uint32_t (*number)(void *context, const char *text); /* UINT32_MAX: out of memory */
	void *context;
};

/* False: out of memory. */
_Bool encode_procedure(const struct structure_procedure *procedure,
		       const struct encode_texts *texts, struct buf *out);
/* NULL: not sane, or out of memory. The caller frees it with structure_procedure_free. */
struct structure_procedure *decode_procedure(const uint8_t *bytes, size_t size,
					     const char *const *texts, size_t text_count);
