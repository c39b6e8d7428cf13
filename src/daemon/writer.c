/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "daemon/aside.h"
#include "daemon/interval.h"
#include "store/unsent.h"

#define ASIDE_MAX 3 /* damaged ones in a row, within … */
#define ASIDE_S 3600

struct writer {
	char *path;
	int lock;
	struct store *store;           /* NULL: it cannot be opened at the moment */
	struct store_epoch attributes; /* with texts of our own */
	struct store_event events[STORE_EVENT_MAX];
	int64_t epoch;
	uint64_t number; /* of the last interval */
	bool waits;
	struct interval waiting;
	uint64_t lost; /* samples that were given up */
	char *problem, *news;
	char *machine; /* what is written is sent on from here; NULL: not */
	bool broken;
	time_t aside_s[ASIDE_MAX]; /* when one was last put aside */
};

/* ---- one at a time ---- */

static void make_folder(const char *path)
{
	char *folder = strdup(path), *slash = folder ? strrchr(folder, '/') : NULL;
	if (slash && slash != folder) {
		*slash = 0;
		mkdir(folder, 0700); /* that it cannot be made is told by what needs it */
	}
	free(folder);
}

static struct err *busy(const char *path, int fd)
{
	char text[32] = "";
	ssize_t size = pread(fd, text, sizeof text - 1, 0);
	long pid = size > 0 ? strtol(text, NULL, 10) : 0;
	return pid > 0 ? err_new("%s: another daemon writes it already (process %ld)", path, pid)
		       : err_new("%s: another daemon writes it already", path);
}

/* Beside the database: closing a descriptor of that would take SQLite's own locks away. The file stays,
   since one who removes it cannot know who has opened it meanwhile. */
static struct err *lock_it(struct writer *w, const char *path)
{
	struct buf name = {0};
	char text[32];
	buf_printf(&name, "%s.lock", path);
	w->lock = name.failed
			  ? -1
			  : open(buf_text(&name), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct err *e = w->lock < 0 ? err_errno("%s: cannot open", buf_text(&name)) : NULL;
	buf_free(&name);
	if (!e && flock(w->lock, LOCK_EX | LOCK_NB))
		e = errno == EWOULDBLOCK ? busy(path, w->lock) : err_errno("%s.lock", path);
	if (e)
		return e;
	int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
	/* It is only for others to see who: on a full disk nobody does. */
	if (ftruncate(w->lock, 0) || pwrite(w->lock, text, (size_t)length, 0) != length)
		return NULL;
	return NULL;
}

struct err *writer_open(const char *path, struct writer **out)
{
	struct writer *w = calloc(1, sizeof *w);
	*out = NULL;
	if (!w)
		return err_new("out of memory");
	w->lock = -1;
	w->path = strdup(path);
	struct err *e = w->path ? NULL : err_new("out of memory");
	if (!e) {
		make_folder(path);
		e = lock_it(w, path);
	}
	if (!e)
		e = store_open(path, STORE_CREATE, &w->store);
	if (e) {
		writer_close(w);
		return e;
	}
	*out = w;
	return NULL;
}

/* ---- epochs ---- */

static void free_attributes(struct writer *w)
{
	const struct store_epoch *a = &w->attributes;
	const char *const texts[] = {a->host, a->kernel, a->machine, a->cpu, a->version, a->note};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		free((char *)texts[i]);
	for (size_t i = 0; i < a->event_count; i++) {
		free((char *)w->events[i].name);
		free((char *)w->events[i].unit);
	}
	w->attributes = (struct store_epoch){0};
}

void writer_close(struct writer *w)
{
	if (!w)
		return;
	store_close(w->store);
	interval_free(&w->waiting);
	free_attributes(w);
	free(w->problem);
	free(w->news);
	free(w->machine);
	free(w->path);
	if (w->lock >= 0)
		close(w->lock);
	free(w);
}

static void copy(const char **text, bool *good)
{
	*text = strdup(*text);
	*good = *good && *text;
}

static struct err *keep_attributes(struct writer *w, const struct store_epoch *from)
{
	struct store_epoch a = *from;
	const char **texts[] = {&a.host, &a.kernel, &a.machine, &a.cpu, &a.version, &a.note};
	bool good = true;
	free_attributes(w);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		copy(texts[i], &good); /* all of them, so that all can be freed */
	for (size_t i = 0; i < a.event_count; i++) {
		w->events[i] = from->events[i];
		copy(&w->events[i].name, &good);
		copy(&w->events[i].unit, &good);
	}
	a.events = w->events;
	w->attributes = a;
	return good ? NULL : err_new("out of memory");
}

static struct err *begin(struct writer *w, const struct store_epoch *epoch)
{
	int64_t id;
	struct err *e = store_begin_epoch(w->store, epoch, &id);
	if (!e) {
		w->epoch = id;
		w->number = 0;
	}
	return e;
}

/* ---- the database itself ---- */

const char *writer_problem(const struct writer *w)
{
	return w->problem ? w->problem : "";
}

bool writer_is_broken(const struct writer *w)
{
	return w->broken;
}

__attribute__((format(printf, 2, 3))) static void tell(struct writer *w, const char *format, ...)
{
	va_list arguments;
	free(w->news);
	va_start(arguments, format);
	if (vasprintf(&w->news, format, arguments) < 0)
		w->news = NULL;
	va_end(arguments);
}

char *writer_news(struct writer *w)
{
	char *news = w->news;
	w->news = NULL;
	return news;
}

/* What takes the place of a database that is gone. Who removed that may have removed the lock, too. */
static struct err *open_again(struct writer *w)
{
	struct stat held, there;
	struct buf name = {0};
	struct unsent_state state;
	buf_printf(&name, "%s.lock", w->path);
	make_folder(w->path);
	bool locked = !fstat(w->lock, &held) && !stat(buf_text(&name), &there) &&
		      held.st_dev == there.st_dev && held.st_ino == there.st_ino;
	buf_free(&name);
	struct err *e = NULL;
	if (!locked) {
		if (w->lock >= 0)
			close(w->lock);
		w->lock = -1;
		e = lock_it(w, w->path);
	}
	if (!e)
		e = store_open(w->path, STORE_CREATE, &w->store);
	if (e)
		return e;
	if (w->machine)
		e = unsent_begin(w->store, w->machine, &state);
	if (!e && w->attributes.event_count)
		e = begin(w, &w->attributes);
	if (e) { /* the next look tries both again: its epochs are not the ones that we know */
		store_close(w->store);
		w->store = NULL;
	}
	return e;
}

/* A disk that damages each file that it is given is not worth the names. */
static bool may_put_aside(struct writer *w)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	time_t oldest = w->aside_s[ASIDE_MAX - 1];
	if (oldest && now.tv_sec - oldest < ASIDE_S)
		return false;
	memmove(w->aside_s + 1, w->aside_s, (ASIDE_MAX - 1) * sizeof *w->aside_s);
	w->aside_s[0] = now.tv_sec + 1;
	return true;
}

/* Takes the error that says why; returns NULL where another one has taken its place. */
static void keep_problem(struct writer *w, const struct err *e)
{
	free(w->problem);
	w->problem = e ? strdup(err_text(e)) : NULL;
}

static struct err *put_aside(struct writer *w, struct err *why)
{
	char name[4096];
	bool may = may_put_aside(w);
	struct err *e = may ? NULL : err_context(why, "damaged again and again");
	if (!e) {
		store_abandon(w->store);
		w->store = NULL;
		e = aside_put(w->path, name, sizeof name);
	}
	if (e) {
		w->broken = true;
		keep_problem(w, e);
	} else {
		tell(w, "%s; it is now %s, and a new one begins", err_text(why), name);
		e = open_again(w);
	}
	if (may)
		err_free(why);
	return e;
}

/* That there is a database, and that it is the one that we had. */
static struct err *look(struct writer *w)
{
	bool same = true;
	if (w->broken)
		return err_new("%s", writer_problem(w));
	if (!w->store)
		return open_again(w);
	struct err *e = store_look(w->store, &same);
	if (e)
		return store_trouble(w->store) == STORE_DAMAGED ? put_aside(w, e) : e;
	if (same)
		return NULL;
	store_leave(w->store);
	w->store = NULL;
	tell(w, "%s was removed, moved or replaced: what comes goes into the one that is there now",
	     w->path);
	return open_again(w);
}

/* After an error: whether there is another database now, in which it can be tried again. */
static bool recovered(struct writer *w, struct err **e)
{
	if (!*e || !w->store || store_trouble(w->store) != STORE_DAMAGED)
		return false;
	*e = put_aside(w, *e);
	return !*e;
}

struct err *writer_begin(struct writer *w, const struct store_epoch *epoch)
{
	struct err *e = look(w);
	if (!e)
		e = begin(w, epoch);
	if (recovered(w, &e))
		e = begin(w, epoch);
	return e ? e : keep_attributes(w, epoch);
}

struct err *writer_newest(struct writer *w, int64_t *end_ms)
{
	return store_newest(w->store, end_ms);
}

int64_t writer_epoch(const struct writer *w)
{
	return w->epoch;
}

/* ---- intervals ---- */

static struct err *add(struct writer *w)
{
	bool added;
	w->waiting.rows.number = w->number + 1;
	struct err *e = store_add(w->store, w->epoch, &w->waiting.rows, &added);
	if (e && store_trouble(w->store) == STORE_EPOCH_FULL) {
		err_free(e);
		w->attributes.start_ms = w->waiting.rows.start_ms;
		w->attributes.continues = true;
		e = begin(w, &w->attributes);
		w->attributes.continues = false;
		w->waiting.rows.number = 1;
		if (!e)
			e = store_add(w->store, w->epoch, &w->waiting.rows, &added);
	}
	return e;
}

static struct err *try(struct writer *w)
{
	w->attributes.start_ms = w->waiting.rows.start_ms; /* of an epoch that must begin */
	struct err *e = look(w);
	if (!e)
		e = add(w);
	if (recovered(w, &e))
		e = add(w);
	return e;
}

enum writer_result writer_retry(struct writer *w)
{
	struct err *e = try(w);
	if (!w->broken)
		keep_problem(w, e);
	if (!e) {
		w->number = w->waiting.rows.number;
		w->waits = false;
		interval_free(&w->waiting);
		return WRITER_STORED;
	}
	err_free(e);
	return w->broken ? WRITER_BROKEN : WRITER_WAITS;
}

enum writer_result writer_add(struct writer *w, struct interval *v)
{
	w->waiting = *v;
	if (v->rows.losses)
		w->waiting.rows.losses = w->waiting.losses;
	*v = (struct interval){0};
	interval_lose(&w->waiting, STORE_LOST, "the database took nothing for too long", w->lost);
	w->lost = 0;
	w->waits = true;
	return writer_retry(w);
}

bool writer_waits(const struct writer *w)
{
	return w->waits;
}

void writer_lose(struct writer *w, uint64_t samples)
{
	w->lost += samples;
}

uint64_t writer_unsaved(const struct writer *w)
{
	return w->lost + (w->waits ? w->waiting.samples : 0);
}

struct err *writer_tidy(struct writer *w, const struct store_policy *policy, int64_t now_ms,
			bool *more)
{
	struct store_tidied tidied = {0};
	*more = false;
	struct err *e = look(w);
	if (!e)
		e = store_tidy(w->store, policy, now_ms, 1, &tidied);
	recovered(w, &e);
	*more = !e && tidied.more;
	return e;
}

static struct err *no_database(void)
{
	return err_new("there is no database now");
}

struct err *writer_send_begin(struct writer *w, const char *machine, struct unsent_state *out)
{
	free(w->machine);
	w->machine = strdup(machine); /* for databases that come after this one */
	return w->store ? unsent_begin(w->store, machine, out) : no_database();
}

struct err *writer_send_note(struct writer *w, const struct unsent_state *state)
{
	return w->store ? unsent_note(w->store, state) : no_database();
}

struct err *writer_send_end(struct writer *w)
{
	free(w->machine);
	w->machine = NULL;
	return w->store ? unsent_end(w->store) : no_database();
}
