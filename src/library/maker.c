/* SPDX-License-Identifier: Apache-2.0 */
#include "library/maker.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apart/apart.h"
#include "apart/packet.h"
#include "base/clock.h"
#include "base/err.h"
#include "image/identity.h"
#include "image/image.h"
#include "image/name_table.h"

/* The descriptors that the other process gets. */
#define MAKER_FILE APART_FIRST
#define MAKER_ANSWER (APART_FIRST + 1)
#define MAKER_NAMES (APART_FIRST + 2)

#define NO_TABLE (-1) /* in the place of a mode: only names are wanted */

#define SMALL_FILE (256 << 10)         /* in bytes: takes a megabyte or two in this process */
#define SMALL_NAMES (4 << 20)          /* bytes of names that are written in this process */
#define MEMORY_MAX (UINT64_C(2) << 30) /* the largest known programs take 1.5 GiB */
#define CPU_SECONDS_MAX 300
#define WALL_MS_MAX (15 * 60 * 1000) /* it has low priority, so it may have to wait */

struct answer {
	uint64_t memory; /* its peak */
	char text[1000]; /* why there is no table */
};

/* ---- in the process that asks ---- */

#define HANDED 3 /* files: MAKER_FILE and the following ones */

struct child {
	pid_t pid;
	int answer;
};

/* What is to be made. */
struct order {
	struct image *image;
	int mode; /* enum recipes_mode, or NO_TABLE */
	enum cache_debug debug;
	int names; /* file for the names, or -1 */
};

static void argument(char *out, size_t size, int value)
{
	snprintf(out, size, "%d", value);
}

static struct err *start_child(const struct maker *maker, const struct order *order,
			       struct child *out)
{
	int ends[2];
	char mode[16], debug[16], parent[16];
	argument(mode, sizeof mode, order->mode);
	argument(debug, sizeof debug, (int)order->debug);
	argument(parent, sizeof parent, (int)getpid());
	char program[] = "culprit", command[] = MAKER_COMMAND, yes[] = "1", no[] = "0";
	char *names = order->names >= 0 ? yes : no;
	char *arguments[] = {program, command, mode,  (char *)image_path(order->image),
			     parent,  names,   debug, NULL};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_errno("cannot make a socket");
	const int files[HANDED] = {image_hand_over(order->image), ends[1], order->names};
	struct err *e = files[0] < 0
				? err_errno("cannot hand it over")
				: apart_start(maker->program, arguments, files, HANDED, &out->pid);
	if (files[0] >= 0)
		close(files[0]);
	close(ends[1]);
	out->answer = ends[0];
	if (e)
		close(ends[0]);
	return e;
}

/* Waits until the process answers or has ended. An error tells why the wait ended earlier. */
static struct err *wait_for(const struct maker *maker, const struct child *c)
{
	uint64_t until = now_ms() + WALL_MS_MAX;
	for (;;) {
		struct pollfd ready[] = {{c->answer, POLLIN, 0}, {maker->stop, POLLIN, 0}};
		uint64_t now = now_ms();
		if (now >= until)
			return err_new("making it took more than %d minutes", WALL_MS_MAX / 60000);
		if (poll(ready, 2, (int)(until - now)) < 0 && errno != EINTR)
			return err_errno("cannot wait");
		if (ready[0].revents)
			return NULL;
		if (ready[1].revents)
			return err_new("there is no time to make it");
	}
}

/* Reads the answer. *answered is false if the process ended without one. */
static struct err *hear(const struct child *c, struct maker_report *report, int *table,
			bool *answered)
{
	struct answer a;
	ssize_t got = packet_receive(c->answer, &a, sizeof a, table, MSG_DONTWAIT);
	*answered = got == (ssize_t)sizeof a;
	if (!*answered)
		return got > 0 ? err_new("the process that made it answers nonsense") : NULL;
	a.text[sizeof a.text - 1] = '\0';
	report->memory = a.memory > report->memory ? a.memory : report->memory;
	return *table < 0 && a.text[0] ? err_new("%s", a.text) : NULL;
}

/* *table is -1 if there is none. */
static struct err *carry_out(const struct maker *maker, const struct order *order, int *table,
			     struct maker_report *report)
{
	struct child c;
	bool answered = false;
	*table = -1;
	struct err *e = start_child(maker, order, &c);
	if (!e) {
		e = wait_for(maker, &c);
		if (!e)
			e = hear(&c, report, table, &answered);
		/* The answer was its last work: end it. */
		int status = apart_end(c.pid, &report->cpu_ns);
		close(c.answer);
		if (!e && !answered)
			e = apart_say_death(status, CPU_SECONDS_MAX);
	}
	report->died = !answered;
	return answered ? e : err_context(e, "unwind table of '%s'", image_path(order->image));
}

static struct err *have_made(const struct maker *maker, struct image *image, enum recipes_mode mode,
			     int names, struct module_table *out, struct maker_report *report)
{
	struct cache_job *job;
	int table;
	struct err *e = cache_begin(image, mode, out, &job);
	if (e || (out->bytes && names < 0)) {
		cache_end(job);
		return e;
	}
	const struct order order = {.image = cache_image(job),
				    .mode = out->bytes ? NO_TABLE : (int)mode,
				    .debug = cache_debug(job),
				    .names = names};
	e = carry_out(maker, &order, &table, report);
	if (!e && !out->bytes && !cache_adopt(job, table, out))
		e = err_new("unwind table of '%s': what was made is none", image_path(image));
	if (out->bytes && e) { /* then there are no names */
		err_free(e);
		e = NULL;
	}
	if (table >= 0)
		close(table);
	cache_end(job);
	return e;
}

static bool is_stopped(const struct maker *maker)
{
	struct pollfd ready = {maker->stop, POLLIN, 0};
	return poll(&ready, 1, 0) > 0;
}

static off_t size_of(const struct image *image)
{
	struct stat st;
	int fd = image_descriptor(image);
	return fd < 0 || fstat(fd, &st) ? 0 : st.st_size;
}

bool maker_find_cached(struct image *image, enum recipes_mode mode, struct module_table *out)
{
	return cache_find(image, mode, true, out);
}

static struct err *make_apart(const struct maker *maker, struct image *image,
			      enum recipes_mode mode, int names, struct module_table *out,
			      struct maker_report *report)
{
	struct err *e = have_made(maker, image, mode, names, out, report);
	if (e && mode == RECIPES_AUTO && !is_stopped(maker))
		err_free(have_made(maker, image, RECIPES_CFI, names, out, report));
	return e;
}

/* Makes the table in this process: for a small file that is trusted. False if it would take too much
   memory here. */
static bool make_here(struct image *image, enum recipes_mode mode, int names,
		      struct module_table *out, struct err **error)
{
	*error = cache_table(image, mode, out);
	struct err *unnamed = names >= 0 ? name_table_write(image, names, SMALL_NAMES) : NULL;
	bool whole = !unnamed && !image_exceeded(image);
	err_free(unnamed);
	if (whole)
		return true;
	err_free(*error);
	*error = NULL;
	module_table_free(out);
	return false;
}

static struct err *find_or_make(const struct maker *maker, struct image *image,
				enum recipes_mode mode, int names, struct module_table *out,
				struct maker_report *report)
{
	struct err *e;
	if (size_of(image) <= SMALL_FILE && identity_is_believed(image) &&
	    make_here(image, mode, names, out, &e))
		return e;
	if (names < 0 && cache_find(image, mode, false, out))
		return NULL;
	return make_apart(maker, image, mode, names, out, report);
}

void maker_table(const struct maker *maker, struct image *image, enum recipes_mode mode, int names,
		 struct module_table *out, struct maker_report *report)
{
	*report = (struct maker_report){0};
	memset(out, 0, sizeof *out);
	struct err *e = find_or_make(maker, image, mode, names, out, report);
	if (e)
		report->reason = strdup(err_text(e));
	err_free(e);
}

/* ---- in the process that makes the table ---- */

static void answer(int table, const char *text)
{
	/* What wait4 tells would include the daemon's memory, from before exec. */
	struct answer a = {.memory = apart_memory()};
	snprintf(a.text, sizeof a.text, "%s", text);
	packet_send(MAKER_ANSWER, &a, sizeof a, &table, table >= 0, 0);
}

static struct err *make(int mode, const char *name, bool names, enum cache_debug debug, int *table)
{
	struct image *image;
	struct err *e = image_open_fd(MAKER_FILE, name, &image);
	if (e)
		return e;
	if (mode != NO_TABLE)
		e = cache_make(image, (enum recipes_mode)mode, debug, table);
	if (names)
		err_free(name_table_write(image, MAKER_NAMES, NAME_TABLE_MAX));
	image_close(image);
	return e;
}

int maker_main(int argc, char **argv)
{
	int table = -1;
	if (argc != MAKER_ARGUMENTS)
		return EXIT_FAILURE;
	bool names = !strcmp(argv[4], "1");
	const struct apart_bounds bounds = {
		.memory = MEMORY_MAX, .cpu_seconds = CPU_SECONDS_MAX, .nice = MAKER_NICE};
	if (!apart_enter((pid_t)atoi(argv[3]), names ? HANDED : HANDED - 1, &bounds))
		return EXIT_FAILURE;
	struct err *e = make(atoi(argv[1]), argv[2], names, (enum cache_debug)atoi(argv[5]),
			     &table);
	answer(table, e ? err_text(e) : "");
	_exit(EXIT_SUCCESS); /* the kernel frees everything */
}
