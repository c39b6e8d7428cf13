/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of functions that another process reads, since the files are foreign: a small one may
 * have gigabytes of symbols, or what a reader of symbols stumbles over. It is started when it is
 * first asked, and answers for one file after the other:
 *
 *      daemon                                             PROGRAM tell-names PARENT
 *      teller_ask --- writes the addresses -------------> TELLER_PAPER, a file in memory
 *                 --- the open file, its name ----------> TELLER_SOCKET
 *                                                         teller_main: reads its symbols, writes pieces
 *                 <-- how many bytes, or why not -------- TELLER_SOCKET
 *      reads and checks them (library/pieces.h)
 *
 * Where it dies, or takes too long, there are no names of that file; for the next one another is started.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct teller;

#define TELLER_COMMAND "tell-names"
#define TELLER_ARGUMENTS 2 /* the command is one of them */

struct teller_question {
	const char *path, *build_id; /* hexadecimal; "": it has none */
	int file;
	const uint64_t *addresses; /* they ascend */
	size_t count;
	uint64_t wait_ms; /* for the answer, at most */
};

struct teller_report {
	uint64_t cpu_ns; /* that this file took, as far as one can tell */
	uint64_t memory; /* that the process had at most */
	bool failed;     /* it died, said nonsense, or the file takes too much */
};

struct err *teller_open(const char *program, struct teller **out);
void teller_close(struct teller *teller); /* NULL is fine */

/* Appends pieces, which are whole, to `out`. An error says why there are none. */
struct err *teller_ask(struct teller *teller, const struct teller_question *question,
		       struct buf *out, struct teller_report *report);
/* Ends the process, which has nothing to do until it is asked again. Returns CPU time of all that were ended since. */
uint64_t teller_rest(struct teller *teller);

/* The life of the other process, with its arguments; returns its exit status. */
int teller_main(int argc, char **argv);
