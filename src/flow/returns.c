/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/returns.h"

#include <stdlib.h>

#include "base/array.h"
#include "flow/trace.h"
#include "isa/insn.h"

#define KNOWN_SLOTS (1u << 16)
#define LOOK_INSNS 300
#define LOOK_HEADS 32
#define LOOK_DEPTH 3
#define LOOK_TOTAL 20000 /* with all that is called: 300 calls of 300 calls of ... take too long */
/* Of all questions: ordinary code takes 15 instructions for each, hostile code must not take 20000. */
#define LOOK_SHARE 40
#define LOOK_FIRST (1 << 20)
#define BANK KNOWN_SLOTS /* the slot with what is left of these */

bool returns_init(struct returns *r)
{
	r->known = calloc(KNOWN_SLOTS + 1, sizeof *r->known);
	if (r->known)
		r->known[BANK] = LOOK_FIRST;
	return r->known != NULL;
}

void returns_free(struct returns *r)
{
	free(r->known);
	r->known = NULL;
}

static bool listed(const struct returns *r, uint64_t entry)
{
	size_t found = FIRST_NOT(i, r->noreturn_count, r->noreturn[i] < entry);
	return found < r->noreturn_count && r->noreturn[found] == entry;
}

struct look {
	uint64_t heads[LOOK_HEADS]; /* where ways begin; the first `done` were followed */
	size_t count, done;
	unsigned budget;
	unsigned *total; /* of all looks that one question leads to */
};

/* False where there is no room to remember it. */
static bool add_head(struct look *look, uint64_t at)
{
	for (size_t i = 0; i < look->count; i++)
		if (look->heads[i] == at)
			return true;
	if (look->count == LOOK_HEADS)
		return false;
	look->heads[look->count++] = at;
	return true;
}

static bool look_from(const struct returns *r, uint64_t entry, unsigned depth, unsigned *total);

/* Behind a last call that never returns, the next procedure begins. */
static bool begins_another(const struct returns *r, const struct insn *call, const uint8_t *code,
			   size_t size)
{
	uint64_t next = call->address + call->length;
	return next % r->isa->procedure_align == 0 &&
	       r->isa->is_prologue(code + call->length, size - call->length);
}

uint64_t call_target(const struct returns *r, const struct insn *call)
{
	if (call->kind == INSN_CALL || !call->target)
		return call->target;
	size_t found = FIRST_NOT(i, r->slot_count, r->slots[i].address < call->target);
	return found < r->slot_count && r->slots[found].address == call->target
		       ? r->slots[found].procedure
		       : 0;
}

static bool call_returns(const struct returns *r, const struct insn *call, unsigned depth,
			 unsigned *total)
{
	uint64_t target = call_target(r, call);
	if (!target)
		return true;
	return target != TRACE_NO_RETURN && !listed(r, target) &&
	       (!depth || look_from(r, target, depth - 1, total));
}

bool syscall_ends(const struct isa *isa, const struct insn *insn, int64_t *number)
{
	unsigned reg = isa->call_pushes ? 0 : 8; /* rax, x8 */
	int64_t exit = isa->call_pushes ? 60 : 93, exit_group = isa->call_pushes ? 231 : 94;
	if (insn->kind == INSN_SYSCALL)
		return *number == exit || *number == exit_group;
	for (unsigned i = 0; i < insn->effect_count; i++)
		if (insn->effects[i].op != EFFECT_STORE && insn->effects[i].dst == reg)
			*number = insn->effects[i].op == EFFECT_CONST ? insn->effects[i].imm : -1;
	if (insn->writes >> reg & 1)
		*number = -1;
	return false;
}

/* Follows one way to its end. True: it returns, or may. */
static bool look_way(const struct returns *r, struct look *look, uint64_t at, unsigned depth)
{
	struct insn insn;
	size_t size;
	int64_t number = -1;
	const uint8_t *code = r->bytes(r->context, at, &size);
	for (; code && size && look->budget && *look->total; look->budget--) {
		--*look->total;
		r->isa->decode(code, size, at, &insn);
		if (syscall_ends(r->isa, &insn, &number))
			return false;
		switch (insn.kind) {
		case INSN_RETURN:
		case INSN_JUMP_INDIRECT:
			return true;
		case INSN_BAD:
		case INSN_TRAP:
			return false;
		case INSN_JUMP:
			return listed(r, insn.target) ? false : !add_head(look, insn.target);
		case INSN_BRANCH:
			if (!add_head(look, insn.target))
				return true;
			break;
		case INSN_CALL:
		case INSN_CALL_INDIRECT:
			if (!call_returns(r, &insn, depth, look->total) ||
			    begins_another(r, &insn, code, size))
				return false;
			break;
		default:
			break;
		}
		at += insn.length;
		code += insn.length;
		size -= insn.length;
	}
	return true;
}

static bool look_from(const struct returns *r, uint64_t entry, unsigned depth, unsigned *total)
{
	struct look look = {.budget = LOOK_INSNS, .total = total};
	uint64_t key = entry << 2 | depth; /* the answer may depend on how far we look */
	uint64_t *slot = &r->known[(key * 0x9e3779b97f4a7c15u) >> 48];
	uint64_t found = __atomic_load_n(slot, __ATOMIC_RELAXED);
	bool result = false;
	if (found >> 1 == key && entry)
		return found & 1;
	add_head(&look, entry);
	while (!result && look.done < look.count)
		result = look_way(r, &look, look.heads[look.done++], depth);
	if (*total) /* else it is a guess */
		__atomic_store_n(slot, key << 1 | result, __ATOMIC_RELAXED);
	return result;
}

bool procedure_is_noreturn(const struct returns *r, uint64_t entry)
{
	return entry == TRACE_NO_RETURN || listed(r, entry);
}

bool procedure_returns(const struct returns *r, uint64_t entry)
{
	if (procedure_is_noreturn(r, entry))
		return false;
	int64_t left = (int64_t)__atomic_add_fetch(&r->known[BANK], LOOK_SHARE, __ATOMIC_RELAXED);
	unsigned allowed = left < 0 ? 0 : left < LOOK_TOTAL ? (unsigned)left : LOOK_TOTAL;
	unsigned total = allowed;
	bool result = look_from(r, entry, LOOK_DEPTH, &total);
	__atomic_sub_fetch(&r->known[BANK], allowed - total, __ATOMIC_RELAXED);
	return result;
}
