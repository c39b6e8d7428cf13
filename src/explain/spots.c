/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fault: frames of the kernel below the instruction that the program was at, among them one of those that
 * handle faults. A system call has none of these, unless the kernel itself touches the program's memory; then
 * the fault is the call's, and is left where it is.
 */
#include "explain/spots.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/modules.h"
#include "base/err.h"
#include "profile/profile.h"

#define SHARE_LEAST 0.1 /* of an instruction's samples: what a thread must have to count */

/* ---- samples by spot ---- */

struct seen { /* samples of a thread at an instruction, or of faults there */
	uint32_t module, thread;
	uint64_t address, own, faults;
};

static int by_spot(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* ---- faults ---- */

/* The first frames of the kernel that only a fault has, on the way to its handler. */
static bool handles_faults(const char *name)
{
	static const char *const names[] = {
		"el0_da",
		"el0_ia",
		"do_mem_abort",
		"do_page_fault",
		"exc_page_fault",
		"do_user_addr_fault",
		"asm_exc_page_fault",
		"handle_mm_fault",
	};
	for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static bool enters_calls(const char *name)
{
	static const char *const names[] = {"el0_svc", "do_syscall_64", "entry_SYSCALL_64"};
	for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

enum frame { FRAME_OTHER, FRAME_KERNEL, FRAME_CALL, FRAME_FAULT };

struct frames {
	const struct profile *profile;
	struct modules *modules;
	uint8_t *is;   /* enum frame of each node */
	uint32_t *top; /* of those in the kernel: the last node of the program */
};

static uint8_t frame_of(const struct frames *f, uint32_t node)
{
	const struct profile_node *n = &f->profile->nodes[node];
	struct modules_function named;
	uint8_t above = f->is[n->parent];
	if (f->profile->modules[n->module].kind != PROFILE_KERNEL)
		return FRAME_OTHER;
	if (above == FRAME_CALL || above == FRAME_FAULT)
		return above;
	modules_function(f->modules, n->module, n->address, n->kind == PROFILE_EXACT, &named);
	return handles_faults(named.name) ? FRAME_FAULT
	       : enters_calls(named.name) ? FRAME_CALL
					  : FRAME_KERNEL;
}

static bool read_frames(struct frames *f)
{
	size_t count = f->profile->node_count;
	f->is = calloc(count + 1, sizeof *f->is);
	f->top = calloc(count + 1, sizeof *f->top);
	for (uint32_t i = 1; f->is && f->top && i < count; i++) {
		uint32_t parent = f->profile->nodes[i].parent;
		f->is[i] = frame_of(f, i);
		f->top[i] = f->is[i] == FRAME_OTHER        ? i
			    : f->is[parent] == FRAME_OTHER ? parent
							   : f->top[parent];
	}
	return f->is && f->top;
}

/* ---- all of it ---- */

static size_t list_seen(const struct frames *f, uint32_t metric, const bool *thread,
			struct seen *out)
{
	const struct profile *p = f->profile;
	size_t count = 0;
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		bool fault = f->is[v->node] == FRAME_FAULT;
		const struct profile_node *n = &p->nodes[f->top[v->node]];
		if (v->metric != metric || (thread && !thread[v->thread]) ||
		    (!fault && f->is[v->node] != FRAME_OTHER) || n->kind != PROFILE_EXACT ||
		    p->modules[n->module].kind != PROFILE_FILE)
			continue;
		out[count++] = (struct seen){.module = n->module,
					     .address = n->address,
					     .thread = v->thread,
					     .own = fault ? 0 : v->count,
					     .faults = fault ? v->count : 0};
	}
	return count;
}

/* Adds up what a thread has at one spot. Returns how many are left. */
static size_t join(struct seen *all, size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (kept && !by_spot(&all[kept - 1], &all[i])) {
			all[kept - 1].own += all[i].own;
			all[kept - 1].faults += all[i].faults;
		} else {
			all[kept++] = all[i];
		}
	}
	return kept;
}

static bool lived_together(const struct profile *p, uint32_t one, uint32_t other)
{
	const struct profile_thread *a = &p->threads[one], *b = &p->threads[other];
	if (a->process != b->process)
		return false;
	return !a->end_ns || !b->end_ns || (a->start_ns < b->end_ns && b->start_ns < a->end_ns);
}

/* Whether two threads that have a good part of the samples each lived at the same time. */
static bool is_shared(const struct profile *p, const struct seen *all, size_t count)
{
	double own = 0;
	const struct seen *first = NULL;
	for (size_t i = 0; i < count; i++)
		own += (double)all[i].own;
	for (size_t i = 0; i < count; i++) {
		if (!all[i].own || (double)all[i].own < SHARE_LEAST * own)
			continue;
		if (first && lived_together(p, first->thread, all[i].thread))
			return true;
		first = &all[i];
	}
	return false;
}

/* One spot for all that is seen there, where there is something to tell. */
static void make_spots(const struct profile *p, const struct seen *all, size_t count,
		       struct spots *out)
{
	for (size_t i = 0, next; i < count; i = next) {
		struct spot spot = {.module = all[i].module, .address = all[i].address};
		for (next = i; next < count && all[next].module == spot.module &&
			       all[next].address == spot.address;
		     next++)
			spot.faults += all[next].faults;
		spot.shared = is_shared(p, &all[i], next - i);
		if (spot.shared || spot.faults)
			out->all[out->count++] = spot;
	}
}

struct err *spots_find(const struct profile *p, struct modules *modules, uint32_t metric,
		       const bool *thread, struct spots *out)
{
	struct frames frames = {.profile = p, .modules = modules};
	struct seen *all = calloc(p->value_count + 1, sizeof *all);
	*out = (struct spots){0};
	bool good = all && read_frames(&frames);
	if (good) {
		size_t count = list_seen(&frames, metric, thread, all);
		qsort(all, count, sizeof *all, by_spot);
		count = join(all, count);
		out->all = calloc(count + 1, sizeof *out->all);
		good = out->all;
		if (good)
			make_spots(p, all, count, out);
	}
	free(frames.is);
	free(frames.top);
	free(all);
	return good ? NULL : err_new("out of memory");
}

void spots_free(struct spots *spots)
{
	free(spots->all);
	*spots = (struct spots){0};
}

static int find_spot(const void *key, const void *element)
{
	const struct spot *wanted = key, *p = element;
	if (wanted->module != p->module)
		return wanted->module < p->module ? -1 : 1;
	return wanted->address < p->address ? -1 : wanted->address > p->address;
}

const struct spot *spots_at(const struct spots *spots, uint32_t module, uint64_t address)
{
	struct spot wanted = {.module = module, .address = address};
	if (!spots->count)
		return NULL;
	return bsearch(&wanted, spots->all, spots->count, sizeof *spots->all, find_spot);
}
