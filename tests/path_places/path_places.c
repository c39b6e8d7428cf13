/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_places LIBDIR LOG FUNCTIONS PROGRAM [ARGUMENTS]: counts the paths of functions of a program of one thread, which must be no
 * PIE, and runs it instruction by instruction meanwhile. No function may be left by longjmp, and come back. What a sample at each instruction would tell of its path must be true of the path that is counted in the end.
 *
 * Writes how many instructions were followed to a path's end, and of how many of these the sum was known. It calls
 * itself to step through the program: --step LOG PROGRAM.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "collect/paths/copier.h"
#include "collect/paths/counting.h"
#include "copies/module.h"
#include "image/image.h"
#include "process/maps.h"
#include "process/registers.h"
#include "process/remote.h"
#include "unwind/cpu.h"

#include "check.h"

#if defined(__aarch64__)
#define BREAKPOINT 0xd4200000ul
#define BREAKPOINT_MASK 0xfffffffful
#else
#define BREAKPOINT 0xccul
#define BREAKPOINT_MASK 0xfful
#endif

struct step {
	uint64_t pc, registers[CPU_REGISTERS];
};

/* ---- step by step ---- */

static uint64_t entry_of(const char *path)
{
	struct image *image;
	check_must(image_open(path, &image));
	uint64_t entry = image_entry(image);
	image_close(image);
	return entry;
}

static void wait_for_trap(pid_t child)
{
	int status;
	check_need(waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
			   WSTOPSIG(status) == SIGTRAP,
		   "it did not stop");
}

/* Lets it go to its beginning: until then it is made to count. */
static void go_to(pid_t child, uint64_t entry)
{
	void *at = (void *)entry;
	wait_for_trap(child);
	unsigned long before = (unsigned long)ptrace(PTRACE_PEEKTEXT, child, at, NULL);
	ptrace(PTRACE_POKETEXT, child, at, (void *)((before & ~BREAKPOINT_MASK) | BREAKPOINT));
	ptrace(PTRACE_CONT, child, NULL, 0);
	wait_for_trap(child);
	ptrace(PTRACE_POKETEXT, child, at, (void *)before);
	check_need(registers_set_pc(child, entry), "its beginning cannot be found");
}

/* Where its copies are. */
static void find_copies(pid_t child, uint64_t *start, uint64_t *end)
{
	struct maps maps;
	check_must(maps_read(child, &maps));
	*start = UINT64_MAX;
	*end = 0;
	for (size_t i = 0; i < maps.count; i++) {
		const struct map *m = &maps.items[i];
		if (!m->executable || !strstr(m->path, ".paths.so"))
			continue;
		*start = m->start < *start ? m->start : *start;
		*end = m->end > *end ? m->end : *end;
	}
	maps_free(&maps);
}

static int follow(pid_t child, FILE *log)
{
	uint64_t start, end;
	int status, signal = 0;
	find_copies(child, &start, &end);
	while (!ptrace(PTRACE_SINGLESTEP, child, NULL, signal) &&
	       waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		struct remote_thread thread = {.tid = child};
		struct step step;
		signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		check_need(registers_read(&thread), "its registers cannot be read");
		if (thread.pc < start || thread.pc >= end)
			continue;
		step.pc = thread.pc;
		memcpy(step.registers, thread.registers, sizeof step.registers);
		fwrite(&step, sizeof step, 1, log);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int step_through(const char *log_path, char **command)
{
	FILE *log = fopen(log_path, "wb");
	check_need(log, log_path);
	pid_t child = fork();
	if (!child) {
		personality(ADDR_NO_RANDOMIZE);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(command[0], command);
		_exit(99);
	}
	go_to(child, entry_of(command[0]));
	int status = follow(child, log);
	check_need(!fclose(log), log_path);
	return status;
}

/* ---- what the steps say ---- */

static struct {
	struct check check;
	const char *log, *program;
	bool found;
} all;

/* The addresses of a program that is no PIE are those in its file. */
static void take_step(const struct counting_program *program, const struct step *s)
{
	const uint64_t sp = s->registers[unwind_cpu_for(native_machine)->sp];
	struct copier_place at;
	if (copier_find(program, s->pc, s->registers, &at))
		check_step(&all.check, at.function, &at.spot, s->pc, s->pc, sp);
}

static void ended(void *context, struct counting_program *program)
{
	struct step step;
	(void)context;
	FILE *log = fopen(all.log, "rb");
	if (!log || all.found || strncmp(all.program, program->name, sizeof program->name - 1) != 0)
		return;
	all.found = true;
	while (fread(&step, sizeof step, 1, log) == 1)
		take_step(program, &step);
	fclose(log);
}

int main(int argc, char **argv)
{
	char self[4096], step[] = "--step";
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	if (argc > 3 && !strcmp(argv[1], step))
		return step_through(argv[2], argv + 3);
	check_need(argc > 4 && length > 0, "path_places LIBDIR LOG FUNCTIONS PROGRAM");
	self[length] = 0;
	const char *slash = strrchr(argv[4], '/');
	all.log = argv[2];
	all.program = slash ? slash + 1 : argv[4];
	all.check.link_register = native_machine == EM_AARCH64;
	const char *modules[] = {all.program};
	regex_t names;
	check_need(!regcomp(&names, argv[3], REG_EXTENDED | REG_NOSUB), "pattern");
	struct copier *copier;
	struct copier_options options = {.choice = {.functions = &names,
						    .function_count = 1,
						    .modules = modules,
						    .module_count = 1}};
	check_must(copier_open(&options, &copier));
	char **command = calloc((size_t)argc + 2, sizeof *command);
	check_need(command, "memory");
	command[0] = self;
	command[1] = step;
	command[2] = argv[2];
	memcpy(command + 3, argv + 4, (size_t)(argc - 4) * sizeof *command);
	struct counting counting = {.command = command,
				    .libdir = argv[1],
				    .make = copier_make,
				    .ended = ended,
				    .context = copier};
	check_must(counting_run(&counting));
	fputs(buf_text(&counting.notes), stderr);
	counting_free(&counting);
	copier_close(copier);
	free(command);
	regfree(&names);
	check_end(&all.check);
	return !all.found || all.check.wrong || !all.check.followed;
}
