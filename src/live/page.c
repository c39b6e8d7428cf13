/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop waits for browsers, for the recording and for signals; a thread
 * makes the data of the page, so that nobody waits for names. Newer data is made
 * only while a page asks for it, and takes a small part of the time.
 */
#include "live/page.h"

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/serial.h"
#include "analyze/summary.h"
#include "annotate/sources.h"
#include "base/args.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/term.h"
#include "base/browser.h"
#include "analyze/choose.h"
#include "explain/program.h"
#include "live/feed.h"
#include "profile/profile.h"
#include "view/counted.h"
#include "view/explained.h"
#include "view/pack.h"
#include "view/page.h"
#include "view/serve.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ull
#define LOOKED_AT (10 * SECOND) /* a page that has asked within this time is looked at */
#define EVERY (2 * SECOND)      /* newer data at most so often */
#define PASS_MS 60000           /* how long a browser may take until it asks for the page */
#define COST_PART 10            /* making it takes at most this part of the time */

/* What makes the data. The thread has it while it works, else the loop. */
struct maker {
	const struct page_options *o;
	struct profile *profile, *next; /* next: to be taken */
	struct modules *modules;
	struct sources *sources;
	bool live; /* the recording goes on */
	uint64_t version, took_ns;
	struct buf data, page;
	struct err *problem;
	int done; /* an eventfd */
};

struct server {
	const struct page_options *o;
	struct feed *feed;
	struct serve *serve;
	struct maker maker;
	pthread_t thread;
	bool working, stop, announced;
	int signals;
	uint64_t asked_ns, next_ns; /* when a page asked last; when to make newer data */
	enum feed_state state;      /* of the newest data */
	uint64_t version;
	struct serve_body *data, *page;
	struct err *problem;
};

static void fail(struct server *s, struct err *e)
{
	if (s->problem)
		err_free(e);
	else
		s->problem = e;
	s->stop |= s->problem != NULL;
}

/* ---- data, in the thread ---- */

static struct err *open_sources(struct maker *k)
{
	struct sources_options options = {
		.maps = k->o->path_maps->values,
		.map_count = k->o->path_maps->count,
		.dirs = k->o->source_dirs->values,
		.dir_count = k->o->source_dirs->count,
		.directory = k->profile->directory,
		.binary = choose_main_module(k->profile),
	};
	sources_close(k->sources); /* files may have changed; and it knows the profile before */
	k->sources = NULL;
	return k->o->no_source ? NULL : sources_open(&options, &k->sources);
}

static struct err *open_modules(struct maker *k, struct counted_paths *paths, struct buf *notes)
{
	struct profile *before = k->profile;
	k->profile = k->next;
	k->next = NULL;
	struct err *e = counted_paths_take(k->profile, paths, notes);
	if (!e)
		e = k->modules ? modules_update(k->modules, k->profile)
			       : modules_open(k->profile, k->o->debuginfod, &k->modules);
	if (e) {
		modules_close(k->modules);
		k->modules = NULL;
	}
	profile_free(before);
	return e;
}

static struct err *make_data(struct maker *k)
{
	struct attribution_options options = {.by = BY_FUNCTION};
	struct attribution attribution = {0};
	struct summary summary;
	struct buf notes = {0};
	struct program program = {0};
	struct counted_paths paths = {0};
	uint32_t serial;
	struct err *e = open_modules(k, &paths, &notes);
	if (!e && !k->live && serial_is_telling(k->profile))
		e = serial_add(k->profile, &serial);
	if (!e)
		e = attribution_make(k->profile, k->modules, &options, &attribution);
	if (!e)
		e = open_sources(k);
	if (!e) {
		summary_make(k->profile, 0, &summary);
		bool complete = k->profile->complete;
		k->profile->complete |= k->live; /* that it goes on is told elsewhere */
		summary_warn(&summary, k->profile, &notes);
		struct pack_input input = {
			.profile = k->profile,
			.modules = k->modules,
			.attribution = &attribution,
			.sources = k->sources,
			.notes = buf_text(&notes),
			.title = k->o->path,
			.version = CULPRIT_VERSION,
			.program = &program,
			.counted = &paths.ranking,
		};
		if (!k->live)
			explained_program(k->profile, k->modules, &program);
		e = page_data(&input, &k->data);
		k->profile->complete = complete;
	}
	buf_free(&notes);
	program_close(&program);
	counted_paths_free(&paths);
	attribution_free(&attribution);
	return e;
}

static void *work(void *context)
{
	struct maker *k = context;
	const uint64_t one = 1;
	uint64_t start = now_ns();
	k->problem = make_data(k);
	k->version++;
	if (!k->problem)
		k->problem = page_wrap(&k->data, k->live ? k->version : 0, &k->page);
	k->took_ns = now_ns() - start;
	if (write(k->done, &one, sizeof one) < 0)
		return NULL; /* cannot be: it holds one only */
	return NULL;
}

/* ---- the recording, in the loop ---- */

static void begin_work(struct server *s, struct profile *p)
{
	s->maker.next = p;
	s->maker.live = feed_state(s->feed) == FEED_GOING;
	if (pthread_create(&s->thread, NULL, work, &s->maker))
		fail(s, err_errno("cannot start a thread"));
	else
		s->working = true;
}

static void announce(struct server *s)
{
	bool shown = !s->o->no_open && browser_possible();
	fprintf(s->o->out, "%s%s\n", serve_url(s->serve), shown ? "" : "   open it in a browser");
	fprintf(s->o->out, "%s; Ctrl-C ends it\n",
		s->state == FEED_GOING ? "the recording goes on: the page follows it"
				       : "only this user's browser can see it");
	fflush(s->o->out);
	const char *pass = shown ? serve_pass(s->serve, PASS_MS) : "";
	if (*pass)
		browser_open(pass);
	s->announced = true;
}

static void end_work(struct server *s)
{
	uint64_t count;
	struct maker *k = &s->maker;
	if (!s->working || read(k->done, &count, sizeof count) != (ssize_t)sizeof count)
		return;
	pthread_join(s->thread, NULL);
	s->working = false;
	struct serve_body *data = serve_body_new(&k->data), *page = serve_body_new(&k->page);
	fail(s, k->problem ? k->problem : data && page ? NULL : err_new("out of memory"));
	k->problem = NULL;
	serve_body_drop(s->data);
	serve_body_drop(s->page);
	s->data = data;
	s->page = page;
	s->version = k->version;
	if (!k->live)
		s->state = feed_state(s->feed);
	uint64_t pause = k->took_ns * (COST_PART - 1);
	s->next_ns = now_ns() + (pause > EVERY ? pause : EVERY);
	if (!s->announced && !s->stop)
		announce(s);
}

static bool is_empty(const struct profile *p)
{
	return !p->counted_count && (!p->metric_count || !p->value_count);
}

static void follow(struct server *s)
{
	struct profile *p = NULL;
	uint64_t now = now_ns();
	bool wanted = !s->announced || (now - s->asked_ns < LOOKED_AT && now >= s->next_ns);
	if (s->working)
		return;
	if (wanted)
		feed_ask(s->feed);
	fail(s, feed_handle(s->feed, &p));
	bool over = feed_state(s->feed) != FEED_GOING;
	if (p && is_empty(p)) { /* too early, or nothing ran */
		profile_free(p);
		p = NULL;
		if (over && !s->announced)
			fail(s, err_new("%s has no samples", s->o->path));
	}
	if (p)
		begin_work(s, p);
	else if (over && s->announced)
		s->state = feed_state(s->feed); /* what was seen last is all that there is */
	else if (over && !s->stop)
		fail(s, err_new("%s: the recorder was gone before there was a sample", s->o->path));
}

/* ---- browsers, in the loop ---- */

static void find(void *context, const char *name, struct serve_answer *out)
{
	static const char *const states[] = {
		[FEED_GOING] = "going", [FEED_ENDED] = "ended", [FEED_CUT] = "cut"};
	struct server *s = context;
	if (!*name) {
		*out = (struct serve_answer){.body = s->page, .type = "text/html; charset=utf-8"};
	} else if (!strcmp(name, "data")) {
		s->asked_ns = now_ns();
		*out = (struct serve_answer){.body = s->data,
					     .type = "application/octet-stream",
					     .version = s->version,
					     .state = states[s->state]};
	}
}

static struct err *hold_signals(struct server *s)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signals >= 0 ? NULL : err_errno("cannot wait for signals");
}

static void run(struct server *s)
{
	while (!s->stop) {
		struct pollfd fds[FEED_FDS + 3] = {
			{s->signals, POLLIN, 0},
			{s->maker.done, POLLIN, 0},
			{s->announced ? serve_fd(s->serve) : -1, POLLIN, 0},
		};
		size_t watched = s->working ? 0 : feed_fds(s->feed, fds + 3);
		bool follows = feed_state(s->feed) == FEED_GOING;
		if (poll(fds, 3 + watched, follows ? FEED_TICK_MS : SERVE_TICK_MS) < 0 &&
		    errno != EINTR)
			fail(s, err_errno("cannot wait"));
		s->stop |= fds[0].revents != 0;
		end_work(s);
		if (!s->stop && (!s->announced || follows || s->state == FEED_GOING))
			follow(s);
		if (s->announced)
			serve_handle(s->serve, find, s);
	}
}

/* ---- beginning and end ---- */

static struct err *begin(struct server *s)
{
	struct err *e = hold_signals(s);
	term_progress_forbid(); /* it would come with every bit of newer data */
	if (!e)
		e = feed_open_file(s->o->path, true, &s->feed);
	if (!e)
		e = serve_open(s->o->port, &s->serve);
	if (!e && (s->maker.done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
		e = err_errno("cannot wait for threads");
	if (!e)
		s->state = feed_state(s->feed);
	return e;
}

static void end(struct server *s)
{
	serve_close(s->serve);
	feed_close(s->feed);
	serve_body_drop(s->data);
	serve_body_drop(s->page);
	modules_close(s->maker.modules);
	sources_close(s->maker.sources);
	profile_free(s->maker.profile);
	profile_free(s->maker.next);
	buf_free(&s->maker.data);
	buf_free(&s->maker.page);
}

struct err *page_run(const struct page_options *o, bool *busy)
{
	struct server s = {.o = o, .signals = -1, .maker = {.o = o, .done = -1}};
	fail(&s, begin(&s));
	run(&s);
	*busy = s.working;
	if (!s.working)
		end(&s);
	return s.problem;
}
