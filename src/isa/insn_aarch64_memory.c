/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and stores of aarch64. Those of whole X registers at base plus constant are effects,
 * because frames are saved and restored with them; of all others it matters only which general
 * registers they write: the destinations, the status of an exclusive store, the base.
 */
#include "isa/insn_aarch64.h"

enum transfer { TRANSFER_BAD, TRANSFER_NONE, STORE_X, STORE_OTHER, LOAD_X, LOAD_OTHER };

/* What size (31:30) and opc (23:22) say about a general register; prefetches are TRANSFER_NONE. */
static enum transfer transfer_of(uint32_t word)
{
	static const uint8_t table[16] = {
		STORE_OTHER, LOAD_OTHER, LOAD_OTHER,    LOAD_OTHER,   /* b */
		STORE_OTHER, LOAD_OTHER, LOAD_OTHER,    LOAD_OTHER,   /* h */
		STORE_OTHER, LOAD_OTHER, LOAD_OTHER,    TRANSFER_BAD, /* w */
		STORE_X,     LOAD_X,     TRANSFER_NONE, TRANSFER_BAD,
	};
	return table[bits(word, 31, 30) << 2 | bits(word, 23, 22)];
}

static void load_or_store(struct insn *out, enum transfer transfer, uint8_t reg, uint8_t base,
			  int64_t imm)
{
	switch (transfer) {
	case STORE_X:
		add_effect(out, EFFECT_STORE, base, reg == ZR ? INSN_NO_REG : reg, imm);
		break;
	case LOAD_X:
		if (reg != ZR)
			add_effect(out, EFFECT_LOAD, reg, base, imm);
		break;
	case LOAD_OTHER:
		write_x(out, reg);
		break;
	case TRANSFER_BAD:
		bad(out);
		break;
	default:
		break;
	}
}

/* Pairs, in an order in which a base that is loaded itself is loaded last. */
static void load_or_store_pair(struct insn *out, enum transfer transfer, uint32_t word, int64_t imm)
{
	bool base_first = transfer == LOAD_X && rd(word) == rn(word);
	if (!base_first)
		load_or_store(out, transfer, rd(word), rn(word), imm);
	load_or_store(out, transfer, rt2(word), rn(word), imm + 8);
	if (base_first)
		load_or_store(out, transfer, rd(word), rn(word), imm);
}

/* A store writes its register before the base moves, so that `str x, [x, #n]!` stores the old x. */
static void move_base(struct insn *out, uint32_t word, int64_t imm)
{
	add_effect(out, EFFECT_MOVE, rn(word), rn(word), imm);
}

static enum transfer pair_transfer(uint32_t word)
{
	bool load = bit(word, 22);
	switch (bits(word, 31, 30)) {
	case 0:
		return load ? LOAD_OTHER : STORE_OTHER;
	case 1: /* ldpsw, stgp */
		return bits(word, 24, 23) == 0 ? TRANSFER_BAD : load ? LOAD_OTHER : STORE_OTHER;
	case 2:
		return load ? LOAD_X : STORE_X;
	default:
		return TRANSFER_BAD;
	}
}

static void decode_pair(uint32_t word, struct insn *out)
{
	unsigned mode = bits(word, 24, 23), opc = bits(word, 31, 30);
	bool vector = bit(word, 26), tags = !vector && opc == 1 && !bit(word, 22);
	unsigned scale = vector ? 2 + opc : tags ? 4 : opc == 2 ? 3 : 2;
	int64_t imm = signed_bits(word, 21, 15) * (1 << scale);
	enum transfer transfer = vector ? TRANSFER_NONE : pair_transfer(word);
	bool move = mode & 1, move_first = mode == 3 && transfer != STORE_X;
	if (opc == 3 || transfer == TRANSFER_BAD) {
		bad(out);
		return;
	}
	if (move_first)
		move_base(out, word, imm);
	load_or_store_pair(out, transfer, word, move_first || mode == 1 ? 0 : imm);
	if (move && !move_first)
		move_base(out, word, imm);
}

/* Unscaled, post-index, unprivileged and pre-index */
static void decode_imm9(uint32_t word, struct insn *out)
{
	unsigned mode = bits(word, 11, 10);
	int64_t imm = signed_bits(word, 20, 12);
	enum transfer transfer = transfer_of(word);
	bool quad_bit = bit(word, 23) && bits(word, 31, 30), move_first;
	if (bit(word, 26)) /* vector registers */
		transfer = mode == 2 || quad_bit ? TRANSFER_BAD : TRANSFER_NONE;
	else if (mode && transfer == TRANSFER_NONE)
		transfer = TRANSFER_BAD; /* prefetch without an offset alone */
	if (transfer == TRANSFER_BAD) {
		bad(out);
		return;
	}
	move_first = mode == 3 && transfer != STORE_X;
	if (move_first)
		move_base(out, word, imm);
	load_or_store(out, transfer, rd(word), rn(word), move_first || mode == 1 ? 0 : imm);
	if ((mode & 1) && !move_first)
		move_base(out, word, imm);
}

static void decode_register_offset(uint32_t word, struct insn *out)
{
	enum transfer transfer = transfer_of(word);
	if (!bit(word, 14)) {
		bad(out);
	} else if (bit(word, 26)) {
		if (bit(word, 23) && bits(word, 31, 30))
			bad(out);
	} else if (transfer == TRANSFER_BAD) {
		bad(out);
	} else if (transfer >= LOAD_X) {
		write_x(out, rd(word));
	}
}

static void decode_unsigned_offset(uint32_t word, struct insn *out)
{
	unsigned size = bits(word, 31, 30);
	if (!bit(word, 26))
		load_or_store(out, transfer_of(word), rd(word), rn(word),
			      (int64_t)bits(word, 21, 10) << size);
	else if (bit(word, 23) && size)
		bad(out);
}

static void decode_atomic(uint32_t word, struct insn *out)
{
	unsigned operation = bits(word, 14, 12);
	if (bit(word, 26)) {
		bad(out);
	} else if (!bit(word, 15) || operation == 0) { /* ldadd, swp */
		write_x(out, rd(word));
	} else if (operation == 4 && bits(word, 23, 22) == 2 && rm(word) == 31) { /* ldapr */
		write_x(out, rd(word));
	} else if (bits(word, 31, 30) != 3 || bits(word, 23, 22)) {
		bad(out);
	} else if (operation == 5) { /* ld64b */
		for (unsigned i = 0; i < 8; i++)
			write_x(out, (rd(word) + i) & 31);
	} else if (operation == 2 || operation == 3) { /* st64bv */
		write_x(out, rm(word));
	} else if (operation != 1) { /* st64b */
		bad(out);
	}
}

/* ldraa, ldrab */
static void decode_signed_load(uint32_t word, struct insn *out)
{
	int64_t imm = (signed_bits(word, 22, 22) * 512 + bits(word, 20, 12)) * 8;
	if (bits(word, 31, 30) != 3 || bit(word, 26)) {
		bad(out);
		return;
	}
	if (bit(word, 11))
		move_base(out, word, imm);
	load_or_store(out, LOAD_X, rd(word), rn(word), bit(word, 11) ? 0 : imm);
}

static void decode_load_register(uint32_t word, struct insn *out)
{
	if (bit(word, 24))
		decode_unsigned_offset(word, out);
	else if (!bit(word, 21))
		decode_imm9(word, out);
	else if (bit(word, 10))
		decode_signed_load(word, out);
	else if (bit(word, 11))
		decode_register_offset(word, out);
	else
		decode_atomic(word, out);
}

static void decode_exclusive(uint32_t word, struct insn *out)
{
	bool load = bit(word, 22), ordered = bit(word, 23), pair = bit(word, 21);
	bool wide = bits(word, 31, 30) == 3;
	enum transfer whole = load ? LOAD_X : STORE_X, part = load ? LOAD_OTHER : STORE_OTHER;
	if (!pair && ordered) { /* stlr, ldar */
		load_or_store(out, wide ? whole : part, rd(word), rn(word), 0);
	} else if (pair && ordered) { /* cas */
		if (rt2(word) == 31)
			write_x(out, rm(word));
		else
			bad(out);
	} else if (pair && !bit(word, 31)) { /* casp */
		if (rt2(word) != 31 || (rm(word) & 1) || (rd(word) & 1)) {
			bad(out);
			return;
		}
		write_x(out, rm(word));
		write_x(out, rm(word) | 1);
	} else if (load) {
		write_x(out, rd(word));
		if (pair)
			write_x(out, rt2(word));
	} else {
		write_x(out, rm(word)); /* whether the store succeeded */
	}
}

static void decode_literal(uint32_t word, struct insn *out)
{
	unsigned opc = bits(word, 31, 30);
	if (opc == 3 && bit(word, 26)) {
		bad(out);
		return;
	}
	out->refers = out->address + (uint64_t)(signed_bits(word, 23, 5) * 4);
	if (opc != 3 && !bit(word, 26)) /* others: prefetch, vector register */
		write_x(out, rd(word));
}

/* stg, st2g, stzg, ldg and their like */
static void decode_memory_tags(uint32_t word, struct insn *out)
{
	unsigned mode = bits(word, 11, 10), operation = bits(word, 23, 22);
	if (bits(word, 31, 30) != 3 || bit(word, 26) ||
	    (mode == 0 && operation != 1 && bits(word, 20, 12)))
		bad(out);
	else if (mode & 1)
		move_base(out, word, signed_bits(word, 20, 12) * 16);
	else if (mode == 0 && (operation & 1))
		write_x(out, rd(word));
}

/* Release-consistent loads and stores with an offset; memcpy instructions */
static void decode_ordered(uint32_t word, struct insn *out)
{
	switch (bits(word, 11, 10)) {
	case 0: { /* stlur, ldapur */
		enum transfer transfer = transfer_of(word);
		if (bit(word, 26) || transfer == TRANSFER_NONE)
			bad(out);
		else
			load_or_store(out, transfer, rd(word), rn(word), signed_bits(word, 20, 12));
		break;
	}
	case 1: /* cpy, set */
		if (bits(word, 31, 30)) {
			bad(out);
			break;
		}
		write_x(out, rd(word));
		write_x(out, rn(word));
		write_x(out, rm(word));
		break;
	case 2: /* ldiapp, stilp and register-sized ones with write-back */
		if (bit(word, 26))
			break;
		if (!bit(word, 31)) {
			bad(out);
			break;
		}
		write_sp(out, rn(word));
		if (bit(word, 22)) {
			write_x(out, rd(word));
			write_x(out, rm(word));
		}
		break;
	default:
		bad(out);
	}
}

/* Bytes that a transfer of vector structures moves, 0 where it is none. */
static unsigned structure_bytes(uint32_t word)
{
	static const uint8_t registers[16] = {
		[0] = 4, [2] = 4, [4] = 3, [6] = 3, [7] = 1, [8] = 2, [10] = 2};
	unsigned opcode = bits(word, 15, 13), size = bits(word, 11, 10);
	unsigned elements = ((opcode & 1) << 1 | bit(word, 21)) + 1;
	if (!bit(word, 24)) /* whole registers */
		return registers[bits(word, 15, 12)] * (bit(word, 30) ? 16 : 8);
	switch (opcode >> 1) { /* one element of each, or one for all lanes */
	case 0:
		return elements;
	case 1:
		return size & 1 ? 0 : elements * 2;
	case 2:
		if (size & 2 || (size == 1 && bit(word, 12)))
			return 0;
		return elements * (size ? 8 : 4);
	default:
		return bit(word, 22) && !bit(word, 12) ? elements << size : 0;
	}
}

/* ld1 ... st4: only the write-back touches a general register. */
static void decode_structure(uint32_t word, struct insn *out)
{
	unsigned bytes = structure_bytes(word);
	if (!bytes || bit(word, 31) || (!bit(word, 24) && bit(word, 21)) ||
	    (!bit(word, 23) && rm(word)))
		bad(out);
	else if (!bit(word, 23))
		return;
	else if (rm(word) == 31)
		move_base(out, word, bytes);
	else
		add_effect2(out, EFFECT_ADD, rn(word), rn(word), rm(word));
}

void aarch64_decode_memory(uint32_t word, struct insn *out)
{
	switch (bits(word, 29, 28)) {
	case 0:
		if (bit(word, 26))
			decode_structure(word, out);
		else if (bit(word, 24))
			bad(out);
		else
			decode_exclusive(word, out);
		break;
	case 1:
		if (!bit(word, 24))
			decode_literal(word, out);
		else if (bit(word, 21))
			decode_memory_tags(word, out);
		else
			decode_ordered(word, out);
		break;
	case 2:
		out->base = rn(word);
		decode_pair(word, out);
		break;
	default:
		out->base = rn(word);
		decode_load_register(word, out);
	}
}
