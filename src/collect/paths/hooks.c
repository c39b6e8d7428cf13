/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a function of libc is entered by the counter, in a process that runs already: its beginning becomes a jump to code near
 * by, which jumps to the counter's function. That calls the rest of this code: the instructions that were at the
 * beginning, and a jump to those behind them. It is in a file that the counter maps, and stays there.
 *
 *    file:  far jump to the counter's function | instructions of the beginning, jump back | the same of the next one
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "collect/paths/room.h"
#include "collect/paths/work.h"
#include "copies/write.h"
#include "patch/plan.h"
#include "process/maps.h"
#include "process/registers.h"

#define EACH 512u /* bytes of the file */
_Static_assert(BANKS_HOOKED *EACH <= BANKS_PAGE, "");
_Static_assert(PATCH_FAR_MAX + PATCH_ISLAND_MAX <= EACH, "");
_Static_assert(PATCH_WINDOW_MAX == STILL_BYTES && PATCH_STEPS_MAX <= STILL_STEPS, "");

static struct err *read_code(pid_t pid, const struct banks_function *f, uint8_t *code, size_t *size)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	int memory = open(path, O_RDONLY | O_CLOEXEC);
	*size = f->size < *size ? f->size : *size;
	bool good = memory >= 0 && pread(memory, code, *size, (off_t)f->at) == (ssize_t)*size;
	if (memory >= 0)
		close(memory);
	return good ? NULL : err_errno("its memory cannot be read");
}

/* The jump at the beginning leads to `stub`. */
static void fill_write(const struct patch_plan *plan, const struct write_jump *jump,
		       uint64_t island, struct still_write *out)
{
	*out = (struct still_write){
		.at = plan->at, .known = plan->window, .length = jump->size, .whole = true};
	memcpy(out->expected, plan->original, plan->window);
	memcpy(out->bytes, jump->bytes, jump->size);
	for (size_t i = 0; i < plan->step_count; i++) {
		out->steps[i].from = plan->steps[i].from;
		out->steps[i].to = island + plan->steps[i].to;
	}
	out->step_count = (uint8_t)plan->step_count;
}

static struct err *make_one(struct program *p, size_t index, uint8_t *bytes)
{
	const struct banks_function *f = &p->functions[index];
	const struct patch_cpu *cpu = patch_cpu_for(native_machine);
	uint8_t code[2 * PATCH_WINDOW_MAX];
	size_t size = sizeof code;
	uint64_t stub = p->hooks_base + index * EACH, island = stub + PATCH_FAR_MAX;
	struct err *e = read_code(p->face.pid, f, code, &size);
	if (e)
		return e;
	struct patch_plan plan;
	struct write_jump jump;
	const struct patch_input input = {
		.code = code, .size = size, .address = f->at, .island = island};
	const struct write_entry entry = {
		.code = code, .size = size, .address = f->at, .copy = stub, .guarded = true};
	enum patch_refusal refusal = patch_plan(cpu, &input, &plan);
	const char *why = refusal ? patch_refusal_text(refusal)
				  : write_enter(native_machine, &entry, &jump);
	if (!why && (jump.at != plan.at || jump.size > plan.window))
		why = "its beginning cannot be replaced";
	if (why)
		return err_new("a function of its C library cannot be entered by another one: %s",
			       why);
	cpu->far_jump(f->ours, bytes + index * EACH);
	memcpy(bytes + index * EACH + PATCH_FAR_MAX, plan.island, plan.island_size);
	fill_write(&plan, &jump, island, &p->hooks[p->hook_count++]);
	/* What is before the window stays where it is: an instruction that does nothing. */
	p->bodies[index] = island + plan.body;
	return NULL;
}

static struct err *find_room_for(struct program *p)
{
	const struct banks_function *f = &p->functions[BANKS_HOOK_THREAD];
	struct maps maps;
	struct err *e = maps_read(p->face.pid, &maps);
	if (e)
		return e;
	/* All functions are in one file, which is not that large. */
	p->hooks_base = room_find(&maps, NULL, 0, f->at, f->at + BANKS_PAGE, BANKS_PAGE,
				  write_reach(native_machine), ROOM_BUSY);
	maps_free(&maps);
	return p->hooks_base ? NULL : err_new("there is no room near its C library");
}

static struct err *write_file(const struct counting_work *work, struct program *p,
			      const uint8_t *bytes)
{
	struct buf path = {0};
	buf_printf(&path, "%s/%u.hooks", work->door.directory, p->number);
	p->hooks_path = buf_take(&path);
	if (!p->hooks_path || strlen(p->hooks_path) >= BANKS_PATH)
		return err_new("out of memory");
	int fd = open(p->hooks_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	bool good = fd >= 0 && write(fd, bytes, BANKS_PAGE) == (ssize_t)BANKS_PAGE;
	struct err *e = good ? NULL : err_errno("%s: cannot be written", p->hooks_path);
	if (fd >= 0)
		close(fd);
	return e;
}

struct err *hooks_make(const struct counting_work *work, struct program *p)
{
	uint8_t bytes[BANKS_PAGE] = {0};
	p->hooks_base = p->face.kept;
	struct err *e = NULL;
	for (size_t i = 0; i < BANKS_HOOKED && !e; i++)
		if (p->functions[i].at)
			e = make_one(p, i, bytes);
	return e ? e : write_file(work, p, bytes);
}

struct err *hooks_place(struct program *p)
{
	struct err *e = find_room_for(p);
	p->face.kept = p->hooks_base;
	p->face.kept_end = p->hooks_base + BANKS_PAGE;
	return e;
}
