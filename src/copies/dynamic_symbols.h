/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The symbols of copies: each is a function named as the function of the copy, with ".paths" behind it. They are global,
 * because only those are found by an address at run time (dladdr), and protected: no other object gets them.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct copy;
struct err;

struct dynamic_symbols {
	struct buf symbols, hash, names; /* the contents of .dynsym, .hash and .dynstr */
	uint32_t soname;                 /* where the name of the object is among the names */
};

/* `bias` is added to addresses; `section` is the number of the one with the code. */
struct err *dynamic_symbols_write(const struct copy *copies, size_t count, uint64_t bias,
				  uint16_t section, const char *soname,
				  struct dynamic_symbols *out);
void dynamic_symbols_free(struct dynamic_symbols *tables);
