/* SPDX-License-Identifier: Apache-2.0 */
/* main, outer, odd (assembly without unwind information), callback, stop: where it stays. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int odd(int (*callback)(int), int value);
int stop(int value);
int callback(int value);
int outer(int value);

volatile int kept, waits;

__attribute__((noinline)) int stop(int value)
{
	while (waits)
		pause();
	kept = value;
	return value + 1;
}

__attribute__((noinline)) int callback(int value)
{
	return stop(value + 1) + kept;
}

__attribute__((noinline)) int outer(int value)
{
	return odd(callback, value + 1) + kept;
}

int main(int argc, char **argv)
{
	waits = argc > 1 && !strcmp(argv[1], "wait");
	if (waits) {
		puts("ready");
		fflush(stdout);
	}
	printf("%d\n", outer(1) + kept);
	return 0;
}
