/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path through a CPU that starts instructions as soon as their operands and a port are there, and finishes
 * them in order. All loads find their data in the first cache, and all branches are guessed right: what this
 * takes is what the code itself asks for.
 *
 * An instruction comes in when there is room (the width, and the window of those in flight), starts when its
 * operands are there and its ports have done what came before, is done after its latency, and is finished
 * when those before it are. A port that several could be is used in parts, so the order in which they are
 * chosen does not matter.
 */
#include "explain/internal.h"

#include <math.h>
#include <string.h>

#include "explain/machine.h"
#include "isa/insn.h"

#define REGISTERS 65 /* and the flags */
#define FLAGS 64
#define STORES 16 /* that are remembered */

struct stored {
	uint8_t base, size;
	uint32_t version; /* of the base */
	int64_t offset;
	double at;
};

struct pipeline {
	const struct function *f;
	enum pipeline_mode mode;
	double late; /* cycles that loads take longer */
	double ready[REGISTERS];
	uint32_t version[REGISTERS];
	double port[MODEL_PORT_MAX];
	double came, finished; /* of the instruction before */
	double ring[512];      /* when the last ones finished */
	size_t done;
	double fence;
	double atomic; /* when the last atomic operation was done: the next one waits for it */
	struct stored stores[STORES];
	unsigned store_count;
};

static bool is_chain(const struct pipeline *p)
{
	return p->mode == PIPELINE_CHAIN || p->mode == PIPELINE_FORWARDED ||
	       p->mode == PIPELINE_UNDIVIDED;
}

/* ---- operands ---- */

static double wait_for(const struct pipeline *p, uint64_t set)
{
	double latest = 0;
	for (; set; set &= set - 1)
		latest = fmax(latest, p->ready[__builtin_ctzll(set)]);
	return latest;
}

/* What is done with a value from memory waits for its other operands only when that value is there. */
static double operands_ready(const struct pipeline *p, uint32_t insn)
{
	const struct operands *o = &p->f->insns[insn].operands;
	double loads = o->load && o->class == OPERANDS_PLAIN
			       ? fmax(0, fmin(p->f->machine->numbers.l1,
					      p->f->own->costs[insn].latency - 1))
			       : 0;
	double others = wait_for(p, o->reads & ~o->address);
	if (o->reads_flags)
		others = fmax(others, p->ready[FLAGS]);
	return fmax(fmax(p->fence, wait_for(p, o->address)), others - loads);
}

static void write_operands(struct pipeline *p, const struct operands *o, double at, double moved)
{
	for (uint64_t set = o->writes; set; set &= set - 1) {
		unsigned reg = (unsigned)__builtin_ctzll(set);
		p->ready[reg] = o->base_moves && reg == o->base ? moved : at;
		p->version[reg]++;
	}
	if (o->writes_flags)
		p->ready[FLAGS] = at;
}

/* ---- memory ---- */

static void remember_store(struct pipeline *p, const struct operands *o, double at)
{
	if (!o->plain_offset || o->base >= FLAGS)
		return;
	p->stores[p->store_count++ % STORES] = (struct stored){
		.base = o->base,
		.size = o->size,
		.version = p->version[o->base],
		.offset = o->base_moves ? 0 : o->offset,
		.at = at,
	};
}

/* When the value that a load takes from a store before it is there; 0: from none. *whole: from one alone. */
static double stored_value(const struct pipeline *p, const struct operands *o, bool *whole)
{
	double latest = 0;
	*whole = true;
	if (!o->plain_offset || o->base >= FLAGS)
		return 0;
	for (unsigned i = 0; i < STORES && i < p->store_count; i++) {
		const struct stored *s = &p->stores[i];
		if (s->base == o->base && s->version == p->version[o->base] &&
		    o->offset < s->offset + s->size && s->offset < o->offset + o->size) {
			if (s->at >= latest)
				*whole = s->offset <= o->offset &&
					 o->offset + o->size <= s->offset + s->size;
			latest = fmax(latest, s->at);
		}
	}
	return latest;
}

/* ---- steps ---- */

static bool is_call(uint8_t kind)
{
	return kind == INSN_CALL || kind == INSN_CALL_INDIRECT || kind == INSN_SYSCALL;
}

static double latency_of(const struct pipeline *p, uint32_t insn)
{
	const struct explain_insn *i = &p->f->insns[insn];
	const struct model_insn *m = &p->f->own->costs[insn];
	const struct calibration *c = &p->f->machine->numbers;
	switch (i->operands.class) {
	case OPERANDS_DIVIDE:
		return p->mode == PIPELINE_UNDIVIDED ? 1 : fmin(m->latency, c->division);
	case OPERANDS_ATOMIC:
		return i->operands.load && i->operands.store ? c->atomic
							     : fmax(m->latency, c->atomic / 2);
	case OPERANDS_FENCE:
		return fmax(m->latency, 2);
	default:
		if (i->operands.store && !i->operands.load)
			return 1;
		if (!i->operands.load && m->known && m->uops <= 0)
			return 0; /* a register gets another name: nothing is done */
		return m->latency + (insn_may_wait_long(i) ? p->late : 0);
	}
}

/* When its ports have done what came before. */
static double take_ports(struct pipeline *p, uint32_t insn, double came)
{
	const struct model_insn *m = &p->f->own->costs[insn];
	const struct calibration *c = &p->f->machine->numbers;
	bool divides = p->f->insns[insn].operands.class == OPERANDS_DIVIDE;
	double at = came;
	if (is_chain(p))
		return came;
	for (unsigned i = 0; i < m->use_count; i++) {
		double *port = &p->port[m->uses[i].port];
		double use = divides ? fmin(m->uses[i].cycles, c->division) : m->uses[i].cycles;
		*port = fmax(*port, came - 2);
		at = fmax(at, *port);
		*port += use;
	}
	return at;
}

static double comes_in(struct pipeline *p, uint32_t insn)
{
	double width = is_chain(p) ? 1000 : p->f->machine->numbers.width;
	size_t window = (size_t)p->f->machine->window;
	if (window > sizeof p->ring / sizeof *p->ring)
		window = sizeof p->ring / sizeof *p->ring;
	double at = p->came + p->f->own->costs[insn].uops / width;
	if (p->mode == PIPELINE_WHOLE && p->done >= window)
		at = fmax(at, p->ring[(p->done - window) % (sizeof p->ring / sizeof *p->ring)]);
	return p->came = at;
}

/* What an instruction waits for, if it is the oldest one. */
static uint8_t reason_of(const struct explain_insn *i, double came, double ready, double start,
			 double done)
{
	double own = done - start, port = start - fmax(came, ready);
	if (i->operands.class == OPERANDS_ATOMIC || i->operands.class == OPERANDS_FENCE)
		return CAUSE_LOCK;
	if (i->operands.class == OPERANDS_DIVIDE)
		return CAUSE_DIVISION;
	if (port > own && port > 0.5)
		return CAUSE_PORTS;
	return ready > came || own > 1.5 ? CAUSE_DEPENDENCY : CAUSE_EXECUTION;
}

static void step(struct pipeline *p, uint32_t insn, struct pipeline_step *out)
{
	const struct explain_insn *i = &p->f->insns[insn];
	const struct operands *o = &i->operands;
	double came = comes_in(p, insn);
	double ready = p->mode == PIPELINE_PORTS ? came : operands_ready(p, insn);
	double start = fmax(take_ports(p, insn, came), fmax(came, ready));
	bool atomic = o->class == OPERANDS_ATOMIC && o->load && o->store;
	if (atomic && p->mode != PIPELINE_PORTS)
		start = fmax(start, p->atomic);
	double done = start + latency_of(p, insn);
	bool whole = true;
	double handed = o->load && p->mode != PIPELINE_PORTS ? stored_value(p, o, &whole) : 0;
	if (handed > 0)
		done = fmax(done, handed +
					  fmax(0, p->f->machine->numbers.handed -
							  2) + /* it and an addition are two */
					  (whole || p->mode == PIPELINE_FORWARDED
						   ? 0
						   : p->f->machine->numbers.forward));
	if (o->store)
		remember_store(p, o, done);
	if (atomic)
		p->atomic = done;
	write_operands(p, o, done, start + 1);
	if (o->class == OPERANDS_FENCE)
		p->fence = done;
	double finished = fmax(done, p->finished);
	if (!is_chain(p))
		finished = fmax(finished, p->finished + 0.9 / p->f->machine->numbers.width);
	out->waits = (float)(finished - p->finished);
	out->why = done < finished        ? CAUSE_EXECUTION
		   : handed > 0 && !whole ? CAUSE_FORWARD
					  : reason_of(i, came, ready, start, done);
	p->finished = finished;
	p->ring[p->done++ % (sizeof p->ring / sizeof *p->ring)] = finished;
	if (is_call(i->kind)) { /* when it is back, all is done */
		p->came = fmax(p->came, finished);
		for (unsigned k = 0; k < REGISTERS; k++)
			p->ready[k] = fmin(p->ready[k], p->came);
	}
}

double pipeline_run(const struct function *f, const struct path *path, enum pipeline_mode mode,
		    struct pipeline_step *out)
{
	struct pipeline p = {.f = f, .mode = mode};
	for (size_t i = 0; i < path->count; i++)
		step(&p, path->insns[i], &out[i]);
	return p.finished;
}

static double run_steadily(struct pipeline *p, const struct path *path, double *waits)
{
	struct pipeline_step out;
	unsigned rounds = path->count ? (unsigned)(2000 / path->count) + 8 : 0;
	double middle = 0;
	if (rounds > 200)
		rounds = 200;
	for (unsigned round = 0; round < rounds; round++) {
		if (round == rounds / 2)
			middle = p->finished;
		for (size_t i = 0; i < path->count; i++) {
			step(p, path->insns[i], &out);
			if (waits && round >= rounds / 2)
				waits[i] += out.waits / (rounds - rounds / 2);
		}
	}
	return rounds ? (p->finished - middle) / (rounds - rounds / 2) : 0;
}

double pipeline_steady(const struct function *f, const struct path *path, enum pipeline_mode mode)
{
	struct pipeline p = {.f = f, .mode = mode};
	return run_steadily(&p, path, NULL);
}

void pipeline_waits(const struct function *f, const struct path *path, double late, double *waits)
{
	struct pipeline p = {.f = f, .mode = PIPELINE_WHOLE, .late = late};
	memset(waits, 0, path->count * sizeof *waits);
	run_steadily(&p, path, waits);
}
