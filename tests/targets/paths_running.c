/* SPDX-License-Identifier: Apache-2.0 */
/* A process whose paths are counted while it runs. It counts its calls itself, in memory that its children share. Commands come
   on its standard input, a line each, and each gets a line as its answer:
       pause    nobody calls anything; the answer has the functions with their calls so far
       go       they go on
       spin     one more thread calls `spin`, which does not return before the end
       exec     it becomes another program, which waits for its end
       quit
   Argument: what it does, letters of: t threads call functions, b threads are born all the time, f children are forked all the time,
   s signals, j calls are left by longjmp, l a library comes and goes (its path is the next argument), g GS is in use. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noipa))
#define BREEDERS 3
#define BROOD 5

enum { WORK, EVEN, ODD, DEEP, SPIN, BORN, FORKED, HANDLED, LEFT, KINDS };
static const char *const names[KINDS] = {"work", "even",     "odd",     "deep", "spin",
					 "born", "in_child", "handled", "leave"};

static struct shared {
	_Atomic uint64_t calls[KINDS], wrong;
} * all;

static _Atomic int paused, wanted, over, actors;
static const char *library;

static void count(int kind)
{
	atomic_fetch_add_explicit(&all->calls[kind], 1, memory_order_relaxed);
}

NOINLINE uint64_t even(uint64_t x)
{
	count(EVEN);
	return x / 2;
}

NOINLINE uint64_t odd(uint64_t x)
{
	count(ODD);
	return 3 * x + 1;
}

NOINLINE uint64_t work(uint64_t x)
{
	uint64_t steps = 0;
	count(WORK);
	for (; x != 1 && steps < 20; steps++)
		x = x % 2 ? odd(x) : even(x);
	return x + steps;
}

/* No compiler makes a loop of it. */
static uint64_t (*volatile deeper)(unsigned depth, uint64_t x);

NOINLINE uint64_t deep(unsigned depth, uint64_t x)
{
	count(DEEP);
	return depth ? deeper(depth - 1, x) + x : work(x);
}

/* ---- who calls them ---- */

static void rest(void)
{
	if (!wanted)
		return;
	paused++;
	while (wanted)
		usleep(500);
	paused--;
}

static void check(uint64_t x, uint64_t result)
{
	uint64_t steps = 0, at = x;
	for (; at != 1 && steps < 20; steps++)
		at = at % 2 ? 3 * at + 1 : at / 2;
	if (at + steps != result)
		all->wrong++;
}

static void *caller(void *unused)
{
	for (uint64_t x = 2; !over; x = x % 1000 + 2) {
		rest();
		check(x, work(x));
		if (deep(x % 30, 1) != x % 30 + 1)
			all->wrong++;
		if (x % 100 == 0)
			usleep(100);
	}
	return unused;
}

NOINLINE void *spin(void *unused)
{
	count(SPIN);
	for (uint64_t x = 2; !over; x = x % 1000 + 2) {
		rest();
		check(x, work(x));
		if (x % 100 == 0)
			usleep(100);
	}
	return unused;
}

NOINLINE void *born(void *of)
{
	count(BORN);
	check((uintptr_t)of, work((uintptr_t)of));
	return of;
}

static void *breeder(void *unused)
{
	while (!over) {
		pthread_t threads[BROOD];
		rest();
		for (uintptr_t i = 0; i < BROOD; i++)
			if (pthread_create(&threads[i], NULL, born, (void *)(i + 2)))
				abort();
		for (int i = 0; i < BROOD; i++)
			pthread_join(threads[i], NULL);
		usleep(300);
	}
	return unused;
}

NOINLINE void in_child(void)
{
	count(FORKED);
	for (uint64_t x = 2; x < 50; x++)
		check(x, work(x));
}

static void *forker(void *unused)
{
	extern char **environ;
	while (!over) {
		int status;
		pid_t pid;
		rest();
		pid = fork();
		if (!pid) {
			in_child();
			_exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			all->wrong++;
		char *words[] = {(char *)"/bin/true", NULL};
		if (posix_spawn(&pid, words[0], NULL, NULL, words, environ) ||
		    waitpid(pid, &status, 0) != pid || status)
			all->wrong++;
	}
	return unused;
}

NOINLINE void handled(int number)
{
	(void)number;
	count(HANDLED);
	work(9);
}

/* The signals are its own: so none comes while it rests. */
static void *signalled(void *unused)
{
	signal(SIGUSR1, handled);
	while (!over) {
		rest();
		check(27, work(27));
		syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
	}
	return unused;
}

static __thread jmp_buf back;

NOINLINE uint64_t leave(uint64_t x)
{
	count(LEFT);
	if (work(x) % 2)
		longjmp(back, 1);
	return x;
}

static void *jumper(void *unused)
{
	for (volatile uint64_t x = 2; !over; x = x % 1000 + 2) {
		rest();
		if (!setjmp(back))
			leave(x);
		check(x, work(x));
	}
	return unused;
}

static void *loader(void *unused)
{
	while (!over) {
		rest();
		void *object = dlopen(library, RTLD_NOW);
		uint64_t (*f)(uint64_t) = object ? dlsym(object, "guest") : NULL;
		if (!f || f(4) != 9)
			all->wrong++;
		if (object)
			dlclose(object);
		usleep(200);
	}
	return unused;
}

/* ---- commands ---- */

static void begin(void *(*actor)(void *))
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, actor, NULL))
		abort();
	pthread_detach(thread);
	actors++;
}

static void pause_all(void)
{
	wanted = 1;
	while (paused != actors)
		usleep(500);
	for (int i = 0; i < KINDS; i++)
		printf("%s %llu ", names[i], (unsigned long long)all->calls[i]);
	printf("wrong %llu\n", (unsigned long long)all->wrong);
}

static void go_on(void)
{
	wanted = 0;
	while (paused)
		usleep(500);
	puts("going");
}

int main(int argc, char **argv)
{
	char line[64];
	setvbuf(stdout, NULL, _IOLBF, 0);
	deeper = deep;
	library = argc > 2 ? argv[2] : NULL;
	all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (const char *c = argc > 1 ? argv[1] : ""; *c; c++)
		switch (*c) {
		case 't':
			begin(caller), begin(caller);
			break;
		case 'b':
			for (int i = 0; i < BREEDERS; i++)
				begin(breeder);
			break;
		case 'f':
			begin(forker);
			break;
		case 's':
			begin(signalled);
			break;
		case 'j':
			begin(jumper);
			break;
		case 'l':
			begin(loader);
			break;
		case 'g':
			syscall(SYS_arch_prctl, ARCH_SET_GS, &line);
			break;
		}
	while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\n")) {
		if (!strcmp(line, "pause\n")) {
			pause_all();
		} else if (!strcmp(line, "spin\n")) {
			begin(spin);
			puts("spins");
		} else if (!strcmp(line, "exec\n")) {
			puts("execs");
			execl("/bin/cat", "cat", NULL);
		} else {
			go_on();
		}
	}
	over = 1;
	printf("wrong %llu\n", (unsigned long long)all->wrong);
	return 0;
}
