/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program has files with its copies, and memory with its banks. That memory is larger than any machine's: only what was
 * written is there. When no process has it mapped any more, what was counted is final. The kernel tells: memory can be
 * sealed against writing only then.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/err.h"
#include "collect/paths/work.h"
#include "harvest/process.h"
#include "process/status.h"
#include "safe/banks.h"

#define SLOTS_MAX 32768u
#define SLOTS_LEAST 16u
#define ADDRESSES (1ull << 40) /* of a process, for all its banks */
#define WORDS_MAX (1ull << 28) /* a displacement of the code reaches so far */
#define NAME_MAX_BYTES 100
#define PIECE (256u << 10)
#define STAT_START 22 /* in /proc/PID/stat */

/* ---- a new one ---- */

static void know_name(struct counting_program *face)
{
	struct buf text = {0};
	err_free(process_file(face->pid, "comm", &text));
	const char *name = buf_text(&text);
	snprintf(face->name, sizeof face->name, "%.*s", (int)strcspn(name, "\n"), name);
	buf_free(&text);
}

struct program *programs_add(struct counting_work *work, pid_t pid)
{
	struct counting *c = work->counting;
	struct program *p = calloc(1, sizeof *p);
	if (!p || !ARRAY_ROOM(c->programs, c->program_count, c->program_room)) {
		free(p);
		return NULL;
	}
	p->face.pid = pid;
	p->memory = -1;
	p->number = work->program_count++;
	know_name(&p->face);
	c->programs[c->program_count++] = &p->face;
	return p;
}

void program_note(struct counting_work *work, const struct program *p, const char *format, ...)
{
	struct buf *notes = &work->counting->notes;
	char text[1000];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	buf_put_clean(notes, p->face.name, strlen(p->face.name));
	buf_printf(notes, " (process %d): ", (int)p->face.pid);
	buf_put_clean(notes, text, strlen(text));
	buf_puts(notes, "\n");
}

void program_trouble(struct program *p, size_t object, const char *why)
{
	if (!p->face.troubles)
		p->face.troubles = calloc(p->plan.object_count, sizeof *p->face.troubles);
	if (p->face.troubles && !p->face.troubles[object])
		p->face.troubles[object] = strdup(why);
	if (!p->face.troubles || !p->face.troubles[object]) { /* then it must not count as loaded */
		free(p->paths[object]);
		p->paths[object] = NULL;
	}
}

/* ---- its files ---- */

static void write_object(const struct counting_work *work, struct program *p, size_t index)
{
	const struct counting_object *o = &p->plan.objects[index];
	struct buf path = {0};
	buf_printf(&path, "%s/%u.%zu.", work->door.directory, p->number, index);
	for (const char *c = o->name; *c && c - o->name < NAME_MAX_BYTES; c++)
		buf_append(&path, *c == '/' ? "_" : c, 1);
	const char *name = buf_text(&path);
	int fd = path.failed || path.size >= BANKS_PATH
			 ? -1
			 : open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
				work_is_late(work) ? 0644 : 0600);
	size_t done = 0;
	ssize_t wrote = 0;
	while (fd >= 0 && done < o->size &&
	       (wrote = write(fd, (char *)o->bytes + done, o->size - done)) > 0)
		done += (size_t)wrote;
	struct err *e = fd < 0 || done < o->size ? err_errno("%s: cannot be written", name) : NULL;
	if (fd >= 0)
		close(fd);
	if (e)
		program_trouble(p, index, err_text(e));
	else
		p->paths[index] = buf_take(&path);
	err_free(e);
	buf_free(&path);
}

static struct err *write_objects(struct counting_work *work, struct program *p)
{
	p->paths = calloc(p->plan.object_count + 1, sizeof *p->paths);
	if (!p->paths)
		return err_new("out of memory");
	for (size_t i = 0; i < p->plan.object_count; i++) {
		write_object(work, p, i);
		free(p->plan.objects[i].bytes);
		p->plan.objects[i].bytes = NULL;
	}
	return NULL;
}

static void remove_files(struct program *p)
{
	for (size_t i = 0; p->paths && i < p->plan.object_count; i++)
		if (p->paths[i])
			unlink(p->paths[i]);
	if (p->hooks_path)
		unlink(p->hooks_path);
}

/* ---- its memory ---- */

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + BANKS_PAGE - 1) & ~(uint64_t)(BANKS_PAGE - 1);
}

static void lay_out(struct program *p, uint64_t slots)
{
	p->slots = (uint32_t)slots;
	p->stride = BANKS_PAGE + whole_pages(p->plan.words * sizeof(uint64_t));
	p->listed = p->plan.patch_count + p->hook_count;
	p->patches_at = sizeof(struct banks_header) + slots * sizeof(struct banks_slot);
	p->slots_at = whole_pages(p->patches_at + p->listed * sizeof(struct banks_patch));
	p->size = p->slots_at + slots * p->stride;
}

/* Files may be limited in size (ulimit -f), and memory is one, too. */
static struct err *set_size(struct program *p)
{
	lay_out(p, 1);
	uint64_t slots = ADDRESSES / p->stride;
	for (slots = slots < SLOTS_MAX ? slots : SLOTS_MAX; slots >= SLOTS_LEAST; slots /= 2) {
		lay_out(p, slots);
		if (!ftruncate(p->memory, (off_t)p->size))
			return NULL;
	}
	return err_errno("no memory for its counters");
}

/* For who comes after us, if we are killed. They are restored in this order: without the hooks, new threads have no banks of their
   own, and must not come to copies. */
static void list_patches(struct program *p)
{
	struct banks_patch *list = (struct banks_patch *)((char *)p->header + p->patches_at);
	struct banks_header *h = p->header;
	for (size_t i = 0; i < p->plan.patch_count; i++, list++) {
		const struct counting_patch *patch = &p->plan.patches[i];
		*list = (struct banks_patch){.at = patch->at, .length = patch->length};
		memcpy(list->original, patch->expected, sizeof list->original);
		memcpy(list->jump, patch->bytes, sizeof list->jump);
	}
	for (size_t i = 0; i < p->hook_count; i++, list++) {
		*list = (struct banks_patch){.at = p->hooks[i].at, .length = p->hooks[i].length};
		memcpy(list->original, p->hooks[i].expected, p->hooks[i].length);
		memcpy(list->jump, p->hooks[i].bytes, p->hooks[i].length);
	}
	h->magic = BANKS_MAGIC;
	h->patches_at = p->patches_at;
	h->patch_count = (uint32_t)p->listed;
	h->owner_start = (uint64_t)process_stat_field(getpid(), STAT_START);
	atomic_store(&h->owner, (int32_t)getpid());
}

static struct err *make_memory(struct program *p)
{
	if (!p->plan.words || p->plan.words > WORDS_MAX)
		return err_new("it would need %" PRIu64 " counters", p->plan.words);
	p->face.words = p->plan.words;
	p->memory = memfd_create("culprit-paths", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (p->memory < 0)
		return err_errno("no memory for its counters");
	struct err *e = set_size(p);
	if (e)
		return e;
	fcntl(p->memory, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK);
	p->header = mmap(NULL, p->slots_at, PROT_READ | PROT_WRITE, MAP_SHARED, p->memory, 0);
	if (p->header != MAP_FAILED) {
		list_patches(p);
		return NULL;
	}
	p->header = NULL;
	return err_errno("no memory for its counters");
}

static void drop_header(struct program *p)
{
	if (p->header)
		munmap(p->header, p->slots_at);
	p->header = NULL;
}

static void drop_memory(struct program *p)
{
	drop_header(p);
	if (p->memory >= 0)
		close(p->memory);
	p->memory = -1;
}

void program_make(struct counting_work *work, struct program *p)
{
	struct counting *c = work->counting;
	struct err *e = c->over        ? err_new("the command has ended")
			: p->face.late ? hooks_place(p)
				       : NULL;
	if (!e)
		e = c->make(c->context, &p->face, &p->plan);
	p->plan_had = p->plan.patch_count;
	if (!e && p->plan.patch_count)
		e = write_objects(work, p);
	if (!e && p->plan.patch_count && p->face.late)
		e = hooks_make(work, p);
	if (!e && p->plan.patch_count)
		e = make_memory(p);
	p->problem = e;
}

static void free_plan(struct program *p)
{
	for (size_t i = 0; p->plan.objects && i < p->plan.object_count; i++) {
		free(p->plan.objects[i].name);
		free(p->plan.objects[i].bytes);
	}
	free(p->plan.objects);
	free(p->plan.patches);
	p->plan.objects = NULL;
	p->plan.patches = NULL;
	p->plan.patch_count = 0; /* the number of objects stays: paths and troubles are by them */
}

void program_settle(struct program *p)
{
	if (p->face.changed) {
		if (!p->face.late) /* it must be restored later */
			free_plan(p);
		drop_header(p);
		return;
	}
	free_plan(p);
	if (p->header)
		atomic_store(&p->header->over, 1);
	drop_memory(p);
	remove_files(p);
}

/* ---- what was counted ---- */

/* Adds words of the memory from this place on: of which bank does not matter, if it is not `summed`. */
static void add_words(struct program *p, const bool *summed, const uint64_t *words, uint64_t bytes,
		      uint64_t at)
{
	uint64_t *counts = p->face.counts;
	for (uint64_t i = 0; i < bytes / sizeof *words; i++) {
		if (!words[i])
			continue;
		uint64_t behind = at + i * sizeof *words - p->slots_at,
			 in_slot = behind % p->stride;
		uint64_t word = (in_slot - BANKS_PAGE) / sizeof *words;
		if (in_slot >= BANKS_PAGE && word < p->face.words &&
		    !(summed && summed[behind / p->stride]))
			counts[word] += words[i];
	}
}

static void add_extent(struct program *p, const bool *summed, char *room, uint64_t at, uint64_t end)
{
	at = at < p->slots_at ? p->slots_at : at;
	while (at < end) {
		uint64_t size = end - at < PIECE ? end - at : PIECE;
		ssize_t got = pread(p->memory, room, size, (off_t)at);
		if (got <= 0)
			return;
		add_words(p, summed, (uint64_t *)room, (uint64_t)got, at);
		at += (uint64_t)got & ~(uint64_t)7;
	}
}

/* Which slots are not to be read: those that were, and those of other processes. */
static bool *left_out(struct program *p, pid_t pid)
{
	struct banks_slot *slots = malloc(p->slots * sizeof *slots);
	bool *out = malloc(p->slots * sizeof *out);
	size_t size = p->slots * sizeof *slots;
	bool good = slots && out &&
		    pread(p->memory, slots, size, sizeof(struct banks_header)) == (ssize_t)size;
	for (uint32_t i = 0; good && i < p->slots; i++) {
		out[i] = p->summed[i] || (pid && atomic_load(&slots[i].process) != pid);
		p->summed[i] = !out[i] || p->summed[i];
	}
	free(slots);
	if (good)
		return out;
	free(out);
	return NULL;
}

bool program_sum(struct program *p, pid_t pid)
{
	char *room = malloc(PIECE);
	bool *summed = p->summed ? left_out(p, pid) : NULL;
	bool good = room && p->face.counts && (summed || !p->summed);
	off_t at = 0, end;
	while (good && (at = lseek(p->memory, at, SEEK_DATA)) >= 0 &&
	       (end = lseek(p->memory, at, SEEK_HOLE)) > at) {
		add_extent(p, summed, room, (uint64_t)at, (uint64_t)end);
		at = end;
	}
	free(summed);
	free(room);
	return good;
}

/* What is read while a process stands still is read by another one of ours. */
static bool sum(struct program *p)
{
	uint64_t *shared = p->face.counts;
	p->face.counts = calloc(p->face.words, sizeof *p->face.counts);
	if (shared && p->face.counts)
		memcpy(p->face.counts, shared, p->face.words * sizeof *shared);
	if (shared)
		munmap(shared, p->face.words * sizeof *shared);
	return program_sum(p, 0);
}

/* ---- what was changed ---- */

bool program_has_loaded(const struct program *p, size_t object)
{
	return object < p->plan.object_count && p->paths[object] &&
	       !(p->face.troubles && p->face.troubles[object]);
}

bool program_expect_unchanged(struct program *p)
{
	free(p->face.unchanged);
	p->face.unchanged_count = 0;
	p->face.unchanged = calloc(p->plan.patch_count, sizeof *p->face.unchanged);
	return p->face.unchanged;
}

void program_unchanged(struct program *p, size_t patch, const char *why)
{
	p->face.unchanged[p->face.unchanged_count++] = (struct counting_unchanged){patch, why};
}

void program_note_unchanged(struct counting_work *work, const struct program *p, size_t asked)
{
	size_t count = p->face.unchanged_count;
	if (count)
		program_note(work, p,
			     "%zu of %zu functions could not be changed, the first at %#" PRIx64,
			     count, asked, p->plan.patches[p->face.unchanged[0].patch].at);
}

/* ---- the result ---- */

static uint32_t read_header(const struct program *p, size_t offset)
{
	uint32_t word = 0;
	return pread(p->memory, &word, sizeof word, (off_t)offset) == sizeof word ? word : 0;
}

static void tell(struct counting_work *work, const struct program *p)
{
	uint32_t left_out = read_header(p, offsetof(struct banks_header, left_out));
	if (left_out)
		program_note(work, p,
			     "%" PRIu32 " threads or processes were not counted: there were too "
			     "many at once",
			     left_out);
	if (p->face.runs_on && !p->face.late)
		program_note(work, p,
			     "it, or its children, still run: counted until the command ended");
}

static void read_program(struct counting_work *work, struct program *p)
{
	struct counting *c = work->counting;
	meter_read(work);
	meter_end(work, p);
	if (!sum(p))
		program_note(work, p, "no memory for what it counted");
	p->face.forks = read_header(p, offsetof(struct banks_header, forks));
	tell(work, p);
	drop_memory(p);
	if (!p->face.runs_on)
		remove_files(p);
	if (!c->ended)
		return;
	c->ended(c->context, &p->face);
	free(p->face.counts);
	p->face.counts = NULL;
}

void programs_read(struct counting_work *work, bool end)
{
	const struct counting *c = work->counting;
	for (size_t i = 0; i < c->program_count; i++) {
		struct program *p = (struct program *)c->programs[i];
		if (!p->face.changed || p->memory < 0) /* or its copies are being made */
			continue;
		p->face.runs_on = fcntl(p->memory, F_ADD_SEALS, F_SEAL_WRITE) < 0;
		if (end || !p->face.runs_on)
			read_program(work, p);
	}
}

void program_free(struct program *p)
{
	drop_memory(p);
	remove_files(p);
	for (size_t i = 0; i < p->plan.object_count; i++) {
		if (p->paths)
			free(p->paths[i]);
		if (p->face.troubles)
			free(p->face.troubles[i]);
	}
	free_plan(p);
	free(p->paths);
	free(p->face.troubles);
	free(p->face.unchanged);
	free(p->hooks_path);
	if (p->summed)
		munmap(p->summed, p->slots * sizeof *p->summed);
	free(p->face.counts);
	err_free(p->problem);
	free(p);
}
