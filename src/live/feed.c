/* SPDX-License-Identifier: Apache-2.0 */
#include "live/feed.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "analyze/choose.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "collect/agent_path.h"
#include "collect/events.h"
#include "collect/kernel/kernel.h"
#include "collect/live.h"
#include "collect/session.h"
#include "profile/profile.h"

#define COST_PART 50 /* snapshots of our own take at most this part of the time */

struct feed {
	bool counted; /* counts of paths alone are fine, too */
	enum feed_state state;
	bool asked;
	uint64_t start_time, duration_ns; /* as the newest profile has them; 0: there is none yet */
	/* a file */
	char *path;
	struct follow *follow; /* NULL: nobody records */
	struct stat seen;      /* the file, as it was read last */
	/* our own */
	struct session *session;
	struct feed_processes wanted;
	char why_timers[400];
	char agent[PATH_MAX];
	time_t began;
	uint64_t next_ns;
};

/* ---- a file ---- */

static bool has_changed(const struct feed *s)
{
	struct stat st;
	return !stat(s->path, &st) &&
	       (st.st_ino != s->seen.st_ino || st.st_size != s->seen.st_size ||
		st.st_mtim.tv_sec != s->seen.st_mtim.tv_sec ||
		st.st_mtim.tv_nsec != s->seen.st_mtim.tv_nsec);
}

/* What is damaged is left out, as everywhere. */
static struct err *read_file(struct feed *s, struct profile **profile)
{
	char *damage = NULL;
	if (stat(s->path, &s->seen))
		s->seen = (struct stat){0};
	struct err *e = profile_read(s->path, profile, &damage);
	free(damage);
	if (e)
		return e;
	e = s->counted ? NULL : choose_check_samples(*profile, s->path);
	if (e) {
		profile_free(*profile);
		*profile = NULL;
	}
	return e;
}

/* The recorder has hung up, after it had put the file in its place. One that was killed may have left
   what it had saved before we looked last, or an older recording. */
static bool is_news(const struct feed *s, const struct profile *p)
{
	return !s->start_time ||
	       (p->start_time == s->start_time && p->duration_ns > s->duration_ns);
}

static void end_of_file(struct feed *s, struct profile **profile)
{
	follow_close(s->follow);
	s->follow = NULL;
	s->state = FEED_CUT;
	err_free(read_file(s, profile));
	if (*profile && !is_news(s, *profile)) {
		profile_free(*profile);
		*profile = NULL;
	}
	if (*profile && (*profile)->complete)
		s->state = FEED_ENDED;
}

static struct err *handle_file(struct feed *s, struct profile **profile)
{
	if (s->follow) {
		if (s->asked)
			follow_ask(s->follow);
		enum follow_news news = follow_take(s->follow, profile);
		if (news == FOLLOW_ENDED)
			end_of_file(s, profile);
	} else if (s->asked && has_changed(s)) {
		struct err *e = read_file(s, profile);
		if (e)
			return e;
		s->state = (*profile)->complete ? FEED_ENDED : FEED_CUT;
	}
	return NULL;
}

static struct err *no_such(const char *path)
{
	return err_new("there is no %s, and none is being recorded: culprit record makes one, and "
		       "culprit top -p PID looks at a process without",
		       path);
}

struct err *feed_open_file(const char *path, bool counted, struct feed **out)
{
	struct feed *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s || !(s->path = strdup(path))) {
		free(s);
		return err_new("out of memory");
	}
	s->counted = counted;
	struct err *e = follow_open(path, &s->follow);
	if (!e && !s->follow && access(path, F_OK) && errno == ENOENT)
		e = no_such(path);
	if (!e && !s->follow) /* whether it is whole is known once it is read */
		s->state = FEED_CUT;
	if (e)
		feed_close(s);
	else
		*out = s;
	return e;
}

/* ---- our own ---- */

static void describe(const struct feed *s, struct profile *p)
{
	struct buf text = {0};
	struct utsname machine;
	char *directory = getcwd(NULL, 0);
	for (size_t i = 0; i < s->wanted.count; i++)
		buf_printf(&text, "%s%d", i ? ", " : "process ", (int)s->wanted.pids[i]);
	p->command = profile_string(p, buf_text(&text));
	p->version = profile_string(p, s->wanted.version);
	p->directory = profile_string(p, directory ? directory : "");
	free(directory);
	if (!uname(&machine)) {
		p->host = profile_string(p, machine.nodename);
		p->kernel = profile_string(p, machine.release);
		p->machine = profile_string(p, machine.machine);
	}
	p->start_time = (uint64_t)s->began;
	p->hz = s->wanted.hz;
	if (s->why_timers[0]) {
		buf_clear(&text);
		buf_printf(&text, "%s%s%s", p->note ? p->note : "", p->note && *p->note ? "; " : "",
			   s->why_timers);
		p->note = profile_string(p, buf_text(&text));
	}
	buf_free(&text);
}

struct err *feed_finish(struct feed *s, struct profile **profile)
{
	*profile = NULL;
	if (!s->session)
		return NULL;
	struct err *e = session_finish(s->session, profile, NULL);
	session_close(s->session);
	s->session = NULL;
	s->state = FEED_ENDED;
	if (*profile) {
		(*profile)->complete = true;
		describe(s, *profile);
	}
	return e;
}

static struct err *handle_session(struct feed *s, struct profile **profile)
{
	struct recording_state state;
	struct err *e = session_handle(s->session);
	if (e)
		return e;
	session_status(s->session, &state);
	if (!state.live) {
		e = feed_finish(s, profile);
	} else if (s->asked && now_ns() >= s->next_ns) {
		uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		e = session_snapshot(s->session, profile);
		if (*profile)
			describe(s, *profile);
		s->next_ns = now_ns() +
			     (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) * (COST_PART - 1);
	}
	return *profile && !e ? profile_settle(*profile) : e;
}

/* Where the kernel cannot sample, the agent does: in the user's own processes. */
static struct err *begin(struct feed *s)
{
	struct recording_options o = {.kernel_frames = true,
				      .event_count = 1,
				      .agent = s->agent,
				      .reacher = "/proc/self/exe"};
	char why[400];
	o.kernel = kernel_can_sample(why, sizeof why);
	struct err *e = o.kernel ? NULL : agent_path_find(AGENT_LATE, s->wanted.libdir, s->agent);
	if (!e)
		e = event_default(s->wanted.hz, &o.events[0], &o.timers, s->why_timers,
				  sizeof s->why_timers);
	o.hz = o.events[0].hz;
	if (!e)
		e = session_open(&o, &s->session);
	s->began = time(NULL);
	for (size_t i = 0; !e && i < s->wanted.count; i++)
		e = session_attach(s->session, s->wanted.pids[i]);
	return e;
}

struct err *feed_open_processes(const struct feed_processes *wanted, struct feed **out)
{
	struct feed *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s)
		return err_new("out of memory");
	s->wanted = *wanted;
	struct err *e = begin(s);
	if (e)
		feed_close(s);
	else
		*out = s;
	return e;
}

/* ---- both ---- */

void feed_close(struct feed *s)
{
	if (!s)
		return;
	follow_close(s->follow);
	session_close(s->session);
	free(s->path);
	free(s);
}

enum feed_state feed_state(const struct feed *s)
{
	return s->state;
}

void feed_ask(struct feed *s)
{
	s->asked = true;
	if (s->follow)
		follow_ask(s->follow);
}

size_t feed_fds(const struct feed *s, struct pollfd fds[FEED_FDS])
{
	int fd = s->session ? session_fd(s->session) : s->follow ? follow_fd(s->follow) : -1;
	fds[0] = (struct pollfd){fd, POLLIN, 0};
	return fd >= 0;
}

struct err *feed_handle(struct feed *s, struct profile **profile)
{
	*profile = NULL;
	struct err *e = s->session ? handle_session(s, profile)
			: s->path  ? handle_file(s, profile)
				   : NULL;
	if (*profile) {
		s->asked = false;
		s->start_time = (*profile)->start_time;
		s->duration_ns = (*profile)->duration_ns;
	}
	return e;
}
