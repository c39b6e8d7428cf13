/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler by agents: the functions of collect/sampler.h. The parts are:
 *
 *    door.c          how agents find us
 *    attach.c        brings an agent into a process that runs already
 *    talk.c          what they say: HELLO and MODULES
 *    bell.c          what they ring when there is something to look at
 *    scan.c          looks at the arenas: threads come and go, copies were left
 *    programs.c      the processes that count in an arena
 *    arenas.c        the memory that they count in
 *    sampling.c      the perf events of a thread
 *    unsignalled.c   samples that come while the kernel works for a thread; sample_ring.c: their rings
 *    patches.c       calls of chosen functions, which agents count; moving.c: in a process that runs already; left.c: if
 *                    their collector was killed
 *    copies.c        samples that a target could not walk itself, and left for us with a copy of its stack
 *    trees.c         from a thread's tree to the profile
 *    waits.c         time off the CPU that agents cannot count; waiting.c: looks at threads that wait
 *    descriptors.c   what threads wait for, read and write
 *    heaps.c         what was allocated, and what became of it
 *    times.c         the time lines of threads
 *    trails.c        where threads went next
 *    interpreted.c   Python's functions, which an agent puts into its trees
 */
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/agents/arenas.h"
#include "collect/agents/attach.h"
#include "collect/agents/bell.h"
#include "collect/agents/budget.h"
#include "collect/agents/copies.h"
#include "collect/agents/door.h"
#include "collect/agents/heaps.h"
#include "collect/agents/moving.h"
#include "collect/agents/patches.h"
#include "collect/agents/sampling.h"
#include "collect/agents/scan.h"
#include "collect/agents/state.h"
#include "collect/agents/talk.h"
#include "collect/agents/times.h"
#include "collect/agents/trails.h"
#include "collect/agents/trees.h"
#include "collect/agents/unsignalled.h"
#include "collect/agents/waiting.h"
#include "collect/sampler.h"
#include "harvest/kernel_frames.h"
#include "harvest/probes.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "library/library.h"

/* ---- what wakes us ---- */

/* The more there is to look at, the longer a scan takes, and the longer is the pause after it. Time for
   making tables and for walks does not count. */
static void on_bell(void *self)
{
	struct agents *agents = self;
	uint64_t start = own_cpu_ns() - agents->walking_ns;
	bell_hear(&agents->bell);
	for (struct arena *a = agents->arenas; a; a = a->next)
		if (atomic_load(&a->header->changes) != a->changes)
			scan_arena(agents, a);
	uint64_t pause = (own_cpu_ns() - agents->walking_ns - start) * 2 / 1000;
	atomic_store(&agents->bell.pause_us, pause > 100 ? (uint32_t)pause : 100);
}

static void on_unsignalled(void *self)
{
	unsignalled_hear(self);
	copies_walk(self, scan_briefly);
}

static void on_knock(void *self)
{
	talk_accept(self);
}

/* While tables are made, new threads are sampled, and copies are taken out of the arenas. Everything
   else waits. */
enum { UNTIL, BELL, UNSIGNALLED, HEARD };

struct waiting {
	struct agents *agents;
	struct pollfd ready[HEARD];
	bool rung;
};

static void meanwhile(void *context)
{
	struct waiting *w = context;
	if (w->ready[UNSIGNALLED].revents)
		unsignalled_hear(w->agents);
	if (!w->ready[BELL].revents)
		return;
	w->rung = true;
	bell_hear(&w->agents->bell);
	scan_briefly(w->agents);
}

static bool wait_for_tables(void *self, int until, const char *what)
{
	struct agents *agents = self;
	struct waiting w = {.agents = agents,
			    .ready = {[UNTIL] = {until, POLLIN, 0},
				      [BELL] = {agents->bell.ring, POLLIN, 0},
				      [UNSIGNALLED] = {unsignalled_fd(agents), POLLIN, 0}}};
	bool done = recording_wait(agents->recording, what, w.ready, HEARD, meanwhile, &w);
	if (w.rung)
		bell_ring_again(&agents->bell);
	return done;
}

/* ---- opening, closing ---- */

static struct err *open_watched(struct agents *agents)
{
	struct err *e = bell_open(&agents->bell);
	if (!e)
		e = door_open(&agents->door, &door_for_agents, agents->recording->options.agent);
	if (!e)
		e = unsignalled_start(agents);
	agents->bell.watch = (struct watch){on_bell, agents};
	agents->door_watch = (struct watch){on_knock, agents};
	agents->unsignalled.watch = (struct watch){on_unsignalled, agents};
	if (!e)
		e = loop_watch(agents->loop, agents->bell.ring, &agents->bell.watch);
	if (!e)
		e = loop_watch(agents->loop, agents->door.listener, &agents->door_watch);
	if (!e && agents->unsignalled.rings)
		e = loop_watch(agents->loop, unsignalled_fd(agents), &agents->unsignalled.watch);
	return e;
}

static struct err *open_agents(struct recording *r, struct loop *loop, void **self)
{
	struct agents *agents = calloc(1, sizeof *agents);
	*self = agents;
	if (!agents)
		return err_new("out of memory");
	agents->recording = r;
	agents->loop = loop;
	agents->door.listener = agents->door.lock = -1;
	agents->bell.fd = agents->bell.ring = -1;
	sampling_start(agents);
	struct err *e = open_watched(agents);
	if (!e)
		library_set_meanwhile(r->library, wait_for_tables, agents);
	return e;
}

/* Also when an attempt to begin has failed. */
static void end_moved(struct agents *agents)
{
	for (struct arena *a = agents->arenas; a; a = a->next) {
		atomic_store(&a->header->stop, ARENA_STOP);
		for (struct process *p = a->processes; p; p = p->agent->next)
			moving_end(agents, p);
	}
}

static void leave_targets(struct agents *agents)
{
	end_moved(agents);
	while (agents->recording->harvest.profile && agents->arenas)
		scan_finish(agents, agents->arenas);
	talk_close_silent(agents, true);
	door_close(&agents->door);
}

static void close_agents(void *self)
{
	struct agents *agents = self;
	leave_targets(agents);
	bell_close(&agents->bell);
	unsignalled_stop(agents);
	times_close(agents);
	free(agents);
}

static void tick(void *self)
{
	sampling_tick(self);
	waiting_tick(self);
	scan_all(self);
	talk_close_silent(self, false);
	budget_tick(self);
}

static void stop(void *self)
{
	struct agents *agents = self;
	waiting_look(agents, NULL);
	for (struct arena *a = agents->arenas; a; a = a->next)
		scan_arena(agents, a);
	end_moved(agents);
	for (struct arena *a = agents->arenas; a; a = a->next)
		for (struct process *p = a->processes; p; p = p->agent->next)
			patches_withdraw(p);
}

static struct err *probe_more(void *self, size_t first)
{
	struct agents *agents = self;
	struct probes *probes = agents->recording->options.probes;
	struct err *e = NULL;
	for (struct arena *a = agents->arenas; a && !e; a = a->next)
		for (struct process *p = a->processes; p && !e; p = p->agent->next) {
			if (!p->agent->served || !process_is_alive(p))
				continue;
			e = patches_ask(agents, p);
			if (!e)
				e = moving_put_in(agents, p);
		}
	for (size_t i = 0; i < probes->count; i++)
		probes->functions[i].fresh = false;
	(void)first;
	return e;
}

static void probe_less(void *self, uint32_t number)
{
	moving_take_out(self, number - 1);
}

static void finish(void *self)
{
	leave_targets(self);
}

/* ---- results so far ---- */

static void add_state(struct agents *agents, struct arena *a, uint32_t chunk,
		      struct arena_thread *r, void *context)
{
	struct recording_state *out = context;
	(void)agents;
	(void)chunk;
	out->samples += atomic_load(&r->weight);
	out->lost += atomic_load(&r->lost);
	out->partial += trees_count_partial(a, r);
}

static void status(void *self, struct recording_state *out)
{
	struct agents *agents = self;
	for (struct arena *a = agents->arenas; a; a = a->next) {
		out->lost += atomic_load(&a->header->unsampled) - a->unsampled;
		arena_each(agents, a, NULL, add_state, out);
	}
}

static void tally(void *self, struct tally *tallies, bool anew)
{
	(void)anew; /* this sampler has no drains */
	sampling_tally(self, tallies);
}

static void copy_live(struct agents *agents, struct arena *a, uint32_t chunk,
		      struct arena_thread *r, void *context)
{
	struct thread *t = arena_thread_of(a, chunk);
	if (t)
		trees_take(agents->recording, context, t->process, t, a, r, false);
}

static void copy(void *self, struct harvest *copy)
{
	struct agents *agents = self;
	struct probes *probes = agents->recording->options.probes;
	if (probes && !recording_note_error(agents->recording, probes_lend(probes)))
		return;
	for (struct arena *a = agents->arenas; a; a = a->next) {
		arena_each(agents, a, NULL, copy_live, copy);
		patches_settle(agents->recording, a, false);
		for (const struct process *p = a->processes; p; p = p->agent->next)
			heaps_count_placed(agents, copy, p);
		trees_lose(agents->recording, copy, a, false);
	}
}

static void prepare(void *self, bool all)
{
	struct agents *agents = self;
	(void)all;
	times_take_all(agents);
	trails_take_all(agents);
	kernel_frames_name(agents->recording);
}

/* ---- the command and its processes ---- */

static char **environment(void *self, char **of)
{
	struct agents *agents = self;
	return door_environment(&agents->door, of);
}

static void join(void *self)
{
	(void)self; /* the environment is enough */
}

static struct err *attach(void *self, pid_t pid)
{
	return attach_to(self, pid);
}

const struct sampler sampler_agents = {
	.open = open_agents,
	.close = close_agents,
	.environment = environment,
	.join = join,
	.attach = attach,
	.probe_more = probe_more,
	.probe_less = probe_less,
	.tick = tick,
	.status = status,
	.tally = tally,
	.prepare = prepare,
	.copy = copy,
	.stop = stop,
	.finish = finish,
	.delivery = sampling_delivery,
	.in_ticks = true,
	.merges = true,
};
