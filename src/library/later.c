/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making unwind tables while everything else goes on. There are two ways. By default a thread makes them:
 * those who need the tables wait, and meanwhile do only what cannot wait. In a recording that may go on for
 * weeks, tables are made in the background, and nobody waits. There, lists and modules that nobody uses any
 * more are freed, too.
 */
#include "library/internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parallel.h"
#include "image/name_table.h"

#define LISTS_KEPT 256u
#define SMALL (4u << 20) /* bytes of code */
/* Bytes of code. Such a table is made quickly, so files that may soon be gone are not kept waiting. */
#define TINY (512u << 10)
#define SOUGHT_AT_ONCE 64u
#define APART_AT_ONCE 4u
#define WAIT_MS 1000
#define TRIES_MAX 3u          /* if the process that makes a table dies */
#define ROUNDS_MAX 2u         /* after so many rounds, an unused module is forgotten */
#define TURN_NS 1000000000ull /* at least: records are under way for less time */

/* ---- with others waiting ---- */

static void build_table(void *context, size_t index)
{
	const struct fresh_list *list = context;
	struct fresh *f = &list->items[index];
	if (!f->image || !f->module->id)
		return;
	if (f->fleeting)
		f->names = name_table_file(&f->names_in_memory);
	if (list->maker && list->tables) {
		maker_table(list->maker, f->image, list->mode, f->names, &f->table, &f->report);
		return;
	}
	if (f->names >= 0)
		err_free(name_table_write(f->image, f->names, NAME_TABLE_MAX));
	struct err *e = list->tables ? cache_table(f->image, list->mode, &f->table) : NULL;
	if (e)
		f->report.reason = strdup(err_text(e));
	err_free(e);
}

static void add_to_account(struct library *l, const struct maker_report *report)
{
	struct library_account *a = &l->account;
	a->cpu_ns += report->cpu_ns;
	a->memory = report->memory > a->memory ? report->memory : a->memory;
	a->made += report->cpu_ns && !report->reason;
	a->failed += report->reason != NULL;
	if (report->reason)
		snprintf(a->reason, sizeof a->reason, "%s", report->reason);
}

/* The process that made it may have been killed by others. So there is another try when somebody looks at
   the module later, but only a few times. */
static void allow_another(struct library_module *m)
{
	uint64_t pause = LIBRARY_AGAIN_NS << 2 * m->tries;
	m->again_ns = ++m->tries < TRIES_MAX ? now_ns() + pause : 0;
}

static void place_table(struct library *l, struct fresh *f)
{
	struct library_module *m = f->module;
	names_keep(l, f);
	m->state = LIBRARY_READY;
	if (f->image)
		m->again_ns = 0;
	add_to_account(l, &f->report);
	if (f->report.died && !f->table.bytes)
		allow_another(m);
	if (f->table.bytes) {
		free(m->problem); /* of an earlier try */
		m->problem = NULL;
	}
	if (!m->problem && !f->table.bytes)
		m->problem = f->report.reason;
	else
		free(f->report.reason);
	if (f->table.bytes && l->background) { /* targets do not read it */
		m->private_table = f->table;
		m->table = f->table.table;
		m->place = 1;
		m->size = f->table.size;
	} else if (f->table.bytes) {
		m->place = library_append(l, NULL, 0, f->table.bytes, f->table.size);
		if (m->place && table_open(&m->table, l->bytes + m->place, f->table.size))
			m->size = f->table.size;
		else if (!m->problem)
			m->problem = strdup("there is no room for its unwind table");
		module_table_free(&f->table);
	}
	image_close(f->image);
}

/* Size of the module's code, in bytes. */
static uint64_t size_of(const struct library_module *m)
{
	uint64_t size = 0;
	for (size_t i = 0; i < m->segment_count; i++)
		size += m->segments[i].executable ? m->segments[i].size : 0;
	return size;
}

struct builder {
	struct fresh_list fresh;
	int done; /* an eventfd */
	pthread_t thread;
};

static void *build_all(void *context)
{
	struct builder *b = context;
	uint64_t one = 1;
	parallel_for(b->fresh.count, build_table, &b->fresh);
	while (write(b->done, &one, sizeof one) < 0 && errno == EINTR)
		;
	return NULL;
}

/* Starts a thread that makes them; NULL if that fails. */
static struct builder *start_builder(const struct fresh_list *fresh)
{
	struct builder *b = malloc(sizeof *b);
	if (!b)
		return NULL;
	*b = (struct builder){.fresh = *fresh, .done = eventfd(0, EFD_CLOEXEC)};
	if (b->done >= 0 && !pthread_create(&b->thread, NULL, build_all, b))
		return b;
	if (b->done >= 0)
		close(b->done);
	free(b);
	return NULL;
}

/* The module that will probably take longest. */
static const char *largest_of(const struct fresh_list *list)
{
	const struct library_module *largest = list->items[0].module;
	for (size_t i = 1; i < list->count; i++)
		if (size_of(list->items[i].module) > size_of(largest))
			largest = list->items[i].module;
	return largest->path;
}

/* Nobody waits for these tables any more. The thread cannot be stopped, so its memory is left to it. */
static void give_up(struct library *l, const struct builder *b)
{
	l->given_up = true;
	pthread_detach(b->thread);
	for (size_t i = 0; i < b->fresh.count; i++) {
		struct library_module *m = b->fresh.items[i].module;
		m->state = LIBRARY_READY;
		if (!m->problem)
			m->problem = strdup("nobody waited for its unwind table");
	}
}

static void place_all(struct library *l, struct fresh_list *fresh)
{
	for (size_t i = 0; i < fresh->count; i++)
		place_table(l, &fresh->items[i]);
	free(fresh->items);
	*fresh = (struct fresh_list){0};
}

/* Makes all pending tables. For large modules that may take seconds or minutes, so `meanwhile` runs. */
static void build_now(struct library *l)
{
	struct fresh_list fresh = l->pending;
	fresh.mode = l->mode;
	fresh.tables = l->tables && !l->given_up;
	l->pending = (struct fresh_list){0};
	bool any = fresh.tables && fresh.count;
	struct builder *b = any && l->meanwhile ? start_builder(&fresh) : NULL;
	if (any && !b)
		parallel_for(fresh.count, build_table, &fresh);
	if (b) {
		l->busy = true;
		bool done = l->meanwhile(l->context, b->done, largest_of(&fresh));
		l->busy = false;
		if (!done) {
			give_up(l, b);
			return;
		}
		pthread_join(b->thread, NULL);
		close(b->done);
		free(b);
	}
	place_all(l, &fresh);
}

/* ---- in the background ---- */

struct err *library_set_background(struct library *l, bool patient, const char *maker)
{
	l->patient = patient;
	l->built = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->maker = (struct maker){maker, maker ? eventfd(0, EFD_CLOEXEC) : -1};
	l->background = l->built >= 0 && (!maker || l->maker.stop >= 0);
	l->builds = 1;
	l->list_limit = LISTS_KEPT;
	return l->background ? NULL : err_errno("cannot make an eventfd");
}

int library_built_fd(const struct library *l)
{
	return l->built;
}

static int compare_sizes(const void *a, const void *b)
{
	const struct fresh *x = a, *y = b;
	uint64_t p = size_of(x->module), q = size_of(y->module);
	return (p > q) - (p < q);
}

static size_t lane_of(const struct fresh *f)
{
	if (!f->sought && !f->module->fleeting)
		return LIBRARY_SEEKING;
	if (size_of(f->module) > SMALL)
		return LIBRARY_LARGE;
	if (!f->module->fleeting)
		return LIBRARY_SMALL;
	return size_of(f->module) <= TINY ? LIBRARY_TINY : LIBRARY_FLEETING;
}

/* Chooses what a lane does next: some modules, the smallest first, but only one large module that must be
   made. Results come when the last of them is done, so a larger number would keep small ones waiting. */
static void choose(struct library *l, struct library_lane *lane)
{
	static const size_t most[LIBRARY_LANES] = {[LIBRARY_SEEKING] = SOUGHT_AT_ONCE,
						   [LIBRARY_TINY] = APART_AT_ONCE,
						   [LIBRARY_FLEETING] = APART_AT_ONCE,
						   [LIBRARY_SMALL] = APART_AT_ONCE,
						   [LIBRARY_LARGE] = 1};
	size_t max = most[lane - l->lanes], kept = 0;
	lane->work = (struct fresh_list){.items = calloc(max, sizeof *lane->work.items),
					 .room = max,
					 .mode = l->mode,
					 .tables = l->tables,
					 .maker = l->maker.program ? &l->maker : NULL};
	if (!lane->work.items)
		return;
	qsort(l->pending.items, l->pending.count, sizeof *l->pending.items, compare_sizes);
	for (size_t i = 0; i < l->pending.count; i++) {
		struct fresh *f = &l->pending.items[i];
		f->fleeting = f->module->fleeting && f->module->names < 0;
		if (lane->work.count < max && &l->lanes[lane_of(f)] == lane)
			lane->work.items[lane->work.count++] = *f;
		else
			l->pending.items[kept++] = *f;
	}
	l->pending.count = kept;
}

static void seek_table(void *context, size_t index)
{
	const struct fresh_list *list = context;
	struct fresh *f = &list->items[index];
	if (f->image && f->module->id && list->tables)
		f->sought = !maker_find_cached(f->image, list->mode, &f->table);
}

/* At most so many processes make tables at once, however many CPUs there are. */
static void build_some(void *context, size_t index)
{
	const struct fresh_list *list = context;
	for (size_t i = index; i < list->count; i += APART_AT_ONCE)
		build_table(context, i);
}

static void *run_lane(void *context)
{
	struct library_lane *lane = context;
	uint64_t one = 1;
	bool seeks = lane == &lane->library->lanes[LIBRARY_SEEKING];
	/* If this thread makes tables itself, it lowers its priority. The processes of the maker do that
	   themselves, and a search of the cache is not slowed down. */
	if (lane->library->patient && !lane->work.maker && !seeks)
		setpriority(PRIO_PROCESS, (id_t)gettid(), MAKER_NICE);
	if (seeks)
		parallel_for(lane->work.count, seek_table, &lane->work);
	else if (lane->work.maker)
		parallel_for(APART_AT_ONCE, build_some, &lane->work);
	else
		parallel_for(lane->work.count, build_table, &lane->work);
	atomic_store(&lane->done, true);
	while (write(lane->library->built, &one, sizeof one) < 0 && errno == EINTR)
		;
	return NULL;
}

static void start_lane(struct library *l, struct library_lane *lane)
{
	sigset_t all, before;
	if (lane->running || !l->pending.count)
		return;
	choose(l, lane);
	if (!lane->work.count) {
		free(lane->work.items);
		lane->work = (struct fresh_list){0};
		return;
	}
	lane->library = l;
	atomic_store(&lane->done, false);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	lane->running = !pthread_create(&lane->thread, NULL, run_lane, lane);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!lane->running) { /* then they have no tables */
		place_all(l, &lane->work);
		l->builds++;
	}
}

static void start(struct library *l)
{
	for (size_t i = 0; i < LIBRARY_LANES; i++)
		start_lane(l, &l->lanes[i]);
}

/* Tables that the cache does not have must be made: their modules are pending again. */
static void put_back(struct library *l, struct fresh_list *work)
{
	size_t kept = 0;
	for (size_t i = 0; i < work->count; i++) {
		struct fresh *x = &work->items[i];
		struct fresh *f = x->sought ? library_add_fresh(l, x->module) : NULL;
		if (f)
			*f = *x;
		else
			work->items[kept++] = *x;
	}
	work->count = kept;
}

static void finish(struct library *l, struct library_lane *lane)
{
	pthread_join(lane->thread, NULL);
	lane->running = false;
	if (lane == &l->lanes[LIBRARY_SEEKING])
		put_back(l, &lane->work);
	l->builds += lane->work.count != 0;
	place_all(l, &lane->work);
}

unsigned library_builds(struct library *l)
{
	uint64_t rung;
	bool any = false;
	while (read(l->built, &rung, sizeof rung) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < LIBRARY_LANES; i++)
		if (l->lanes[i].running && atomic_load(&l->lanes[i].done)) {
			finish(l, &l->lanes[i]);
			any = true;
		}
	if (any)
		start(l);
	return l->builds;
}

bool library_is_building(const struct library *l)
{
	for (size_t i = 0; i < LIBRARY_LANES; i++)
		if (l->lanes[i].running)
			return true;
	return false;
}

void library_wait(struct library *l, uint64_t until_ns)
{
	uint64_t ns = now_ns();
	struct pollfd ready = {l->built, POLLIN, 0};
	if (ns >= until_ns) {
		l->hurried = true;
		l->builds++; /* another look is worthwhile */
	} else {
		uint64_t ms = (until_ns - ns) / 1000000 + 1;
		poll(&ready, 1, ms < WAIT_MS ? (int)ms : WAIT_MS);
	}
}

bool later_build(struct library *l, struct library_module *const *found, size_t count,
		 bool unready_too)
{
	if (!l->background) {
		build_now(l);
		return true;
	}
	start(l);
	for (size_t i = 0; i < count && !unready_too && !l->hurried; i++)
		if (found[i] && found[i]->state == LIBRARY_PENDING)
			return false;
	return true;
}

/* A large table may take long. If this process makes it, it cannot be stopped, and its memory is left to
   the thread. */
bool later_close(struct library *l)
{
	bool all = !l->given_up;
	uint64_t one = 1;
	while (l->maker.program && write(l->maker.stop, &one, sizeof one) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < LIBRARY_LANES; i++) {
		struct library_lane *lane = &l->lanes[i];
		if (!lane->running)
			continue;
		if (l->hurried && !l->maker.program && !atomic_load(&lane->done)) {
			pthread_detach(lane->thread);
			all = false;
		} else {
			finish(l, lane);
		}
	}
	if (all && l->built >= 0)
		close(l->built);
	if (l->maker.stop >= 0)
		close(l->maker.stop);
	return all;
}

struct library_account library_take_account(struct library *l)
{
	struct library_account account = l->account;
	l->account = (struct library_account){0};
	return account;
}

bool later_is_due(const struct library_module *m)
{
	return m->again_ns && m->state == LIBRARY_READY && now_ns() >= m->again_ns;
}

/* ---- forgetting what is not used ---- */

bool library_is_short(const struct library *l)
{
	return l->module_count - l->freed > l->module_limit / 4 * 3;
}

bool library_has_many(const struct library *l)
{
	return l->background && (l->list_count > l->list_limit ||
				 (library_is_short(l) && l->unswept > l->module_limit / 16));
}

void library_mark_used(const struct library_list *list)
{
	if (list)
		((struct library_list *)list)->used = true;
}

void library_mark_module_used(struct library *l, uint32_t id)
{
	if (id && id <= l->module_count && l->modules[id - 1])
		l->modules[id - 1]->used = true;
}

static void mark_modules(struct library *l, const struct library_list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		library_mark_module_used(l, list->modules[i].id);
}

static void forget_lists(struct library *l)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct library_list **link = &l->by_contents[i], *at; (at = *link);) {
			if (at->used) {
				at->used = false;
				mark_modules(l, at);
				link = &at->chain;
				continue;
			}
			*link = at->chain;
			free(at->modules);
			free(at->walk);
			free(at);
			l->list_count--;
		}
	l->list_limit = 2 * l->list_count > LISTS_KEPT ? 2 * l->list_count : LISTS_KEPT;
}

static void drop_table(struct library_module *m)
{
	module_table_free(&m->private_table);
	m->private_table = (struct module_table){0};
	m->table = library_no_table;
	m->size = m->place = 0;
	m->state = LIBRARY_DROPPED;
}

/* Whether the module is unused for so long that nothing carries its id any more. */
static bool is_over(const struct library *l, const struct library_module *m)
{
	return m->state != LIBRARY_PENDING &&
	       (!m->id || (m->idle && l->round >= m->idle + ROUNDS_MAX));
}

static void sweep_module(const struct library *l, struct library_module *m)
{
	bool used = m->used || m->state == LIBRARY_PENDING;
	m->used = false;
	m->idle = used || !l->round ? 0 : m->idle ? m->idle : l->round;
	if (!used && m->private_table.bytes && m->state == LIBRARY_READY)
		drop_table(m);
}

static void forget_modules(struct library *l)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct library_module **link = &l->by_file[i], *m; (m = *link);) {
			sweep_module(l, m);
			if (!is_over(l, m)) {
				link = &m->chain;
				continue;
			}
			*link = m->chain;
			if (m->id) {
				l->modules[m->id - 1] = NULL;
				l->freed++;
			}
			names_forget(l, m);
			library_free_module(m);
		}
	l->unswept = 0;
}

void library_forget_unused(struct library *l)
{
	forget_lists(l);
	forget_modules(l);
}

void library_end_round(struct library *l, uint64_t now_ns)
{
	if (now_ns - l->turned_ns < TURN_NS)
		return;
	l->turned_ns = now_ns;
	l->round++;
}

void library_release_memory(const struct library *l)
{
	for (uint32_t i = 0; i < l->module_count; i++)
		if (l->modules[i])
			module_table_rest(&l->modules[i]->private_table);
}
