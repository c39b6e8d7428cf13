/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How it ends:
 *
 *    all jumps are taken out           no thread comes into the agent any more, but by returns to its stubs
 *    stop                              the agent counts nothing any more, and says `quiet`
 *    no thread is inside               of its code, of an island; nor will it return there from a signal handler
 *    stop = ARENA_GO                   the agent unmaps its memory
 *
 * left.c does the same for a collector that was killed.
 */
#include "collect/agents/moving.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/agents/changes.h"
#include "collect/agents/inside.h"
#include "collect/agents/patches.h"
#include "collect/agents/state.h"
#include "harvest/probes.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "inject/still.h"
#include "safe/probes.h"

#define READ_NS 5000000000ull /* for the agent to make islands */
#define PAUSE_NS 1000000

static void pause_briefly(void)
{
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

static struct err *make(struct agents *agents, const struct process *p, struct changes *c)
{
	struct probes *probes = agents->recording->options.probes;
	struct still_report report = {0};
	struct err *e = still_write(p->pid, c->all, c->count, &report);
	if (report.longest_ns > probes->stop_ns)
		probes->stop_ns = report.longest_ns;
	return e;
}

/* ---- putting in ---- */

/* Waits until the agent has made the islands. */
static struct err *wait_for_islands(const struct process *p)
{
	struct arena_header *a = p->agent->arena->header;
	uint64_t start = now_ns();
	syscall(SYS_futex, &a->stop, FUTEX_WAKE, 1, NULL, NULL, 0);
	while (atomic_load(&a->probes_read) < atomic_load(&a->probe_count)) {
		if (!process_is_alive(p))
			return err_new("process %d has ended", (int)p->pid);
		if (now_ns() - start > READ_NS)
			return err_new("process %d: its agent does not answer", (int)p->pid);
		pause_briefly();
	}
	return NULL;
}

static bool is_wanted(const struct probes *probes, const struct arena_probe *p)
{
	const struct probe_function *f = p->number < probes->count ? &probes->functions[p->number]
								   : NULL;
	return f && !f->removed && f->state != PROBE_REFUSED &&
	       atomic_load(&p->state) == ARENA_PROBE_READY;
}

/* Whether somebody else has changed what is before the jump. */
static bool is_led_elsewhere(int memory, const struct arena_probe *p)
{
	uint8_t now[ARENA_LEAD_BYTES] = {0};
	size_t size = p->lead_size < sizeof now ? p->lead_size : sizeof now;
	return size && pread(memory, now, size, (off_t)p->function) == (ssize_t)size &&
	       !arena_probe_leads(p, now);
}

/* Lists what is to be written. */
static struct err *list_wanted(const struct probes *probes, const struct process *process,
			       struct changes *c)
{
	const struct arena *a = process->agent->arena;
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", (int)process->pid);
	int memory = open(path, O_RDONLY | O_CLOEXEC);
	struct err *e = NULL;
	for (uint32_t i = 0; !e && i < atomic_load(&a->header->probe_count); i++) {
		struct arena_probe *p = patches_at(a, i);
		if (!p || !is_wanted(probes, p))
			continue;
		if (memory >= 0 && is_led_elsewhere(memory, p))
			atomic_store(&p->state, ARENA_PROBE_CHANGED);
		else if (!changes_put_in(c, p, i))
			e = err_new("out of memory");
	}
	if (memory >= 0)
		close(memory);
	return e;
}

static void note_result(const struct probes *probes, struct arena_probe *p, unsigned result)
{
	static const uint32_t states[] = {
		[STILL_WAITS] = ARENA_PROBE_READY,
		[STILL_DONE] = ARENA_PROBE_ON,
		[STILL_CHANGED] = ARENA_PROBE_CHANGED,
		[STILL_FAILED] = ARENA_PROBE_FIXED,
	};
	atomic_store(&p->state, states[result]);
	if (result == STILL_WAITS && p->number < probes->count)
		probes_refuse(&probes->functions[p->number], PROBE_REFUSED,
			      "a thread stays where its code is to be changed: try again");
}

/* Those for which the agent found no room, or whose code is not as it was. */
static void refuse_others(const struct probes *probes, const struct arena *a)
{
	for (uint32_t i = 0; i < atomic_load(&a->header->probe_count); i++) {
		const struct arena_probe *p = patches_at(a, i);
		const char *why = p ? patches_state_text(atomic_load(&p->state)) : NULL;
		if (why && p->number < probes->count && !probes->functions[p->number].sums.calls)
			probes_refuse(&probes->functions[p->number], PROBE_REFUSED, why);
	}
}

struct err *moving_put_in(struct agents *agents, struct process *process)
{
	const struct probes *probes = agents->recording->options.probes;
	const struct arena *a = process->agent->arena;
	struct changes c = {0};
	bool made = false;
	struct err *e = wait_for_islands(process);
	if (!e)
		e = list_wanted(probes, process, &c);
	if (!e) {
		e = make(agents, process, &c);
		made = true;
	}
	for (size_t i = 0; made && i < c.count; i++)
		note_result(probes, patches_at(a, c.indexes[i]), c.all[i].result);
	if (!e)
		refuse_others(probes, a);
	changes_free(&c);
	return e;
}

/* ---- taking out ---- */

/* number UINT32_MAX: all of them, also those of which it is not known that they are in. */
static bool collect_on(const struct arena *a, uint32_t number, struct changes *c)
{
	for (uint32_t i = 0; i < atomic_load(&a->header->probe_count); i++) {
		const struct arena_probe *p = patches_at(a, i);
		bool on = p && p->number == number && atomic_load(&p->state) == ARENA_PROBE_ON;
		if (p && (on || number == UINT32_MAX) && !changes_take_out(c, p, i))
			return false;
	}
	return true;
}

/* Out of all processes that share the arena: a child has the jumps of its parent. Returns false if some are left. */
static bool take_out(struct agents *agents, struct arena *a, uint32_t number)
{
	struct changes c = {0};
	bool good = collect_on(a, number, &c);
	for (struct process *p = a->processes; good && c.count && p; p = p->agent->next) {
		if (!p->agent->late || p->foreign || !process_is_alive(p))
			continue;
		struct err *e = make(agents, p, &c);
		if ((e || changes_any_left(&c)) && process_is_alive(p))
			good = false;
		err_free(e);
	}
	for (size_t i = 0; good && i < c.count; i++)
		atomic_store(&patches_at(a, c.indexes[i])->state, ARENA_PROBE_READY);
	changes_free(&c);
	return good;
}

bool moving_take_out(struct agents *agents, uint32_t number)
{
	bool good = true;
	for (struct arena *a = agents->arenas; a; a = a->next)
		if (a->header)
			good &= take_out(agents, a, number);
	return good;
}

void moving_end(struct agents *agents, struct process *p)
{
	struct arena *a = p->agent->arena;
	if (!p->agent->served || !agents->recording->options.probes || !a->header ||
	    !a->header->address)
		return;
	p->agent->served = false;
	struct inside in = {
		.pid = p->pid, .memory = -1, .base = a->header->address, .size = a->size};
	struct err *e = NULL;
	if (!take_out(agents, a, UINT32_MAX))
		e = changes_left(p->pid);
	else if (process_is_alive(p) && inside_open(&in))
		e = inside_let_go(&in);
	inside_close(&in);
	if (e && process_is_alive(p) && !agents->recording->notes.changed_processes++)
		agents->recording->notes.changed_why = strdup(err_text(e));
	err_free(e);
}
