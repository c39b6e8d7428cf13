/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose paths are counted: loops in loops, switches, recursion, tail calls, callbacks, early ways out. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#define KEPT __attribute__((noinline, noclone, noipa))

static jmp_buf back;

KEPT int classify(int x)
{
	if (x < 10)
		return 1;
	if (x % 3 == 0 && x % 5 == 0)
		return 2;
	return x > 100 ? 3 : 4;
}

KEPT long solve(const int *a, int n, int m)
{
	long sum = 0;
	for (int i = 0; i < n; i++) {
		switch (classify(a[i])) {
		case 1:
			sum += a[i];
			break;
		case 2:
			sum -= a[i] / m;
			break;
		default:
			for (int k = 0; k < m; k++)
				sum ^= (long)a[(i + k) % n] << (k & 15);
		}
		if (sum < -100000)
			return -1;
	}
	return sum;
}

KEPT int machine(const char *program)
{
	int stack[16] = {0}, top = 0;
	for (;; program++) {
		switch (*program) {
		case '+':
			stack[top]++;
			break;
		case '-':
			stack[top]--;
			break;
		case '.':
			top = (top + 1) & 15;
			break;
		case ',':
			top = (top + 15) & 15;
			break;
		case '/':
			stack[top] = -stack[top];
			break;
		case '*':
			stack[top] *= stack[top];
			break;
		case '(':
			stack[top] *= 2;
			break;
		case 0:
			return stack[top];
		default:
			return -1;
		}
	}
}

KEPT int depth(int n)
{
	if (n <= 0)
		return 0;
	int left = depth(n - 1), right = n & 1 ? depth(n - 2) : 0;
	return 1 + (left > right ? left : right);
}

KEPT int odd(unsigned n);
KEPT int even(unsigned n)
{
	return n ? odd(n - 1) : 1;
}

KEPT int odd(unsigned n)
{
	return n ? even(n - 1) : 0;
}

KEPT int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	if (x == y)
		return 0;
	return x < y ? -1 : 1;
}

KEPT void jumper(int n)
{
	if (n % 4 == 3)
		longjmp(back, 1);
	if (n % 4 == 1)
		putchar('.');
}

/* The top of its loop is its entry. */
KEPT int digits(unsigned n)
{
	int count = 0;
	do
		count++;
	while (n /= 10);
	return count;
}

KEPT int jump_often(int n)
{
	volatile int jumps = 0;
	for (volatile int i = 0; i < n; i++) {
		if (setjmp(back))
			jumps++;
		else
			jumper(i);
	}
	return jumps;
}

/* The compiler knows that there is no other case: nothing says how long its table is. */
KEPT long no_other_case(unsigned kind, long n)
{
	switch (kind) {
	case 0:
		return n + 1;
	case 1:
		return n * 7 - classify((int)n);
	case 2:
		return n ^ 1234;
	case 3:
		return n / 3;
	case 4:
		return classify((int)n) << 3;
	case 5:
		n += 2;
		break;
	case 6:
		return -n;
	case 7:
		return n & 0xf0;
	default:
		__builtin_unreachable();
	}
	return n * n;
}

int main(void)
{
	int a[60];
	unsigned seed = 7;
	for (int i = 0; i < 60; i++) {
		seed = seed * 1103515245u + 12345u;
		a[i] = (int)(seed >> 16) % 200;
	}
	long sum = solve(a, 60, 3) + solve(a, 0, 1) + solve(a + 10, 20, 5);
	sum += machine("+++.(+*,/-..(+") + machine("x") + machine("+(*(*(*");
	sum += depth(7) + even(20) + odd(9) + digits(0) + digits(1234567);
	qsort(a, 60, sizeof *a, by_value);
	int jumps = jump_often(12);
	for (int i = 0; i < 60; i++)
		sum += no_other_case((unsigned)a[i] % 8, a[i]);
	printf("\n%ld %d %d\n", sum, a[30], jumps);
	return 0;
}
