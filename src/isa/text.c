/* SPDX-License-Identifier: Apache-2.0 */
#include "isa/text.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "isa/insn.h"
#include "isa/text_cpu.h"

struct text {
	const struct isa *isa;
	const struct text_cpu *cpu;
	void *state;
	char out[TEXT_MAX];
};

static const struct text_cpu *cpu_of(const struct isa *isa)
{
	return isa->elf_machine == EM_AARCH64 ? &text_aarch64 : &text_x86_64;
}

static struct err *open_text(const struct isa *isa, struct err *(*open)(void **state),
			     struct text **out)
{
	struct text *t = calloc(1, sizeof *t);
	*out = NULL;
	if (!t)
		return err_new("out of memory");
	t->isa = isa;
	t->cpu = cpu_of(isa);
	struct err *e = open(&t->state);
	if (e)
		free(t);
	else
		*out = t;
	return e;
}

struct err *text_open(const struct isa *isa, struct text **out)
{
	return open_text(isa, cpu_of(isa)->open, out);
}

struct err *text_open_intel(const struct isa *isa, struct text **out)
{
	*out = NULL;
	return cpu_of(isa)->open_intel ? open_text(isa, cpu_of(isa)->open_intel, out) : NULL;
}

void text_close(struct text *t)
{
	if (!t)
		return;
	t->cpu->close(t->state);
	free(t);
}

static void put_bytes(struct text *t, const uint8_t *code, size_t size)
{
	uint32_t word;
	if (t->isa->insn_min == sizeof word && size >= sizeof word) {
		memcpy(&word, code, sizeof word);
		snprintf(t->out, sizeof t->out, ".inst 0x%08" PRIx32, word);
	} else if (size) {
		snprintf(t->out, sizeof t->out, ".byte 0x%02x", code[0]);
	} else {
		t->out[0] = 0;
	}
}

/* It is the last operand, everywhere. */
static void put_target(struct text *t, uint64_t address, const char *name)
{
	char *last = strrchr(t->out, ' '), *end;
	if (!last)
		return;
	last++;
	const char *digits = last + (*last == '#');
	if (strncmp(digits, "0x", 2) != 0 || strtoull(digits, &end, 16) != address || *end)
		return;
	size_t room = sizeof t->out - (size_t)(last - t->out);
	if (name)
		snprintf(last, room, "%s", name);
	else
		snprintf(last, room, "0x%" PRIx64, address);
}

static bool is_direct(const struct insn *insn)
{
	return insn->kind == INSN_CALL || insn->kind == INSN_JUMP || insn->kind == INSN_BRANCH;
}

const char *text_insn(struct text *t, const uint8_t *code, size_t size, const struct insn *insn,
		      const char *target)
{
	if (insn->length < size)
		size = insn->length;
	if (!t->cpu->format(t->state, code, size, insn->address, t->out, sizeof t->out))
		put_bytes(t, code, size);
	else if (is_direct(insn))
		put_target(t, insn->target, target);
	return t->out;
}
