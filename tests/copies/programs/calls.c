/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of all kinds: by each other, by pointers, with many and varied arguments, with large results, in tails. */
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct large {
	long a[6];
	double d;
};

static jmp_buf back;

__attribute__((noinline)) static int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

__attribute__((noinline)) static int ackermann(int m, int n)
{
	if (!m)
		return n + 1;
	return n ? ackermann(m - 1, ackermann(m, n - 1)) : ackermann(m - 1, 1);
}

__attribute__((noinline)) static int odd(int n);

__attribute__((noinline)) static int even(int n)
{
	return n ? odd(n - 1) : 1;
}

__attribute__((noinline)) static int odd(int n)
{
	return n ? even(n - 1) : 0;
}

__attribute__((noinline)) static struct large make(long a, double d)
{
	struct large l = {.d = d};
	for (int i = 0; i < 6; i++)
		l.a[i] = a * i + (a & 1 ? i : -i);
	return l;
}

__attribute__((noinline)) static double add(int count, ...)
{
	va_list list;
	double sum = 0;
	va_start(list, count);
	for (int i = 0; i < count; i++)
		sum += i & 1 ? va_arg(list, double) : va_arg(list, int);
	va_end(list);
	return sum;
}

__attribute__((noinline)) static long many(long a, long b, long c, long d, long e, long f, long g,
					   long h, long i, long j, long k)
{
	long sum = a - b + c - d + e - f;
	if (sum > g)
		sum ^= h;
	while (sum > i)
		sum = sum / 2 - j;
	return sum + k;
}

__attribute__((noinline)) static size_t on_stack(int n)
{
	char *text = alloca((size_t)n + 1);
	size_t vowels = 0;
	for (int i = 0; i < n; i++)
		text[i] = (char)('a' + i * 7 % 26);
	text[n] = 0;
	for (char *c = text; *c; c++)
		if (strchr("aeiou", *c))
			vowels++;
	return vowels + strlen(text);
}

static int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return x < y ? -1 : x > y;
}

__attribute__((noinline)) static long with_closure(int n)
{
	long sum = 0;
#if !defined(__clang__)
	__attribute__((noinline)) int step(int i)
	{
		sum += i > n / 2 ? i : -1;
		return i % 3 ? i + 1 : i + 2;
	}
	for (int i = 0; i < n;)
		i = step(i);
#endif
	return sum;
}

__attribute__((noinline)) static double series(double x, int n)
{
	double sum = 1, part = 1;
	for (int i = 1; i < n; i++) {
		part *= x / i;
		if (part < 1e-9)
			break;
		sum += part;
	}
	return sum > 3.25 ? sum - 0.125 : sum * 1.7e3;
}

__attribute__((noinline)) static long double wide(long double x)
{
	long double sum = 0.1L;
	for (int i = 0; i < 5; i++)
		sum = sum * x + (i & 1 ? 2.5L : 1.25L);
	return sum;
}

static int count;

__attribute__((noinline)) static long shared(int n)
{
	long old = 0;
	for (int i = 0; i < n; i++) {
		old += __atomic_fetch_add(&count, i, __ATOMIC_SEQ_CST);
		int expected = n;
		if (__atomic_compare_exchange_n(&count, &expected, 3, 0, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			old++;
	}
	return old + __atomic_exchange_n(&count, 1, __ATOMIC_RELEASE);
}

__attribute__((noinline)) static void leap(int n)
{
	if (n > 3)
		longjmp(back, n);
	if (n & 1)
		leap(n + 2);
	else
		leap(n + 1);
}

__attribute__((noinline)) static long sieve(int n)
{
	static char no[2000];
	long sum = 0;
	memset(no, 0, sizeof no);
	for (int i = 2; i < n; i++) {
		if (no[i])
			continue;
		sum += i;
		for (int k = i * i; k < n; k += i)
			no[k] = 1;
	}
	return sum;
}

__attribute__((noinline)) static void comes_back(void)
{
	if (setjmp(back))
		printf("back\n");
	else
		leap(0);
}

int main(void)
{
	int numbers[60], (*which[])(int) = {fib, even, odd};
	long sum = 0;
	for (int i = 0; i < 60; i++)
		numbers[i] = i * 37 % 61;
	qsort(numbers, 60, sizeof *numbers, by_value);
	for (int i = 0; i < 60; i++)
		sum = sum * 3 + numbers[i];
	for (int i = 0; i < 20; i++)
		sum += which[i % 3](i % 11);
	sum += ackermann(2, 3);
	struct large l = make(7, 2.5);
	for (int i = 0; i < 6; i++)
		sum += l.a[i];
	printf("%ld %g %g\n", sum, l.d, add(5, 1, 2.5, 3, 4.5, 5));
	for (long i = 0; i < 9; i++)
		sum += many(i, 2, i * i, 4, 5, i & 3, 7, 8, 9, 10, 11);
	printf("%ld %zu %ld\n", sum, on_stack(70), with_closure(30));
	printf("%.9g %.9g %.9g\n", series(1.5, 30), series(0.1, 9), (double)wide(1.5L));
	printf("%ld %ld\n", shared(12), sieve(300));
	comes_back();
	return 0;
}
