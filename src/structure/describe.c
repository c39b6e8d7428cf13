/* SPDX-License-Identifier: Apache-2.0 */
/* Where all procedures of a module are written: from DWARF, then from their lines. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "image/image.h"
#include "image/inlines.h"
#include "image/lines.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "structure/internal.h"

struct host { /* a procedure with code */
	uint32_t file, line;
	uint64_t start, end; /* the part with its entry */
};

struct reader {
	struct structure *s;
	uint64_t end; /* of all hosts so far */
	struct host *hosts;
	size_t count, capacity;
};

static struct err *add_host(struct reader *r, const struct inline_procedure *p)
{
	const struct inline_scope *self = &p->scopes[0];
	uint64_t start = p->ranges[self->first].start, end = p->ranges[self->first].end;
	/* Ascending by start. Code has one procedure: what else claims it is damage, and would be
	   read again and again. */
	if (start < r->end)
		return NULL;
	r->end = end;
	if (!ARRAY_ROOM(r->hosts, r->count, r->capacity))
		return err_new("out of memory");
	r->hosts[r->count++] = (struct host){self->file, self->line, start, end};
	return NULL;
}

/* A local class leaves no linker name in the DWARF of its methods, but maybe a symbol. */
static uint32_t level_of(const struct reader *r, const struct inline_procedure *p, size_t scope)
{
	const struct symbol *symbol = NULL;
	uint64_t start = p->scopes[0].count ? p->ranges[p->scopes[0].first].start : 0;
	uint32_t level = descriptor_level(p->scopes[scope].name);
	if (!level)
		level = descriptor_level(p->scopes[scope].plain);
	if (!level && scope == 0)
		symbol = symbols_find(r->s->symbols, start);
	return symbol && symbol->address == start ? descriptor_level(symbol->name) : level;
}

static struct err *describe(void *context, const struct inline_procedure *p)
{
	struct reader *r = context;
	struct descriptors *d = &r->s->descriptors;
	size_t count = r->s->options.source == STRUCTURE_LINES_CODE ? 1 : p->scope_count;
	for (size_t i = 0; i < count && i < p->scope_count; i++) {
		const struct inline_scope *scope = &p->scopes[i];
		if (scope->file && scope->line)
			descriptors_add(d, (struct descriptor){
						   .file = scope->file,
						   .line = scope->line,
						   .name = scope->name ? scope->name : scope->plain,
						   .plain = scope->plain,
						   .level = level_of(r, p, i),
						   .code = i == 0,
					   });
	}
	if (d->failed)
		return err_new("out of memory");
	return p->scope_count && p->scopes[0].count && p->scopes[0].line ? add_host(r, p) : NULL;
}

static struct err *see(struct reader *r, void (*learn)(struct descriptors *, uint32_t, uint32_t,
						       const struct line_row *, size_t))
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < r->count; i++) {
		struct line_row *rows = NULL;
		size_t count = 0;
		e = lines_range(r->s->lines, r->hosts[i].start, r->hosts[i].end, &rows, &count);
		if (!e)
			learn(&r->s->descriptors, r->hosts[i].file, r->hosts[i].line, rows, count);
		free(rows);
	}
	return e;
}

/* The last line of a procedure's file that it returns from; 0: not known. */
static uint32_t last_return(const struct reader *r, const struct host *h,
			    const struct line_row *rows, size_t count)
{
	size_t size, next = 0;
	const uint8_t *bytes = image_bytes_at(r->s->image, h->start, &size);
	uint32_t line = 0;
	struct insn insn;
	if (bytes && size > h->end - h->start)
		size = h->end - h->start;
	for (size_t at = 0; bytes && at < size; at += insn.length) {
		r->s->control.isa->decode(bytes + at, size - at, h->start + at, &insn);
		if (insn.kind != INSN_RETURN)
			continue;
		while (next < count && rows[next].end <= insn.address)
			next++;
		if (next < count && rows[next].address <= insn.address &&
		    rows[next].file == h->file && rows[next].line > line)
			line = rows[next].line;
	}
	return line;
}

static struct err *see_returns(struct reader *r)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && r->s->control.isa && i < r->count; i++) {
		const struct host *h = &r->hosts[i];
		struct line_row *rows = NULL;
		size_t count = 0;
		uint32_t line;
		e = lines_range(r->s->lines, h->start, h->end, &rows, &count);
		line = e ? 0 : last_return(r, h, rows, count);
		if (line)
			descriptors_see_return(&r->s->descriptors, h->file, h->line, line);
		free(rows);
	}
	return e;
}

static struct err *read_all(struct structure *s)
{
	struct reader r = {.s = s};
	struct err *e = inlines_each(s->inlines, describe, &r);
	if (!e && !descriptors_finish(&s->descriptors))
		e = err_new("out of memory");
	if (!e)
		e = see(&r, descriptors_see_ends);
	if (!e)
		e = see_returns(&r);
	if (!e)
		e = see(&r, descriptors_see_nests);
	free(r.hosts);
	return e;
}

struct err *structure_descriptors(struct structure *s, const struct descriptors **out)
{
	struct err *e = NULL;
	pthread_mutex_lock(&s->lock);
	if (!s->described) {
		e = read_all(s);
		if (e)
			descriptors_free(&s->descriptors);
		s->described = !e;
	}
	pthread_mutex_unlock(&s->lock);
	*out = &s->descriptors;
	return e;
}
