/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/frame_program.h"

#include <dwarf.h>
#include <elf.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "copies/frames.h"
#include "copies/pieces.h"

/* Newer than some <dwarf.h>. */
#define CFA_AARCH64_NEGATE_RA_STATE_WITH_PC 0x2c

#define X86_64_PC 16
#define AARCH64_PC 32

struct translation {
	const struct frames_common *common;
	uint64_t pc; /* the register with this number is the PC */
	struct cfi_bases bases;
	struct cursor cursor;
	const struct copy_piece *piece; /* NULL: instructions of a CIE */
	uint64_t at;                    /* in the function: where the next rule holds from */
	uint32_t place; /* in the copy: where rules hold from that are written now */
	struct buf *out;
};

static struct err *refuse(const char *what)
{
	return err_new("unwind information: %s", what);
}

/* ---- expressions ---- */

/* How many bytes the operand of an operation has; operands that are numbers of any length are read. */
static unsigned operand_size(uint8_t operation)
{
	switch (operation) {
	case DW_OP_addr:
	case DW_OP_const8u:
	case DW_OP_const8s:
		return 8;
	case DW_OP_const4u:
	case DW_OP_const4s:
		return 4;
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_skip:
	case DW_OP_bra:
		return 2;
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_pick:
	case DW_OP_deref_size:
	case DW_OP_xderef_size:
		return 1;
	default:
		return 0;
	}
}

/* Whether it is an operation that says the same in a copy; its operands are skipped. */
static bool operation_is_plain(struct cursor *cursor, uint64_t pc)
{
	uint8_t operation = cursor_u8(cursor);
	switch (operation) {
	case DW_OP_reg0 ... DW_OP_reg31:
		return operation - DW_OP_reg0 != (int)pc;
	case DW_OP_breg0 ... DW_OP_breg31:
		cursor_sleb(cursor);
		return operation - DW_OP_breg0 != (int)pc;
	case DW_OP_regx:
		return cursor_uleb(cursor) != pc;
	case DW_OP_bregx: {
		uint64_t reg = cursor_uleb(cursor);
		cursor_sleb(cursor);
		return reg != pc;
	}
	case DW_OP_constu:
	case DW_OP_consts:
	case DW_OP_plus_uconst:
		cursor_uleb(cursor);
		return true;
	case DW_OP_fbreg:
	case DW_OP_piece:
		return false;
	default:
		cursor_skip(cursor, operand_size(operation));
		return operation >= DW_OP_addr && operation <= DW_OP_nop;
	}
}

static struct err *skip_expression(struct translation *t)
{
	struct cursor block = cursor_block(&t->cursor, cursor_uleb(&t->cursor));
	while (cursor_left(&block))
		if (!operation_is_plain(&block, t->pc))
			return refuse("an expression that reads the PC, or is not known");
	return block.bad ? refuse("a damaged expression") : NULL;
}

/* ---- instructions ---- */

/* Goes past the operands of an instruction that is a rule. */
static struct err *skip_operands(struct translation *t, uint8_t instruction)
{
	struct cursor *cursor = &t->cursor;
	switch (instruction) {
	case DW_CFA_nop:
	case DW_CFA_remember_state:
	case DW_CFA_restore_state:
	case DW_CFA_AARCH64_negate_ra_state:
		return NULL;
	case DW_CFA_offset_extended:
	case DW_CFA_register:
	case DW_CFA_def_cfa:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_GNU_negative_offset_extended:
		cursor_uleb(cursor);
		cursor_sleb(cursor);
		return NULL;
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_GNU_args_size:
		cursor_sleb(cursor);
		return NULL;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		cursor_uleb(cursor);
		return skip_expression(t);
	case DW_CFA_def_cfa_expression:
		return skip_expression(t);
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		return refuse("return addresses that are signed with the PC");
	default:
		return err_new("unwind information: instruction 0x%x is not supported",
			       instruction);
	}
}

/* Whether the instruction says where the next rules hold from. */
static bool advances(struct translation *t, uint8_t instruction)
{
	uint64_t units;
	if ((instruction & 0xc0) == DW_CFA_advance_loc)
		units = instruction & 0x3f;
	else if (instruction == DW_CFA_advance_loc1)
		units = cursor_u8(&t->cursor);
	else if (instruction == DW_CFA_advance_loc2)
		units = cursor_u16(&t->cursor);
	else if (instruction == DW_CFA_advance_loc4)
		units = cursor_u32(&t->cursor);
	else if (instruction == DW_CFA_MIPS_advance_loc8)
		units = cursor_u64(&t->cursor);
	else if (instruction == DW_CFA_set_loc) {
		t->at = cfi_pointer(&t->cursor, t->common->pointer_encoding, &t->bases);
		return true;
	} else {
		return false;
	}
	t->at += units * t->common->code_align;
	return true;
}

static void write_advance(struct translation *t, uint32_t place)
{
	uint32_t distance = place - t->place;
	uint8_t bytes[1 + sizeof distance] = {DW_CFA_advance_loc4};
	size_t operand = sizeof distance;
	if (!distance)
		return;
	t->place = place;
	memcpy(bytes + 1, &distance, sizeof distance);
	if (distance < 0x40) {
		bytes[0] = (uint8_t)(DW_CFA_advance_loc | distance);
		operand = 0;
	} else if (distance <= UINT8_MAX) {
		bytes[0] = DW_CFA_advance_loc1;
		operand = 1;
	} else if (distance <= UINT16_MAX) {
		bytes[0] = DW_CFA_advance_loc2;
		operand = 2;
	}
	buf_append(t->out, bytes, 1 + operand);
}

static struct err *translate_one(struct translation *t, bool *done)
{
	const uint8_t *from = t->cursor.at;
	uint8_t instruction = cursor_u8(&t->cursor);
	struct err *e = NULL;
	if (advances(t, instruction))
		return t->piece ? NULL : refuse("a CIE with addresses");
	if ((instruction & 0xc0) == DW_CFA_offset)
		cursor_uleb(&t->cursor);
	else if ((instruction & 0xc0) != DW_CFA_restore)
		e = skip_operands(t, instruction);
	if (e || t->cursor.bad || instruction == DW_CFA_nop)
		return e;
	if (t->piece) {
		uint32_t place = piece_place(t->piece, t->at);
		*done = place >= t->piece->end;
		if (*done)
			return NULL;
		if (place < t->place)
			return refuse("addresses that descend");
		write_advance(t, place);
	}
	buf_append(t->out, from, (size_t)(t->cursor.at - from));
	return NULL;
}

static struct err *translate(struct translation *t)
{
	struct err *e = NULL;
	for (bool done = false; !e && !done && cursor_left(&t->cursor);) {
		e = translate_one(t, &done);
		if (!e && t->cursor.bad)
			e = refuse("a damaged instruction");
	}
	return e;
}

static struct translation translation_make(const struct frames *frames,
					   const struct frames_common *common, struct buf *out)
{
	return (struct translation){
		.common = common,
		.pc = image_machine(frames->image) == EM_AARCH64 ? AARCH64_PC : X86_64_PC,
		.bases = {.bytes = frames->section.bytes, .address = frames->section.address},
		.out = out,
	};
}

struct err *frame_program_write_common(const struct frames *frames,
				       const struct frames_common *common, struct buf *out)
{
	struct translation t = translation_make(frames, common, out);
	t.cursor = common->program;
	return translate(&t);
}

struct err *frame_program_write(const struct frames *frames, const struct frames_common *common,
				const struct copy_piece *piece, struct buf *out)
{
	struct translation t = translation_make(frames, common, out);
	t.cursor = piece->entry->program;
	t.piece = piece;
	t.at = piece->entry->start;
	t.place = piece->start;
	return translate(&t);
}
