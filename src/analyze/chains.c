/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dynamic paths and static scopes become one. A frame is an address, and its
 * procedure's structure says what lies around that: loops and inlined functions.
 *
 *     frame             structure of solve            steps of the frame
 *
 *     solve+0x58   ->   procedure solve          ->   solve
 *                         loop at 11                  loop at 11
 *                           inline find, from 12      find (inlined)
 *                             loop at 79              loop at 79
 *                               line 80
 *
 * The steps of the frame that it calls follow below. Frames at the same address
 * share their steps.
 */
#include "analyze/chains.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/answers.h"
#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/scopes.h"
#include "analyze/shorten.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "image/places.h"
#include "profile/profile.h"
#include "structure/structure.h"

struct chainer {
	struct attribution *a;
	const struct profile *p;
	struct modules *modules;
	const struct attribution_options *o;
	uint32_t *path; /* scopes of a procedure, innermost first */
	size_t path_count, path_room;
};

/* ---- steps ---- */

static struct err *append(struct attribution *a, uint32_t scope, const struct place *call)
{
	if (a->step_count == a->step_room) {
		size_t room = a->step_room ? a->step_room * 2 : 1024;
		struct attribution_step *moved = reallocarray(a->steps, room, sizeof *moved);
		if (!moved || room > UINT32_MAX) {
			a->steps = moved ? moved : a->steps;
			return err_new("out of memory");
		}
		a->steps = moved;
		a->step_room = room;
	}
	a->steps[a->step_count++] = (struct attribution_step){
		.scope = scope,
		.call_file = call ? call->file : NULL,
		.call_line = call ? call->line : 0,
	};
	return NULL;
}

static struct err *append_scope(struct chainer *c, const struct scope *scope)
{
	uint32_t number;
	struct err *e = scopes_add(c->a->scopes, scope, &number);
	return e ? e : append(c->a, number, NULL);
}

/* ---- by function, or by loop ---- */

/* places[i] is inlined where places[i + 1] says. */
static struct err *add_inlined(struct chainer *c, uint32_t module, const struct place *places,
			       size_t i, bool guessed, uint32_t *number)
{
	const struct place *p = &places[i];
	struct scope s = {
		.kind = SCOPE_INLINE,
		.module = module,
		.name = p->function ? p->function : "(inlined)",
		.file = p->declared_file ? p->declared_file : p->file,
		.line = p->declared_line,
		.guessed = guessed,
	};
	return scopes_add(c->a->scopes, &s, number);
}

/* "loop at mesh.cc:42-47"; without lines "loop at solve+0x30". */
static void name_loop(const struct chainer *c, uint32_t module, const struct structure_scope *loop,
		      uint32_t function, struct buf *name)
{
	const struct scope *f = scopes_get(c->a->scopes, function);
	buf_puts(name, "loop at ");
	if (loop->file && loop->line) {
		buf_printf(name, "%s:%" PRIu32, path_file(loop->file), loop->line);
		if (loop->last_line > loop->line)
			buf_printf(name, "-%" PRIu32, loop->last_line);
	} else if (f->nameless || loop->header < f->address) {
		buf_printf(name, "%s+0x%" PRIx64, path_file(c->p->modules[module].path),
			   loop->header);
	} else {
		name_shorten(f->name, name);
		buf_printf(name, "+0x%" PRIx64, loop->header - f->address);
	}
}

static struct err *add_loop(struct chainer *c, uint32_t module, const struct structure_scope *loop,
			    uint32_t function, uint32_t inlined, uint32_t *number)
{
	struct buf name = {0};
	name_loop(c, module, loop, function, &name);
	bool placed = loop->file && loop->line;
	struct scope s = {
		.kind = SCOPE_LOOP,
		.module = module,
		.address = loop->header,
		.name = buf_text(&name),
		.file = placed ? loop->file : NULL,
		.line = placed ? (int)loop->line : 0,
		.last_line = placed ? (int)loop->last_line : 0,
		.function = function,
		.inlined = inlined,
	};
	struct err *e = scopes_add(c->a->scopes, &s, number);
	buf_free(&name);
	return e;
}

/* The scopes of a frame from the innermost to the procedure, into c->path. */
static struct err *find_path(struct chainer *c, const struct answer *answer)
{
	const struct structure_procedure *p = answer->procedure;
	c->path_count = 0;
	for (uint32_t s = answer->scope; s; s = p->scopes[s].parent < s ? p->scopes[s].parent : 0) {
		if (!ARRAY_ROOM(c->path, c->path_count, c->path_room))
			return err_new("out of memory");
		c->path[c->path_count++] = s;
	}
	return NULL;
}

/* The inlined functions and loops around an instruction, outermost first. The places of the answer
   are its inlined functions, innermost first, and the procedure. */
static struct err *by_structure(struct chainer *c, uint32_t module, uint32_t function,
				const struct answer *answer)
{
	size_t place = answer->count ? answer->count - 1 : 0;
	uint32_t inlined = 0, number;
	struct err *e = find_path(c, answer);
	for (size_t i = c->path_count; !e && i-- > 0;) {
		const struct structure_scope *s = &answer->procedure->scopes[c->path[i]];
		if (s->type == STRUCTURE_INLINE && place && !c->o->no_inline) {
			const struct place *call = &answer->places[place--];
			e = add_inlined(c, module, answer->places, place, s->guessed, &inlined);
			if (!e && c->o->by == BY_FUNCTION)
				e = append(c->a, inlined, call);
		} else if (s->type == STRUCTURE_LOOP && !c->o->no_loops) {
			e = add_loop(c, module, s, function, inlined, &number);
			if (!e)
				e = append(c->a, number, NULL);
		}
	}
	return e;
}

static struct err *by_function(struct chainer *c, const struct profile_node *n, uint32_t function,
			       const struct answer *answer)
{
	bool loops_only = c->o->by == BY_LOOP;
	struct err *e = loops_only ? NULL : append(c->a, function, NULL);
	if (!e && answer && answer->procedure)
		return by_structure(c, n->module, function, answer);
	for (size_t i = answer && !c->o->no_inline && !loops_only ? answer->count : 0;
	     !e && i-- > 1;) {
		uint32_t number;
		e = add_inlined(c, n->module, answer->places, i - 1, false, &number);
		if (!e)
			e = append(c->a, number, &answer->places[i]);
	}
	return e;
}

/* ---- by what an instruction is written in ---- */

static struct err *by_place(struct chainer *c, const struct profile_node *n, uint32_t function,
			    const struct answer *answer)
{
	static const struct place unknown;
	const struct place *places = answer && answer->count ? answer->places : &unknown;
	size_t count = answer ? answer->count : 0;
	struct err *e = NULL;
	bool line = c->o->by == BY_LINE;
	for (size_t i = count ? count : 1;
	     !e && i-- > (c->o->no_inline && count ? count - 1 : 0);) {
		const struct place *p = &places[i];
		bool outermost = i + 1 >= count;
		const char *name = outermost ? scopes_get(c->a->scopes, function)->name
					     : p->function;
		struct scope s = {.kind = line ? SCOPE_LINE : SCOPE_FILE,
				  .module = line || !p->file ? n->module : 0,
				  .name = line      ? name
					  : p->file ? path_file(p->file)
						    : "(no file known)",
				  .file = p->file,
				  .line = line ? p->line : 0};
		e = append_scope(c, &s);
	}
	return e;
}

static struct err *by_instruction(struct chainer *c, const struct profile_node *n,
				  uint32_t function, const struct answer *answer)
{
	const struct scope *f = scopes_get(c->a->scopes, function);
	struct buf name = {0};
	uint64_t at = n->address;
	if (!f->address)
		buf_printf(&name, "%s 0x%" PRIx64, f->name, at);
	else if (at > f->address)
		buf_printf(&name, "%s+0x%" PRIx64, f->name, at - f->address);
	else
		buf_puts(&name, f->name);
	bool placed = answer && answer->count;
	struct err *e = append_scope(c, &(struct scope){
						.kind = SCOPE_INSN,
						.module = n->module,
						.address = at,
						.name = buf_text(&name),
						.file = placed ? answer->places[0].file : NULL,
						.line = placed ? answer->places[0].line : 0,
					});
	buf_free(&name);
	return e;
}

static struct err *by_module(struct chainer *c, const struct profile_node *n)
{
	const char *path = c->p->modules[n->module].path;
	return append_scope(c,
			    &(struct scope){.kind = SCOPE_MODULE,
					    .module = n->module,
					    .name = n->module ? path_file(path) : "(no module)"});
}

/* ---- frames ---- */

static struct err *chain_frame(struct chainer *c, const struct profile_node *n, uint32_t function)
{
	const struct answer *answer = modules_answer(c->modules, n->module,
						     n->address - (n->kind == PROFILE_CALL));
	switch (c->o->by) {
	case BY_LINE:
	case BY_FILE:
		return by_place(c, n, function, answer);
	case BY_INSN:
		return by_instruction(c, n, function, answer);
	case BY_MODULE:
		return by_module(c, n);
	default:
		return by_function(c, n, function, answer);
	}
}

static struct err *chain_node(struct chainer *c, uint32_t node, uint32_t function)
{
	const struct profile_node *n = &c->p->nodes[node];
	struct attribution_span *span = &c->a->spans[node];
	struct err *e = NULL;
	*span = (struct attribution_span){(uint32_t)c->a->step_count, 0};
	if (n->kind == PROFILE_PARTIAL)
		e = append(c->a, function, NULL);
	else if (n->kind != PROFILE_ROOT)
		e = chain_frame(c, n, function);
	span->count = (uint32_t)c->a->step_count - span->first;
	return e;
}

/* What is in no loop. Loops of the kernel are not known. */
static struct err *name_rest(struct attribution *a)
{
	const struct scope none = {.kind = SCOPE_LOOP, .name = "(in no loop)"};
	const struct scope kernel = {.kind = SCOPE_LOOP, .address = 1, .name = "(in the kernel)"};
	struct err *e = scopes_add(a->scopes, &none, &a->rest);
	return e ? e : scopes_add(a->scopes, &kernel, &a->kernel_rest);
}

struct err *chains_make(struct attribution *a, struct modules *modules,
			const struct attribution_options *o, const uint32_t *functions,
			const uint32_t *alike)
{
	struct chainer c = {.a = a, .p = a->profile, .modules = modules, .o = o};
	struct err *e = NULL;
	a->spans = calloc(c.p->node_count + 1, sizeof *a->spans);
	if (!a->spans)
		e = err_new("out of memory");
	if (!e && o->by == BY_LOOP)
		e = name_rest(a);
	for (uint32_t i = 0; !e && i < c.p->node_count; i++) {
		if (alike[i] == i)
			e = chain_node(&c, i, functions[i]);
		else
			a->spans[i] = a->spans[alike[i]];
	}
	free(c.path);
	return e;
}
