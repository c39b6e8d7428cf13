/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A decoded instruction as one line, so that tests can say what they expect in readable form:
 *     call ->401000 writes x30
 *     other; [sp-16] = x29; [sp-8] = x30; sp = sp-16
 */
#include "isa/insn.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct insn_line {
	char text[512];
	size_t length;
};

__attribute__((format(printf, 2, 3))) static inline void line_add(struct insn_line *line,
								  const char *format, ...)
{
	va_list args;
	int n;
	va_start(args, format);
	n = vsnprintf(line->text + line->length, sizeof line->text - line->length, format, args);
	va_end(args);
	if (n > 0 && (size_t)n < sizeof line->text - line->length)
		line->length += (size_t)n;
}

static inline const char *register_name(const struct isa *isa, unsigned reg)
{
	static const char *const x86[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
					  "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
	static const char *const arm[] = {"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",
					  "x8",  "x9",  "x10", "x11", "x12", "x13", "x14", "x15",
					  "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23",
					  "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp"};
	if (reg >= isa->register_count)
		return "?";
	return isa->register_count == 16 ? x86[reg] : arm[reg];
}

static inline void line_add_effect(struct insn_line *line, const struct isa *isa,
				   const struct effect *e)
{
	const char *dst = register_name(isa, e->dst), *src = register_name(isa, e->src);
	const char *src2 = register_name(isa, e->src2);
	switch (e->op) {
	case EFFECT_CONST:
		line_add(line, "; %s = %" PRIx64, dst, (uint64_t)e->imm);
		break;
	case EFFECT_MOVE:
		line_add(line, "; %s = %s%+" PRId64, dst, src, e->imm);
		break;
	case EFFECT_ADD:
	case EFFECT_SUB:
		line_add(line, "; %s = %s %c %s", dst, src, e->op == EFFECT_ADD ? '+' : '-', src2);
		break;
	case EFFECT_ALIGN:
		line_add(line, "; %s = %s & %" PRIx64, dst, src, (uint64_t)e->imm);
		break;
	case EFFECT_LOAD:
		line_add(line, "; %s = [%s%+" PRId64 "]", dst, src, e->imm);
		break;
	case EFFECT_STORE:
		line_add(line, "; [%s%+" PRId64 "] = %s", dst, e->imm, src);
		break;
	case EFFECT_COMPARE:
		line_add(line, "; compare %s %s", dst, src);
		break;
	case EFFECT_SIGN:
		line_add(line, "; sign %s", dst);
		break;
	case EFFECT_INSERT:
		line_add(line, "; %s<%u> = %" PRIx64, dst, e->src2, (uint64_t)e->imm);
		break;
	default:
		line_add(line, "; effect %u?", e->op);
	}
}

static inline struct insn_line insn_line(const struct isa *isa, const struct insn *insn)
{
	static const char *const kinds[] = {
		"other",  "nop",    "call", "call*",   "jump", "jump*",
		"branch", "return", "trap", "syscall", "bad",
	};
	struct insn_line line = {.length = 0};
	line_add(&line, "%s", insn->kind <= INSN_BAD ? kinds[insn->kind] : "?");
	if (insn->target)
		line_add(&line, " ->%" PRIx64, insn->target);
	if (insn->reg != INSN_NO_REG)
		line_add(&line, " reg %s", register_name(isa, insn->reg));
	if (insn->refers)
		line_add(&line, " refers %" PRIx64, insn->refers);
	if (insn->writes)
		line_add(&line, " writes");
	for (unsigned reg = 0; reg < 32; reg++)
		if (insn->writes >> reg & 1)
			line_add(&line, " %s", register_name(isa, reg));
	for (unsigned i = 0; i < insn->effect_count && i < INSN_MAX_EFFECTS; i++)
		line_add_effect(&line, isa, &insn->effects[i]);
	return line;
}

/* All registers that an instruction changes, by effects or otherwise */
static inline uint32_t insn_all_writes(const struct insn *insn)
{
	uint32_t all = insn->writes;
	for (unsigned i = 0; i < insn->effect_count; i++)
		if (insn->effects[i].op != EFFECT_STORE && insn->effects[i].op != EFFECT_COMPARE)
			all |= UINT32_C(1) << insn->effects[i].dst;
	return all;
}

/* xorshift: the same numbers everywhere */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}
