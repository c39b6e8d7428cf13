// SPDX-License-Identifier: Apache-2.0
/*
 * A program without any library, in C: its entry is a procedure as any other, and zeroes nothing.
 *
 *     cc -O2 -nostdlib -static free.c -DROUNDS=100
 */
#if defined(__x86_64__)
#define EXIT 60
#else
#define EXIT 93
#endif

static volatile unsigned long sink;

__attribute__((noipa)) static unsigned long leaf(unsigned long x)
{
	for (int i = 0; i < 20; i++)
		x = x * 6364136223846793005ul + 1442695040888963407ul;
	return x;
}

__attribute__((noipa)) static unsigned long middle(unsigned long x, int depth)
{
	return depth ? middle(leaf(x), depth - 1) + 1 : leaf(x);
}

__attribute__((noipa)) static int work(void)
{
	for (long i = 0; i < ROUNDS; i++)
		sink = middle(sink, (int)(i % 5));
	return 0;
}

static void leave(long status)
{
#if defined(__x86_64__)
	__asm__ volatile("syscall" : : "a"(EXIT), "D"(status));
#else
	register long number __asm__("x8") = EXIT;
	register long first __asm__("x0") = status;
	__asm__ volatile("svc #0" : : "r"(number), "r"(first));
#endif
	__builtin_unreachable();
}

void _start(void);
void _start(void)
{
	leave(work());
}
