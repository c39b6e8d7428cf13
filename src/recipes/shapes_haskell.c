/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Haskell, as GHC compiles it: code that follows no convention of C.
 *
 * Haskell keeps its own stack, of continuations, in memory of its own, with a register of its own as
 * pointer (rbp, x20), which C takes for something else. Its procedures jump to each other and
 * return to nobody; where their compiler is LLVM on aarch64, they "call" each other, and never come back.
 * The stack of C stays where one procedure left it, StgRun, through which all of C goes to Haskell:
 *
 *     StgRun:     save registers; SP = SP - 16384; jump to Haskell
 *     StgReturn:  SP = SP + 16384; restore registers; return        (Haskell jumps here)
 *
 * Haskell uses these 16 KiB for what does not fit into registers, and calls C below them. So wherever
 * it stands, the caller of StgRun is found from SP alone, as if StgRun had ended with that jump.
 *
 * Which code is Haskell's? GHC writes no unwind information, and C has some: it is what has none, in
 * a module with a StgRun. What C calls is none of it: assembly that somebody wrote without.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "flow/frame.h"
#include "image/image.h"
#include "isa/insn.h"
#include "recipes/cfi.h"
#include "recipes/rows.h"
#include "recipes/shapes_cpu.h"

#define RESERVED 16384 /* bytes that StgRun leaves for Haskell */
#define RUN_INSNS 96   /* at most, of StgRun */

struct haskell {
	struct image *image;
	const struct isa *isa;
	struct rows *rows;
	struct cfi_range *described; /* ascending */
	size_t count;
	struct recipe recipe; /* where Haskell has not moved SP */
};

static const struct cfi_range *find_range(const struct haskell *h, uint64_t at)
{
	size_t found = FIRST_NOT(i, h->count, h->described[i].end <= at);
	return found < h->count && h->described[found].start <= at ? &h->described[found] : NULL;
}

/* By how much the instruction moves SP up; 0: not at all, or in another way. */
static int64_t moves_sp(const struct isa *isa, const struct insn *insn)
{
	int64_t by = 0;
	for (unsigned i = 0; i < insn->effect_count; i++) {
		const struct effect *e = &insn->effects[i];
		if (e->dst == isa->sp && e->op == EFFECT_MOVE && e->src == isa->sp)
			by += e->imm;
	}
	return by;
}

static void add_row(const struct haskell *h, const struct insn *insn, const struct recipe *recipe)
{
	rows_add(h->rows, insn->address, insn->address + insn->length, rows_rule(h->rows, recipe));
}

/* From here on registers are Haskell's: what the caller had in them is where it was saved. */
static struct recipe leave_registers(const struct isa *isa, struct frame_state *state)
{
	struct recipe recipe;
	state->fp = state->extra = state->link = (struct frame_value){FRAME_UNKNOWN, 0};
	frame_recipe(isa, state, &recipe);
	recipe.source = RECIPE_FROM_SHAPE;
	return recipe;
}

/*
 * Follows the procedure in a line. It is StgRun if it jumps away with the reserved bytes below its
 * frame, and what stands behind the jump gives them back. `write`: adds its rows.
 */
static bool follow_run(struct haskell *h, const struct cfi_range *range, bool write)
{
	size_t size;
	const uint8_t *code = image_bytes_at(h->image, range->start, &size);
	struct frame_state state;
	struct recipe recipe;
	bool jumped = false, back = false;
	if (code && size > range->end - range->start)
		size = range->end - range->start;
	frame_entry(h->isa, &state);
	for (unsigned n = 0; code && n < RUN_INSNS; n++) {
		struct insn insn;
		uint64_t at = range->end - size;
		if (!size)
			return false;
		h->isa->decode(code, size, at, &insn);
		frame_recipe(h->isa, &state, &recipe);
		recipe.source = RECIPE_FROM_SHAPE;
		if (write)
			add_row(h, &insn, &recipe);
		if (insn.kind == INSN_RETURN)
			return back && frame_is_entry(h->isa, &state);
		if (insn.kind == INSN_JUMP_INDIRECT && !jumped) {
			jumped = true;
			h->recipe = leave_registers(h->isa, &state);
		} else if (insn.kind != INSN_OTHER && insn.kind != INSN_NOP) {
			return false;
		}
		back |= jumped && moves_sp(h->isa, &insn) == RESERVED;
		frame_apply(h->isa, &state, &insn);
		code += insn.length;
		size -= insn.length;
	}
	return false;
}

static bool is_run(struct haskell *h, const struct cfi_range *range)
{
	const struct recipe *r = &h->recipe;
	return follow_run(h, range, false) && r->cfa == RECIPE_REG && r->cfa_reg == h->isa->sp &&
	       r->cfa_offset > RESERVED && r->ra == RECIPE_AT_CFA && r->fp == RECIPE_AT_CFA;
}

static bool find_run(struct haskell *h)
{
	/* sub $16384,%rsp; sub sp,sp,#4,lsl #12 */
	static const uint8_t x86[] = {0x48, 0x81, 0xec, 0x00, 0x40, 0x00, 0x00};
	static const uint8_t arm[] = {0xff, 0x13, 0x40, 0xd1};
	const uint8_t *shape = h->isa->call_pushes ? x86 : arm;
	size_t length = h->isa->call_pushes ? sizeof x86 : sizeof arm;
	const struct image_segment *segments;
	size_t count = image_segments(h->image, &segments);
	for (size_t i = 0; i < count; i++) {
		size_t size = 0;
		const uint8_t *code = segments[i].executable
					      ? image_bytes_at(h->image, segments[i].address, &size)
					      : NULL;
		const uint8_t *from = code, *found;
		for (; code && (found = memmem(from, size - (size_t)(from - code), shape, length));
		     from = found + 1) {
			uint64_t at = segments[i].address + (uint64_t)(found - code);
			const struct cfi_range *range = find_range(h, at);
			if (range && is_run(h, range))
				return follow_run(h, range, true);
		}
	}
	return false;
}

#define CALL_INSNS 64 /* at most, while SP is moved for a call */

/* Where SP is moved down for a call of C, up to where it is back. */
static void add_call(const struct haskell *h, const uint8_t *code, size_t size, uint64_t address)
{
	struct recipe recipe = h->recipe;
	struct insn insns[CALL_INSNS];
	int32_t moved[CALL_INSNS], down = 0;
	unsigned count = 0;
	bool calls = false;
	do {
		struct insn *insn = &insns[count];
		if (count == CALL_INSNS || !size)
			return;
		h->isa->decode(code, size, address, insn);
		bool call = insn->kind == INSN_CALL || insn->kind == INSN_CALL_INDIRECT;
		if (!call && insn->kind != INSN_OTHER && insn->kind != INSN_NOP)
			return;
		int64_t by = moves_sp(h->isa, insn);
		if (by > RESERVED || by < -RESERVED || down - by > RESERVED || down - by < 0)
			return;
		calls |= call;
		moved[count++] = down;
		down -= (int32_t)by;
		code += insn->length;
		size -= insn->length;
		address += insn->length;
	} while (down);
	for (unsigned i = 0; calls && i < count; i++) {
		recipe.cfa_offset = h->recipe.cfa_offset + moved[i];
		add_row(h, &insns[i], &recipe);
	}
}

/* Could an instruction that moves SP down begin here? */
static bool may_move(const struct isa *isa, const uint8_t *code, size_t size)
{
	if (isa->call_pushes)
		return size >= 7 && code[0] == 0x48 && (code[1] == 0x83 || code[1] == 0x81) &&
		       code[2] == 0xec;
	uint32_t word;
	if (size < sizeof word)
		return false;
	memcpy(&word, code, sizeof word);
	return (word & 0xff8003ff) == 0xd10003ff;
}

#define STUB 8 /* bytes */

/*
 * Is this an instruction of C that a linker has put elsewhere, because some CPUs (Cortex-A53) may not have it where
 * it was? Behind it stands a jump back, to what comes after the jump here.
 */
static bool is_moved_from_c(const struct haskell *h, const uint8_t *code, size_t size,
			    uint64_t address)
{
	struct insn jump;
	if (h->isa->call_pushes || size < STUB || code[7] >> 2 != 5)
		return false;
	h->isa->decode(code + 4, size - 4, address + 4, &jump);
	if (jump.kind != INSN_JUMP || !find_range(h, jump.target - 4))
		return false;
	code = image_bytes_at(h->image, jump.target - 4, &size);
	if (!code)
		return false;
	h->isa->decode(code, size, jump.target - 4, &jump);
	return jump.kind == INSN_JUMP && jump.target == address;
}

static void add_gap(const struct haskell *h, uint64_t start, uint64_t end)
{
	const uint32_t rule = rows_rule(h->rows, &h->recipe);
	size_t size;
	const uint8_t *code = start < end ? image_bytes_at(h->image, start, &size) : NULL;
	if (!code)
		return;
	if (size > end - start)
		size = end - start;
	size_t from = 0;
	for (size_t at = 0; at < size; at += h->isa->insn_min) {
		if (may_move(h->isa, code + at, size - at))
			add_call(h, code + at, size - at, start + at);
		if (is_moved_from_c(h, code + at, size - at, start + at)) {
			if (at > from)
				rows_add(h->rows, start + from, start + at, rule);
			from = at + STUB;
		}
	}
	if (size > from)
		rows_add(h->rows, start + from, start + size, rule);
}

struct gaps {
	struct cfi_range *list; /* ascending; start == end: it is not Haskell's */
	size_t count;
};

static void refuse_gap(struct gaps *gaps, uint64_t at)
{
	size_t after = FIRST_NOT(i, gaps->count, gaps->list[i].start <= at);
	if (after && at < gaps->list[after - 1].end)
		gaps->list[after - 1].end = gaps->list[after - 1].start;
}

/* What C calls is not Haskell's. */
static void refuse_called(const struct haskell *h, struct gaps *gaps)
{
	for (size_t i = 0; i < h->count; i++) {
		uint64_t at = h->described[i].start, end = h->described[i].end;
		size_t size;
		const uint8_t *code = image_bytes_at(h->image, at, &size);
		while (code && size && at < end) {
			struct insn insn;
			h->isa->decode(code, size, at, &insn);
			if (insn.kind == INSN_CALL)
				refuse_gap(gaps, insn.target);
			if (insn.length > size)
				break;
			at += insn.length;
			code += insn.length;
			size -= insn.length;
		}
	}
}

#define START_REACH 1024 /* bytes in which the code that is linked in behind the entry lies */
#define START_CODE 256   /* and where nothing tells how much there is */

/* Behind the entry stands what crtbegin.o brings, some of it without unwind information: up to
   the last procedure there that is called at the start or the end. */
static uint64_t start_end(const struct haskell *h)
{
	static const char *const arrays[] = {".init_array", ".fini_array"};
	uint64_t entry = image_entry(h->image), last = 0;
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		const struct image_section *s = image_section(h->image, arrays[i]);
		size_t size = 0;
		const uint8_t *bytes = s ? image_section_bytes(h->image, s, &size) : NULL;
		uint64_t word;
		for (size_t at = 0; bytes && size - at >= sizeof word; at += sizeof word) {
			memcpy(&word, bytes + at, sizeof word);
			if (word > entry && word - entry < START_REACH && word > last)
				last = word;
		}
	}
	return last ? (last + 31) & ~15ull : entry + START_CODE;
}

/* The code of one section between what is described. */
static void list_gaps(const struct haskell *h, const struct image_section *section,
		      struct gaps *gaps)
{
	uint64_t at = section->address, end = section->address + section->size;
	for (size_t i = 0; i <= h->count && at < end; i++) {
		uint64_t next = i < h->count ? h->described[i].start : end;
		if (next > end)
			next = end;
		if (next > at)
			gaps->list[gaps->count++] = (struct cfi_range){at, next};
		if (i < h->count && h->described[i].end > at)
			at = h->described[i].end;
	}
}

static void add_haskell(const struct haskell *h, const struct image_section *section)
{
	uint64_t entry = image_entry(h->image), behind = start_end(h);
	struct gaps gaps = {.list = calloc(h->count + 1, sizeof *gaps.list)};
	if (!gaps.list) {
		h->rows->failed = 1;
		return;
	}
	list_gaps(h, section, &gaps);
	refuse_called(h, &gaps);
	for (size_t i = 0; i < gaps.count; i++) {
		uint64_t start = gaps.list[i].start, end = gaps.list[i].end;
		bool begins = start <= entry && entry < end;
		add_gap(h, start, begins ? entry : end);
		if (begins || (start > entry && start < behind))
			add_gap(h, behind, end);
	}
	free(gaps.list);
}

void shapes_add_haskell(struct image *image, struct rows *rows)
{
	struct haskell h = {
		.image = image,
		.isa = isa_for_machine(image_machine(image)),
		.rows = rows,
	};
	const struct image_section *sections;
	size_t count = image_sections(image, &sections);
	if (!h.isa)
		return;
	err_free(cfi_ranges(image, NULL, &h.described, &h.count));
	if (h.count && find_run(&h))
		for (size_t i = 0; i < count; i++)
			if (!strncmp(sections[i].name, ".text", 5))
				add_haskell(&h, &sections[i]);
	free(h.described);
}
