// SPDX-License-Identifier: Apache-2.0
// Calls functions in ways that are hard for probes that change code: `probe_hostile [few]`. What it prints to standard output is
// the same with probes and without. To standard error, it prints how often each function was called, and how that ended:
// "NAME CALLS RETURNED UNWOUND ABANDONED".
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <pthread.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone, noipa))

struct tally {
	long calls, returned, unwound, abandoned;
};
#define EACH(what)                                                                               \
	what(leaf) what(outer) what(middle) what(rethrower) what(cancelled) what(exiting)        \
		what(jumper) what(variadic) what(floating) what(large) what(nested) what(tailed) \
			what(traced) what(storm) what(fiber) what(alternate) what(quick)         \
				what(twice)
#define DECLARE(name) static tally name##_tally;
EACH(DECLARE)
#define ADD(name, how, n) __sync_fetch_and_add(&name##_tally.how, n)
#define CALLED(name) ADD(name, calls, 1)

static volatile long sink;

// ---- exceptions ----

struct guard {
	long *count;
	~guard()
	{
		++*count;
	}
};

extern "C" {
APART long leaf(long n)
{
	CALLED(leaf);
	if (n < 0) {
		ADD(leaf, unwound, 1);
		throw n;
	}
	ADD(leaf, returned, 1);
	return n * 3;
}

APART long middle(long n, long *cleaned)
{
	guard g = {cleaned};
	CALLED(middle);
	if (n < 0)
		ADD(middle, unwound, 1);
	else
		ADD(middle, returned, 1);
	return leaf(n) + 1;
}

APART long rethrower(long n, long *cleaned)
{
	CALLED(rethrower);
	try {
		long got = middle(n, cleaned);
		ADD(rethrower, returned, 1);
		return got;
	} catch (long &) {
		++*cleaned;
		ADD(rethrower, unwound, 1);
		throw;
	}
}

APART long outer(long n, long *cleaned)
{
	CALLED(outer);
	ADD(outer, returned, 1);
	try {
		return rethrower(n, cleaned);
	} catch (long got) {
		return -got;
	}
}
}

static void exceptions()
{
	long cleaned = 0, sum = 0;
	for (long i = 0; i < 300; i++)
		sum += outer(i % 3 ? i : -1 - i, &cleaned);
	printf("exceptions %ld %ld\n", sum, cleaned);
}

// ---- threads that end early ----

extern "C" {

APART void exiting(long depth)
{
	CALLED(exiting);
	ADD(exiting, unwound, 1);
	if (!depth)
		pthread_exit(nullptr);
	exiting(depth - 1);
	sink = sink + 1;
}
}
static volatile long waiting, cleaned_up;
static void clean(void *)
{
	__sync_fetch_and_add(&cleaned_up, 1);
}

extern "C" APART void cancelled(long depth)
{
	CALLED(cancelled);
	ADD(cancelled, unwound, 1);
	pthread_cleanup_push(clean, nullptr);
	if (depth)
		cancelled(depth - 1);
	__sync_fetch_and_add(&waiting, 1);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
}
static void *be_cancelled(void *)
{
	cancelled(3);
	return nullptr;
}
static void *exit_early(void *)
{
	exiting(4);
	return nullptr;
}
static void endings()
{
	for (int i = 0; i < 10; i++) {
		pthread_t a, b;
		long before = waiting;
		pthread_create(&a, nullptr, be_cancelled, nullptr);
		pthread_create(&b, nullptr, exit_early, nullptr);
		while (waiting == before)
			usleep(100);
		pthread_cancel(a);
		pthread_join(a, nullptr);
		pthread_join(b, nullptr);
	}
	printf("endings %ld\n", cleaned_up);
}

// ---- jumps ----

static jmp_buf place;
extern "C" APART void jumper(long depth)
{
	CALLED(jumper);
	ADD(jumper, abandoned, 1);
	if (!depth)
		longjmp(place, 1);
	jumper(depth - 1);
	sink = sink + 1;
}
// Returns twice for each call.
static jmp_buf again;
extern "C" APART int twice(void)
{
	CALLED(twice);
	ADD(twice, returned, 1);
	return (int)(sink & 1) | 1;
}
static void jumps()
{
	volatile int sum = 0;
	for (volatile int i = 0; i < 50; i = i + 1) {
		if (!setjmp(place))
			jumper(i % 7);
		if (setjmp(again) == 0) {
			sum = sum + twice();
			longjmp(again, 1);
		}
	}
	printf("jumps %d\n", sum);
}

// ---- arguments and results ----

typedef double four __attribute__((vector_size(32)));
struct big {
	long values[9];
};
extern "C" {
APART long variadic(int count, ...)
{
	CALLED(variadic);
	ADD(variadic, returned, 1);
	va_list all;
	double sum = 0;
	va_start(all, count);
	for (int i = 0; i < count; i++)
		sum += i % 2 ? (double)va_arg(all, int) : va_arg(all, double);
	va_end(all);
	return (long)sum;
}
APART long double floating(double a, float b, long double c, four d, double e, double f, double g,
			   double h, double i, double j)
{
	CALLED(floating);
	ADD(floating, returned, 1);
	return a + b + c + d[0] + d[1] + d[2] + d[3] + e + f + g + h + i + j;
}
APART big large(big in, long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
	CALLED(large);
	ADD(large, returned, 1);
	for (long &v : in.values)
		v += a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9;
	return in;
}
}
static void arguments()
{
	long sum = 0;
	long double real = 0;
	big b = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
	for (int i = 0; i < 100; i++) {
		sum += variadic(6, 1.5, i, 2.5, 4, 3.0, 5);
		real += floating(i, 2.5f, 3.25L, four{1, 2, 3, 4}, 1, 2, 3, 4, 5, 6);
		b = large(b, i, 1, 2, 3, 4, 5, 6, 7, 8);
	}
	printf("arguments %ld %.2Lf %ld\n", sum, real, b.values[8]);
}

// gcc knows which registers it uses, and keeps values in the others (-fipa-ra).
static __attribute__((noinline)) long quick(long x)
{
	quick_tally.calls++;
	quick_tally.returned++;
	return x ^ 5;
}
static void registers()
{
	long a = sink + 1, b = sink + 2, c = sink + 3, d = sink + 4, e = sink + 5, f = sink + 6,
	     sum = 0;
	double x = (double)(a - sink), y = (double)(b - sink);
	long base = sink;
	for (long i = 0; i < 1000; i++) {
		sum += quick(i) * (a - base) + (b - base) - (c - base) * (d - base) +
		       (e - base) * (f - base);
		x = x * 1.0001 + y;
	}
	printf("registers %ld %.6f\n", sum, x);
}

// ---- tail calls, recursion, backtraces ----

extern "C" {
APART long nested(long n)
{
	CALLED(nested);
	ADD(nested, returned, 1);
	if (n < 2)
		return n;
	long one = nested(n - 1), two = nested(n - 2);
	sink = sink + 1;
	return one + two;
}
APART long tailed(long n, long sum)
{
	CALLED(tailed);
	ADD(tailed, returned, 1);
	sink = sink + 1;
	return nested(n) + sum * 0;
}
APART int traced(long depth)
{
	CALLED(traced);
	ADD(traced, returned, 1);
	void *frames[64];
	int count = depth ? traced(depth - 1) : backtrace(frames, 64);
	sink = sink + 1;
	return count;
}
}
// A backtrace has frames of ours, but goes to the end: it is the same from call to call.
static void stacks()
{
	long sum = 0;
	for (int i = 0; i < 12; i++)
		sum += tailed(i, i);
	int one = traced(5), two = traced(5);
	printf("stacks %ld %d %d\n", sum, one == two, one > 7);
}

// ---- signals ----

extern "C" {
APART void storm(int) // while the main program makes calls, also in the middle of our own code
{
	CALLED(storm);
	ADD(storm, returned, 1);
	sink = sink + leaf(2) * 0;
}
APART void alternate(int)
{
	CALLED(alternate);
	ADD(alternate, returned, 1);
	sink = sink + leaf(3) * 0;
}
}
static void signals()
{
	static char stack[65536];
	stack_t other = {};
	struct sigaction act = {};
	other.ss_sp = stack;
	other.ss_size = sizeof stack;
	sigaltstack(&other, nullptr);
	act.sa_handler = alternate;
	act.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &act, nullptr);
	for (int i = 0; i < 50; i++)
		raise(SIGUSR2);
	act.sa_handler = storm;
	act.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &act, nullptr);
	itimerval when = {{0, 200}, {0, 200}};
	setitimer(ITIMER_REAL, &when, nullptr);
	for (int i = 0; i < 60 || storm_tally.calls < 50; i++)
		for (long k = 0; k < 1000; k++)
			leaf(k);
	when = {};
	setitimer(ITIMER_REAL, &when, nullptr);
	printf("signals\n");
}

// ---- coroutines, one of which ends on another thread ----

static ucontext_t main_context, fibers[3];
static char stacks_of[3][65536];
extern "C" APART void fiber(int number)
{
	CALLED(fiber);
	ADD(fiber, returned, 1);
	for (int i = 0; i < 5; i++) {
		leaf(i);
		swapcontext(&fibers[number], &main_context);
	}
}
static void start_fiber(int number)
{
	fiber(number);
	swapcontext(&fibers[number], &main_context);
}
static void coroutines()
{
	for (int i = 0; i < 3; i++) {
		getcontext(&fibers[i]);
		fibers[i].uc_stack.ss_sp = stacks_of[i];
		fibers[i].uc_stack.ss_size = sizeof stacks_of[i];
		makecontext(&fibers[i], (void (*)())start_fiber, 1, i);
	}
	for (int round = 0; round < 6; round++)
		for (int i = 2; i >= 0; i--)
			swapcontext(&main_context, &fibers[i]);
	printf("coroutines\n");
}

// ---- many threads, and processes ----

static void *few_calls(void *n)
{
	for (long i = 0; i < 20; i++)
		leaf((long)n + i);
	return nullptr;
}
static void crowd()
{
	pthread_t all[100];
	for (int round = 0; round < 5; round++) {
		for (long i = 0; i < 100; i++)
			pthread_create(&all[i], nullptr, few_calls, (void *)i);
		for (pthread_t &one : all)
			pthread_join(one, nullptr);
	}
	printf("crowd\n");
}

#define PRINT(name)                                                                            \
	fprintf(stderr, #name " %ld %ld %ld %ld\n", name##_tally.calls, name##_tally.returned, \
		name##_tally.unwound, name##_tally.abandoned);

int main(int count, char **)
{
	exceptions();
	if (count == 1) // an emulator may not manage that
		endings();
	jumps();
	arguments();
	registers();
	stacks();
	signals();
	coroutines();
	crowd();
	EACH(PRINT)
	return 0;
}
