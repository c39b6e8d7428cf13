/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Pointers in tables: how far it is from the pointer to what it points to, in four bytes. */
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends a pointer to `to`; `out` lies at `address` from its first byte on. */
static inline struct err *relative_put(struct buf *out, uint64_t address, uint64_t to)
{
	int64_t distance = (int64_t)(to - (address + out->size));
	int32_t stored = (int32_t)distance;
	if (stored != distance || !stored)
		return err_new("what unwind information points to is too far away");
	buf_append(out, &stored, sizeof stored);
	return NULL;
}
