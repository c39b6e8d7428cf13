/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/wanted.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "image/names.h"
#include "structure/structure.h"

static struct err *add(void *context, const struct structure_procedure *p)
{
	struct wanted *l = context;
	if (!ARRAY_ROOM(l->items, l->count, l->room))
		return err_new("out of memory");
	l->items[l->count++] = (struct wanted_procedure){p->start, p->scopes[0].file};
	if (l->total)
		term_progress_update(&l->progress, l->count, l->total);
	return NULL;
}

static int by_file(const void *a, const void *b)
{
	const struct wanted_procedure *x = a, *y = b;
	int order = x->file == y->file ? 0
		    : !x->file         ? 1
		    : !y->file         ? -1
				       : strcmp(x->file, y->file);
	return order ? order : x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* "find" is "ns::find(int)", "ns::find<int>(int)" and "find"; "ns::find" is the first two. */
static bool is_called(const char *name, const char *wanted)
{
	size_t length = strlen(wanted);
	const char *at = name;
	if (!strcmp(name, wanted))
		return true;
	while ((at = strstr(at, wanted))) {
		bool begins = at == name || (at >= name + 2 && at[-1] == ':' && at[-2] == ':') ||
			      at[-1] == ' ';
		char after = at[length];
		if (begins && (!after || after == '(' || after == '<' || after == '[' ||
			       !strncmp(at + length, ".cold", 5) || after == '.' || after == ' '))
			return true;
		at++;
	}
	return false;
}

static struct err *find_named(struct structure *structure, const char *function, struct wanted *out)
{
	char *end;
	uint64_t address = strtoull(function, &end, 16);
	bool by_address = !strncmp(function, "0x", 2) && !*end;
	struct err *e = NULL;
	for (size_t i = 0; !by_address && !e && i < structure_count(structure); i++) {
		const char *symbol;
		uint64_t entry = structure_entry(structure, i, &symbol);
		char *name = symbol ? name_demangle(symbol) : NULL;
		if (symbol && (!strcmp(symbol, function) || (name && is_called(name, function)))) {
			struct structure_procedure *p = structure_take(structure, entry);
			e = p ? add(out, p) : NULL;
			structure_procedure_free(p);
		}
		free(name);
	}
	if (by_address) {
		struct structure_procedure *p = structure_take(structure, address);
		e = p ? add(out, p) : NULL;
		structure_procedure_free(p);
	}
	if (!e && !out->count)
		e = err_new("there is no procedure '%.200s'", function);
	return e;
}

static struct err *find_all(struct structure *structure, struct wanted *out)
{
	struct err *e;
	out->total = structure_count(structure);
	term_progress_start(&out->progress, "procedures");
	e = structure_each(structure, 0, add, out);
	term_progress_end(&out->progress);
	return e;
}

struct err *wanted_find(struct structure *structure, const char *function, struct wanted *out)
{
	struct err *e = function ? find_named(structure, function, out) : find_all(structure, out);
	if (!e && out->count)
		qsort(out->items, out->count, sizeof *out->items, by_file);
	return e;
}
