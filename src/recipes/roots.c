/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel (or the dynamic linker) jumps to the entry of a program. What stands on the stack there
 * are arguments: in the place of a return address it is their number. Start files of C say with a
 * zeroed frame pointer that they are the end; hand-written and free-standing ones say nothing.
 *
 * The procedure at the entry is what control comes to from there without a call. It ends where
 * another one begins:
 *
 *   1. at what is called directly, from anywhere: it has callers. (If that is the entry itself,
 *      nothing is known.)
 *   2. at what is jumped to, or begins a procedure, and something else refers to: it may be called
 *      through a pointer.
 *   3. behind a call that never returns, and behind the system call that ends the program.
 *
 * The first two are not known before all code has been looked at, but few places matter: so it is
 * followed twice, to see which, and with what was found about them.
 */
#include "recipes/roots.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "flow/references.h"
#include "flow/returns.h"
#include "image/image.h"
#include "isa/insn.h"
#include "recipes/analysis.h"
#include "recipes/rows.h"
#include "recipes/shapes.h"

#define REACHED_MAX 8192u /* instructions */
#define REACHED_SLOTS (4 * REACHED_MAX)

struct reached {
	uint64_t address; /* 0: a free slot */
	uint8_t length;
	bool barred; /* another procedure */
};

struct follower {
	const struct analysis *analysis;
	struct returns returns;
	struct reached *slots; /* a hash by address */
	uint64_t *todo;
	size_t count, todo_count;
};

static struct reached *find_slot(const struct follower *f, uint64_t at)
{
	size_t i = (size_t)((at * 0x9e3779b97f4a7c15u) >> 40) % REACHED_SLOTS;
	while (f->slots[i].address && f->slots[i].address != at)
		i = (i + 1) % REACHED_SLOTS;
	return &f->slots[i];
}

static bool goes_on(const struct follower *f, const struct insn *insn, int64_t *number)
{
	if (syscall_ends(f->analysis->isa, insn, number))
		return false;
	switch (insn->kind) {
	case INSN_CALL:
	case INSN_CALL_INDIRECT: {
		uint64_t callee = call_target(&f->returns, insn);
		return !callee || procedure_returns(&f->returns, callee);
	}
	case INSN_SYSCALL:
	case INSN_OTHER:
	case INSN_NOP:
	case INSN_BRANCH:
		return true;
	default:
		return false;
	}
}

static void push(struct follower *f, uint64_t at)
{
	if (f->todo_count < REACHED_MAX)
		f->todo[f->todo_count++] = at;
}

/* One way, up to where it ends or was followed before. With `rows` they get what is found. */
static void follow_way(struct follower *f, uint64_t at, struct rows *rows)
{
	const struct recipe root = {.cfa = RECIPE_ROOT, .source = RECIPE_FROM_SHAPE};
	const struct isa *isa = f->analysis->isa;
	int64_t number = -1;
	struct insn insn;
	do {
		size_t size;
		const uint8_t *code = trace_bytes(f->analysis->trace, at, &size);
		struct reached *slot = find_slot(f, at);
		if (!code || slot->barred ||
		    (rows ? !slot->address || !slot->length : slot->address != 0))
			return;
		isa->decode(code, size, at, &insn);
		if (insn.kind == INSN_BAD || f->count == REACHED_MAX)
			return;
		if (rows) {
			rows_add(rows, at, at + insn.length, rows_rule(rows, &root));
			slot->length = 0; /* done */
		} else {
			*slot = (struct reached){.address = at, .length = insn.length};
			f->count++;
		}
		if (insn.kind == INSN_JUMP || insn.kind == INSN_BRANCH)
			push(f, insn.target);
		at += insn.length;
	} while (goes_on(f, &insn, &number));
}

static void follow(struct follower *f, uint64_t entry, struct rows *rows)
{
	push(f, entry);
	while (f->todo_count)
		follow_way(f, f->todo[--f->todo_count], rows);
}

/* An instruction of the module: does it call what was reached? */
static void note_call(void *context, const struct trace_point *place)
{
	struct follower *f = context;
	const struct isa *isa = f->analysis->isa;
	size_t size;
	const uint8_t *code = trace_bytes(f->analysis->trace, place->address, &size);
	struct insn insn;
	if (!code ||
	    (isa->call_pushes && !memchr(code, 0xe8, place->length < size ? place->length : size)))
		return;
	isa->decode(code, size, place->address, &insn);
	if (insn.kind != INSN_CALL)
		return;
	struct reached *slot = find_slot(f, insn.target);
	slot->barred = slot->address != 0;
}

/* Is the address a number in the code (of x86-64), or a word of the data? */
static bool is_named(struct image *image, uint64_t address, bool in_code)
{
	const struct image_segment *segments;
	size_t count = image_segments(image, &segments);
	for (size_t i = 0; i < count; i++) {
		size_t size, width = segments[i].executable ? 4 : 8;
		const uint8_t *bytes = image_bytes_at(image, segments[i].address, &size);
		if (bytes && (!segments[i].executable || (in_code && !(address >> 32))) &&
		    memmem(bytes, size, &address, width))
			return true;
	}
	return false;
}

static bool is_start(const struct analysis *a, uint64_t at)
{
	const uint64_t *starts;
	size_t count = trace_starts(a->trace, &starts);
	size_t found = FIRST_NOT(i, count, starts[i] < at);
	return found < count && starts[found] == at;
}

#define LOOKS_MAX 64u /* at addresses in all of the module */

/* Who else knows the address of `at`, which control comes to? */
static void bar_known(const struct follower *f, struct image *image, struct references *references,
		      uint64_t at, unsigned *looks)
{
	struct reached *slot = find_slot(f, at);
	if (!slot->address || slot->barred)
		return;
	slot->barred = references_next(references, at - 1) == at || !*looks ||
		       is_named(image, at, f->analysis->isa->call_pushes);
	*looks -= *looks > 0;
}

/* Only what is jumped to, or begins a procedure elsewhere, can be one of its own. */
static void bar_referenced(struct follower *f, struct image *image, uint64_t entry)
{
	const struct isa *isa = f->analysis->isa;
	struct references *references = NULL;
	unsigned looks = LOOKS_MAX;
	err_free(references_open(image, isa, &references));
	for (size_t i = 0; references && i < REACHED_SLOTS; i++) {
		uint64_t at = f->slots[i].address;
		size_t size;
		const uint8_t *code = at ? trace_bytes(f->analysis->trace, at, &size) : NULL;
		struct insn insn;
		if (!code)
			continue;
		isa->decode(code, size, at, &insn);
		if (at != entry && is_start(f->analysis, at))
			bar_known(f, image, references, at, &looks);
		if (insn.kind == INSN_JUMP && insn.target != entry)
			bar_known(f, image, references, insn.target, &looks);
	}
	references_close(references);
}

static bool is_pie(struct image *image)
{
	const struct image_section *s = image_section(image, ".dynamic");
	size_t size = 0;
	const uint8_t *bytes = s ? image_section_bytes(image, s, &size) : NULL;
	Elf64_Dyn d;
	for (size_t at = 0; bytes && size - at >= sizeof d; at += sizeof d) {
		memcpy(&d, bytes + at, sizeof d);
		if (d.d_tag == DT_FLAGS_1 && (d.d_un.d_val & DF_1_PIE))
			return true;
	}
	return false;
}

/* Old linkers put any address into the headers of libraries. */
static bool is_program(struct image *image)
{
	char *interpreter = image_interpreter(image);
	bool asks = interpreter != NULL;
	free(interpreter);
	return asks || image_type(image) == ET_EXEC || is_pie(image);
}

static const uint8_t *code_at(const void *context, uint64_t address, size_t *size)
{
	return trace_bytes(context, address, size);
}

void roots_add(struct image *image, const struct analysis *analysis, struct rows *rows)
{
	uint64_t entry = image_entry(image);
	struct follower f = {
		.analysis = analysis,
		.returns = {.isa = analysis->isa,
			    .bytes = code_at,
			    .context = analysis->trace,
			    .noreturn = analysis->input.noreturn,
			    .noreturn_count = analysis->input.noreturn_count,
			    .slots = analysis->input.slots,
			    .slot_count = analysis->input.slot_count},
		.slots = calloc(REACHED_SLOTS, sizeof *f.slots),
		.todo = calloc(REACHED_MAX, sizeof *f.todo),
	};
	bool good = returns_init(&f.returns) && f.slots && f.todo;
	if (!good) {
		rows->failed = 1;
	} else if (entry && (is_program(image) || shapes_zeroes_pointer(image))) {
		follow(&f, entry, NULL);
		trace_each(analysis->trace, false, note_call, &f);
		bar_referenced(&f, image, entry);
		follow(&f, entry, rows);
	}
	returns_free(&f.returns);
	free(f.slots);
	free(f.todo);
}
