/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `culprit top`: what a recording comes to while it goes on, in a table that
 * is brought up to date. One loop waits for the recording, for the thread that makes
 * tables, for keys and for signals; so the terminal is put back on every way out.
 */
#include "live/top.h"

#include "base/clock.h"
#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/screen.h"
#include "base/term.h"
#include "analyze/choose.h"
#include "profile/output.h"
#include "live/browse.h"
#include "live/feed.h"
#include "live/worker.h"
#include "profile/profile.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_LIMIT 20 /* rows, where no terminal sets the limit */
#define ESCAPE_MS 50     /* what follows sooner belongs to the same key */
#define FIRST_ASK_NS 300000000ull

struct top {
	const struct top_options *o;
	char title[300];
	struct feed *feed;
	struct worker *worker;
	struct output output;
	struct browse browse;
	struct screen screen;
	bool interactive;
	int signals;
	sigset_t mask;
	uint64_t ask_ns;       /* when to ask for the next profile */
	unsigned profiles;     /* that came */
	uint64_t printed;      /* tables */
	enum feed_state state; /* as the newest profile found it */
	bool metric_chosen, stop, redraw;
	int died; /* of this signal */
	struct err *problem;
};

static void fail(struct top *t, struct err *e)
{
	if (t->problem)
		err_free(e);
	else
		t->problem = e;
	t->stop |= t->problem != NULL;
}

/* ---- showing ---- */

static const char *state_word(const struct top *t)
{
	return t->state == FEED_GOING ? "recording" : t->state == FEED_ENDED ? "ended" : "cut";
}

static const char *state_text(const struct top *t)
{
	if (!t->feed)
		return "attaching …";
	if (!t->profiles)
		return "waiting for samples …";
	if (!t->browse.board)
		return "looking up names …";
	if (t->browse.paused)
		return "paused after";
	switch (t->state) {
	case FEED_GOING:
		return "recording";
	case FEED_ENDED:
		return "has ended, this is all of";
	default:
		return "cut short (the recorder is gone) after";
	}
}

static void fill_picture(struct top *t, struct picture *p)
{
	*p = (struct picture){
		.colour = term_colour(STDOUT_FILENO),
		.utf8 = t->screen.utf8,
		.title = t->title,
		.state = state_text(t),
		.warned = t->state != FEED_GOING || t->browse.paused,
	};
	screen_size(&t->screen, &p->width, &p->height);
	browse_picture(&t->browse, p);
}

static void draw(struct top *t)
{
	struct picture p;
	struct buf lines = {0};
	fill_picture(t, &p);
	draw_picture(&p, &lines);
	if (!screen_show(&t->screen, &lines))
		t->stop = true;
	buf_free(&lines);
	t->redraw = false;
}

static void print(struct top *t)
{
	struct buf text = {0};
	const struct board *board = t->browse.board;
	if (t->o->json) {
		struct json j = json_to_buf(&text);
		print_json(board, &t->browse.order, state_word(t), t->o->limit, &j);
		json_newline(&j);
	} else {
		print_board(board, &t->browse.order, state_word(t),
			    t->o->limit ? t->o->limit : DEFAULT_LIMIT, &text);
	}
	fwrite(buf_text(&text), 1, text.size, t->o->out);
	buf_free(&text);
	t->printed++;
	if (fflush(t->o->out) || (t->o->count && t->printed >= t->o->count))
		t->stop = true;
}

/* Without a terminal: what is compared with the profile before, and the last one. */
static void print_whole(struct top *t)
{
	const struct board *board = t->browse.board;
	bool last = t->state != FEED_GOING;
	if (!board->rough && (board->interval > 0 || last))
		print(t);
	if (!board->rough && last)
		t->stop = true;
}

/* Nothing newer will come: what there was last, as what it all came to. */
static void print_again(struct top *t)
{
	if (t->browse.board) {
		t->browse.board->interval = 0;
		print(t);
	}
	t->stop = true;
}

/* ---- the recording ---- */

static void choose_first_metric(struct top *t, const struct profile *p)
{
	if (t->metric_chosen)
		return;
	t->metric_chosen = true;
	fail(t, choose_metric(p, t->title, t->o->metric, &t->browse.wish.metric));
	t->browse.rewished = true;
}

static void pass_wish(struct top *t)
{
	if (t->browse.rewished)
		worker_wish(t->worker, &t->browse.wish);
	t->browse.rewished = false;
}

static void take_profile(struct top *t)
{
	struct profile *p = NULL;
	fail(t, feed_handle(t->feed, &p));
	enum feed_state state = feed_state(t->feed);
	t->redraw |= state != t->state;
	bool cut = !p && state != FEED_GOING && t->state == FEED_GOING;
	t->state = state;
	if (cut && !t->profiles)
		fail(t, err_new("%s: the recorder was gone before there was a sample", t->title));
	else if (cut && !t->interactive)
		print_again(t);
	if (!p)
		return;
	if (!p->metric_count || !p->value_count) { /* too early, or nothing ran */
		profile_free(p);
		if (state != FEED_GOING)
			fail(t, err_new("%s has no samples", t->title));
		return;
	}
	t->profiles++;
	t->redraw = true;
	choose_first_metric(t, p);
	pass_wish(t);
	worker_give(t->worker, p, false);
}

static void take_board(struct top *t)
{
	struct err *e;
	struct board *board = worker_board(t->worker, &e);
	fail(t, e);
	if (!board)
		return;
	browse_take(&t->browse, board);
	pass_wish(t);
	t->redraw = true;
	if (!t->interactive)
		print_whole(t);
}

/* A profile that has not been looked at yet is better than two of them. The first comes with few
   samples, so the second is asked for soon. */
static void ask(struct top *t)
{
	uint64_t now = now_ns(), interval = (uint64_t)(t->browse.interval * 1e9);
	if (now < t->ask_ns || worker_busy(t->worker))
		return;
	if (t->browse.paused && t->profiles)
		return;
	feed_ask(t->feed);
	bool soon = t->interactive && t->profiles < 2 && interval > FIRST_ASK_NS;
	t->ask_ns = now + (soon ? FIRST_ASK_NS : interval);
}

/* ---- keys and signals ---- */

static void press_keys(struct top *t, bool waited)
{
	int key;
	while ((key = screen_key(&t->screen, waited)) != KEY_NONE) {
		struct picture p;
		fill_picture(t, &p);
		browse_key(&t->browse, key, draw_room(&p));
		t->redraw = true;
	}
	t->stop |= t->browse.quit;
	pass_wish(t);
}

/* Stops as the shell expects it, the terminal as it was; goes on where it stopped. */
static void suspend(struct top *t)
{
	sigset_t one;
	screen_leave(&t->screen);
	sigemptyset(&one);
	sigaddset(&one, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	raise(SIGTSTP);
	sigprocmask(SIG_BLOCK, &one, NULL);
	if (t->interactive)
		screen_enter(&t->screen);
	t->redraw = true;
}

static void hear_signals(struct top *t)
{
	struct signalfd_siginfo info;
	while (read(t->signals, &info, sizeof info) == (ssize_t)sizeof info) {
		switch (info.ssi_signo) {
		case SIGWINCH:
			t->redraw = true;
			break;
		case SIGCONT:
			if (t->interactive)
				screen_enter(&t->screen);
			t->redraw = true;
			break;
		case SIGTSTP:
			suspend(t);
			break;
		default:
			t->died = info.ssi_signo == SIGINT ? 0 : (int)info.ssi_signo;
			t->stop = true;
		}
	}
}

static struct err *hold_signals(struct top *t)
{
	static const int held[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof held / sizeof *held; i++)
		sigaddset(&set, held[i]);
	sigprocmask(SIG_BLOCK, &set, &t->mask);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return t->signals >= 0 ? NULL : err_errno("cannot wait for signals");
}

/* ---- the loop ---- */

static int wait_ms(const struct top *t, bool watched)
{
	uint64_t now = now_ns();
	uint64_t left = t->ask_ns > now ? (t->ask_ns - now) / 1000000 + 1 : FEED_TICK_MS;
	if (t->screen.typed_size)
		return ESCAPE_MS;
	/* A recording of our own needs attention; others answer, or a descriptor tells. */
	if (!watched || t->o->pids.count || left > FEED_TICK_MS)
		return left < FEED_TICK_MS ? (int)left : FEED_TICK_MS;
	return (int)left;
}

static void wait_once(struct top *t)
{
	struct pollfd fds[FEED_FDS + 3] = {
		{t->signals, POLLIN, 0},
		{worker_fd(t->worker), POLLIN, 0},
		{t->interactive ? t->screen.in : -1, POLLIN, 0},
	};
	size_t watched = feed_fds(t->feed, fds + 3);
	bool typed = t->screen.typed_size > 0;
	int ready = poll(fds, 3 + watched, wait_ms(t, watched > 0));
	if (ready < 0 && errno != EINTR)
		fail(t, err_errno("cannot wait"));
	hear_signals(t);
	if (fds[2].revents & POLLIN)
		screen_read(&t->screen);
	if (fds[2].revents & (POLLHUP | POLLERR))
		t->stop = true;
	if (t->interactive)
		press_keys(t, typed && !ready);
}

static void run(struct top *t)
{
	while (!t->stop) {
		ask(t);
		if (t->interactive && t->redraw)
			draw(t);
		wait_once(t);
		if (!t->stop)
			take_profile(t);
		if (!t->stop)
			take_board(t);
	}
}

/* ---- beginning and end ---- */

static struct err *open_feed(struct top *t)
{
	static pid_t pids[ARG_LIST_MAX];
	const struct top_options *o = t->o;
	if (!o->pids.count)
		return feed_open_file(o->path, false, &t->feed);
	struct feed_processes wanted = {.pids = pids,
					.count = o->pids.count,
					.hz = o->hz,
					.version = CULPRIT_VERSION,
					.libdir = CULPRIT_LIBDIR};
	for (size_t i = 0; i < o->pids.count; i++)
		pids[i] = (pid_t)strtol(o->pids.values[i], NULL, 10);
	struct err *e = o->output ? output_open(&t->output, o->output) : NULL;
	return e ? e : feed_open_processes(&wanted, &t->feed);
}

/* A recording of our own is kept where that was asked for. */
static void keep(struct top *t)
{
	struct profile *p = NULL;
	if (t->feed && t->o->output)
		fail(t, feed_finish(t->feed, &p));
	if (p)
		fail(t, output_save_last(&t->output, p));
	profile_free(p);
}

static void begin(struct top *t)
{
	fail(t, hold_signals(t));
	t->interactive = !t->o->json && screen_possible();
	term_progress_forbid(); /* it would come from another thread, at any time */
	if (t->interactive)
		screen_open(&t->screen);
	if (!t->stop)
		fail(t, worker_start(&t->worker));
	if (!t->stop && t->interactive && t->o->pids.count) {
		screen_enter(&t->screen); /* attaching may take a while */
		draw(t);
	}
	if (!t->stop)
		fail(t, open_feed(t));
	if (!t->stop && t->interactive && !t->screen.on)
		screen_enter(&t->screen);
	if (t->feed)
		t->state = feed_state(t->feed);
	t->redraw = true;
}

static void top(struct top *t, struct top_end *out)
{
	begin(t);
	if (!t->stop)
		run(t);
	if (t->interactive)
		screen_close(&t->screen);
	keep(t);
	*out = (struct top_end){.problem = t->problem, .died = t->died};
	feed_close(t->feed);
	if (!worker_stop(t->worker)) {
		out->busy = true;
		return;
	}
	browse_free(&t->browse);
	output_close(&t->output);
	if (t->signals >= 0)
		close(t->signals);
}

static void name(struct top *t)
{
	const struct top_options *o = t->o;
	struct buf title = {0};
	for (size_t i = 0; i < o->pids.count; i++)
		buf_printf(&title, "%s%s", i ? ", " : "process ", o->pids.values[i]);
	snprintf(t->title, sizeof t->title, "%s", o->pids.count ? buf_text(&title) : o->path);
	buf_free(&title);
}

void top_run(const struct top_options *o, struct top_end *out)
{
	struct top t = {
		.o = o,
		.signals = -1,
		.browse =
			{
				.interval = o->interval,
				.wish = {.by = (enum board_by)o->by},
				.order = {.by_total = o->sort == 1, .by_all = o->so_far},
			},
	};
	name(&t);
	if (o->filter)
		err_free(browse_filter(&t.browse, o->filter)); /* top_check was asked */
	top(&t, out);
}

struct err *top_check(const struct top_options *o)
{
	struct browse browse = {0};
	struct err *e = o->filter ? browse_filter(&browse, o->filter) : NULL;
	browse_free(&browse);
	return e;
}
