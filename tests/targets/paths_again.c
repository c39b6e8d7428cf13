/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that return several times: setjmp, getcontext, vfork. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
static volatile int seen;
__attribute__((noinline)) static int child_of(int n)
{
	pid_t p = vfork();
	if (!p) {
		if (n % 3 == 0)
			execl("/bin/true", "true", (char *)0);
		_exit(n & 3);
	}
	int status;
	waitpid(p, &status, 0);
	return WEXITSTATUS(status);
}
__attribute__((noinline)) static int goes_back(int n)
{
	ucontext_t c;
	volatile int i = 0;
	getcontext(&c);
	if (i++ < n) {
		seen++;
		setcontext(&c);
	}
	return i;
}
static jmp_buf outer;
__attribute__((noinline)) static void deep(int n)
{
	if (n == 0)
		longjmp(outer, 1);
	deep(n - 1);
	seen++;
}
__attribute__((noinline)) static int nested(int n)
{
	jmp_buf inner, saved;
	volatile int sum = 0;
	for (volatile int i = 0; i < n; i++) {
		memcpy(&saved, &outer, sizeof saved);
		switch (setjmp(outer)) {
		case 0:
			if (i & 1)
				deep(i);
			sum += 1;
			break;
		default:
			sum += 100;
		}
		if (!setjmp(inner))
			longjmp(inner, 3);
		memcpy(&outer, &saved, sizeof saved);
	}
	return sum;
}
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 12; i++)
		sum += child_of(i) * 3 + goes_back(i) + nested(i);
	printf("%d %d\n", sum, seen);
}
