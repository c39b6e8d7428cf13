/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "daemon/interval.h"
#include "store/unsent.h"

struct writer {
	int lock;
	struct store *store;
	struct store_epoch attributes; /* with texts of our own */
	struct store_event events[STORE_EVENT_MAX];
	int64_t epoch;
	uint64_t number; /* of the last interval */
	bool waits;
	struct interval waiting;
	uint64_t lost; /* samples that were given up */
	char *problem;
};

/* One at a time */

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
	make_folder(path);
	struct err *e = lock_it(w, path);
	if (!e)
		e = store_open(path, STORE_CREATE, &w->store);
	if (e) {
		writer_close(w);
		return e;
	}
	*out = w;
	return NULL;
}

/* Epochs */

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

struct err *writer_begin(struct writer *w, const struct store_epoch *epoch)
{
	int64_t id;
	struct err *e = store_begin_epoch(w->store, epoch, &id);
	if (!e) {
		w->epoch = id;
		w->number = 0;
	}
	return e || epoch == &w->attributes ? e : keep_attributes(w, epoch);
}

int64_t writer_epoch(const struct writer *w)
{
	return w->epoch;
}

/* Intervals */

static struct err *try(struct writer *w)
{
	bool added;
	w->waiting.rows.number = w->number + 1;
	struct err *e = store_add(w->store, w->epoch, &w->waiting.rows, &added);
	if (e && store_trouble(w->store) == STORE_EPOCH_FULL) {
		err_free(e);
		w->attributes.start_ms = w->waiting.rows.start_ms;
		e = writer_begin(w, &w->attributes);
		w->waiting.rows.number = 1;
		if (!e)
			e = store_add(w->store, w->epoch, &w->waiting.rows, &added);
	}
	return e;
}

enum writer_result writer_retry(struct writer *w)
{
	struct err *e = try(w);
	free(w->problem);
	w->problem = NULL;
	if (!e) {
		w->number = w->waiting.rows.number;
		w->waits = false;
		interval_free(&w->waiting);
		return WRITER_STORED;
	}
	w->problem = strdup(err_text(e));
	err_free(e);
	return store_trouble(w->store) == STORE_DAMAGED ? WRITER_BROKEN : WRITER_WAITS;
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

const char *writer_problem(const struct writer *w)
{
	return w->problem ? w->problem : "";
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
	struct err *e = store_tidy(w->store, policy, now_ms, 1, &tidied);
	*more = !e && tidied.more;
	return e;
}

struct err *writer_send_begin(struct writer *w, const char *machine, struct unsent_state *out)
{
	return unsent_begin(w->store, machine, out);
}

struct err *writer_send_note(struct writer *w, const struct unsent_state *state)
{
	return unsent_note(w->store, state);
}

struct err *writer_send_end(struct writer *w)
{
	return unsent_end(w->store);
}
