/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes protocol buffers: fields one after the other into a buffer. A message inside of
 * another is written into a buffer of its own first. Fields that are 0 or empty are
 * left out, as proto3 has it.
 */
#include <stddef.h>
#include <stdint.h>

struct buf;

#define PROTO_FIELD_MAX ((1u << 29) - 1)

/* uint64, int64 (two's complement), bool. */
void proto_number(struct buf *out, uint32_t field, uint64_t value);
/* string, bytes, message; also an empty one. */
void proto_bytes(struct buf *out, uint32_t field, const void *bytes, size_t size);
void proto_text(struct buf *out, uint32_t field, const char *text);
/* repeated numbers, packed; nothing where there are none. */
void proto_packed(struct buf *out, uint32_t field, const uint64_t *values, size_t count);
