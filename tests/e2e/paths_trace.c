/* SPDX-License-Identifier: Apache-2.0 */
/* paths_trace FILE PROGRAM [ARGUMENTS]: runs a program of one thread instruction by instruction, and writes a line "PC SP" for
   each instruction of the program's own file, which must be no PIE. If it was come to from elsewhere than what stands before it, or
   something was put on the stack, the word at SP follows: at an entry on x86-64, where the call returns to. */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__aarch64__)
#define PC pc
#define SP sp
#define LONGEST 4 /* instruction */
#define BREAKPOINT 0xd4200000ul
#define BREAKPOINT_MASK 0xfffffffful
#else
#define PC rip
#define SP rsp
#define LONGEST 15
#define BREAKPOINT 0xccul
#define BREAKPOINT_MASK 0xfful
#endif

static long registers(enum __ptrace_request what, pid_t child, struct user_regs_struct *regs)
{
	struct iovec place = {regs, sizeof *regs};
	return ptrace(what, child, (void *)NT_PRSTATUS, &place);
}

/* Where its code is, and where it begins, as its file says. */
static int read_code(const char *path, uint64_t *start, uint64_t *end, uint64_t *entry)
{
	Elf64_Ehdr head;
	Elf64_Phdr segment;
	int fd = open(path, O_RDONLY);
	if (fd < 0 || pread(fd, &head, sizeof head, 0) != sizeof head || head.e_type != ET_EXEC)
		return -1;
	for (int i = 0; i < head.e_phnum; i++) {
		off_t at = (off_t)(head.e_phoff + (uint64_t)i * sizeof segment);
		if (pread(fd, &segment, sizeof segment, at) != sizeof segment)
			return -1;
		if (segment.p_type == PT_LOAD && segment.p_flags & PF_X) {
			*start = segment.p_vaddr;
			*end = segment.p_vaddr + segment.p_memsz;
		}
	}
	close(fd);
	*entry = head.e_entry;
	return *end ? 0 : -1;
}

/* Lets it go to its beginning: what the dynamic linker does before takes long. */
static int go_to(pid_t child, uint64_t entry)
{
	struct user_regs_struct regs;
	int status;
	void *at = (void *)entry;
	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		return -1;
	unsigned long before = (unsigned long)ptrace(PTRACE_PEEKTEXT, child, at, NULL);
	if (ptrace(PTRACE_POKETEXT, child, at,
		   (void *)((before & ~BREAKPOINT_MASK) | BREAKPOINT)) ||
	    ptrace(PTRACE_CONT, child, NULL, 0) || waitpid(child, &status, 0) != child ||
	    !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP ||
	    ptrace(PTRACE_POKETEXT, child, at, (void *)before) ||
	    registers(PTRACE_GETREGSET, child, &regs))
		return -1;
	regs.PC = entry;
	return registers(PTRACE_SETREGSET, child, &regs) ||
			       ptrace(PTRACE_SINGLESTEP, child, NULL, 0)
		       ? -1
		       : 0;
}

static int follow(pid_t child, FILE *out, uint64_t start, uint64_t end)
{
	int status, number = 0;
	unsigned long long before = 0, sp = 0;
	struct user_regs_struct regs;
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		if (WSTOPSIG(status) != SIGTRAP)
			number = WSTOPSIG(status);
		if (registers(PTRACE_GETREGSET, child, &regs))
			return 1;
		if (regs.PC >= start && regs.PC < end && regs.PC - before - 1 < LONGEST &&
		    regs.SP != sp - sizeof(long))
			fprintf(out, "%llx %llx\n", regs.PC, regs.SP);
		else if (regs.PC >= start && regs.PC < end)
			fprintf(out, "%llx %llx %lx\n", regs.PC, regs.SP,
				(unsigned long)ptrace(PTRACE_PEEKDATA, child, (void *)regs.SP,
						      NULL));
		before = regs.PC;
		sp = regs.SP;
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, number))
			return 1;
		number = 0;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	uint64_t start = 0, end = 0, entry = 0;
	if (argc < 3 || read_code(argv[2], &start, &end, &entry))
		return 99;
	FILE *out = fopen(argv[1], "we");
	pid_t child = out ? fork() : -1;
	if (child < 0)
		return 99;
	if (!child) {
		personality(ADDR_NO_RANDOMIZE);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[2], argv + 2);
		_exit(99);
	}
	if (go_to(child, entry))
		return 99;
	int status = follow(child, out, start, end);
	return fclose(out) ? 99 : status;
}
