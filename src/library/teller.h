/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of functions, read by another process, because the files are foreign: a small file may have gigabytes
 * of symbols, or may crash the reader. The daemon's namer uses it. The process is started when it is first
 * asked, and answers for one file after the other:
 *
 *      daemon                                             PROGRAM tell-names PARENT
 *      teller_ask --- writes the addresses -------------> TELLER_SHARED, a file in memory
 *                 --- the open file, its name ----------> TELLER_SOCKET
 *                                                         teller_main: reads its symbols, writes pieces
 *                 <-- how many bytes, or why not -------- TELLER_SOCKET
 *      reads and checks them (library/pieces.h)
 *
 * If it dies or takes too long, there are no names for that file, and another process is started for the next
 * one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct teller;

#define TELLER_COMMAND "tell-names"
#define TELLER_ARGUMENTS 2 /* including the command */

struct teller_question {
	const char *path, *build_id; /* build_id: hexadecimal; "": it has none */
	int file;
	const uint64_t *addresses; /* ascending */
	size_t count;
	uint64_t wait_ms; /* limit for the answer */
};

struct teller_report {
	uint64_t cpu_ns; /* for this file, as far as that is known */
	uint64_t memory; /* peak of the process */
	bool failed;     /* it died, its answer was invalid, or the file takes too much */
};

struct err *teller_open(const char *program, struct teller **out);
void teller_close(struct teller *teller); /* NULL is fine */

/* Appends valid pieces to `out`. An error tells why there are none. */
struct err *teller_ask(struct teller *teller, const struct teller_question *question,
		       struct buf *out, struct teller_report *report);
/* Ends the process; the next question starts another. Returns the CPU time of all processes that have
   ended since the last call. */
uint64_t teller_rest(struct teller *teller);

/* The main function of the other process, with its arguments; returns its exit status. */
int teller_main(int argc, char **argv);
