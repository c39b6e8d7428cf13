/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of the functions that samples met, for the database: what is asked for
 * once is kept, so that a file is read again only where a function of it is new. The
 * daemon itself does not read them: the files are foreign.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct namer;
struct profile;
struct store_symbol;

/* `program`: that reads symbols in a process of its own (library/teller.h). */
struct err *namer_open(const char *program, struct namer **out);
void namer_close(struct namer *namer); /* NULL is fine */

/* The functions that nodes of the profile are in, each once, malloc'ed; what has no name is left out.
   Image numbers are those of the profile's modules. The texts live as long as the profile and until
   the next call. */
struct err *namer_find(struct namer *namer, const struct profile *profile,
		       struct store_symbol **symbols, size_t *count);

/* What the process that reads took since the last call, and of how many files it could not. */
struct namer_account {
	uint64_t cpu_ns;
	uint64_t memory;  /* at most, at once */
	unsigned failed;  /* files that are new among those */
	char reason[400]; /* of the last of them */
};
struct namer_account namer_take_account(struct namer *namer);
