/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/live.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "apart/packet.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "collect/live_wire.h"
#include "profile/profile.h"

#define READERS_MAX 8
#define ACCEPTED_AT_ONCE 16
#define COST_PART 50 /* snapshots take at most one part in so many of the time */

struct reader {
	int fd; /* -1: free */
	bool waits;
};

struct live {
	int listener, epoll, done; /* done: an eventfd, written to when the thread is done */
	struct reader readers[READERS_MAX];
	uint64_t next_ns, cost_ns;
	bool working;
	pthread_t thread;
	/* Used by the thread while it works. */
	struct profile *profile;
	int packed; /* a memfd; -1: there was no memory */
	uint64_t packed_size, packing_ns;
};

/* ---- the name ---- */

bool live_address(const char *path, struct sockaddr_un *address, socklen_t *size)
{
	char *real = realpath(path, NULL), *copy = real ? real : strdup(path);
	char *slash = copy ? strrchr(copy, '/') : NULL;
	const char *name = slash ? slash + 1 : copy;
	struct stat st;
	bool good = copy != NULL;
	if (slash)
		*slash = 0;
	good = good && !stat(!slash ? "." : *copy ? copy : "/", &st);
	if (good) {
		uint64_t hash = hash_bytes(HASH_START, &st.st_dev, sizeof st.st_dev);
		hash = hash_bytes(hash, &st.st_ino, sizeof st.st_ino);
		hash = hash_text(hash, name);
		*address = (struct sockaddr_un){.sun_family = AF_UNIX};
		/* The first byte stays 0: an abstract name. */
		int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1,
				      "culprit-live-%016" PRIx64, hash);
		*size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	}
	free(copy);
	return good;
}

/* ---- opening ---- */

static bool watch(struct live *l, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	return !epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &event);
}

struct err *live_open(const char *path, struct live **out)
{
	struct sockaddr_un address;
	socklen_t size;
	struct live *l = calloc(1, sizeof *l);
	*out = NULL;
	if (!l)
		return err_new("out of memory");
	for (int i = 0; i < READERS_MAX; i++)
		l->readers[i].fd = -1;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->epoll >= 0 && l->done >= 0 && l->listener >= 0 &&
	    live_address(path, &address, &size) &&
	    !bind(l->listener, (struct sockaddr *)&address, size) &&
	    !listen(l->listener, READERS_MAX) && watch(l, l->listener) && watch(l, l->done)) {
		*out = l;
		return NULL;
	}
	struct err *e = err_errno("%s: others cannot look at it while it is recorded", path);
	live_close(l);
	return e;
}

static void hang_up(struct reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	*r = (struct reader){.fd = -1};
}

static void finish_work(struct live *l)
{
	if (l->working)
		pthread_join(l->thread, NULL);
	l->working = false;
}

void live_close(struct live *l)
{
	if (!l)
		return;
	finish_work(l);
	for (int i = 0; i < READERS_MAX; i++)
		hang_up(&l->readers[i]);
	const int fds[] = {l->listener, l->epoll, l->done};
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(l);
}

int live_fd(const struct live *l)
{
	return l ? l->epoll : -1;
}

/* ---- what readers say ---- */

static bool is_ours(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;
	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.uid == geteuid();
}

static void accept_all(struct live *l)
{
	int fd;
	for (int left = ACCEPTED_AT_ONCE; left--;) {
		fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		struct reader *r = l->readers;
		while (r < l->readers + READERS_MAX && r->fd >= 0)
			r++;
		if (r == l->readers + READERS_MAX || !is_ours(fd) || !watch(l, fd))
			close(fd);
		else
			*r = (struct reader){.fd = fd};
	}
}

/* A reader can only ask, and only once before it gets its answer. */
static void hear(struct reader *r)
{
	struct live_message m;
	ssize_t size = recv(r->fd, &m, sizeof m, 0);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size != sizeof m || m.magic != LIVE_ASK || m.version != LIVE_VERSION || r->waits)
		hang_up(r);
	else
		r->waits = true;
}

/* ---- answers ---- */

static void answer(struct live *l, struct reader *r)
{
	struct live_message m = {LIVE_ANSWER, LIVE_VERSION, l->packed_size};
	r->waits = false;
	if (packet_send(r->fd, &m, sizeof m, &l->packed, l->packed >= 0, MSG_DONTWAIT) !=
	    (ssize_t)sizeof m)
		hang_up(r); /* it asks, but does not read the answers */
}

/* The thread is done. Readers that asked meanwhile get the same snapshot: it is just as fresh. */
static void hand_out(struct live *l)
{
	uint64_t count;
	if (read(l->done, &count, sizeof count) != sizeof count)
		return;
	finish_work(l);
	for (int i = 0; i < READERS_MAX; i++)
		if (l->readers[i].fd >= 0 && l->readers[i].waits)
			answer(l, &l->readers[i]);
	if (l->packed >= 0)
		close(l->packed);
	l->next_ns = now_ns() + (l->cost_ns + l->packing_ns) * (COST_PART - 1);
}

bool live_wanted(struct live *l)
{
	bool waits = false;
	if (!l)
		return false;
	if (l->working)
		hand_out(l);
	accept_all(l);
	for (int i = 0; i < READERS_MAX; i++) {
		if (l->readers[i].fd >= 0)
			hear(&l->readers[i]);
		waits |= l->readers[i].fd >= 0 && l->readers[i].waits;
	}
	return waits && !l->working && now_ns() >= l->next_ns;
}

/* Returns a sealed file in memory, which nobody can change while it is read; -1: none. */
static int to_memory(const struct buf *bytes)
{
	int fd = memfd_create("culprit-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t done = 0;
	while (fd >= 0 && done < bytes->size) {
		ssize_t part = write(fd, bytes->data + done, bytes->size - done);
		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0)
			break;
		done += (size_t)part;
	}
	if (fd >= 0 && done == bytes->size &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void *pack(void *context)
{
	struct live *l = context;
	struct buf bytes = {0};
	const uint64_t one = 1;
	struct err *e = l->profile ? profile_pack(l->profile, &bytes) : NULL;
	if (l->profile && !e)
		l->packed = to_memory(&bytes);
	l->packed_size = l->packed >= 0 ? bytes.size : 0;
	err_free(e);
	buf_free(&bytes);
	profile_free(l->profile);
	l->packing_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (write(l->done, &one, sizeof one) < 0)
		return NULL; /* cannot happen: the counter was 0 */
	return NULL;
}

void live_send(struct live *l, struct profile *profile, uint64_t cpu_ns)
{
	l->profile = profile;
	l->packed = -1;
	l->cost_ns = cpu_ns;
	l->packing_ns = 0;
	l->working = !pthread_create(&l->thread, NULL, pack, l);
	if (!l->working) {
		uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		pack(l);
		l->packing_ns -= before;
		hand_out(l);
	}
}
