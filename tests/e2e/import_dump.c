/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaves what perf would copy of it: its registers, stack and memory map, at a
 * place three calls below main. ./import_dump FILE BYTES
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static FILE *out;
static size_t wanted;
static char *stack_end;
volatile int sink;

#ifdef __x86_64__
#define MACHINE "x86_64"
static const int order[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
			    REG_RBP, REG_RSP, REG_RIP, REG_R8,  REG_R9,  REG_R10,
			    REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
static uint64_t get(const ucontext_t *c, unsigned i)
{
	return (uint64_t)c->uc_mcontext.gregs[order[i]];
}
enum { COUNT = 17, SP = 7 };
#else
#define MACHINE "aarch64"
static uint64_t get(const ucontext_t *c, unsigned i)
{
	const mcontext_t *m = &c->uc_mcontext;
	return i < 31 ? m->regs[i] : i == 31 ? m->sp : m->pc;
}
enum { COUNT = 33, SP = 31 };
#endif

static void dump(int signal, siginfo_t *info, void *context)
{
	char machine[16] = MACHINE, line[4096];
	uint64_t sp = get(context, SP), size = (uint64_t)(stack_end - (char *)sp), number = COUNT;
	FILE *maps = fopen("/proc/self/maps", "r");
	(void)signal;
	(void)info;
	if (size > wanted)
		size = wanted;
	fwrite(machine, sizeof machine, 1, out);
	fwrite(&number, sizeof number, 1, out);
	fwrite(&size, sizeof size, 1, out);
	fwrite(&sp, sizeof sp, 1, out);
	for (unsigned i = 0; i < COUNT; i++) {
		uint64_t value = get(context, i);
		fwrite(&value, sizeof value, 1, out);
	}
	fwrite((void *)sp, size, 1, out);
	while (maps && fgets(line, sizeof line, maps))
		fputs(line, out);
	fclose(out);
	exit(0);
}

__attribute__((noinline)) static void innermost(int n)
{
	raise(SIGUSR1);
	sink += n;
}

__attribute__((noinline)) static void middle(int n)
{
	char room[2000];
	memset(room, n, sizeof room);
	innermost(n + 1);
	sink += room[n];
}

__attribute__((noinline)) static void outermost(int n)
{
	middle(n + 1);
	sink += n;
}

int main(int argc, char **argv)
{
	static char alternate[1 << 16];
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
	struct sigaction action = {.sa_sigaction = dump, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	char **end = argv + argc + 1;
	while (*end)
		end++;
	stack_end = (char *)(end + 1);
	out = argc > 2 ? fopen(argv[1], "w") : NULL;
	wanted = argc > 2 ? (size_t)atol(argv[2]) : 0;
	if (!out || sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL))
		return 1;
	outermost(argc);
	return 1;
}
