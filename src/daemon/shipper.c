/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread has a connection of its own to the database file, and only reads it.
 * How far it is goes through `shared` to the one who writes. What it noted last
 * may be lost in a crash: then the server is asked, and has the answer.
 */
#include "daemon/shipper.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "daemon/writer.h"
#include "fleet/send.h"
#include "fleet/server.h"
#include "store/unsent.h"

#define SPANS_AT_ONCE 256
#define BYTES_AT_ONCE (1u << 20) /* of the file */
#define LOOK_MS 1000             /* how often it looks for what is new */
#define PAUSE_FIRST_MS 1000
#define NOTE_MS 100 /* not more often is written how far it is */
#define FINISH_MS 5000
#define NEWS_MAX 8

struct news {
	enum config_log level;
	char text[600];
};

struct shipper {
	char *path;
	uint64_t every_ms, spool, keep_ms, patience_ms;
	struct writer *writer;
	struct server *server;
	struct sender *sender;
	struct store *store;
	pthread_t thread;
	bool running;
	int stop; /* readable when it is to end at once */
	int wake; /* readable when it is to look at once */
	/* Of the thread alone */
	struct unsent_state state;
	uint64_t pause_ms, since_ms; /* since when spans wait */
	uint64_t away_ms;            /* since when the server is away; 0: it is not */
	/* Of both */
	pthread_mutex_t lock;
	struct unsent_state shared;
	uint64_t noted_source; /* what the database says that it is */
	bool finishing, idle;
	uint64_t failures;
	struct news news[NEWS_MAX];
	size_t news_count;
	/* Of who writes */
	struct unsent_state noted;
	uint64_t noted_ms;
};

/* The oldest is dropped where nobody asks for it. */
__attribute__((format(printf, 3, 4))) static void tell(struct shipper *s, enum config_log level,
						       const char *format, ...)
{
	va_list arguments;
	pthread_mutex_lock(&s->lock);
	if (s->news_count == NEWS_MAX)
		memmove(s->news, s->news + 1, --s->news_count * sizeof *s->news);
	struct news *n = &s->news[s->news_count++];
	n->level = level;
	va_start(arguments, format);
	vsnprintf(n->text, sizeof n->text, format, arguments);
	va_end(arguments);
	pthread_mutex_unlock(&s->lock);
}

static void publish(struct shipper *s, bool idle)
{
	pthread_mutex_lock(&s->lock);
	s->shared = s->state;
	s->idle = idle;
	pthread_mutex_unlock(&s->lock);
}

static bool is_finishing(struct shipper *s)
{
	pthread_mutex_lock(&s->lock);
	bool finishing = s->finishing;
	pthread_mutex_unlock(&s->lock);
	return finishing;
}

/* True where it is to end. */
static bool rest(const struct shipper *s, uint64_t ms)
{
	struct pollfd both[] = {{.fd = s->stop, .events = POLLIN},
				{.fd = s->wake, .events = POLLIN}};
	uint64_t count;
	poll(both, 2, (int)ms);
	if (both[1].revents && read(s->wake, &count, sizeof count) < 0)
		return true; /* cannot be */
	return both[0].revents != 0;
}

/* ---- sending ---- */

/* Where too much waits, or for too long. */
static void give_up(struct shipper *s, const struct unsent_span *spans, size_t count,
		    uint64_t bytes)
{
	uint64_t samples = 0, now = clock_ns(CLOCK_REALTIME) / 1000000;
	size_t given = 0;
	while (given < count &&
	       (bytes > s->spool ||
		(s->keep_ms && (uint64_t)spans[given].start_ms + s->keep_ms < now))) {
		bytes -= spans[given].bytes;
		samples += spans[given].samples;
		s->state.sent = spans[given++].id;
	}
	if (!given)
		return;
	s->state.given_up += samples;
	publish(s, false);
	tell(s, CONFIG_ERROR,
	     "%s: %zu intervals with %llu samples are not sent: more would wait than fleet-spool "
	     "and keep allow",
	     server_name(s->server), given, (unsigned long long)samples);
}

/* Of those that wait, how many go together: of one day, and not too much. */
static size_t choose(const struct unsent_span *spans, size_t count)
{
	uint64_t bytes = 0;
	size_t chosen = 0;
	while (chosen < count && (!chosen || bytes + spans[chosen].bytes <= BYTES_AT_ONCE) &&
	       sender_day(spans[chosen].start_ms) == sender_day(spans[0].start_ms))
		bytes += spans[chosen++].bytes;
	return chosen;
}

static void went_well(struct shipper *s, const struct unsent_span *spans, size_t count)
{
	s->state.sent = spans[count - 1].id;
	s->state.given_up = 0;
	if (s->away_ms)
		tell(s, CONFIG_WARNING, "%s: takes samples again, after %.0f s",
		     server_name(s->server),
		     (double)(clock_ns(CLOCK_BOOTTIME) / 1000000 - s->away_ms) / 1e3);
	else
		tell(s, CONFIG_DEBUG, "%s: %zu interval%s sent", server_name(s->server), count,
		     count == 1 ? "" : "s");
	s->away_ms = s->pause_ms = 0;
	publish(s, false);
}

/* Said once, until it goes well again. Pauses grow to as long as an answer may take; each is by chance
   a little longer, so that many hosts do not come back together. */
static void went_wrong(struct shipper *s, struct err *e)
{
	uint16_t chance = 0;
	if (!s->away_ms) {
		s->away_ms = clock_ns(CLOCK_BOOTTIME) / 1000000;
		tell(s, CONFIG_ERROR, "%s: samples wait in the database until they can be sent",
		     err_text(e));
	}
	err_free(e);
	pthread_mutex_lock(&s->lock);
	s->failures++;
	pthread_mutex_unlock(&s->lock);
	s->pause_ms = s->pause_ms ? s->pause_ms * 2 : PAUSE_FIRST_MS;
	if (s->pause_ms > s->patience_ms)
		s->pause_ms = s->patience_ms;
	if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) < 0)
		chance = 0;
	s->pause_ms += s->pause_ms * chance / (4 * 65536u);
}

/* Is it time to send? Many small portions would cost a server more than few large ones. */
static bool is_due(struct shipper *s, uint64_t bytes)
{
	uint64_t now = clock_ns(CLOCK_BOOTTIME) / 1000000;
	if (!s->since_ms)
		s->since_ms = now;
	return bytes >= BYTES_AT_ONCE || now - s->since_ms >= s->every_ms || is_finishing(s);
}

/* The server has other spans of these numbers: the database is as it once was, after a crash of the machine or as a
   copy that was put back, and gives numbers a second time. */
static struct err *become_another(struct shipper *s)
{
	uint64_t source;
	struct sender *sender;
	if (getrandom(&source, sizeof source, 0) != sizeof source)
		return err_errno("no random numbers");
	struct err *e = sender_open(s->server, source, &sender);
	if (e)
		return e;
	sender_close(s->sender);
	s->sender = sender;
	s->state.source = source;
	publish(s, false);
	tell(s, CONFIG_WARNING,
	     "%s: has other intervals of these numbers, since the database is older than what was "
	     "sent: it becomes another source",
	     server_name(s->server));
	return NULL;
}

/* As long as the database does not say who it is, nothing may be sent in that name: it would be sent again. */
static bool is_noted(struct shipper *s)
{
	pthread_mutex_lock(&s->lock);
	bool noted = s->noted_source == s->state.source;
	pthread_mutex_unlock(&s->lock);
	return noted;
}

/* One portion of what waits. Returns how long to rest then. */
static uint64_t step(struct shipper *s)
{
	struct unsent_span spans[SPANS_AT_ONCE];
	size_t count;
	uint64_t bytes;
	if (!is_noted(s))
		return NOTE_MS;
	struct err *e = unsent_list(s->store, s->state.sent, spans, SPANS_AT_ONCE, &count, &bytes);
	if (e) {
		went_wrong(s, e);
		return s->pause_ms;
	}
	give_up(s, spans, count, bytes);
	if (count && spans[0].id <= s->state.sent)
		return 0;
	publish(s, !count);
	if (!count) {
		s->since_ms = 0;
		unsent_forget(s->store);
	}
	if (!count || !is_due(s, bytes))
		return LOOK_MS;
	count = choose(spans, count);
	e = sender_send(s->sender, s->store, spans, &count, s->state.given_up);
	if (!e && !count)
		e = become_another(s);
	if (e) {
		went_wrong(s, e);
		return is_finishing(s) ? PAUSE_FIRST_MS : s->pause_ms;
	}
	if (count)
		went_well(s, spans, count);
	return 0;
}

static void *run(void *context)
{
	struct shipper *s = context;
	while (!rest(s, step(s)))
		;
	return NULL;
}

/* ---- its life ---- */

static struct err *start(struct shipper *s)
{
	sigset_t all, before;
	sigfillset(&all); /* signals are the main thread's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->running = !failed;
	errno = failed;
	return failed ? err_errno("cannot start a thread") : NULL;
}

/* What tells this machine from others, also from copies of it; "" where nothing does. */
static void read_machine(char out[64])
{
	FILE *file = fopen("/etc/machine-id", "re");
	if (!file || !fgets(out, 64, file))
		*out = 0;
	out[strcspn(out, "\n")] = 0;
	if (file)
		fclose(file);
}

static struct err *open_all(struct shipper *s, const struct config *c)
{
	char machine[64];
	const struct server_trust trust = {
		.credentials = *c->fleet_credentials ? c->fleet_credentials : NULL,
		.ca = *c->fleet_ca ? c->fleet_ca : NULL};
	s->every_ms = c->fleet_every_s * 1000;
	s->spool = c->fleet_spool;
	if (c->max_bytes && s->spool > c->max_bytes / 2)
		s->spool = c->max_bytes / 2;
	s->keep_ms = c->keep_s * 1000;
	s->path = strdup(c->database);
	read_machine(machine);
	s->stop = eventfd(0, EFD_CLOEXEC);
	s->wake = eventfd(0, EFD_CLOEXEC);
	if (!s->path)
		return err_new("out of memory");
	if (s->stop < 0 || s->wake < 0)
		return err_errno("cannot make an eventfd");
	struct err *e = err_context(server_open(c->fleet, &trust, &s->server), "fleet");
	if (!e)
		e = writer_send_begin(s->writer, machine, &s->state);
	if (!e)
		e = store_open(s->path, STORE_READ, &s->store);
	if (!e)
		e = sender_open(s->server, s->state.source, &s->sender);
	if (e)
		return e;
	s->patience_ms = c->fleet_patience_ms;
	server_set_patience(s->server, s->stop, (int)s->patience_ms);
	s->shared = s->noted = s->state;
	s->noted_source = s->state.source;
	return start(s);
}

struct err *shipper_open(const struct config *c, struct writer *writer, struct shipper **out)
{
	*out = NULL;
	if (!*c->fleet)
		return writer_send_end(writer);
	struct shipper *s = calloc(1, sizeof *s);
	if (!s)
		return err_new("out of memory");
	pthread_mutex_init(&s->lock, NULL);
	s->stop = s->wake = -1;
	s->writer = writer;
	struct err *e = open_all(s, c);
	if (e)
		shipper_close(s);
	else
		*out = s;
	return e;
}

static void note(struct shipper *s, const struct unsent_state *state)
{
	if (state->source == s->noted.source && state->sent == s->noted.sent &&
	    state->given_up == s->noted.given_up)
		return;
	struct err *e = writer_send_note(s->writer, state);
	if (!e) {
		s->noted = *state;
		pthread_mutex_lock(&s->lock);
		s->noted_source = state->source;
		pthread_mutex_unlock(&s->lock);
	}
	err_free(e); /* the disk is full, which is told by who writes more; next time then */
}

void shipper_tick(struct shipper *s, shipper_say *say, void *context)
{
	struct news news[NEWS_MAX];
	if (!s)
		return;
	uint64_t now = now_ms();
	pthread_mutex_lock(&s->lock);
	struct unsent_state state = s->shared;
	size_t count = s->news_count;
	memcpy(news, s->news, count * sizeof *news);
	s->news_count = 0;
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < count; i++)
		say(context, news[i].level, news[i].text);
	if (now - s->noted_ms < NOTE_MS)
		return;
	s->noted_ms = now;
	note(s, &state);
}

/* Makes it readable: there is room for one in an eventfd. */
static void ring(int fd)
{
	uint64_t one = 1;
	while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

/* Ends the thread, whatever it is at. */
static void end(struct shipper *s)
{
	if (!s->running)
		return;
	ring(s->stop);
	pthread_join(s->thread, NULL);
	s->running = false;
}

/* All is sent, or it goes wrong once more. */
static bool is_over(struct shipper *s, uint64_t failures)
{
	pthread_mutex_lock(&s->lock);
	bool over = s->idle || s->failures != failures;
	pthread_mutex_unlock(&s->lock);
	return over;
}

void shipper_finish(struct shipper *s, shipper_say *say, void *context)
{
	if (!s)
		return;
	uint64_t until = now_ms() + FINISH_MS;
	pthread_mutex_lock(&s->lock);
	uint64_t failures = s->failures;
	s->finishing = true;
	s->idle = false;
	pthread_mutex_unlock(&s->lock);
	ring(s->wake);
	while (!is_over(s, failures) && now_ms() < until)
		usleep(20000);
	end(s);
	s->noted_ms = 0;
	shipper_tick(s, say, context);
}

void shipper_close(struct shipper *s)
{
	if (!s)
		return;
	end(s);
	sender_close(s->sender);
	store_close(s->store);
	server_close(s->server);
	if (s->stop >= 0)
		close(s->stop);
	if (s->wake >= 0)
		close(s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s->path);
	free(s);
}
