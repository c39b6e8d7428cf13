/* SPDX-License-Identifier: Apache-2.0 */
/* A process whose functions are probed while it runs. It counts its own calls, and checks what they return. Commands come on
   its standard input, a line each, and each gets a line as its answer:
       pause    no thread calls anything; the answer has the functions with their calls so far
       go       they go on
       fault    two threads fault in the first instructions of `faulting`, and stay in the handler of that signal: one on a
                stack of its own, one on the thread's
       mend     they go on there
       weave    a thread calls `weave` on two stacks of its own in turn; the answer has how often
       hold     a thread calls `weave` on a stack of its own, and stays there
       release  it goes on, and calls it once more
       quit
   Arguments: how many threads call functions; after how many calls each of them sleeps for a moment (0: never); `patient`: a wait
   may end with EINTR. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

/* Their beginnings are written here, so that no compiler decides whether a jump has room there. NAME calls NAME_body. */
#if defined(__x86_64__)
#define FUNCTION(name)                                                                 \
	__asm__(".text\n.p2align 4\n.globl " name "\n.type " name ", @function\n" name \
		":\n.cfi_startproc\n"                                                  \
		"push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\n"              \
		"mov %rsp, %rbp\n.cfi_def_cfa_register 6\nnop\ncall " name "_body\n"   \
		"pop %rbp\n.cfi_def_cfa 7, 8\nret\n.cfi_endproc\n.size " name ", . - " name "\n")
/* Several instructions stand where the jump goes: threads are met between them. */
__asm__(".text\n.p2align 4\n.globl small\n.type small, @function\nsmall:\n"
	"push %rbx\nmov %rdi, %rbx\nnop\nlea 7(%rbx,%rbx,2), %rax\npop %rbx\nret\n.size small, . - small\n"
	".p2align 4\n.globl faulting\n.type faulting, @function\nfaulting:\n"
	"nop\nmov (%rdi), %rax\nnop\nadd $1, %rax\nret\n.size faulting, . - faulting\n");
#else
#define FUNCTION(name)                                                                                        \
	__asm__(".text\n.p2align 4\n.globl " name "\n.type " name ", %function\n" name                        \
		":\n.cfi_startproc\n"                                                                         \
		"stp x29, x30, [sp, -16]!\n.cfi_def_cfa_offset 16\n.cfi_offset 29, -16\n.cfi_offset 30, -8\n" \
		"mov x29, sp\nbl " name "_body\n"                                                             \
		"ldp x29, x30, [sp], 16\n.cfi_def_cfa_offset 0\nret\n.cfi_endproc\n.size " name               \
		", . - " name "\n")
__asm__(".text\n.p2align 4\n.globl small\n.type small, %function\nsmall:\n"
	"adr x1, small\nadr x2, small\nsub x1, x1, x2\nadd x0, x0, x0, lsl 1\nadd x0, x0, 7\nadd x0, x0, x1\nret\n"
	".size small, . - small\n"
	".p2align 4\n.globl faulting\n.type faulting, %function\nfaulting:\n"
	"ldr x0, [x0]\nadd x0, x0, 1\nret\n.size faulting, . - faulting\n");
#endif
FUNCTION("leaf");
FUNCTION("deep");
FUNCTION("short_lived");
FUNCTION("weave");
uint64_t small(uint64_t x), leaf(uint64_t x), deep(unsigned depth, uint64_t x),
	faulting(const uint64_t *address);
void *short_lived(void *x);
void weave(int upper);

static _Atomic uint64_t smalls, deeps, leaves, threaded, faults, wrong;
static _Atomic int paused, wanted, over, at_fault, mended;
static int threads, every, patient;

uint64_t leaf_body(uint64_t x)
{
	leaves++;
	return x * 5 + 1;
}

uint64_t deep_body(unsigned depth, uint64_t x)
{
	deeps++;
	return depth ? deep(depth - 1, x + 1) + 1 : leaf(x);
}

void *short_lived_body(void *x)
{
	threaded++;
	return (char *)x + 1;
}

static void call_all(uint64_t i)
{
	smalls++;
	if (small(i) != 3 * i + 7)
		wrong++;
	if (deep(i % 4, i) != (i + i % 4) * 5 + 1 + i % 4)
		wrong++;
}

static void *run(void *unused)
{
	for (uint64_t i = 1; !over; i++) {
		if (wanted) {
			paused++;
			while (wanted)
				usleep(1000);
			paused--;
		}
		call_all(i);
		if (every && i % (unsigned)every == 0)
			usleep(500);
	}
	return unused;
}

/* Threads that come and go. */
static void *breed(void *unused)
{
	while (!over) {
		void *result = NULL;
		pthread_t thread;
		if (wanted) {
			paused++;
			while (wanted)
				usleep(1000);
			paused--;
		}
		if (!pthread_create(&thread, NULL, short_lived, (void *)41) &&
		    !pthread_join(thread, &result) && result != (void *)42)
			wrong++;
		usleep(2000);
	}
	return unused;
}

/* It expects no signal. So its wait never ends with EINTR; but it may, if what has stopped it is killed in that moment. */
static void *wait_long(void *unused)
{
	struct epoll_event event;
	int set = epoll_create1(EPOLL_CLOEXEC);
	while (!over)
		if (epoll_wait(set, &event, 1, 100) && !(patient && errno == EINTR))
			wrong++;
	return unused;
}

/* ---- a thread in a handler ---- */

static uint64_t *page;

static void on_fault(int number)
{
	sigset_t all;
	(void)number;
	sigfillset(&all);
	at_fault++;
	while (!mended)
		usleep(1000);
}

static void *fault(void *own_stack)
{
	stack_t stack = {.ss_size = 65536};
	if (own_stack) {
		stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		sigaltstack(&stack, NULL);
	}
	faults++;
	if (faulting(page) != 9)
		wrong++;
	return NULL;
}

static pthread_t faulters[2];

static void begin_faults(void)
{
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
	sigaction(SIGSEGV, &action, NULL);
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (long i = 0; i < 2; i++)
		pthread_create(&faulters[i], NULL, fault, (void *)i);
	while (at_fault < 2)
		usleep(1000);
	printf("two threads are in the handler\n");
}

static void mend(void)
{
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	*page = 8;
	mended = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(faulters[i], NULL);
	printf("wrong %lu\n", (unsigned long)wrong);
}

/* ---- two stacks ---- */

#define ROUNDS 100
#define STACK 65536

static ucontext_t home, low, high;
static pthread_t holder;
static _Atomic int holds, released, weavers;

/* Calls of both are under way at once, and the first one ends first. One that is held goes back to the thread's stack. */
enum { LOW, HIGH, HELD };
void weave_body(int which)
{
	swapcontext(which == HIGH ? &high : &low, which == HIGH  ? &low
						  : which == LOW ? &high
								 : &home);
}

static void on_low(void)
{
	for (;;) {
		weave(LOW);
		swapcontext(&low, &home);
	}
}

static void on_high(void)
{
	if (leaf(1) != 6)
		wrong++;
	swapcontext(&high, &home);
	for (;;) {
		weave(HIGH);
		swapcontext(&high, &home);
	}
}

static void *weave_often(void *unused)
{
	char *stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	getcontext(&low);
	getcontext(&high);
	low.uc_stack = (stack_t){.ss_sp = stacks, .ss_size = STACK};
	high.uc_stack = (stack_t){.ss_sp = stacks + STACK, .ss_size = STACK};
	makecontext(&low, on_low, 0);
	makecontext(&high, on_high, 0);
	if (weavers++ % 2) /* else the thread's first call is on a stack that nobody knows */
		leaf(1);
	swapcontext(&home, &high);
	for (int i = 0; i < ROUNDS; i++) {
		swapcontext(&home, &low);
		swapcontext(&home, &high);
	}
	return unused;
}

static void on_held(void)
{
	for (;;) {
		weave(HELD);
		swapcontext(&low, &home);
	}
}

/* A call is under way until `released`; then there is one more at the same place. */
static void *hold(void *unused)
{
	getcontext(&low);
	low.uc_stack = (stack_t){.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
					       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
				 .ss_size = STACK};
	makecontext(&low, on_held, 0);
	swapcontext(&home, &low);
	holds = 1;
	while (!released)
		usleep(1000);
	for (int i = 0; i < 3; i++)
		swapcontext(&home, &low);
	return unused;
}

static void begin_hold(void)
{
	pthread_create(&holder, NULL, hold, NULL);
	while (!holds)
		usleep(1000);
	printf("held\n");
}

static void release(void)
{
	released = 1;
	pthread_join(holder, NULL);
	printf("released\n");
}

/* ---- commands ---- */

static void obey(const char *line)
{
	if (!strcmp(line, "pause\n")) {
		wanted = 1;
		while (paused < threads + 1)
			usleep(1000);
		printf("small %lu deep %lu leaf %lu short_lived %lu wrong %lu\n",
		       (unsigned long)smalls, (unsigned long)deeps, (unsigned long)leaves,
		       (unsigned long)threaded, (unsigned long)wrong);
	} else if (!strcmp(line, "go\n")) {
		wanted = 0;
		while (paused)
			usleep(1000);
		printf("going\n");
	} else if (!strcmp(line, "fault\n")) {
		begin_faults();
	} else if (!strcmp(line, "mend\n")) {
		mend();
	} else if (!strcmp(line, "hold\n")) {
		begin_hold();
	} else if (!strcmp(line, "release\n")) {
		release();
	} else if (!strcmp(line, "weave\n")) {
		pthread_t thread;
		pthread_create(&thread, NULL, weave_often, NULL);
		pthread_join(thread, NULL);
		printf("weave %d\n", 2 * ROUNDS);
	} else {
		over = 1;
		printf("wrong %lu\n", (unsigned long)wrong);
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[64];
	pthread_t waiter, breeder;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	threads = argc > 1 ? atoi(argv[1]) : 4;
	every = argc > 2 ? atoi(argv[2]) : 100;
	patient = argc > 3;
	pthread_t *all = calloc((size_t)threads, sizeof *all);
	for (int i = 0; i < threads; i++)
		pthread_create(&all[i], NULL, run, NULL);
	pthread_create(&waiter, NULL, wait_long, NULL);
	pthread_create(&breeder, NULL, breed, NULL);
	while (!over && fgets(line, sizeof line, stdin))
		obey(line);
	over = 1;
	wanted = 0;
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	pthread_join(waiter, NULL);
	pthread_join(breeder, NULL);
	return wrong != 0;
}
