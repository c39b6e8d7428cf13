/* SPDX-License-Identifier: Apache-2.0 */
#include "library/teller.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "apart/apart.h"
#include "apart/packet.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/utf8.h"
#include "image/image.h"
#include "image/places.h"
#include "library/pieces.h"

/* The descriptors that the other process gets. */
#define TELLER_SOCKET APART_FIRST
#define TELLER_SHARED (APART_FIRST + 1)
#define HANDED 2

#define MEMORY_MAX (UINT64_C(256) << 20)
#define CPU_SECONDS_MAX 2 /* for one file, plus the rest of a started second */
#define FILES_MAX 32
#define ADDRESSES_MAX (PIECES_MAX / sizeof(uint64_t))

struct question {
	uint64_t count;
	char build_id[2 * BUILD_ID_MAX + 1];
	char path[PATH_MAX];
};

struct answer {
	uint64_t memory; /* its peak */
	uint64_t size;   /* of the pieces, in bytes */
	uint8_t refused; /* the file cannot be read, or is another file */
	char text[300];  /* why there are no pieces */
};

/* ---- in the process that asks ---- */

struct teller {
	const char *program;
	pid_t pid;       /* 0: it is not running */
	int socket;      /* the other end of TELLER_SOCKET */
	int shared;      /* TELLER_SHARED, as it is here */
	uint64_t cpu_ns; /* of processes that have ended */
};

struct err *teller_open(const char *program, struct teller **out)
{
	*out = calloc(1, sizeof **out);
	if (!*out)
		return err_new("out of memory");
	**out = (struct teller){.program = program, .socket = -1, .shared = -1};
	return NULL;
}

static int end(struct teller *t)
{
	int status = t->pid ? apart_end(t->pid, &t->cpu_ns) : 0;
	if (t->socket >= 0)
		close(t->socket);
	if (t->shared >= 0)
		close(t->shared);
	t->pid = 0;
	t->socket = t->shared = -1;
	return status;
}

uint64_t teller_rest(struct teller *t)
{
	end(t);
	uint64_t cpu_ns = t->cpu_ns;
	t->cpu_ns = 0;
	return cpu_ns;
}

void teller_close(struct teller *t)
{
	if (t)
		end(t);
	free(t);
}

static struct err *begin(struct teller *t)
{
	int ends[2];
	char program[] = "culprit", command[] = TELLER_COMMAND, parent[16];
	char *arguments[] = {program, command, parent, NULL};
	snprintf(parent, sizeof parent, "%d", (int)getpid());
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_errno("cannot make a socket");
	t->socket = ends[0];
	t->shared = memfd_create("culprit-names", MFD_CLOEXEC);
	const int files[HANDED] = {ends[1], t->shared};
	struct err *e = t->shared < 0 ? err_errno("cannot make a file in memory")
				      : apart_start(t->program, arguments, files, HANDED, &t->pid);
	close(ends[1]);
	if (e) {
		t->pid = 0;
		end(t);
	}
	return e;
}

/* Writes all of it to the beginning of the file. */
static bool write_shared(int shared, const void *bytes, size_t size)
{
	size_t done = 0;
	while (done < size) {
		ssize_t n = pwrite(shared, (const char *)bytes + done, size - done, (off_t)done);
		if (n <= 0 && errno != EINTR)
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool read_shared(int shared, void *bytes, size_t size)
{
	size_t done = 0;
	while (done < size) {
		ssize_t n = pread(shared, (char *)bytes + done, size - done, (off_t)done);
		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

static struct err *put(const struct teller *t, const struct teller_question *asked)
{
	struct question q = {.count = asked->count < ADDRESSES_MAX ? asked->count : ADDRESSES_MAX};
	snprintf(q.build_id, sizeof q.build_id, "%s", asked->build_id);
	snprintf(q.path, sizeof q.path, "%s", asked->path);
	if (!write_shared(t->shared, asked->addresses, q.count * sizeof *asked->addresses))
		return err_errno("cannot write addresses");
	ssize_t sent = packet_send(t->socket, &q, sizeof q, &asked->file, 1, 0);
	return sent == (ssize_t)sizeof q ? NULL : err_errno("cannot ask for names");
}

static struct err *take(const struct teller *t, size_t size, struct buf *out)
{
	if (size > PIECES_MAX)
		return err_new("the process for it answers nonsense");
	if (!buf_reserve(out, size))
		return err_new("out of memory");
	if (!read_shared(t->shared, out->data + out->size, size) ||
	    !pieces_are_whole(out->data + out->size, size))
		return err_new("the process for it answers nonsense");
	out->size += size;
	return NULL;
}

static struct err *hear(const struct teller *t, struct buf *out, struct teller_report *report)
{
	struct answer a;
	int file;
	ssize_t got = packet_receive(t->socket, &a, sizeof a, &file, MSG_DONTWAIT);
	if (file >= 0)
		close(file);
	if (got <= 0)
		return NULL;
	if (got != (ssize_t)sizeof a)
		return err_new("the process for it answers nonsense");
	report->memory = a.memory < MEMORY_MAX * 2 ? a.memory : MEMORY_MAX * 2;
	a.text[sizeof a.text - 1] = '\0';
	utf8_tame(a.text);
	struct err *e = *a.text ? err_new("%s", a.text) : take(t, a.size, out);
	report->failed = e && !a.refused;
	return e;
}

/* CPU time of the process so far. */
static uint64_t spent_ns(const struct teller *t)
{
	clockid_t clock;
	return t->pid && !clock_getcpuclockid(t->pid, &clock) ? clock_ns(clock) : 0;
}

struct err *teller_ask(struct teller *t, const struct teller_question *question, struct buf *out,
		       struct teller_report *report)
{
	*report = (struct teller_report){.failed = true};
	struct err *e = t->pid ? NULL : begin(t);
	uint64_t before = spent_ns(t), ended = t->cpu_ns;
	if (!e)
		e = put(t, question);
	if (!e)
		e = apart_wait(t->pid, t->socket, question->wait_ms)
			    ? NULL
			    : err_new("it took more than %.1f seconds",
				      (double)question->wait_ms / 1e3);
	if (!e)
		e = hear(t, out, report);
	uint64_t spent = spent_ns(t);
	if (report->failed) { /* for the next file another process is started */
		int status = end(t);
		spent = t->cpu_ns - ended;
		if (!e)
			e = apart_say_death(status, CPU_SECONDS_MAX);
	}
	report->cpu_ns = spent > before ? spent - before : 0;
	return e;
}

/* ---- in the process that reads symbols ---- */

static struct err *open_places(const struct question *q, int file, struct image **image,
			       struct places **places)
{
	char id[2 * BUILD_ID_MAX + 1];
	struct err *e = image_open_fd(file, q->path, image);
	if (e)
		return e;
	image_build_id_hex(*image, id);
	if (strcmp(id, q->build_id) != 0)
		return err_new("it is another file now");
	return places_open(*image, false, places);
}

static struct err *find(const struct question *q, int file, struct buf *out, bool *refused)
{
	struct image *image = NULL;
	struct places *places = NULL;
	uint64_t *addresses = reallocarray(NULL, q->count + 1, sizeof *addresses);
	struct err *e = addresses && read_shared(TELLER_SHARED, addresses,
						 q->count * sizeof *addresses)
				? open_places(q, file, &image, &places)
				: err_new("out of memory");
	*refused = addresses && e;
	if (!e && !pieces_write(places, addresses, q->count, out))
		e = err_new("it takes more memory than is allowed");
	if (!e && !write_shared(TELLER_SHARED, out->data, out->size))
		e = err_errno("cannot write pieces");
	places_close(places);
	image_close(image);
	free(addresses);
	return e;
}

/* Sets the limit of CPU time for the next file. */
static void limit_time(void)
{
	struct rlimit limit;
	struct timespec used = {0};
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	if (getrlimit(RLIMIT_CPU, &limit))
		return;
	limit.rlim_cur = (rlim_t)used.tv_sec + 1 + CPU_SECONDS_MAX;
	setrlimit(RLIMIT_CPU, &limit);
}

int teller_main(int argc, char **argv)
{
	static struct question q;
	const struct apart_bounds bounds = {
		.memory = MEMORY_MAX, .file_size = PIECES_MAX, .files = FILES_MAX};
	int file;
	if (argc != TELLER_ARGUMENTS || !apart_enter((pid_t)atoi(argv[1]), HANDED, &bounds))
		return EXIT_FAILURE;
	while (packet_receive(TELLER_SOCKET, &q, sizeof q, &file, 0) == (ssize_t)sizeof q &&
	       file >= 0) {
		struct buf pieces = {0};
		limit_time();
		struct answer a = {0};
		bool refused;
		struct err *e = find(&q, file, &pieces, &refused);
		a.memory = apart_memory();
		a.size = pieces.size;
		a.refused = refused;
		snprintf(a.text, sizeof a.text, "%s", e ? err_text(e) : "");
		buf_free(&pieces);
		err_free(e);
		close(file);
		if (packet_send(TELLER_SOCKET, &a, sizeof a, NULL, 0, 0) < 0)
			break;
	}
	_exit(EXIT_SUCCESS); /* the kernel frees everything */
}
