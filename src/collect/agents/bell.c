/* SPDX-License-Identifier: Apache-2.0 */
/* The bell is a word in shared memory. Targets raise it and wake its futex. A thread waits for that and
   does nothing else, because epoll cannot wait for a futex. */
#include "collect/agents/bell.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "collect/agents/state.h"
#include "collect/schedule.h"

#define PAGE 4096u
#define PAUSE_US 100u

void bell_ring_again(struct bell *bell)
{
	uint64_t one = 1;
	while (write(bell->ring, &one, sizeof one) < 0 && errno == EINTR)
		;
}

static void *wait_for_ringing(void *context)
{
	struct bell *bell = context;
	schedule_soon();
	uint32_t heard = 0;
	while (!atomic_load(&bell->stop)) {
		uint32_t now = atomic_load(bell->word);
		if (now == heard) {
			syscall(SYS_futex, bell->word, FUTEX_WAIT, heard, NULL, NULL, 0);
			continue;
		}
		heard = now;
		bell_ring_again(bell);
		/* A pause, so that a target that rings all the time does not keep us from everything else. */
		uint32_t pause = atomic_load(&bell->pause_us);
		struct timespec rest = {0, (long)(pause < 100000 ? pause : 100000) * 1000};
		nanosleep(&rest, NULL);
	}
	return NULL;
}

struct err *bell_open(struct bell *bell)
{
	sigset_t all, mask;
	*bell = (struct bell){.ring = -1, .pause_us = PAUSE_US};
	bell->fd = memfd_create("culprit-bell", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (bell->fd < 0 || ftruncate(bell->fd, PAGE) ||
	    fcntl(bell->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return err_errno("cannot make shared memory");
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, bell->fd, 0);
	if (at == MAP_FAILED)
		return err_errno("cannot map shared memory");
	bell->word = at;
	bell->ring = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (bell->ring < 0)
		return err_errno("cannot make an event descriptor");
	sigfillset(&all); /* signals are for the main thread */
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	int error = pthread_create(&bell->waiter, NULL, wait_for_ringing, bell);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	bell->waiting = !error;
	errno = error;
	return error ? err_errno("cannot start a thread") : NULL;
}

void bell_hear(struct bell *bell)
{
	uint64_t count;
	while (read(bell->ring, &count, sizeof count) < 0 && errno == EINTR)
		;
}

void bell_close(struct bell *bell)
{
	if (bell->waiting) {
		atomic_store(&bell->stop, true);
		atomic_fetch_add(bell->word, 1);
		syscall(SYS_futex, bell->word, FUTEX_WAKE, 1, NULL, NULL, 0);
		pthread_join(bell->waiter, NULL);
	}
	if (bell->word)
		munmap((void *)bell->word, PAGE);
	if (bell->fd >= 0)
		close(bell->fd);
	if (bell->ring >= 0)
		close(bell->ring);
	*bell = (struct bell){.fd = -1, .ring = -1};
}
