/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame of Go. On x86-64: the return address, below it the caller's FP (where the frame is not
 * empty), then the rest; SP + pushed + 8 is the CFA. On aarch64 the return address is at SP,
 * the caller's FP in the word below SP, and SP + pushed is the CFA. The table has `pushed` for each
 * instruction, so that prologues and epilogues are exact; when FP is stored the code tells.
 *
 * Go's own DWARF has the same sizes, but says nothing about FP, ends the stack at signal
 * handlers and knows of no other stack: so this goes before it.
 */
#include "recipes/go.h"

#include <elf.h>
#include <string.h>

#include "image/image.h"
#include "recipes/go_internal.h"
#include "recipes/rows.h"

#define PROLOGUE_INSNS 24
#define FRAME_MAX (1 << 30)

/* ---- frames ---- */

int32_t go_beyond(const struct go *go, int32_t pushed)
{
	return pushed + go->isa->call_pushes;
}

int32_t go_fp_offset(const struct go *go, int32_t pushed)
{
	return go->isa->call_pushes ? -2 * go->isa->call_pushes : -pushed - 8;
}

struct recipe go_frame(const struct go *go, int32_t pushed)
{
	bool saved = go->isa->call_pushes || pushed;
	return (struct recipe){
		.cfa = RECIPE_REG,
		.cfa_reg = go->isa->sp,
		.cfa_offset = go_beyond(go, pushed),
		.ra = saved ? RECIPE_AT_CFA : RECIPE_SAME,
		.ra_offset = go->isa->call_pushes ? -go->isa->call_pushes : -pushed,
		.source = RECIPE_FROM_SHAPE,
	};
}

void go_add_rows(const struct go *go, uint64_t start, uint64_t end, const struct recipe *recipe)
{
	if (start < end)
		rows_add(go->rows, start, end, rows_rule(go->rows, recipe));
}

bool go_decode(const struct go_code *code, uint64_t at, struct insn *out)
{
	if (at < code->f.start || at >= code->end)
		return false;
	code->go->isa->decode(code->bytes + (at - code->f.start), code->end - at, at, out);
	return out->kind != INSN_BAD && out->length && out->length <= code->end - at;
}

bool go_writes_sp(const struct go *go, const struct insn *insn)
{
	if (insn->writes >> go->isa->sp & 1)
		return true;
	for (unsigned i = 0; i < insn->effect_count; i++) {
		const struct effect *e = &insn->effects[i];
		bool stores = e->op == EFFECT_STORE || e->op == EFFECT_COMPARE;
		if (!stores && e->dst == go->isa->sp &&
		    !(e->op == EFFECT_MOVE && e->src == go->isa->sp))
			return true;
	}
	return false;
}

/* Where the prologue has stored a register. */
struct save {
	bool found;
	uint64_t from;  /* it has by then */
	bool below;     /* as all large frames on aarch64 do, while SP is not there yet */
	int32_t offset; /* from the CFA */
};

/* Whether an effect stores it: effects are in order, and may move SP before that. */
static bool find_store(const struct go_code *code, const struct insn *insn, unsigned reg,
		       struct save *out)
{
	const struct isa *isa = code->go->isa;
	uint64_t next = insn->address + insn->length, when = insn->address;
	for (unsigned i = 0; i < insn->effect_count; i++) {
		const struct effect *e = &insn->effects[i];
		int32_t pushed = 0;
		if (e->op == EFFECT_MOVE && e->dst == isa->sp)
			when = next;
		if (e->op != EFFECT_STORE || e->src != reg)
			continue;
		bool on_stack = e->dst == isa->sp;
		if (on_stack && !gotab_value(code->go->table, code->index, GOTAB_SP, when, &pushed))
			return false;
		*out = (struct save){.found = on_stack || !isa->call_pushes,
				     .from = next,
				     .below = !on_stack,
				     .offset = (int32_t)e->imm - go_beyond(code->go, pushed)};
		return true;
	}
	return false;
}

static struct save find_save(const struct go_code *code, unsigned reg)
{
	struct save save = {0};
	struct insn insn;
	uint64_t at = code->f.start;
	for (int i = 0; i < PROLOGUE_INSNS && go_decode(code, at, &insn); i++, at += insn.length)
		if (insn.writes >> reg & 1 || insn.kind == INSN_CALL || insn.kind == INSN_RETURN ||
		    find_store(code, &insn, reg, &save))
			break;
	return save;
}

/* A procedure whose stack is too small calls for a larger one, with its return address in x3 (Go's
   R3), and nothing pushed. Whoever stands in that call has put the address into the extra
   register (go_switch.c). */
static void add_grow(const struct go_code *code)
{
	static const uint32_t save = 0xaa1e03e3; /* mov x3,x30 */
	const struct go *go = code->go;
	struct recipe recipe = go_frame(go, 0);
	recipe.ra = RECIPE_IN_REG;
	recipe.ra_offset = go->isa->extra;
	for (uint64_t at = code->f.start; at + 8 <= code->end; at += 4) {
		uint32_t words[2];
		memcpy(words, code->bytes + (at - code->f.start), sizeof words);
		if (words[0] == save && words[1] >> 26 == 0x94000000u >> 26)
			/* not at the call itself, where nothing has changed yet */
			go_add_rows(go, at + 5, at + 8, &recipe);
	}
}

/* ---- functions ---- */

static bool is_called(const struct go_code *code, const char *name)
{
	return !strcmp(code->f.name, name);
}

/* Whether there is a call in it, which would overwrite the link register. */
static bool has_call(const struct go_code *code)
{
	struct insn insn;
	for (uint64_t at = code->f.start; go_decode(code, at, &insn); at += insn.length)
		if (insn.kind == INSN_CALL || insn.kind == INSN_CALL_INDIRECT)
			return true;
	return false;
}

/* Where a signal handler has put the call between two instructions, as if it were one of theirs. */
static bool is_injected(const struct go_code *code)
{
	return is_called(code, "runtime.asyncPreempt");
}

static const struct recipe complex = {.cfa = RECIPE_COMPLEX, .source = RECIPE_FROM_SHAPE};

/* Where a handler changes the registers of who was interrupted one by one: between the first and the last
   of them they are nobody's. */
static void add_changes(const struct go_code *code)
{
	struct insn insn;
	uint64_t first = 0, last = 0;
	if (!is_called(code, "runtime.(*sigctxt).pushCall") &&
	    !is_called(code, "runtime.(*sigctxt).preparePanic"))
		return;
	for (uint64_t at = code->f.start; go_decode(code, at, &insn); at += insn.length) {
		for (unsigned i = 0; i < insn.effect_count; i++) {
			if (insn.effects[i].op != EFFECT_STORE ||
			    insn.effects[i].dst == code->go->isa->sp)
				continue;
			first = first ? first : at + insn.length;
			last = at + insn.length;
		}
		if (insn.kind == INSN_CALL) /* which may do it, too */
			last = at + insn.length;
	}
	go_add_rows(code->go, first, last, &complex);
}

/* Before that it has pushed the link register, where there is one. */
static int32_t pushed_by_handler(const struct go_code *code)
{
	bool pushed = is_called(code, "runtime.sigpanic") || is_called(code, "runtime.sigpanic0") ||
		      is_injected(code);
	return pushed && !code->go->isa->call_pushes ? RECIPE_PUSHED_LINK : 0;
}

struct frame_rows {
	const struct go_code *code;
	struct save fp, link;
	int32_t more; /* bytes beyond the frame */
	bool last;    /* what it does afterwards is not for who waits on another stack */
};

static void add_interval(const struct frame_rows *a, uint64_t start, uint64_t end, int32_t pushed)
{
	const struct go *go = a->code->go;
	struct recipe r = go_frame(go, pushed);
	if (pushed && !a->fp.found) {
		r.fp = RECIPE_LOST;
	} else if (pushed && start >= a->fp.from) {
		r.fp = RECIPE_AT_CFA;
		r.fp_offset = a->fp.below ? go_fp_offset(go, pushed) : a->fp.offset;
	}
	if (pushed && !go->isa->call_pushes) {
		r.ra = start >= a->link.from ? RECIPE_AT_CFA : RECIPE_SAME;
		r.ra_offset = r.ra == RECIPE_SAME ? 0 : a->link.below ? -pushed : a->link.offset;
	}
	r.cfa_offset += a->more;
	if (r.ra == RECIPE_AT_CFA)
		r.ra_offset -= a->more;
	if (r.fp == RECIPE_AT_CFA)
		r.fp_offset -= a->more;
	if (a->last)
		r.extra = RECIPE_LOST;
	if (is_injected(a->code)) {
		r.cfa = RECIPE_AWAY;
		r.cfa_add = 1;
		r.extra_offset = go->g;
		r.ra = r.ra == RECIPE_SAME ? RECIPE_IN_REG : r.ra;
		r.ra_offset = r.ra == RECIPE_IN_REG ? go->isa->link : r.ra_offset;
	}
	go_add_rows(go, start, end, &r);
}

/* One size, which may hold from before something was stored to after it. */
static void add_split(const struct frame_rows *a, uint64_t start, uint64_t end, int32_t pushed)
{
	const uint64_t cuts[] = {a->fp.found ? a->fp.from : 0, a->link.found ? a->link.from : 0};
	while (start < end) {
		uint64_t to = end;
		for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
			if (cuts[i] > start && cuts[i] < to)
				to = cuts[i];
		add_interval(a, start, to, pushed);
		start = to;
	}
}

/* Whether the table's sizes can be used. On aarch64 it must be known where the return address is. */
static bool is_plain(const struct frame_rows *a)
{
	const struct go_code *code = a->code;
	struct gotab_values v = {.table = code->go->table, .index = code->index, .what = GOTAB_SP};
	bool empty = true;
	while (gotab_next(&v))
		empty = empty && v.value == 0;
	return code->go->isa->call_pushes || (empty ? !has_call(code) : a->link.found);
}

/* All of a function's frames, as the table has them. */
static void add_frames(const struct go_code *code)
{
	const struct go *go = code->go;
	struct frame_rows a = {.code = code,
			       .fp = find_save(code, go->isa->fp),
			       .more = pushed_by_handler(code),
			       .last = is_called(code, "runtime.execute")};
	struct gotab_values v = {.table = go->table, .index = code->index, .what = GOTAB_SP};
	if (!go->isa->call_pushes)
		a.link = find_save(code, go->isa->link);
	if (!a.link.found && is_injected(code)) /* it is stored by an index in a register */
		a.link = (struct save){.found = true, .below = true};
	if (!is_plain(&a))
		return;
	while (gotab_next(&v))
		if (v.value >= 0 && v.value <= FRAME_MAX && v.value % 8 == 0)
			add_split(&a, v.start, v.end, v.value);
}

/* It goes back with a jump, when all is popped, on aarch64 also what the handler has pushed. */
static void add_last_jump(const struct go_code *code)
{
	struct insn insn;
	for (uint64_t at = code->f.start; go_decode(code, at, &insn); at += insn.length) {
		const struct recipe r = {.cfa = RECIPE_AWAY,
					 .cfa_reg = code->go->isa->sp,
					 .cfa_add = 1,
					 .ra = RECIPE_IN_REG,
					 .ra_offset = insn.reg,
					 .extra_offset = code->go->g,
					 .source = RECIPE_FROM_SHAPE};
		if (insn.kind == INSN_JUMP_INDIRECT && insn.reg != INSN_NO_REG)
			go_add_rows(code->go, at, at + insn.length, &r);
	}
}

static void add_function(const struct go_code *code)
{
	const struct go *go = code->go;
	/* The table is Go's unwind information, and says so. */
	static const struct recipe root = {.cfa = RECIPE_ROOT, .source = RECIPE_FROM_CFI};
	bool debugger = !strncmp(code->f.name, "runtime.debugCall", 17);
	bool handler = !strncmp(code->f.name, "runtime.sigtramp", 16);
	if (go_add_switch(code)) {
		add_frames(code); /* before it goes there */
		return;
	}
	if ((debugger && code->f.writes_sp) || (code->f.top && !handler)) {
		go_add_rows(go, code->f.start, code->f.end, debugger ? &complex : &root);
		return;
	}
	if (!go->sure || code->f.writes_sp)
		return;
	if (!go->isa->call_pushes)
		add_grow(code);
	add_changes(code);
	add_frames(code);
	if (is_injected(code)) {
		add_last_jump(code);
		go_add_rows(go, code->f.start, code->f.end, &complex);
	}
}

/* The first versions do not mark them. */
static bool is_top(const char *name)
{
	size_t length = strlen(name);
	if (!strncmp(name, "_rt0_", 5)) /* where programs begin; libraries are called by C */
		return length < 4 || strcmp(name + length - 4, "_lib") != 0;
	static const char *const names[] = {"runtime.mstart", "runtime.goexit", "runtime.rt0_go"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static bool open_code(const struct go *go, size_t index, struct go_code *code)
{
	size_t size = 0;
	*code = (struct go_code){.go = go, .index = index};
	if (!gotab_function(go->table, index, &code->f))
		return false;
	code->bytes = image_bytes_at(go->image, code->f.start, &size);
	if (!code->bytes)
		return false;
	code->end = code->f.end - code->f.start < size ? code->f.end : code->f.start + size;
	code->f.top = code->f.top || is_top(code->f.name);
	return true;
}

/* Go 1.17 and later have flags; older programs of the same format have none in all of it. */
static bool has_flags(const struct gotab *table)
{
	struct gotab_function f;
	for (size_t i = 0; i < gotab_count(table); i++)
		if (gotab_function(table, i, &f) && (f.top || f.writes_sp))
			return true;
	return false;
}

void go_add(struct image *image, struct rows *rows)
{
	bool arm = image_machine(image) == EM_AARCH64;
	struct go go = {.image = image,
			.isa = isa_for_machine(image_machine(image)),
			.rows = rows,
			.g = arm ? 28 : 14,
			.table = gotab_open(image)};
	struct go_code code;
	if (!go.table || !go.isa) {
		gotab_close(go.table);
		return;
	}
	go.sure = has_flags(go.table);
	for (size_t i = 0; i < gotab_count(go.table); i++)
		if (open_code(&go, i, &code))
			go_find_offsets(&go, &code);
	for (size_t i = 0; i < gotab_count(go.table); i++)
		if (open_code(&go, i, &code))
			add_function(&code);
	gotab_close(go.table);
}
