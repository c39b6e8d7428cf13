/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaves ROUNDS: leaves frames in every way that there is, or looks at return addresses, right after some CPU time
 * was spent there: by longjmp, pthread_exit, cancellation, swapcontext; in children of fork and vfork, which
 * return from their parent's frames; backtrace sees them. Prints what came of it, which is always the same.
 */
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define DEPTH 12
#define PART_NS 400000
#define FRAMES 64

static volatile unsigned sink;
static jmp_buf place;
static int cleaned, children, frames, switches;
static ucontext_t first, second;

static void work(void)
{
	struct timespec t, end;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	end.tv_nsec += PART_NS;
	do {
		for (unsigned i = 0; i < 500; i++)
			sink += i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while ((t.tv_sec - end.tv_sec) * 1000000000 + t.tv_nsec - end.tv_nsec < 0);
}

static void jump(void)
{
	longjmp(place, 1);
}

static void look(void)
{
	void *found[FRAMES];
	frames += backtrace(found, FRAMES);
}

static void be_cancelled(void)
{
	pthread_cancel(pthread_self());
	pthread_testcancel();
}

static void end_thread(void)
{
	pthread_exit(NULL);
}

/* The child returns to where it was called from, and ends there. */
static pid_t child;
static void split(void)
{
	child = fork();
}

static void start(void)
{
	pid_t pid = vfork();
	int status;
	if (!pid)
		_exit(3);
	waitpid(pid, &status, 0);
	children += WEXITSTATUS(status);
}

static void change(void)
{
	switches++;
	swapcontext(&first, &second);
}

static void clean(void *unused)
{
	(void)unused;
	__atomic_add_fetch(&cleaned, 1, __ATOMIC_RELAXED);
}

__attribute__((noinline)) static int descend(int depth, void (*last)(void))
{
	int below = 0;
	pthread_cleanup_push(clean, NULL);
	if (depth) {
		below = descend(depth - 1, last);
	} else {
		work();
		last();
		work();
	}
	pthread_cleanup_pop(0);
	return below + 1;
}

static void *thread(void *last)
{
	descend(DEPTH, *(void (**)(void))last);
	return NULL;
}

static void in_thread(void (*last)(void))
{
	pthread_t t;
	if (pthread_create(&t, NULL, thread, &last))
		abort();
	pthread_join(t, NULL);
}

static void other(void)
{
	for (;;) {
		work();
		swapcontext(&second, &first);
	}
}

static int round_of(void)
{
	int sum = descend(DEPTH, look) + descend(DEPTH, start) + descend(DEPTH, change);
	if (!setjmp(place))
		descend(DEPTH, jump);
	in_thread(end_thread);
	in_thread(be_cancelled);
	sum += descend(DEPTH, split);
	if (!child)
		_exit(sum);
	int status;
	waitpid(child, &status, 0);
	children += WEXITSTATUS(status);
	return sum;
}

int main(int argc, char **argv)
{
	static char stack[1 << 16];
	int sum = 0, rounds = argc > 1 ? atoi(argv[1]) : 10;
	getcontext(&second);
	second.uc_stack.ss_sp = stack;
	second.uc_stack.ss_size = sizeof stack;
	makecontext(&second, other, 0);
	for (int i = 0; i < rounds; i++)
		sum += round_of();
	printf("%d returned, %d cleaned, %d frames, %d switches, children %d\n", sum, cleaned,
	       frames, switches, children);
	return 0;
}
