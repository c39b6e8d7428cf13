/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One CIE says what holds at the entry of every procedure. An FDE covers a
 * contiguous piece of code from one procedure's begin at most to the next's;
 * its program says, row by row, what changed since the row before. What DWARF
 * has no short form for (frames found through memory, words at SP or FP) is
 * said by an expression.
 */
#include "recipes/emit_frames.h"

#include <dwarf.h>
#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/leb.h"
#include "isa/insn.h"
#include "recipes/rows.h"

#define X86_64_RA 16
#define AARCH64_VG 46
#define DATA_ALIGN (-8)

struct writer {
	const struct isa *isa;
	struct buf *out;
	unsigned ra; /* column of the return address */
};

static void put8(struct buf *b, unsigned value)
{
	uint8_t byte = (uint8_t)value;
	buf_append(b, &byte, 1);
}

static void put32(struct buf *b, uint32_t value)
{
	buf_append(b, &value, sizeof value);
}

static void put64(struct buf *b, uint64_t value)
{
	buf_append(b, &value, sizeof value);
}

/* ---- expressions ---- */

/* Small enough to be built aside: their length goes before them. */
struct expression {
	struct buf bytes;
};

static void expression_register(struct expression *x, unsigned reg, int64_t offset)
{
	if (reg < 32) {
		put8(&x->bytes, DW_OP_breg0 + reg);
	} else {
		put8(&x->bytes, DW_OP_bregx);
		leb_put(&x->bytes, reg);
	}
	leb_put_signed(&x->bytes, offset);
}

static void expression_add(struct expression *x, int64_t offset)
{
	if (!offset)
		return;
	if (offset > 0) {
		put8(&x->bytes, DW_OP_plus_uconst);
		leb_put(&x->bytes, (uint64_t)offset);
		return;
	}
	put8(&x->bytes, DW_OP_consts);
	leb_put_signed(&x->bytes, offset);
	put8(&x->bytes, DW_OP_plus);
}

static void expression_end(struct writer *w, struct expression *x)
{
	leb_put(w->out, x->bytes.size);
	buf_append(w->out, x->bytes.data, x->bytes.size);
	w->out->failed |= x->bytes.failed;
	buf_free(&x->bytes);
}

/* ---- rows ---- */

/* CFA = register + offset, where that has a short form. */
static bool put_plain_cfa(struct writer *w, const struct recipe *was, const struct recipe *r)
{
	if (r->cfa != RECIPE_REG || r->cfa_vg || (r->cfa_offset < 0 && r->cfa_offset % DATA_ALIGN))
		return false;
	if (r->cfa_offset < 0) {
		put8(w->out, DW_CFA_def_cfa_sf);
		leb_put(w->out, r->cfa_reg);
		leb_put_signed(w->out, r->cfa_offset / DATA_ALIGN);
	} else if (was->cfa == RECIPE_REG && !was->cfa_vg && was->cfa_reg == r->cfa_reg) {
		put8(w->out, DW_CFA_def_cfa_offset);
		leb_put(w->out, (uint64_t)r->cfa_offset);
	} else if (was->cfa == RECIPE_REG && !was->cfa_vg && was->cfa_offset == r->cfa_offset) {
		put8(w->out, DW_CFA_def_cfa_register);
		leb_put(w->out, r->cfa_reg);
	} else {
		put8(w->out, DW_CFA_def_cfa);
		leb_put(w->out, r->cfa_reg);
		leb_put(w->out, (uint64_t)r->cfa_offset);
	}
	return true;
}

static void put_cfa(struct writer *w, const struct recipe *was, const struct recipe *r)
{
	struct expression x = {0};
	if (was->cfa == r->cfa && was->cfa_reg == r->cfa_reg && was->cfa_offset == r->cfa_offset &&
	    was->cfa_add == r->cfa_add && was->cfa_vg == r->cfa_vg)
		return;
	if (put_plain_cfa(w, was, r))
		return;
	put8(w->out, DW_CFA_def_cfa_expression);
	expression_register(&x, r->cfa_reg, r->cfa_offset);
	if (r->cfa == RECIPE_DEREF) {
		put8(&x.bytes, DW_OP_deref);
		expression_add(&x, r->cfa_add);
	}
	if (r->cfa_vg) { /* vector granules are a register of their own */
		expression_register(&x, AARCH64_VG, 0);
		put8(&x.bytes, DW_OP_consts);
		leb_put_signed(&x.bytes, r->cfa_vg);
		put8(&x.bytes, DW_OP_mul);
		put8(&x.bytes, DW_OP_plus);
	}
	expression_end(w, &x);
}

static void put_at_cfa(struct writer *w, unsigned reg, int32_t offset)
{
	struct expression x = {0};
	if (offset % DATA_ALIGN) {
		put8(w->out, DW_CFA_expression);
		leb_put(w->out, reg);
		expression_add(&x, offset); /* to the CFA, which is on the stack already */
		expression_end(w, &x);
	} else if (offset <= 0) {
		put8(w->out, DW_CFA_offset + reg);
		leb_put(w->out, (uint64_t)(offset / DATA_ALIGN));
	} else {
		put8(w->out, DW_CFA_offset_extended_sf);
		leb_put(w->out, reg);
		leb_put_signed(w->out, offset / DATA_ALIGN);
	}
}

/* Where register `reg` of the caller is. */
static void put_place(struct writer *w, unsigned reg, uint8_t where, int32_t offset)
{
	struct expression x = {0};
	switch (where) {
	case RECIPE_SAME:
		put8(w->out, DW_CFA_same_value);
		leb_put(w->out, reg);
		break;
	case RECIPE_AT_CFA:
		put_at_cfa(w, reg, offset);
		break;
	case RECIPE_AT_FP:
	case RECIPE_AT_SP:
		put8(w->out, DW_CFA_expression);
		leb_put(w->out, reg);
		expression_register(&x, where == RECIPE_AT_FP ? w->isa->fp : w->isa->sp, offset);
		expression_end(w, &x);
		break;
	case RECIPE_IN_REG:
		put8(w->out, DW_CFA_register);
		leb_put(w->out, reg);
		leb_put(w->out, (uint64_t)offset);
		break;
	default:
		put8(w->out, DW_CFA_undefined);
		leb_put(w->out, reg);
		break;
	}
}

/* Says what changes from one row to the next, and makes it the last row. */
static void put_row(struct writer *w, struct recipe *last, const struct recipe *r)
{
	struct recipe next = *r;
	if (r->cfa == RECIPE_ROOT) { /* that is: no return address. All else may stay */
		next = *last;
		next.ra = RECIPE_LOST;
		next.ra_offset = 0;
	}
	put_cfa(w, last, &next);
	if (next.ra != last->ra || next.ra_offset != last->ra_offset)
		put_place(w, w->ra, next.ra, next.ra_offset);
	if (next.fp != last->fp || next.fp_offset != last->fp_offset)
		put_place(w, w->isa->fp, next.fp, next.fp_offset);
	if (next.extra != last->extra || next.extra_offset != last->extra_offset)
		put_place(w, w->isa->extra, next.extra, next.extra_offset);
	*last = next;
}

static void put_advance(struct writer *w, uint64_t distance)
{
	while (distance > UINT32_MAX) {
		put8(w->out, DW_CFA_advance_loc4);
		put32(w->out, UINT32_MAX);
		distance -= UINT32_MAX;
	}
	if (distance < 0x40) {
		put8(w->out, DW_CFA_advance_loc + (unsigned)distance);
	} else if (distance <= UINT8_MAX) {
		put8(w->out, DW_CFA_advance_loc1);
		put8(w->out, (unsigned)distance);
	} else if (distance <= UINT16_MAX) {
		put8(w->out, DW_CFA_advance_loc2);
		put8(w->out, distance & 0xff);
		put8(w->out, (unsigned)distance >> 8);
	} else {
		put8(w->out, DW_CFA_advance_loc4);
		put32(w->out, (uint32_t)distance);
	}
}

/* ---- entries ---- */

static size_t entry_begin(struct buf *b)
{
	put32(b, 0);
	return b->size;
}

static void entry_end(struct buf *b, size_t begin)
{
	uint32_t length;
	while ((b->size - begin) % 8 != 4 && !b->failed) /* entries begin at multiples of 8 */
		put8(b, DW_CFA_nop);
	length = (uint32_t)(b->size - begin);
	if (!b->failed)
		memcpy(b->data + begin - 4, &length, sizeof length);
}

static struct recipe entry_recipe(const struct isa *isa)
{
	struct recipe r = {.cfa = RECIPE_REG, .cfa_reg = isa->sp, .cfa_offset = isa->call_pushes};
	if (isa->call_pushes) {
		r.ra = RECIPE_AT_CFA;
		r.ra_offset = -(int32_t)isa->call_pushes;
	}
	return r;
}

static void put_cie(struct writer *w)
{
	struct recipe entry = entry_recipe(w->isa);
	size_t begin = entry_begin(w->out);
	put32(w->out, UINT32_MAX);
	put8(w->out, 3); /* version */
	put8(w->out, 0); /* augmentation */
	leb_put(w->out, 1);
	leb_put_signed(w->out, DATA_ALIGN);
	leb_put(w->out, w->ra);
	put_cfa(w, &(struct recipe){0}, &entry);
	put_place(w, w->ra, entry.ra, entry.ra_offset);
	entry_end(w->out, begin);
}

/* The FDE for [start, end), whose first row is `row`. */
static void put_fde(struct writer *w, const struct rows *rows, size_t row, uint64_t start,
		    uint64_t end)
{
	struct recipe last = entry_recipe(w->isa);
	size_t begin = entry_begin(w->out);
	uint64_t at = start;
	put32(w->out, 0); /* the CIE is at the section's begin */
	put64(w->out, start);
	put64(w->out, end - start);
	for (; row < rows->count && rows->rows[row].address < end; row++) {
		if (rows->rows[row].address > at) {
			put_advance(w, rows->rows[row].address - at);
			at = rows->rows[row].address;
		}
		put_row(w, &last, &rows->rules[rows->rows[row].rule]);
	}
	entry_end(w->out, begin);
}

static bool is_sayable(const struct rows *rows, size_t row)
{
	uint8_t cfa = rows->rules[rows->rows[row].rule].cfa;
	return cfa == RECIPE_REG || cfa == RECIPE_DEREF || cfa == RECIPE_ROOT;
}

uint64_t emit_frames(const struct isa *isa, const struct rows *rows, const uint64_t *starts,
		     size_t start_count, struct buf *out)
{
	struct writer w = {.isa = isa, .out = out};
	size_t next = 0;
	uint64_t count = 0;
	w.ra = isa->elf_machine == EM_X86_64 ? X86_64_RA : isa->link;
	put_cie(&w);
	for (size_t row = 0; row + 1 < rows->count && !out->failed;) {
		size_t last = row; /* the piece goes on to the row after it */
		uint64_t start = rows->rows[row].address;
		if (!is_sayable(rows, row)) {
			row++;
			continue;
		}
		while (last + 2 < rows->count && is_sayable(rows, last + 1))
			last++;
		uint64_t limit = rows->rows[last + 1].address;
		while (start < limit) {
			uint64_t end = limit;
			while (next < start_count && starts[next] <= start)
				next++;
			if (next < start_count && starts[next] < end)
				end = starts[next];
			while (row < last && rows->rows[row + 1].address <= start)
				row++;
			put_fde(&w, rows, row, start, end);
			count++;
			start = end;
		}
		row = last + 1;
	}
	return count;
}
