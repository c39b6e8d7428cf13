/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_places LIBDIR LOG FUNCTIONS PROGRAM [ARGUMENTS]: counts the paths of functions of a program of one thread, which must be no
 * PIE, and runs it instruction by instruction meanwhile. No function may be left by longjmp, and come back. What a sample at each instruction would tell of its path must be true of the path that is counted in the end.
 *
 * Writes how many instructions were followed to a path's end, and of how many of these the sum was known. It calls
 * itself to step through the program: --step LOG PROGRAM.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
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

#if defined(__aarch64__)
#define BREAKPOINT 0xd4200000ul
#define BREAKPOINT_MASK 0xfffffffful
#define RETURN_BYTES 0
#else
#define BREAKPOINT 0xccul
#define BREAKPOINT_MASK 0xfful
#define RETURN_BYTES 8
#endif
#define WRONG_SHOWN 10u

static void must(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "path_places: %s\n", err_text(e));
	exit(1);
}

static void need(bool good, const char *what)
{
	if (!good)
		must(err_errno("%s", what));
}

struct step {
	uint64_t pc, registers[CPU_REGISTERS];
};

/* ---- step by step ---- */

static uint64_t entry_of(const char *path)
{
	struct image *image;
	must(image_open(path, &image));
	uint64_t entry = image_entry(image);
	image_close(image);
	return entry;
}

static void wait_for_trap(pid_t child)
{
	int status;
	need(waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
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
	need(registers_set_pc(child, entry), "its beginning cannot be found");
}

/* Where its copies are. */
static void find_copies(pid_t child, uint64_t *start, uint64_t *end)
{
	struct maps maps;
	must(maps_read(child, &maps));
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
		need(registers_read(&thread), "its registers cannot be read");
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
	need(log, log_path);
	pid_t child = fork();
	if (!child) {
		personality(ADDR_NO_RANDOMIZE);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(command[0], command);
		_exit(99);
	}
	go_to(child, entry_of(command[0]));
	int status = follow(child, log);
	need(!fclose(log), log_path);
	return status;
}

/* ---- what the steps say ---- */

struct call { /* that is going on */
	const struct path_item *function;
	uint64_t sp;             /* where it began */
	uint64_t ended;          /* the number of the path that has just ended; UINT64_MAX: none */
	struct path_spot *spots; /* of its path so far */
	uint64_t *places;        /* where these were */
	size_t count, room, place_room;
};

struct check {
	const char *log;
	const char *program;
	struct call *calls;
	size_t depth, room;
	uint64_t followed, known, wrong;
	bool found;
};

static bool comes_by(const struct path_item *function, uint64_t number, uint32_t block)
{
	struct numbering_path path = {0};
	bool found = false;
	must(numbering_decode(&function->sums.numbering, number, &path));
	for (size_t i = 0; i < path.count; i++)
		found |= path.blocks[i] == block;
	numbering_path_free(&path);
	return found;
}

static bool is_true(const struct path_item *function, const struct path_spot *spot, uint64_t number)
{
	if (spot->count)
		return number >= spot->first && number - spot->first < spot->count;
	return spot->block != SPOT_NO_BLOCK && comes_by(function, number, spot->block);
}

static void end_path(struct check *c, struct call *call, uint64_t number)
{
	for (size_t i = 0; i < call->count; i++) {
		const struct path_spot *s = &call->spots[i];
		c->followed++;
		c->known += s->count > 0;
		if (is_true(call->function, s, number) || c->wrong++ >= WRONG_SHOWN)
			continue;
		printf("%s at %#" PRIx64 ": [%" PRIu64 ", +%" PRIu64 ") or block %" PRIu32
		       ", but it is path %" PRIu64 "\n",
		       call->function->name, call->places[i], s->first, s->count, s->block, number);
	}
	call->count = 0;
	call->ended = number;
}

static void leave(struct check *c)
{
	struct call *call = &c->calls[--c->depth];
	free(call->spots);
	free(call->places);
}

static struct call *enter(struct check *c, const struct path_item *function, uint64_t sp)
{
	need(ARRAY_ROOM(c->calls, c->depth, c->room), "memory");
	c->calls[c->depth] = (struct call){.function = function, .sp = sp, .ended = UINT64_MAX};
	return &c->calls[c->depth++];
}

/* Calls whose stack is gone have ended; one begins where its function does. NULL: it is in the middle of one that was not seen
   to begin. */
static struct call *call_of(struct check *c, const struct path_item *function, uint64_t at,
			    uint64_t sp)
{
	while (c->depth && c->calls[c->depth - 1].sp < sp)
		leave(c);
	if (at == function->copy.address) {
		if (c->depth && c->calls[c->depth - 1].sp == sp)
			leave(c); /* by a tail call */
		return enter(c, function, sp);
	}
	struct call *call = c->depth ? &c->calls[c->depth - 1] : NULL;
	return call && call->function == function ? call : NULL;
}

/* Whether the path has its number there, which is counted now, or was. */
static bool ends_at(const struct copy *copy, uint64_t at)
{
	bool whole = false;
	for (size_t i = 0; i < copy->place_count && copy->places[i].at <= at - copy->address; i++)
		whole = copy->places[i].block == COPY_WHOLE;
	return whole;
}

static void add_spot(struct call *call, const struct copier_place *at, uint64_t pc)
{
	need(ARRAY_ROOM(call->spots, call->count, call->room) &&
		     (call->count < call->place_room ||
		      array_grow(&call->places, &call->place_room, sizeof *call->places)),
	     "memory");
	call->places[call->count] = pc;
	call->spots[call->count++] = at->spot;
}

/* The addresses of a program that is no PIE are those in its file. */
static void take_step(struct check *c, const struct counting_program *program, const struct step *s)
{
	struct copier_place at;
	if (!copier_find(program, s->pc, s->registers, &at))
		return;
	const struct path_item *f = at.function;
	struct call *call = call_of(c, f, s->pc, s->registers[unwind_cpu_for(native_machine)->sp]);
	if (!call)
		return;
	if (ends_at(&f->copy, s->pc)) {
		if (call->ended != at.spot.first || call->count)
			end_path(c, call, at.spot.first);
		return;
	}
	if (call->ended != UINT64_MAX && !at.spot.count)
		return; /* behind the count, without its number */
	call->ended = UINT64_MAX;
	add_spot(call, &at, s->pc);
}

static void ended(void *context, struct counting_program *program)
{
	extern struct check check;
	struct check *c = &check;
	struct step step;
	(void)context;
	FILE *log = fopen(c->log, "rb");
	if (!log || c->found || strncmp(c->program, program->name, sizeof program->name - 1) != 0)
		return;
	c->found = true;
	while (fread(&step, sizeof step, 1, log) == 1)
		take_step(c, program, &step);
	fclose(log);
	while (c->depth)
		leave(c);
}

struct check check;

int main(int argc, char **argv)
{
	char self[4096], step[] = "--step";
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	if (argc > 3 && !strcmp(argv[1], step))
		return step_through(argv[2], argv + 3);
	need(argc > 4 && length > 0, "path_places LIBDIR LOG FUNCTIONS PROGRAM");
	self[length] = 0;
	const char *slash = strrchr(argv[4], '/');
	check = (struct check){.log = argv[2], .program = slash ? slash + 1 : argv[4]};
	const char *modules[] = {check.program};
	regex_t names;
	need(!regcomp(&names, argv[3], REG_EXTENDED | REG_NOSUB), "pattern");
	struct copier *copier;
	struct copier_options options = {.choice = {.functions = &names,
						    .function_count = 1,
						    .modules = modules,
						    .module_count = 1}};
	must(copier_open(&options, &copier));
	char **command = calloc((size_t)argc + 2, sizeof *command);
	need(command, "memory");
	command[0] = self;
	command[1] = step;
	command[2] = argv[2];
	memcpy(command + 3, argv + 4, (size_t)(argc - 4) * sizeof *command);
	struct counting counting = {.command = command,
				    .libdir = argv[1],
				    .make = copier_make,
				    .ended = ended,
				    .context = copier};
	must(counting_run(&counting));
	fputs(buf_text(&counting.notes), stderr);
	counting_free(&counting);
	copier_close(copier);
	free(command);
	regfree(&names);
	printf("%" PRIu64 " followed, %" PRIu64 " known, %" PRIu64 " wrong\n", check.followed,
	       check.known, check.wrong);
	return !check.found || check.wrong || !check.followed;
}
