/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/builtins.h"

#include <stddef.h>
#include <string.h>

#include "image/image.h"
#include "image/symbols.h"
#include "image/v8tab.h"
#include "isa/insn.h"

#define ENTRY_INSNS 16 /* in which an entry has saved what is C++'s */

/* What is left of a builtin's instructions. */
struct reader {
	const struct isa *isa;
	const uint8_t *code;
	size_t size;
	uint64_t address;
};

static struct reader read_builtin(struct image *image, const struct isa *isa,
				  const struct symbol *s)
{
	struct reader r = {.isa = isa, .address = s->address};
	r.code = image_bytes_at(image, s->address, &r.size);
	if (!r.code || r.size > s->size)
		r.size = r.code ? (size_t)s->size : 0;
	return r;
}

static bool next_insn(struct reader *r, struct insn *out)
{
	if (!r->size)
		return false;
	r->isa->decode(r->code, r->size, r->address, out);
	if (out->kind == INSN_BAD || !out->length || out->length > r->size)
		return false;
	r->code += out->length;
	r->size -= out->length;
	r->address += out->length;
	return true;
}

/* Registers of the caller's that an instruction saves. `own` are those that have been written since. */
static uint32_t saved_by(const struct isa *isa, const struct insn *insn, uint32_t *own)
{
	uint32_t saved = 0;
	for (unsigned i = 0; i < insn->effect_count; i++) {
		const struct effect *e = &insn->effects[i];
		if (e->op != EFFECT_STORE)
			*own |= 1u << e->dst;
		else if (e->dst == isa->sp && e->src < isa->register_count)
			saved |= 1u << e->src & ~*own;
	}
	*own |= insn->writes;
	return saved;
}

/* V8's code leaves no register as it was: what C++ calls saves all that are C++'s. What goes on with
   frames of V8's saves others, too. */
static bool is_entry(struct reader r)
{
	const struct isa *isa = r.isa;
	uint32_t saved = 0, own = 0, of_frame = 1u << isa->fp;
	struct insn insn;
	if (isa->link != INSN_NO_REG)
		of_frame |= 1u << isa->link;
	for (int i = 0; i < ENTRY_INSNS && next_insn(&r, &insn); i++) {
		if (insn.kind != INSN_OTHER && insn.kind != INSN_NOP)
			break;
		saved |= saved_by(isa, &insn, &own);
	}
	return (saved & ~of_frame) == isa->kept;
}

/* Whether the link register is stored or loaded where SP points to, and nothing else is done. */
static bool moves_link(const struct isa *isa, const struct insn *insn, enum effect_op op)
{
	const struct effect *e = &insn->effects[0];
	uint8_t reg = op == EFFECT_STORE ? e->src : e->dst;
	uint8_t base = op == EFFECT_STORE ? e->dst : e->src;
	return insn->kind == INSN_OTHER && insn->effect_count == 1 && e->op == op &&
	       reg == isa->link && base == isa->sp && !e->imm;
}

/* str x30,[sp]; blr; ldr x30,[sp]; ret. */
bool builtin_direct_call(struct image *image, const struct isa *isa, const struct symbol *symbol,
			 uint64_t *start, uint64_t *end)
{
	struct reader r = read_builtin(image, isa, symbol);
	struct insn store, call, load, back;
	if (isa->link == INSN_NO_REG || !next_insn(&r, &store) || !next_insn(&r, &call) ||
	    !next_insn(&r, &load) || !next_insn(&r, &back))
		return false;
	*start = call.address;
	*end = back.address;
	return moves_link(isa, &store, EFFECT_STORE) && call.kind == INSN_CALL_INDIRECT &&
	       moves_link(isa, &load, EFFECT_LOAD) && back.kind == INSN_RETURN;
}

static enum builtin_kind kind_of_number(struct image *image, const struct isa *isa,
					const struct symbol *s)
{
	uint64_t start, end;
	if (builtin_direct_call(image, isa, s, &start, &end))
		return BUILTIN_DIRECT_ENTRY;
	return is_entry(read_builtin(image, isa, s)) ? BUILTIN_ENTRY : BUILTIN_NUMBERED;
}

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* Names of entries are JSEntry, JSConstructEntry, JSRunMicrotasksEntry. Their trampolines have names and
   callers like that, and usual frames: taken for entries, they are walked as well. */
enum builtin_kind builtin_kind(struct image *image, const struct isa *isa,
			       const struct symbol *symbol)
{
	if (!begins(symbol->name, BUILTIN_PREFIX))
		return BUILTIN_NONE;
	if (begins(symbol->name, V8TAB_NUMBERED))
		return kind_of_number(image, isa, symbol);
	const char *name = symbol->name + strlen(BUILTIN_PREFIX);
	if (begins(name, "JS") && strstr(name, "Entry"))
		return BUILTIN_ENTRY;
	if (!strcmp(name, "DirectCEntry"))
		return BUILTIN_DIRECT_ENTRY;
	if (strstr(name, "EnterAt") || strstr(name, "Continuation") || strstr(name, "ContinueTo"))
		return BUILTIN_CONTINUATION;
	return begins(name, "DeoptimizationEntry") ? BUILTIN_DEOPTIMIZER : BUILTIN_OTHER;
}

bool builtin_keeps_pointer(enum builtin_kind kind)
{
	return kind != BUILTIN_NONE && kind != BUILTIN_ENTRY && kind != BUILTIN_DIRECT_ENTRY;
}
