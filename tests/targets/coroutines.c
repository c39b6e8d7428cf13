/* SPDX-License-Identifier: Apache-2.0 */
/* coroutines SECONDS: two of them leave for each other all the time, by code as runtimes have it. Each has functions of its own. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Saves registers on the stack and SP in *from, takes the SP in *to and what was saved there. */
void transfer(void **from, void **to);

#ifdef __x86_64__
#define REGISTERS 6 /* words below the return address */
#define START REGISTERS
__asm__(".text\n.globl transfer\n.type transfer,@function\ntransfer:\n"
	"push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
	"mov %rsp,(%rdi)\nmov (%rsi),%rsp\n"
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
	".size transfer,.-transfer\n");
#else
#define REGISTERS 14
#define START 12
__asm__(".text\n.globl transfer\n.type transfer,@function\ntransfer:\n"
	"sub sp,sp,#112\n"
	"stp x19,x20,[sp]\nstp x21,x22,[sp,#16]\nstp x23,x24,[sp,#32]\n"
	"stp x25,x26,[sp,#48]\nstp x27,x28,[sp,#64]\nstp x29,x30,[sp,#80]\n"
	"str x30,[sp,#96]\n"
	"mov x2,sp\nstr x2,[x0]\nldr x3,[x1]\nmov sp,x3\n"
	"ldp x19,x20,[sp]\nldp x21,x22,[sp,#16]\nldp x23,x24,[sp,#32]\n"
	"ldp x25,x26,[sp,#48]\nldp x27,x28,[sp,#64]\nldp x29,x30,[sp,#80]\n"
	"ldr x4,[sp,#96]\nadd sp,sp,#112\nret x4\n"
	".size transfer,.-transfer\n");
#endif

static void *one, *other;
static volatile unsigned turns;

__attribute__((noinline)) void one_leaves(void)
{
	transfer(&one, &other);
	turns++;
}

__attribute__((noinline)) void other_leaves(void)
{
	transfer(&other, &one);
	turns++;
}

void other_begins(void)
{
	for (;;) {
		other_leaves();
		turns++;
	}
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) void one_works(double seconds)
{
	for (double end = now() + seconds; now() < end;)
		for (int i = 0; i < 1000; i++)
			one_leaves();
}

int main(int argc, char **argv)
{
	size_t words = 8192;
	uint64_t *stack = aligned_alloc(16, words * sizeof *stack), *sp = stack + words - 2;
	memset(stack, 0, words * sizeof *stack);
	sp -= REGISTERS;
	sp[START] = (uint64_t)(uintptr_t)other_begins;
	other = sp;
	one_works(argc > 1 ? atof(argv[1]) : 1);
	return 0;
}
