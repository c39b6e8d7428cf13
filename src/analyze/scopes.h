/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a piece of a program is, whatever its context: a function, a line, a
 * module, a thread. Equal ones are one, so that a scope is a number.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct scopes;

enum scope_kind {
	SCOPE_ROOT,
	SCOPE_RANK,
	SCOPE_PROCESS,
	SCOPE_THREAD,
	SCOPE_MODULE,
	SCOPE_FILE,
	SCOPE_FUNCTION,
	SCOPE_INLINE, /* a function without a frame of its own */
	SCOPE_LOOP,
	SCOPE_LINE,
	SCOPE_INSN,
	SCOPE_KERNEL,
	SCOPE_PARTIAL, /* the callers of what is below are not known */
	SCOPE_REASON,  /* why threads wait */
};
const char *scope_kind_name(enum scope_kind kind);

struct scope {
	enum scope_kind kind;
	uint32_t module;  /* of the profile; 0: none */
	uint64_t address; /* function: its start; loop: its header; thread: its index; … */
	const char *name; /* what people call it */
	const char *file; /* NULL: not known */
	int line;         /* 0: not known */
	int last_line;    /* of a loop */
	bool nameless;    /* of a function: the name is its address */
	bool script;      /* an interpreted function */
	bool object;      /* no function, but what is read or written there (PROFILE_OBJECT) */
	bool guessed;     /* of an inlined function: told from the lines alone */
	uint32_t function, inlined; /* of a loop: the scopes that it is in; inlined 0: in none */
};

/* Also one that is inlined, or of the kernel. */
static inline bool scope_is_function(const struct scope *scope)
{
	return scope->kind == SCOPE_FUNCTION || scope->kind == SCOPE_INLINE ||
	       scope->kind == SCOPE_KERNEL;
}
/* Whether the address is where its code begins. */
static inline bool scope_has_address(const struct scope *scope)
{
	return scope->module && (scope->kind == SCOPE_FUNCTION || scope->kind == SCOPE_LOOP ||
				 (scope->kind == SCOPE_KERNEL && scope->address));
}

/* Scope 0 is the root. */
struct err *scopes_new(struct scopes **out);
void scopes_free(struct scopes *scopes); /* NULL is fine */

/* The number of this scope, added where it is new. Its name is copied, its file is not. What makes
   it the same: kind, module and address; for inlined functions also name, file and guessed; for lines
   name, file and line; for files the file. */
struct err *scopes_add(struct scopes *scopes, const struct scope *scope, uint32_t *number);

const struct scope *scopes_get(const struct scopes *scopes, uint32_t number);
/* Where a function is written, learnt later. `file` must stay. */
void scopes_place(struct scopes *scopes, uint32_t number, const char *file, int line);
size_t scopes_count(const struct scopes *scopes);
