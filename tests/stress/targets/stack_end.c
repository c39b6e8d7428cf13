/* SPDX-License-Identifier: Apache-2.0 */
/* Works at the very end of the first thread's stack, where no signal has room; and in a child. Then it has
   a stack for its handlers, as if nobody else had one. */
#include "stress.h"
#include <alloca.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 1 << 20, LEFT = 512, OWN = 256 * 1024 };
static char *own;
static volatile int handled;

static char *stack_top(void)
{
	char line[512], *end = NULL;
	FILE *maps = fopen("/proc/self/maps", "r");
	must(maps != NULL, "maps");
	while (fgets(line, sizeof line, maps))
		if (strstr(line, "[stack]"))
			end = (char *)(uintptr_t)strtoull(strchr(line, '-') + 1, NULL, 16);
	fclose(maps);
	must(end != NULL, "stack");
	return end;
}

static __attribute__((noinline)) uint64_t work_at(char *low, unsigned units)
{
	char *here = __builtin_frame_address(0);
	volatile char *room = alloca((size_t)(here - low - LEFT));
	room[0] = 1;
	return burn(units) + (uint64_t)room[0];
}

static void on_own(int signal)
{
	char here;
	(void)signal;
	burn(5);
	handled += &here > own && &here < own + OWN;
}

static bool has_none(void)
{
	stack_t stack;
	return !sigaltstack(NULL, &stack) && stack.ss_flags == SS_DISABLE;
}

static void handle_on_own(void)
{
	struct sigaction action = {.sa_handler = on_own, .sa_flags = SA_ONSTACK};
	stack_t stack = {.ss_size = OWN}, old;
	/* without a stack of its own a handler is on the program's */
	must(!sigaction(SIGUSR1, &action, NULL), "sigaction");
	own = (char *)&action - OWN;
	raise(SIGUSR1);
	expect(handled == 1, "a handler on the program's stack");
	stack.ss_sp = own = malloc(OWN);
	expect(!sigaltstack(&stack, &old) && old.ss_flags == SS_DISABLE, "there was none before");
	raise(SIGUSR1);
	expect(handled == 2, "a handler on a stack of its own");
	expect(!sigaltstack(NULL, &old) && old.ss_sp == own && !old.ss_flags, "it is still there");
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	unsigned units = (unsigned)scaled(argc, argv, 500);
	int status;
	getrlimit(RLIMIT_STACK, &limit);
	limit.rlim_cur = LIMIT;
	must(!setrlimit(RLIMIT_STACK, &limit), "setrlimit");
	char *low = stack_top() - LIMIT;

	expect(has_none(), "no stack for handlers");
	printf("%d\n", (int)(work_at(low, units) & 0xffff));
	fflush(stdout);
	pid_t child = fork();
	if (!child) {
		work_at(low, units);
		expect(has_none(), "none in a child either");
		handle_on_own();
		return expect_failed;
	}
	must(waitpid(child, &status, 0) == child, "waitpid");
	expect(status == 0, "a child");
	handle_on_own();
	return expect_failed;
}
