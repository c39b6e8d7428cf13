/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How well the code bears out a step of a walk: does the instruction before
 * the return address call the procedure in which the callee stands?
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct evidence;
struct image;
struct isa;
struct symbols;

enum link {
	LINK_NONE,   /* the outermost frame has no caller */
	LINK_VALID,  /* a call of the callee, direct or by its PLT stub; or a signal */
	LINK_LIKELY, /* an indirect call, or a call of a procedure that may jump on to the callee */
	LINK_INVALID, /* no call, or one of something else */
	LINK_UNKNOWN, /* the code of the caller, or of what it calls, cannot be read */
};
#define LINK_COUNT (LINK_UNKNOWN + 1)

/* "valid", "likely", "invalid", "unknown"; "" for none. */
const char *link_name(enum link link);

/* Where modules come from, each asked for when it is first needed. NULL: it cannot be read, it has
   no symbols. */
struct evidence_source {
	void *context;
	size_t module_count;
	struct image *(*image)(void *context, size_t module);
	const struct symbols *(*symbols)(void *context, size_t module);
};

/* What the source gives must outlive the result. */
struct err *evidence_open(const struct evidence_source *source, const struct isa *isa,
			  struct evidence **out);
void evidence_close(struct evidence *evidence); /* NULL is fine */

#define EVIDENCE_NOWHERE SIZE_MAX
struct evidence_address {
	size_t module;    /* EVIDENCE_NOWHERE: code of none */
	uint64_t address; /* the module's own */
};

/* `caller`: the return address. `callee`: the instruction in it, its call where it called. */
enum link evidence_classify(struct evidence *evidence, const struct evidence_address *caller,
			    const struct evidence_address *callee);
