/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest/scripts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/siphash.h"
#include "harvest/recording.h"
#include "library/library.h"
#include "profile/profile.h"

#define BUCKETS 512u
#define LINES_OF_A_FUNCTION (1ull << 31)

struct script_function {
	struct script_function *next; /* in the bucket: newest first */
	uint64_t code, identity;
	struct python_function read;
	uint64_t start;  /* in the profile: where the function begins */
	uint32_t module; /* its index in the profile, as far as that is still the same */
};

struct scripts {
	struct python python;
	struct script_function gone; /* stands for all that could not be read any more */
	struct script_function *functions[BUCKETS];
};

struct scripts *scripts_open(const struct python *python)
{
	static char name[] = "(function that was gone)", file[] = "[Python]";
	struct scripts *s = calloc(1, sizeof *s);
	if (s) {
		s->python = *python;
		s->gone.read = (struct python_function){.name = name, .file = file};
	}
	return s;
}

void scripts_read_as(struct scripts *s, const struct python *python)
{
	s->python = *python;
}

void scripts_close(struct scripts *s)
{
	for (size_t i = 0; s && i < BUCKETS; i++)
		for (struct script_function *f = s->functions[i], *next; f; f = next) {
			next = f->next;
			python_function_free(&f->read);
			free(f);
		}
	free(s);
}

/* ---- the interpreter ---- */

static bool read_process(void *pid, uint64_t address, void *out, size_t size)
{
	struct iovec to = {out, size}, from = {(void *)(uintptr_t)address, size};
	return process_vm_readv(*(const pid_t *)pid, &to, 1, &from, 1, 0) == (ssize_t)size;
}

bool scripts_find(const struct library *library, const struct library_list *list, pid_t pid,
		  struct python *out)
{
	const struct python_memory memory = {read_process, &pid};
	for (uint32_t i = 0; i < list->count; i++) {
		const struct wire_module *w = &list->modules[i];
		const struct library_module *m = w->id ? library_module(library, w->id) : NULL;
		if (m && m->python.version && python_open(&m->python, w->bias, &memory, out))
			return true;
	}
	return false;
}

/* ---- what was called ---- */

static uint64_t start_of(const struct python_function *f)
{
	/* Zeros: nobody is to be kept from finding the same hash. */
	static const uint8_t secret[SIPHASH_SIZE];
	uint8_t bytes[SIPHASH_SIZE];
	uint32_t number;
	struct siphash hash;
	siphash_start(&hash, secret);
	siphash_add(&hash, f->name, strlen(f->name));
	siphash_add(&hash, &f->line, sizeof f->line);
	siphash_end(&hash, bytes);
	memcpy(&number, bytes, sizeof number);
	return (uint64_t)(number & INT32_MAX) << 32 | f->line;
}

static struct script_function *read_function(struct scripts *s, const struct python_memory *memory,
					     const struct python_call *call)
{
	struct script_function *f = calloc(1, sizeof *f);
	if (!f || !python_function_read(&s->python, memory, call->code, &f->read)) {
		free(f);
		return &s->gone;
	}
	f->code = call->code;
	f->identity = call->identity;
	f->start = start_of(&f->read);
	return f;
}

/* If another function has taken the place of one, both stay: samples of the old one may still come. */
static struct script_function *find_function(struct scripts *s, const struct python_memory *memory,
					     const struct python_call *call)
{
	struct script_function **bucket = &s->functions[call->code / 16 % BUCKETS];
	for (struct script_function *f = *bucket; f; f = f->next)
		if (f->code == call->code && f->identity == call->identity)
			return f;
	struct script_function *f = memory ? read_function(s, memory, call) : &s->gone;
	if (f != &s->gone) {
		f->next = *bucket;
		*bucket = f;
	}
	return f;
}

void scripts_learn(struct scripts *s, const struct python_memory *memory,
		   const struct python_call *call)
{
	find_function(s, memory, call);
}

static uint32_t line_of(const struct script_function *f, uint64_t instruction)
{
	uint32_t line = python_line(&f->read, instruction);
	return line < f->read.line ? f->read.line : line;
}

struct script_calls *scripts_resolve(struct scripts *s, const struct python_call *calls,
				     size_t count)
{
	struct script_calls *out = calloc(
		1, sizeof *out + count * (sizeof *out->calls + sizeof *out->hosts));
	if (!out)
		return NULL;
	uint64_t *hosts = (uint64_t *)(out->calls + count);
	out->hosts = hosts;
	for (size_t i = 0; i < count; i++) {
		struct script_call *c = &out->calls[out->count++];
		if (!calls[i].code) {
			hosts[out->groups++] = calls[i].instruction;
			continue;
		}
		c->function = find_function(s, NULL, &calls[i]);
		c->line = line_of(c->function, calls[i].instruction);
	}
	/* If the outermost group has no end, its other calls could not be read. */
	while (out->count && out->calls[out->count - 1].function)
		out->count--;
	return out;
}

/* ---- the profile ---- */

/* The module of the file, in the profile of now. */
static struct err *find_module(struct profile *p, struct script_function *f)
{
	const char *path = f->read.file;
	const struct profile_module *m = f->module < p->module_count ? &p->modules[f->module]
								     : NULL;
	if (m && m->kind == PROFILE_SCRIPT && !strcmp(m->path, path))
		return NULL;
	for (f->module = 1; f->module < p->module_count; f->module++) {
		m = &p->modules[f->module];
		if (m->kind == PROFILE_SCRIPT && !strcmp(m->path, path))
			return NULL;
	}
	return profile_add_module(
		p,
		&(struct profile_module){
			.kind = PROFILE_SCRIPT, .path = path, .build_id = "", .problem = ""},
		&f->module);
}

static struct err *add_child(struct profile *p, struct script_function *f, uint32_t line,
			     uint32_t *node)
{
	struct err *e = find_module(p, f);
	if (!e)
		e = profile_name_function(p, f->module, f->start, LINES_OF_A_FUNCTION,
					  f->read.name);
	return e ? e
		 : profile_child(p, *node, PROFILE_EXACT, f->module,
				 (f->start & ~(uint64_t)UINT32_MAX) | line, node);
}

struct err *scripts_add_call(struct scripts *s, const struct python_memory *memory,
			     struct profile *profile, const struct python_call *call,
			     uint32_t *node)
{
	struct script_function *f = find_function(s, memory, call);
	return add_child(profile, f, line_of(f, call->instruction), node);
}

struct err *scripts_add(struct recording *r, const struct script_calls *calls, size_t *left,
			uint32_t *node)
{
	struct err *e = NULL;
	*left -= *left > 0; /* what ends the group */
	for (; !e && *left && calls->calls[*left - 1].function; --*left) {
		const struct script_call *c = &calls->calls[*left - 1];
		e = add_child(r->harvest.profile, c->function, c->line, node);
	}
	return e;
}
