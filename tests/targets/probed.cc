// SPDX-License-Identifier: Apache-2.0
// Calls functions in the ways that tests name, and prints how often each was called: `probed WAY...`. With "wait" as the
// first word, it prints its number and begins when it is sent SIGUSR1.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone, noipa))

struct counts {
	long work, descend, thrower, jumper, handler, forker, coroutine, sleeper;
};
static counts *counted; // shared with child processes
static volatile long sink;

#define COUNT(what) __sync_fetch_and_add(&counted->what, 1)

extern "C" {
APART void work(long n)
{
	COUNT(work);
	for (long i = 0; i < n; i++)
		sink = sink + i;
}

APART void sleeper(long us)
{
	COUNT(sleeper);
	usleep((useconds_t)us);
	sink = sink + 1;
}

APART long descend(long depth)
{
	COUNT(descend);
	long below = depth ? descend(depth - 1) : 0;
	sink = sink + below;
	return below + 1;
}

APART long thrower(long depth)
{
	COUNT(thrower);
	if (!depth)
		throw depth;
	long below = thrower(depth - 1);
	sink = sink + below;
	return below;
}

// Ends by a jump to sleeper, if it is optimized.
APART void jumping(long us)
{
	sink = sink + 1;
	sleeper(us);
}

static jmp_buf place;
APART long jumper(long depth)
{
	COUNT(jumper);
	if (!depth)
		longjmp(place, 1);
	long below = jumper(depth - 1);
	sink = sink + below;
	return below;
}

APART void handler(int number)
{
	COUNT(handler);
	sink = sink + number;
	work(1);
	sink = sink + number;
}

APART long forker(long n)
{
	COUNT(forker);
	pid_t child = fork();
	if (!child) {
		work(n);
		return -1; /* returns from a call that its parent made */
	}
	waitpid(child, nullptr, 0);
	work(n);
	return child;
}

APART void coroutine(int again);
}

// ---- ways ----

APART static void do_work(long times)
{
	for (long i = 0; i < times; i++)
		work(i % 7);
}

APART static void do_more(long times)
{
	for (long i = 0; i < times; i++)
		work(i % 5);
}

static void recursion()
{
	for (int i = 0; i < 20; i++)
		descend(i);
}

static void exceptions()
{
	for (int i = 0; i < 30; i++) {
		try {
			thrower(i % 5);
		} catch (long) {
			sink = sink + 1;
		}
		work(1);
	}
}

static void jumps()
{
	for (volatile int i = 0; i < 40; i = i + 1) {
		if (!setjmp(place))
			jumper(i % 6);
		work(1);
	}
}

static void *thread(void *)
{
	do_work(1000);
	return nullptr;
}

static void *exiting(void *)
{
	do_work(10);
	pthread_exit(nullptr);
}

static void threads()
{
	pthread_t all[8];
	for (auto &t : all)
		pthread_create(&t, nullptr, &t == all ? exiting : thread, nullptr);
	for (auto &t : all)
		pthread_join(t, nullptr);
}

static void signals(bool elsewhere)
{
	stack_t stack = {};
	struct sigaction action = {};
	stack.ss_size = 1 << 16;
	stack.ss_sp = malloc(stack.ss_size);
	action.sa_handler = handler;
	action.sa_flags = elsewhere ? SA_ONSTACK : 0;
	if (elsewhere)
		sigaltstack(&stack, nullptr);
	sigaction(SIGUSR2, &action, nullptr);
	for (int i = 0; i < 50; i++) {
		descend(2);
		raise(SIGUSR2);
	}
}

static void forks()
{
	for (int i = 0; i < 10; i++)
		if (forker(i) < 0)
			_exit(0);
}

// Each coroutine calls itself once, and waits in both calls while others run.
static ucontext_t main_context, contexts[3];
static int current;

extern "C" APART void coroutine(int again)
{
	COUNT(coroutine);
	if (again)
		coroutine(again - 1);
	swapcontext(&contexts[current], &main_context);
	sink = sink + again;
}

static void coroutines()
{
	for (auto &c : contexts) {
		getcontext(&c);
		c.uc_stack.ss_size = 1 << 16;
		c.uc_stack.ss_sp = malloc(c.uc_stack.ss_size);
		c.uc_link = &main_context;
		makecontext(&c, (void (*)())coroutine, 1, 2);
	}
	for (int round = 0; round < 4; round++)
		for (current = 2; current >= 0; current--)
			swapcontext(&main_context, &contexts[current]);
}

extern "C" APART void dier()
{
	sink = sink + 1;
	raise(SIGKILL);
	sink = sink + 1;
}

static void print()
{
	const counts &c = *counted;
	printf("work %ld\ndescend %ld\nthrower %ld\njumper %ld\nhandler %ld\nforker %ld\ncoroutine %ld\nsleeper %ld\n",
	       c.work, c.descend, c.thrower, c.jumper, c.handler, c.forker, c.coroutine, c.sleeper);
	fflush(stdout);
}

static volatile sig_atomic_t begun;
static void begin(int)
{
	begun = 1;
}

static void wait_for_begin()
{
	struct sigaction action = {};
	action.sa_handler = begin;
	sigaction(SIGUSR1, &action, nullptr);
	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (!begun)
		usleep(1000);
}

static void go(const char *way)
{
	if (!strcmp(way, "wait"))
		wait_for_begin();
	else if (!strcmp(way, "work"))
		do_work(1000), do_more(500);
	else if (!strcmp(way, "sleep"))
		sleeper(2000), sleeper(2000), sleeper(2000), sleeper(2000), sleeper(30000);
	else if (!strcmp(way, "jumping"))
		jumping(20000);
	else if (!strcmp(way, "recursion"))
		recursion();
	else if (!strcmp(way, "exceptions"))
		exceptions();
	else if (!strcmp(way, "jumps"))
		jumps();
	else if (!strcmp(way, "threads"))
		threads();
	else if (!strcmp(way, "signals"))
		signals(false);
	else if (!strcmp(way, "elsewhere"))
		signals(true);
	else if (!strcmp(way, "forks"))
		forks();
	else if (!strcmp(way, "coroutines"))
		coroutines();
	else if (!strcmp(way, "print"))
		print();
	else if (!strcmp(way, "killed"))
		dier();
	else
		exit(2);
}

int main(int argc, char **argv)
{
	counted = (counts *)mmap(nullptr, sizeof *counted, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 1; i < argc; i++)
		go(argv[i]);
	print();
	return 0;
}
