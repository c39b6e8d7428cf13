/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The procedures of Go's runtime that go to another stack:
 *
 *    systemstack   calls a function on the thread's own stack (that of g0), and comes back
 *    morestack     the same to make the goroutine's stack larger; the stack may then be elsewhere
 *    mcall         leaves the goroutine, which somebody may go on with later
 *    gogo          goes on with one: what is on this stack is never returned to
 *    asmcgocall    calls C on the stack of g0; it notes there whose stack it came from, and how deep
 *    cgocallback   is called by C, and goes on on the goroutine's stack
 *    nanotime1 …   call the vDSO on the stack of g0, and keep their frame pointer
 *
 * They are found by name and known by their code: where it loads SP, and which members of the
 * runtime's objects it uses. So versions may differ in those. What is not understood gets
 * RECIPE_COMPLEX from the first load of SP on: rather no caller than a wrong one.
 */
#include <string.h>

#include "recipes/go_internal.h"
#include "recipes/rows.h"

#define INSNS_MAX 512
#define G_M 48 /* in all versions */

static const struct recipe root = {.cfa = RECIPE_ROOT, .source = RECIPE_FROM_SHAPE},
			   complex = {.cfa = RECIPE_COMPLEX, .source = RECIPE_FROM_SHAPE};

/* ---- what its instructions do ---- */

static const struct effect *find_effect(const struct insn *insn, enum effect_op op, unsigned dst)
{
	for (unsigned i = 0; i < insn->effect_count; i++)
		if (insn->effects[i].op == op &&
		    (dst == INSN_NO_REG || insn->effects[i].dst == dst))
			return &insn->effects[i];
	return NULL;
}

/* The last load of a register before `end`: what from. */
static bool find_load(const struct go_code *code, unsigned reg, uint64_t *end, uint8_t *base,
		      int64_t *offset)
{
	struct insn insn;
	uint64_t found = 0;
	for (uint64_t at = code->f.start; at < *end && go_decode(code, at, &insn);
	     at += insn.length) {
		const struct effect *e = find_effect(&insn, EFFECT_LOAD, reg);
		if (!e)
			continue;
		found = at;
		*base = e->src;
		*offset = e->imm;
	}
	*end = found;
	return found;
}

/* The loads of SP: `sp[0]` is the first one, and so on; how many there are. */
static size_t find_sp_writes(const struct go_code *code, struct insn *sp, size_t max)
{
	struct insn insn;
	size_t count = 0;
	uint64_t at = code->f.start;
	for (int i = 0; i < INSNS_MAX && go_decode(code, at, &insn); i++, at += insn.length)
		if (go_writes_sp(code->go, &insn) && count++ < max)
			sp[count - 1] = insn;
	return count;
}

/* The register from which SP is loaded, itself or with a member of what it points to. */
static bool find_sp_source(const struct go_code *code, const struct insn *insn, uint64_t *end,
			   uint8_t *base, int64_t *offset)
{
	const struct effect *load = find_effect(insn, EFFECT_LOAD, code->go->isa->sp);
	const struct effect *move = find_effect(insn, EFFECT_MOVE, code->go->isa->sp);
	*end = insn->address;
	if (load) {
		*base = load->src;
		*offset = load->imm;
		return true;
	}
	return move && find_load(code, move->src, end, base, offset);
}

static bool is_offset(int64_t value)
{
	return value > 0 && value < 4096 && value % 8 == 0;
}

/* systemstack comes back with: m = g.m; g = m.curg; SP = g.sched.sp. */
static void find_current(struct go *go, const struct go_code *code)
{
	struct insn sp[2];
	uint8_t g, m, here;
	int64_t saved, curg, thread;
	uint64_t end;
	if (find_sp_writes(code, sp, 2) != 2 || !find_sp_source(code, &sp[1], &end, &g, &saved) ||
	    !find_load(code, g, &end, &m, &curg) || !find_load(code, m, &end, &here, &thread))
		return;
	if (thread != G_M || !is_offset(curg) || !is_offset(saved))
		return;
	go->offsets.m = (uint16_t)thread;
	go->offsets.curg = (uint16_t)curg;
	go->offsets.sp = (uint16_t)saved;
}

/* morestack keeps the return address of who called it: it is in x3. */
static void find_link(struct go *go, const struct go_code *code)
{
	struct insn insn;
	uint64_t at = code->f.start;
	for (int i = 0; i < INSNS_MAX && go_decode(code, at, &insn); i++, at += insn.length) {
		const struct effect *e = find_effect(&insn, EFFECT_STORE, go->g);
		if (e && e->src == 3 && is_offset(e->imm))
			go->offsets.lr = (uint16_t)e->imm;
	}
}

void go_find_offsets(struct go *go, const struct go_code *code)
{
	if (!strcmp(code->f.name, "runtime.systemstack"))
		find_current(go, code);
	else if (!strcmp(code->f.name, "runtime.morestack") && !go->isa->call_pushes)
		find_link(go, code);
}

/* ---- recipes ---- */

/* To the stack of another g; `pushed` bytes on it are this procedure's. */
static struct recipe to_g(const struct go *go, enum recipe_cfa cfa, int32_t pushed)
{
	struct recipe r = go_frame(go, pushed);
	if (!go->offsets.curg)
		return complex;
	r.cfa = (uint8_t)cfa;
	r.cfa_reg = go->g;
	r.cfa_offset = go->offsets.m;
	r.cfa_vg = (int16_t)go->offsets.curg;
	r.cfa_add = RECIPE_PAIR(go->offsets.sp, go_beyond(go, pushed));
	if (pushed) {
		r.fp = RECIPE_AT_CFA;
		r.fp_offset = go_fp_offset(go, pushed);
	}
	return r;
}

/* The g has the PC, too: nothing of ours is on its stack. */
static struct recipe to_pc(const struct go *go, bool with_link)
{
	struct recipe r = to_g(go, RECIPE_PARKED, 0);
	if (r.cfa == RECIPE_COMPLEX || (with_link && !go->isa->call_pushes && !go->offsets.lr))
		return complex;
	r.cfa_add = RECIPE_PAIR(go->offsets.sp, 0);
	r.ra = RECIPE_IN_G;
	r.ra_offset = go->offsets.sp + 8;
	if (go->isa->call_pushes)
		return r;
	r.fp = RECIPE_LOST;
	if (with_link) {
		r.extra = RECIPE_IN_G;
		r.extra_offset = go->offsets.lr;
	}
	return r;
}

/* ---- a procedure ---- */

struct machine { /* goes through its code; from `since` on `now` holds */
	const struct go_code *code;
	const struct go *go;
	uint64_t since;
	struct recipe now;
	int32_t frame;  /* bytes that it has pushed, all in all */
	int32_t pushed; /* now, on its own stack; -1: it is not there */
};

static void change(struct machine *m, uint64_t at, struct recipe next)
{
	if (m->since)
		go_add_rows(m->go, m->since, at, &m->now);
	m->since = at;
	m->now = next;
	m->pushed = -1;
}

/* On the stack that it was called on. */
static void be_home(struct machine *m, uint64_t at, int32_t pushed)
{
	struct recipe r = go_frame(m->go, pushed);
	if (pushed) {
		r.fp = RECIPE_AT_CFA;
		r.fp_offset = go_fp_offset(m->go, pushed);
	}
	change(m, at, r);
	m->pushed = pushed;
}

/* Epilogues, and what follows them. */
static void follow_home(struct machine *m, const struct insn *insn)
{
	uint64_t next = insn->address + insn->length;
	const struct effect *e = find_effect(insn, EFFECT_MOVE, m->go->isa->sp);
	if (m->pushed < 0)
		return;
	if (insn->kind == INSN_RETURN || insn->kind == INSN_JUMP_INDIRECT)
		be_home(m, next, m->frame);
	else if (e && e->src == m->go->isa->sp && e->imm <= m->pushed)
		be_home(m, next, m->pushed - (int32_t)e->imm);
}

static struct machine begin(const struct go_code *code, const struct insn *first)
{
	struct machine m = {.code = code, .go = code->go, .pushed = -1};
	if (!gotab_value(code->go->table, code->index, GOTAB_SP, first->address, &m.frame) ||
	    m.frame < 0 || m.frame > INT16_MAX)
		m.frame = -1;
	return m;
}

static void end(struct machine *m)
{
	change(m, m->code->f.end, complex);
}

/* It goes there with its first load of SP, and comes back with the second. */
static void add_there_and_back(const struct go_code *code, const struct insn *sp,
			       struct recipe there)
{
	struct machine m = begin(code, &sp[0]);
	struct insn insn;
	change(&m, sp[0].address + sp[0].length, there);
	for (uint64_t at = sp[0].address + sp[0].length; go_decode(code, at, &insn);
	     at += insn.length) {
		follow_home(&m, &insn);
		if (at == sp[1].address)
			be_home(&m, at + insn.length, m.frame);
	}
	end(&m);
}

static void add_systemstack(const struct go_code *code, const struct insn *sp, size_t count)
{
	struct machine m = begin(code, &sp[0]);
	if (count == 2 && m.frame >= 0)
		add_there_and_back(code, sp, to_g(code->go, RECIPE_PARKED, m.frame));
}

/* It keeps the SP that the g of the thread had before. */
static bool find_kept(const struct go_code *code, uint64_t end, int32_t *offset)
{
	struct insn insn;
	unsigned reg = INSN_NO_REG;
	for (uint64_t at = code->f.start; at < end && go_decode(code, at, &insn);
	     at += insn.length) {
		const struct effect *load = find_effect(&insn, EFFECT_LOAD, INSN_NO_REG);
		const struct effect *store = find_effect(&insn, EFFECT_STORE, code->go->isa->sp);
		if (store && reg != INSN_NO_REG && store->src == reg) {
			*offset = (int32_t)store->imm;
			return store->imm >= 0 && store->imm < 4096;
		}
		if (load && load->dst != code->go->isa->sp)
			reg = load->imm == code->go->offsets.sp ? load->dst : INSN_NO_REG;
	}
	return false;
}

static void add_callback(const struct go_code *code, const struct insn *sp, size_t count)
{
	struct machine m = begin(code, &sp[0]);
	struct recipe r = to_g(code->go, RECIPE_CALLBACK, m.frame < 0 ? 0 : m.frame);
	int32_t kept;
	if (count != 2 || m.frame < 0 || !find_kept(code, sp[0].address, &kept))
		return;
	if (r.cfa == RECIPE_CALLBACK)
		r.extra_offset = kept;
	r.extra = RECIPE_LOST;
	add_there_and_back(code, sp, r);
}

/* From where it has taken the other g on: on aarch64 that is before it loads SP. */
static uint64_t find_taken(const struct go_code *code, const struct insn *sp)
{
	struct insn insn;
	for (uint64_t at = code->f.start; at < sp->address && go_decode(code, at, &insn);
	     at += insn.length)
		if (find_effect(&insn, EFFECT_LOAD, code->go->g))
			return at + insn.length;
	return 0;
}

/* Who calls for a larger stack has its return address in x3, where a call pushes nothing. */
static struct recipe at_growth(const struct go *go)
{
	struct recipe r = go_frame(go, 0);
	if (!go->isa->call_pushes) {
		r.extra = RECIPE_IN_REG;
		r.extra_offset = 3;
	}
	return r;
}

static void add_morestack(const struct go_code *code, const struct insn *sp, size_t count)
{
	(void)count;
	struct machine m = {.code = code, .go = code->go};
	uint64_t taken = sp->address + sp->length;
	if (!code->go->isa->call_pushes)
		taken = find_taken(code, sp);
	if (!taken)
		return;
	change(&m, code->f.start, at_growth(code->go));
	change(&m, taken, to_pc(code->go, true));
	end(&m);
}

static void add_mcall(const struct go_code *code, const struct insn *sp, size_t count)
{
	(void)count;
	struct machine m = {.code = code, .go = code->go};
	uint64_t taken = code->go->isa->call_pushes ? 0 : find_taken(code, sp);
	change(&m, code->f.start, go_frame(code->go, 0));
	if (taken)
		change(&m, taken, to_pc(code->go, false));
	change(&m, sp->address + sp->length, root);
	end(&m);
}

/* Where a call overwrites its return address nobody is to return to it. */
static void add_gogo(const struct go_code *code, const struct insn *sp, size_t count)
{
	(void)count;
	struct machine m = {.code = code, .go = code->go};
	uint64_t gone = sp->address + sp->length;
	struct insn insn;
	for (uint64_t at = code->f.start; at < gone && go_decode(code, at, &insn);
	     at += insn.length)
		if (insn.kind == INSN_CALL && !code->go->isa->call_pushes)
			gone = at + 1;
	change(&m, code->f.start, go_frame(code->go, 0));
	change(&m, gone, root);
	end(&m);
}

/* ---- calls of C ---- */

struct cgo { /* what has been seen since SP was loaded */
	struct machine m;
	unsigned saved; /* the register that has the SP of before */
	int32_t g;      /* where it has put whose stack it was; -1: nowhere yet */
	bool depth;     /* it has computed how deep it was */
};

/* The way back is in a register. */
static void be_away(struct cgo *c, uint64_t at)
{
	struct recipe r = go_frame(c->m.go, c->m.frame);
	r.cfa = RECIPE_AWAY;
	r.cfa_reg = (uint8_t)c->saved;
	if (c->m.frame) {
		r.fp = RECIPE_AT_CFA;
		r.fp_offset = go_fp_offset(c->m.go, c->m.frame);
	}
	change(&c->m, at, r);
	c->g = -1;
	c->depth = false;
}

/* The way back is on the stack. */
static void be_noted(struct cgo *c, uint64_t at, const struct effect *store)
{
	struct recipe r = c->m.now;
	if (store->imm < 0 || store->imm > INT16_MAX || r.cfa != RECIPE_AWAY)
		return;
	r.cfa_reg = c->m.go->isa->sp;
	if (store->src == c->saved) {
		r.cfa = RECIPE_DEREF;
		r.cfa_offset = (int32_t)store->imm;
		r.cfa_add = go_beyond(c->m.go, c->m.frame);
	} else if (c->depth && c->g >= 0) {
		r.cfa = RECIPE_DEPTH;
		r.cfa_offset = c->g;
		r.cfa_add = RECIPE_PAIR(store->imm, go_beyond(c->m.go, c->m.frame));
	} else {
		c->g = (int32_t)store->imm;
		return;
	}
	change(&c->m, at, r);
}

static void add_asmcgocall(const struct go_code *code, const struct insn *sp, size_t count)
{
	(void)count;
	struct cgo c = {.m = begin(code, &sp[0]), .saved = INSN_NO_REG, .g = -1};
	const struct isa *isa = code->go->isa;
	struct insn insn;
	if (c.m.frame < 0)
		return;
	for (uint64_t at = code->f.start; go_decode(code, at, &insn); at += insn.length) {
		uint64_t next = at + insn.length;
		const struct effect *store = find_effect(&insn, EFFECT_STORE, isa->sp);
		const struct effect *load = find_effect(&insn, EFFECT_LOAD, INSN_NO_REG);
		const struct effect *move = find_effect(&insn, EFFECT_MOVE, INSN_NO_REG);
		bool noted = c.m.now.cfa == RECIPE_DEREF || c.m.now.cfa == RECIPE_DEPTH;
		if (c.saved == INSN_NO_REG && move && move->src == isa->sp && !move->imm &&
		    at < sp[0].address)
			c.saved = move->dst;
		if (c.saved == INSN_NO_REG)
			continue;
		if (c.m.since && load && load->imm == RECIPE_STACK_END)
			c.depth = true;
		if (insn.kind == INSN_RETURN)
			be_away(&c, next);
		else if (go_writes_sp(code->go, &insn) && noted)
			be_home(&c.m, next, c.m.frame);
		else if (go_writes_sp(code->go, &insn) && c.m.now.cfa != RECIPE_AWAY)
			be_away(&c, next);
		else if (store && c.m.since)
			be_noted(&c, next, store);
		follow_home(&c.m, &insn);
	}
	end(&c.m);
}

/* ---- those that keep a frame pointer ---- */

/* Whether FP stays what the prologue has made it, until an epilogue loads it. */
static bool keeps_fp(const struct go_code *code, uint64_t at)
{
	const unsigned fp = code->go->isa->fp;
	struct insn insn;
	for (; go_decode(code, at, &insn); at += insn.length)
		if (insn.writes >> fp & 1 || find_effect(&insn, EFFECT_MOVE, fp) ||
		    find_effect(&insn, EFFECT_CONST, fp))
			return false;
	return true;
}

/* By FP, from the first load of SP on, but for epilogues. */
static void add_by_fp(const struct go_code *code, const struct insn *sp, size_t count)
{
	(void)count;
	const struct isa *isa = code->go->isa;
	struct machine m = begin(code, &sp[0]);
	struct insn insn;
	uint64_t at = sp[0].address + sp[0].length;
	if (m.frame <= 0 || !keeps_fp(code, at))
		return;
	struct recipe away = go_frame(code->go, m.frame);
	away.cfa = RECIPE_AWAY;
	away.cfa_reg = isa->fp;
	away.cfa_offset = -go_fp_offset(code->go, m.frame);
	away.fp = RECIPE_AT_CFA;
	away.fp_offset = go_fp_offset(code->go, m.frame);
	change(&m, at, away);
	for (; go_decode(code, at, &insn); at += insn.length) {
		bool loads = find_effect(&insn, EFFECT_LOAD, isa->fp);
		bool pops = loads && find_effect(&insn, EFFECT_MOVE, isa->sp);
		if (loads)
			be_home(&m, at + insn.length, pops ? 0 : m.frame);
		else if (insn.kind == INSN_RETURN)
			change(&m, at + insn.length, away);
		else
			follow_home(&m, &insn);
	}
	end(&m);
}

/* ---- all of them ---- */

/* What runs in the new thread is called by nobody. */
static bool add_clone(const struct go_code *code)
{
	struct insn insn;
	for (uint64_t at = code->f.start; go_decode(code, at, &insn); at += insn.length) {
		if (insn.kind != INSN_RETURN)
			continue;
		go_add_rows(code->go, at + insn.length, code->f.end, &root);
		return true;
	}
	return false;
}

static bool is_of_runtime(const char *name)
{
	return !strncmp(name, "runtime.", 8) || !strncmp(name, "time.", 5);
}

bool go_add_switch(const struct go_code *code)
{
	static const struct {
		const char *name;
		void (*add)(const struct go_code *code, const struct insn *sp, size_t count);
	} known[] = {
		{"runtime.systemstack", add_systemstack},
		{"runtime.morestack", add_morestack},
		{"runtime.mcall", add_mcall},
		{"runtime.gogo", add_gogo},
		{"gogo", add_gogo},
		{"runtime.asmcgocall", add_asmcgocall},
		{"runtime.cgocallback", add_callback},
		{NULL, add_by_fp},
	};
	struct insn sp[2] = {0};
	const char *name = code->f.name;
	size_t i = 0;
	if (!strcmp(name, "runtime.clone"))
		return add_clone(code);
	if (!strcmp(name, "runtime.morestack_noctxt")) { /* goes on to the other one */
		struct recipe entry = at_growth(code->go);
		go_add_rows(code->go, code->f.start, code->f.end, &entry);
		return true;
	}
	while (known[i].name && strcmp(name, known[i].name) != 0)
		i++;
	if (code->f.top || (code->go->sure && !code->f.writes_sp) ||
	    (!known[i].name && (!code->go->sure || !is_of_runtime(name))))
		return false;
	size_t count = find_sp_writes(code, sp, 2);
	if (!count)
		return false;
	known[i].add(code, sp, count);
	/* What nothing was said about. */
	go_add_rows(code->go, sp[0].address + sp[0].length, code->f.end, &complex);
	return true;
}
