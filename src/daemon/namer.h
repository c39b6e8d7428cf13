/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of the functions that samples met, for the database: what is asked for
 * once is kept, so that a file is read again only where a function of it is new.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct namer;
struct profile;
struct store_symbol;

struct err *namer_open(struct namer **out);
void namer_close(struct namer *namer); /* NULL is fine */

/* The functions that nodes of the profile are in, each once, malloc'ed; what has no name is left out.
   Image numbers are those of the profile's modules. The texts live as long as the profile and until
   the next call. */
struct err *namer_find(struct namer *namer, const struct profile *profile,
		       struct store_symbol **symbols, size_t *count);
