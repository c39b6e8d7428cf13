/* SPDX-License-Identifier: Apache-2.0 */
#include "process/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apart/packet.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/foreign.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "process/reach_wire.h"
#include "process/status.h"

#define WAIT_MS 1000
#define REST_MS (60 * 1000)
#define DOUBLED_MAX 6 /* doublings of REST_MS: about an hour */
#define RESTING_MAX 64u
/* Processes that were left behind. If there are so many, nothing of other users is asked for any more. */
#define LEFT_MAX 16u

/* One of our processes for this. There are two: one reads memory, the other opens files, since a disk may
   be slow. */
struct runner {
	pthread_mutex_t lock;
	pid_t pid; /* 0: it is not running */
	int socket;
	char *paper;
	uint64_t told_ns; /* its CPU time that was accounted for already */
};

/* Somebody for whom there was no answer: nothing of theirs is asked for until `until_ms`. */
struct resting {
	uint64_t who, until_ms;
	unsigned times;
};

static const char *program; /* NULL: everything is done in this process */
static struct runner opener = {.lock = PTHREAD_MUTEX_INITIALIZER, .socket = -1};
static struct runner reader = {.lock = PTHREAD_MUTEX_INITIALIZER, .socket = -1};

static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER; /* locks what follows */
static struct resting resting[RESTING_MAX];
static pid_t left[LEFT_MAX];
static size_t resting_count, left_count;
static struct reach_account account;

/* ---- pauses after missing answers ---- */

/* Root can do anything on this machine anyway. */
static bool is_trusted(uid_t user)
{
	return user == 0 || user == geteuid();
}

/* Who has to pause if there is no answer: the user, since one user has many processes and directories. For
   users that are trusted, only the process or the directory. */
static uint64_t who_is(const struct reach_question *q, uid_t *user)
{
	struct process_status s;
	pid_t pid = q->act == REACH_READ ? q->pid : reach_whose(q->path);
	*user = pid > 0 && process_status(pid, &s) ? s.user : geteuid();
	if (!is_trusted(*user))
		return hash_number(HASH_START, *user);
	if (q->act == REACH_READ)
		return hash_number(hash_text(HASH_START, "process"), (uint64_t)pid);
	const char *slash = strrchr(q->path, '/');
	return hash_bytes(HASH_START, q->path, slash ? (size_t)(slash - q->path) : 0);
}

/* Processes that were left behind may end after all: they are reaped here. */
static void forget_left(void)
{
	size_t kept = 0;
	for (size_t i = 0; i < left_count; i++)
		if (!waitpid(left[i], NULL, WNOHANG))
			left[kept++] = left[i];
	left_count = kept;
}

static bool rests(const struct reach_question *q)
{
	uid_t user;
	bool found = false;
	pthread_mutex_lock(&common);
	forget_left();
	if (resting_count || left_count) {
		uint64_t who = who_is(q, &user), now = now_ms();
		found = left_count == LEFT_MAX && !is_trusted(user);
		for (size_t i = 0; i < resting_count; i++)
			found |= resting[i].who == who && now < resting[i].until_ms;
	}
	pthread_mutex_unlock(&common);
	return found;
}

bool reach_is_paused(pid_t pid)
{
	const struct reach_question q = {.act = REACH_READ, .pid = pid};
	return program && rests(&q);
}

/* The entry of `who`. If there is no room, it takes the place of the one whose pause ends first. */
static struct resting *place_for(uint64_t who)
{
	struct resting *oldest = &resting[0];
	for (size_t i = 0; i < resting_count; i++) {
		if (resting[i].who == who)
			return &resting[i];
		if (resting[i].until_ms < oldest->until_ms)
			oldest = &resting[i];
	}
	if (resting_count < RESTING_MAX)
		oldest = &resting[resting_count++];
	*oldest = (struct resting){.who = who};
	return oldest;
}

static void let_rest(const struct reach_question *q)
{
	uid_t user;
	struct resting *r = place_for(who_is(q, &user));
	r->until_ms = now_ms() + ((uint64_t)REST_MS << r->times);
	r->times += r->times < DOUBLED_MAX;
	account.late++;
	if (q->act == REACH_READ)
		snprintf(account.newest, sizeof account.newest,
			 "the memory of process %d of user %u", (int)q->pid, (unsigned)user);
	else
		snprintf(account.newest, sizeof account.newest, "%.*s",
			 (int)sizeof account.newest - 1, q->path);
	utf8_tame(account.newest);
}

/* CPU time of the process since the last call. */
static uint64_t take_cpu(struct runner *r)
{
	clockid_t clock;
	uint64_t more = 0;
	pthread_mutex_lock(&r->lock);
	if (r->pid && !clock_getcpuclockid(r->pid, &clock)) {
		uint64_t ns = clock_ns(clock);
		more = ns > r->told_ns ? ns - r->told_ns : 0;
		r->told_ns = ns;
	}
	pthread_mutex_unlock(&r->lock);
	return more;
}

struct reach_account reach_take_account(void)
{
	uint64_t cpu_ns = take_cpu(&opener) + take_cpu(&reader);
	pthread_mutex_lock(&common);
	struct reach_account taken = account;
	account = (struct reach_account){0};
	pthread_mutex_unlock(&common);
	taken.cpu_ns = cpu_ns;
	return taken;
}

/* ---- asking ---- */

static void end(struct runner *r)
{
	if (r->socket >= 0)
		close(r->socket);
	if (r->paper)
		munmap(r->paper, REACH_MAX);
	r->socket = -1;
	r->paper = NULL;
	r->told_ns = 0;
	r->pid = 0;
}

static bool map_paper(struct runner *r, int paper)
{
	if (paper < 0 || ftruncate(paper, REACH_MAX))
		return false;
	void *bytes = mmap(NULL, REACH_MAX, PROT_READ, MAP_SHARED, paper, 0);
	r->paper = bytes == MAP_FAILED ? NULL : bytes;
	return r->paper;
}

static bool begin(struct runner *r)
{
	int ends[2];
	char name[] = "culprit", command[] = REACH_COMMAND, parent[16];
	char *arguments[] = {name, command, parent, NULL};
	snprintf(parent, sizeof parent, "%d", (int)getpid());
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return false;
	r->socket = ends[0];
	int paper = memfd_create("culprit-reach", MFD_CLOEXEC);
	const int files[REACH_HANDED] = {ends[1], paper};
	struct err *e = map_paper(r, paper) ? apart_start_with(REACH_RIGHTS, program, arguments,
							       files, REACH_HANDED, &r->pid)
					    : err_errno("cannot make a file in memory");
	close(ends[1]);
	if (paper >= 0)
		close(paper);
	bool begun = !e;
	err_free(e);
	if (!begun)
		end(r);
	return begun;
}

/* The process is stuck in the kernel, or of no use: kill it, but do not wait for its end. */
static void leave(struct runner *r)
{
	kill(r->pid, SIGKILL);
	pthread_mutex_lock(&common);
	forget_left();
	if (left_count < LEFT_MAX)
		left[left_count++] = r->pid;
	pthread_mutex_unlock(&common);
	end(r);
}

/* Returns 1: it answered. 0: it has ended by itself. -1: an error, see errno. */
static int try_once(struct runner *r, const struct reach_question *q, struct reach_answer *a,
		    int *file)
{
	size_t size = offsetof(struct reach_question, path) + strlen(q->path) + 1;
	*file = -1;
	if (!r->pid && !begin(r)) {
		errno = EAGAIN;
		return -1;
	}
	if (packet_send(r->socket, q, size, NULL, 0, 0) > 0) {
		if (!apart_wait(r->pid, r->socket, WAIT_MS)) {
			leave(r);
			pthread_mutex_lock(&common);
			let_rest(q);
			pthread_mutex_unlock(&common);
			errno = ETIMEDOUT;
			return -1;
		}
		if (packet_receive(r->socket, a, sizeof *a, file, 0) == (ssize_t)sizeof *a)
			return 1;
	}
	leave(r);
	return 0;
}

static void take_pieces(const struct reach_question *q, const char *from, int64_t size)
{
	for (uint32_t i = 0; i < q->count && size > 0; i++) {
		size_t bytes = (uint64_t)size < q->pieces[i].size ? (size_t)size
								  : q->pieces[i].size;
		memcpy(q->pieces[i].out, from, bytes);
		from += bytes;
		size -= (int64_t)bytes;
	}
}

static int64_t ask(struct runner *r, const struct reach_question *q, struct reach_answer *a,
		   int *file)
{
	int answered = 0;
	if (rests(q)) {
		errno = ETIMEDOUT;
		return -1;
	}
	pthread_mutex_lock(&r->lock);
	for (int tries = 0; !answered && tries < 2;
	     /* Twice, because the process ends together with the thread that started it. */
	     tries++)
		answered = try_once(r, q, a, file);
	if (answered > 0)
		take_pieces(q, r->paper, a->size);
	pthread_mutex_unlock(&r->lock);
	if (answered > 0 && a->size < 0)
		errno = a->error;
	else if (!answered)
		errno = EAGAIN;
	return answered > 0 ? a->size : -1;
}

static bool set_path(struct reach_question *q, const char *path)
{
	size_t length = strlen(path);
	if (length >= sizeof q->path) {
		errno = ENAMETOOLONG;
		return false;
	}
	memcpy(q->path, path, length + 1);
	return true;
}

/* ---- functions for others ---- */

void reach_apart(const char *by)
{
	program = by;
}

int reach_open(const char *path, int flags, struct stat *st)
{
	struct reach_question q = {.act = REACH_OPEN, .flags = flags};
	struct reach_answer a;
	int fd;
	if (!program) {
		fd = foreign_open(path, flags);
		if (fd < 0 || !fstat(fd, st))
			return fd;
		close(fd);
		return -1;
	}
	if (!set_path(&q, path) || ask(&opener, &q, &a, &fd) < 0)
		return -1;
	*st = a.st;
	return fd;
}

int reach_stat(const char *path, struct stat *st)
{
	struct reach_question q = {.act = REACH_STAT};
	struct reach_answer a;
	int fd;
	if (!program)
		return foreign_stat(path, st);
	if (!set_path(&q, path) || ask(&opener, &q, &a, &fd) < 0)
		return -1;
	*st = a.st;
	return 0;
}

ssize_t reach_memory(pid_t pid, const struct reach_piece *pieces, size_t count)
{
	struct reach_question q = {.act = REACH_READ, .pid = pid, .count = (uint32_t)count};
	struct iovec to[REACH_PIECES], from[REACH_PIECES];
	struct reach_answer a;
	int fd;
	for (size_t i = 0; i < count; i++) {
		q.pieces[i] = pieces[i];
		from[i] = (struct iovec){(void *)(uintptr_t)pieces[i].address, pieces[i].size};
		to[i] = (struct iovec){pieces[i].out, pieces[i].size};
	}
	if (!program || pid == getpid())
		return process_vm_readv(pid, to, count, from, count, 0);
	return (ssize_t)ask(&reader, &q, &a, &fd);
}

bool reach_bytes(pid_t pid, uint64_t address, void *out, size_t size)
{
	size_t done = 0;
	while (done < size) {
		size_t left_over = size - done,
		       next = left_over < REACH_MAX ? left_over : REACH_MAX;
		const struct reach_piece piece = {address + done, next, (char *)out + done};
		ssize_t got = reach_memory(pid, &piece, 1);
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}
