/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that is made at run time, as compilers for scripts do it: bytes in memory of no file. It is called
 * by C, and calls C or is interrupted by a signal whose handler works.
 *
 *     made KIND MILLISECONDS (of CPU time)
 *
 * KIND: "pointer" keeps a frame pointer; "roomy" too, with more of its frame above the record where the
 * CPU's conventions allow that; "bare" keeps none; "loop" keeps one and works itself; "edges" is short, and
 * takes most of its time before it has a frame and after it had one; "callers" is a loop that is made once,
 * and called by code with a frame pointer that is made anew every now and then.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

typedef long made_code(long (*work)(long), long count);

#if defined(__aarch64__)
#define CALL "mov x2, x0\n mov x0, x1\n blr x2\n"
#define POINTER(size, body)                                                                 \
	"stp x29, x30, [sp, #-" size "]!\n mov x29, sp\n" body "ldp x29, x30, [sp], #" size \
	"\n ret\n"
#define BARE "str x30, [sp, #-16]!\n" CALL "ldr x30, [sp], #16\n ret\n"
#define LOOP "1: subs x1, x1, #1\n b.ne 1b\n"
#define COUNT "1: subs x0, x0, #1\n b.ne 1b\n"
#define SLOW "isb\n isb\n" /* samples fall on nothing else */
#define EDGES                                                           \
	"cbz x1, 1f\n" SLOW "stp x29, x30, [sp, #-16]!\n mov x29, sp\n" \
	"ldp x29, x30, [sp], #16\n" SLOW "1: ret\n"
#else
#define CALL "mov %rdi, %rax\n mov %rsi, %rdi\n call *%rax\n"
#define POINTER(size, body) "push %rbp\n mov %rsp, %rbp\n" body "pop %rbp\n ret\n"
#define BARE "sub $8, %rsp\n" CALL "add $8, %rsp\n ret\n"
#define LOOP "1: dec %rsi\n jnz 1b\n"
#define COUNT "1: dec %rdi\n jnz 1b\n xor %eax, %eax\n"
#define EDGES "endbr64\n push %rbp\n mov %rsp, %rbp\n pop %rbp\n ret\n"
#endif
#define BYTES(name, text)                                                         \
	__asm__(".pushsection .rodata\n .balign 4\n" #name "_begin:\n" text #name \
		"_end:\n .popsection\n");                                         \
	extern const char name##_begin[] __attribute__((visibility("hidden")));   \
	extern const char name##_end[] __attribute__((visibility("hidden")));

BYTES(pointer, POINTER("16", CALL))
BYTES(roomy, POINTER("96", CALL))
BYTES(bare, BARE)
BYTES(loop, POINTER("16", LOOP))
BYTES(edges, EDGES)
BYTES(count, POINTER("16", COUNT))

static volatile unsigned long sink;
static long calls = 1;

__attribute__((noipa)) static void spin(unsigned long count)
{
	while (count--)
		sink += count;
}

__attribute__((noipa)) static long work(long count)
{
	spin((unsigned long)count);
	return (long)sink;
}

static void on_alarm(int number)
{
	(void)number;
	spin(300000);
}

static long (*callee)(long) = work;

__attribute__((noipa)) static long middle(made_code *code, long count)
{
	long result = 0;
	for (long i = 0; i < calls; i++)
		result += code(callee, count);
	sink += (unsigned long)result;
	return result;
}

__attribute__((noipa)) static long outer(made_code *code, long count)
{
	long result = middle(code, count) + 1;
	sink += (unsigned long)result;
	return result;
}

static void *make(const char *begin, const char *end)
{
	__asm__("" : "+r"(begin), "+r"(end)); /* to the compiler they are two objects */
	size_t size = (size_t)(end - begin);
	void *memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	if (memory == MAP_FAILED)
		exit(2);
	memcpy(memory, begin, size);
	__builtin___clear_cache(memory, (char *)memory + size);
	if (mprotect(memory, 65536, PROT_READ | PROT_EXEC))
		exit(2);
	return memory;
}

static long cpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 2 ? argv[1] : "";
	long end = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	made_code *code = NULL;
	bool callers = !strcmp(kind, "callers");
	if (callers)
		callee = make(count_begin, count_end);
	if (!strcmp(kind, "pointer") || callers)
		code = make(pointer_begin, pointer_end);
	else if (!strcmp(kind, "roomy"))
		code = make(roomy_begin, roomy_end);
	else if (!strcmp(kind, "bare"))
		code = make(bare_begin, bare_end);
	else if (!strcmp(kind, "loop"))
		code = make(loop_begin, loop_end);
	else if (!strcmp(kind, "edges"))
		code = make(edges_begin, edges_end);
	if (!code)
		return 2;
	if (!strcmp(kind, "edges"))
		calls = 100000;
	if (!strcmp(kind, "loop")) {
		const struct itimerval often = {{0, 3000}, {0, 3000}};
		signal(SIGALRM, on_alarm);
		setitimer(ITIMER_REAL, &often, NULL);
	}
	for (long now = 0, made = 0; now < end; now = cpu_ms()) {
		if (callers && now > made + 15) {
			code = make(pointer_begin, pointer_end);
			made = now;
		}
		outer(code, 1000000);
	}
	printf("%lu\n", sink & 1);
	return 0;
}
