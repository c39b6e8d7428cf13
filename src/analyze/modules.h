/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The modules of a recording, opened again to name what is in it. A file whose
 * build-id is no longer the recorded one gives no names: wrong ones would be
 * worse than addresses. The vDSO is our own where it is the same; code made at run time has
 * its names in the profile.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct answer;
struct buf;
struct err;
struct image;
struct modules;
struct profile;
struct structure;
struct symbols;

/* Opens every module that has nodes and reads its symbols, several at once. `profile` must outlive
   the result. `download`: ask debuginfod for debug files. */
struct err *modules_open(const struct profile *profile, bool download, struct modules **out);
void modules_close(struct modules *modules); /* NULL is fine */
/* Goes on with a later profile of the same recording: what was found out stays, modules that are new
   are opened. The profile before may go. After an error only modules_close is allowed. */
struct err *modules_update(struct modules *modules, const struct profile *profile);

/* The function that an address (of the module's own) belongs to. */
struct modules_function {
	const char *name; /* for people; NULL: not known */
	uint64_t start;   /* the address itself where nothing tells where the function begins */
};
void modules_function(struct modules *modules, uint32_t module, uint64_t address, bool exact,
		      struct modules_function *out);

/* Its file and the symbols of it, NULL where it could not be read or has none. */
struct image *modules_image(struct modules *modules, uint32_t module);
const struct symbols *modules_symbols(struct modules *modules, uint32_t module);
/* Its separate debug file; NULL: it has none. */
struct image *modules_debug(struct modules *modules, uint32_t module);
/* The name of the import whose address the dynamic linker puts into this word; NULL where there is none. One
   thread at a time may ask for one module. */
const char *modules_import(struct modules *modules, uint32_t module, uint64_t slot);
/* Its procedures with their loops and inlined code, NULL where it could not be read. One thread at
   a time may ask for one module. */
struct structure *modules_structure(struct modules *modules, uint32_t module);

struct modules_question {
	uint32_t module;
	uint64_t address; /* of an instruction */
};
/* Finds out about many instructions, modules beside each other, with progress on stderr: their
   places, and with_structure their loops. The order of the questions changes. */
void modules_prepare(struct modules *modules, struct modules_question *questions, size_t count,
		     bool with_structure);
/* What is known of an instruction that was prepared (analyze/answers.h); NULL: nothing. */
const struct answer *modules_answer(const struct modules *modules, uint32_t module,
				    uint64_t address);

/* What people see of each module. */
struct modules_shown {
	bool any;
	bool nameless; /* a function without a name */
};
/* Appends a line for each way in which modules could not be read: changed since the recording,
   gone, without symbols, with damaged debug information. Only those that are shown are told of; NULL: all.
   Returns how many. */
unsigned modules_notes(const struct modules *modules, const struct modules_shown *shown,
		       struct buf *out);
/* Adds to an error, which it takes, the files that are gone or have changed since: what was asked for may be in one of
   them. NULL is fine. */
struct err *modules_blame(const struct modules *modules, struct err *error);
