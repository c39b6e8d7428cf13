/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/left.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "cct/cct.h"
#include "collect/agents/changes.h"
#include "collect/agents/inside.h"
#include "collect/agents/patches.h"
#include "collect/agents/programs.h"
#include "harvest/process.h"
#include "inject/still.h"
#include "process/maps.h"
#include "process/status.h"
#include "safe/probes.h"

#define STAT_START 22 /* in /proc/PID/stat */
#define UNTRACED_NS 2000000000ull

/* ---- where ---- */

struct arenas { /* of one process */
	struct inside *all;
	size_t count, room;
	uint64_t *inodes;
	size_t inode_room;
};

/* One that was killed may stay in the list of processes, if its parent does not ask for its end. */
static bool is_owner_alive(const struct arena_header *h)
{
	struct process_status s;
	return h->owner > 0 && process_status(h->owner, &s) && s.state != 'Z' && s.state != 'X' &&
	       process_stat_field(h->owner, STAT_START) == (long)h->owner_start;
}

/* Whether the memory is an arena with probes. */
static bool has_probes(struct inside *in)
{
	const struct arena_header *h = &in->header;
	return inside_read_header(in) && h->magic == ARENA_MAGIC && h->version == ARENA_VERSION &&
	       (atomic_load(&h->probe_count) || h->address);
}

static void close_arenas(struct arenas *a)
{
	for (size_t i = 0; i < a->count; i++)
		inside_close(&a->all[i]);
	free(a->all);
	free(a->inodes);
	*a = (struct arenas){0};
}

static struct err *add_arena(struct arenas *a, pid_t pid, const struct map *m)
{
	struct inside in = {.pid = pid, .memory = -1, .base = m->start, .size = m->end - m->start};
	if (!inside_open(&in) || !has_probes(&in)) {
		inside_close(&in);
		return NULL;
	}
	if (!ARRAY_ROOM(a->all, a->count, a->room) ||
	    !ARRAY_ROOM(a->inodes, a->count, a->inode_room)) {
		inside_close(&in);
		return err_new("out of memory");
	}
	a->inodes[a->count] = m->inode;
	a->all[a->count++] = in;
	return NULL;
}

/* inode 0: any arena. */
static struct err *find_arenas(pid_t pid, uint64_t inode, struct arenas *out)
{
	struct maps maps;
	struct err *e = maps_read(pid, &maps);
	if (e)
		return e;
	for (size_t i = 0; i < maps.count && !e; i++)
		if (!strcmp(maps.items[i].path, ARENA_FILE) &&
		    (!inode || maps.items[i].inode == inode))
			e = add_arena(out, pid, &maps.items[i]);
	maps_free(&maps);
	return e;
}

/* The same arena in other processes: children have it, too. Those that cannot be looked at are none of ours. */
static struct err *find_others(pid_t pid, uint64_t inode, struct arenas *out)
{
	DIR *all = opendir("/proc");
	const struct dirent *entry;
	struct err *e = all ? NULL : err_errno("/proc cannot be read");
	while (!e && (entry = readdir(all))) {
		pid_t other = (pid_t)strtol(entry->d_name, NULL, 10);
		if (isdigit((unsigned char)*entry->d_name) && other != pid)
			err_free(find_arenas(other, inode, out));
	}
	if (all)
		closedir(all);
	return e;
}

/* ---- taking out ---- */

static bool is_among(uint64_t function, const uint64_t *functions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (functions[i] == function)
			return true;
	return !functions;
}

/* Of all functions, if `functions` is NULL: also what was taken out of its parent may still be in a child. */
static struct err *take_out(struct inside *in, const uint64_t *functions, size_t count)
{
	struct changes c = {0};
	struct still_report report = {0};
	uint32_t chunk = atomic_load(&in->header.probes);
	struct arena_probe p;
	struct err *e = NULL;
	for (uint32_t i = 0;
	     !e && i < inside_probe_count(in) && inside_next_probe(in, i, &chunk, &p); i++)
		if (p.length && is_among(p.function, functions, count) &&
		    !changes_take_out(&c, &p, i))
			e = err_new("out of memory");
	if (!e)
		e = still_write(in->pid, c.all, c.count, &report);
	if (!e && changes_any_left(&c))
		e = changes_left(in->pid);
	changes_free(&c);
	return e;
}

static struct err *take_out_everywhere(const struct arenas *a, const uint64_t *functions,
				       size_t count)
{
	struct err *e = NULL;
	for (size_t i = 0; i < a->count && !e; i++) {
		e = take_out(&a->all[i], functions, count);
		if (e &&
		    !inside_is_mapped(&a->all[i])) { /* it has ended, or is another program now */
			err_free(e);
			e = NULL;
		}
	}
	return e;
}

/* ---- the end ---- */

/* Whether the agent's thread is in this process; if not, in one of those with the same arena. */
static bool serves(const struct inside *in)
{
	const struct process p = {.pid = in->pid};
	struct process_status s;
	return in->header.address && process_status(program_tid(&p, in->header.served_by), &s) &&
	       s.group == in->pid;
}

/* No jump is left in any of them: so no thread comes into the agent any more. */
static struct err *end_agent(struct arenas *a)
{
	struct err *e = NULL;
	for (size_t i = 0; i < a->count && !e; i++) {
		struct inside *in = &a->all[i];
		if (!serves(in) || atomic_load(&in->header.stop) == ARENA_GO)
			continue;
		e = inside_stop(in, ARENA_STOP)
			    ? inside_let_go(in)
			    : err_errno("process %d: its memory cannot be written", (int)in->pid);
	}
	return e;
}

static struct err *refuse_counted(const struct inside *in)
{
	const struct arena_header *h = &in->header;
	if (!atomic_load(&h->probe_count) || !is_owner_alive(h) || atomic_load(&h->stop))
		return NULL;
	return err_new(
		"process %d: culprit probe counts there already: 'culprit probe add' adds functions",
		(int)in->pid);
}

static struct err *clear(pid_t pid, struct inside *first, uint64_t inode, bool *code)
{
	struct arenas all = {0};
	struct err *e = refuse_counted(first);
	*code = false;
	if (!e)
		e = find_arenas(pid, inode, &all);
	if (!e)
		e = find_others(pid, inode, &all);
	if (!e)
		e = take_out_everywhere(&all, NULL, 0);
	*code = !e;
	if (!e)
		e = end_agent(&all);
	close_arenas(&all);
	return e;
}

struct err *left_clear(pid_t pid, bool *code)
{
	struct arenas a = {0};
	*code = true;
	/* A process of a collector that was killed may still be at it. */
	process_wait_untraced(pid, UNTRACED_NS);
	struct err *e = find_arenas(pid, 0, &a);
	for (size_t i = 0; i < a.count && !e; i++)
		e = clear(pid, &a.all[i], a.inodes[i], code);
	close_arenas(&a);
	return e;
}

/* ---- what there is ---- */

struct counting {
	const struct arena_header *arena;
	uint64_t size;
	struct probe_sums *sums; /* by number */
	size_t count;
};

static void count_sums(struct counting *c, uint64_t reference)
{
	if (!reference || reference > c->size / 8 ||
	    reference * 8 + sizeof(struct arena_probe_sums) > c->size)
		return;
	const struct arena_probe_sums *s = (const void *)((const char *)c->arena + reference * 8);
	const struct probe_sums sums = patches_sums(s);
	if (s->number < c->count)
		probes_sum(&c->sums[s->number], &sums);
}

static void count_node(void *context, uint32_t index, uint32_t parent, uint64_t key,
		       const uint64_t *values)
{
	(void)index;
	(void)parent;
	(void)key;
	count_sums(context, values[0]);
	count_sums(context, values[1]);
}

static void count_threads(struct counting *c)
{
	uint64_t left = c->size >> ARENA_CHUNK_BITS;
	uint32_t chunk = atomic_load(&c->arena->threads);
	for (; left && chunk && chunk < c->size >> ARENA_CHUNK_BITS; left--) {
		const struct arena_thread *t = arena_at(c->arena, chunk);
		if (atomic_load(&t->state) != ARENA_FREE)
			cct_read(c->arena, c->size, t, count_node, c);
		chunk = atomic_load(&t->chunk.next);
	}
}

/* Copies as much of the arena as was ever used. */
static struct arena_header *copy_arena(const struct inside *in)
{
	void *at = mmap(NULL, in->size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t used = (uint64_t)atomic_load(&in->header.fresh) << ARENA_CHUNK_BITS;
	if (at == MAP_FAILED)
		return NULL;
	if (inside_read(in, 0, at, used < in->size ? used : in->size) &&
	    arena_is_sane(at, in->size) && ((struct arena_header *)at)->metrics >= 2)
		return at;
	munmap(at, in->size);
	return NULL;
}

static bool is_on(const struct inside *in, const struct arena_probe *p)
{
	uint8_t now[ARENA_JUMP_BYTES];
	return p->length && p->length <= sizeof now &&
	       pread(in->memory, now, p->length, (off_t)p->at) == p->length &&
	       !memcmp(now, p->jump, p->length);
}

static void list(struct inside *in, struct counting *c, struct left *out)
{
	uint32_t chunk = atomic_load(&in->header.probes);
	struct arena_probe p;
	for (uint32_t i = 0; i < inside_probe_count(in) && inside_next_probe(in, i, &chunk, &p);
	     i++) {
		if (p.number >= c->count)
			continue;
		const struct probe_sums unknown = {.calls = atomic_load(&p.unknown),
						   .abandoned = atomic_load(&p.unknown),
						   .least = UINT64_MAX};
		count_sums(c, p.sums);
		probes_sum(&c->sums[p.number], &unknown);
		out->all[out->count++] = (struct left_probe){p.function, is_on(in, &p),
							     c->sums[p.number]};
	}
}

static struct err *read_arena(struct inside *in, struct left *out)
{
	if (is_owner_alive(&in->header))
		return NULL;
	struct counting c = {.count = ARENA_PROBES_MAX, .size = in->size};
	struct left_probe *more = reallocarray(out->all, out->count + inside_probe_count(in) + 1,
					       sizeof *more);
	out->all = more ? more : out->all;
	c.sums = calloc(c.count, sizeof *c.sums);
	struct arena_header *arena = more && c.sums ? copy_arena(in) : NULL;
	c.arena = arena;
	if (arena) {
		count_threads(&c);
		list(in, &c, out);
		munmap(arena, in->size);
	}
	free(c.sums);
	return arena ? NULL
		     : err_new("process %d: what was counted there cannot be read", (int)in->pid);
}

struct err *left_read(pid_t pid, struct left *out)
{
	struct arenas a = {0};
	*out = (struct left){0};
	struct err *e = find_arenas(pid, 0, &a);
	for (size_t i = 0; i < a.count && !e; i++)
		e = read_arena(&a.all[i], out);
	close_arenas(&a);
	if (e)
		left_free(out);
	return e;
}

void left_free(struct left *left)
{
	free(left->all);
	*left = (struct left){0};
}

static bool is_any_on(const struct left *left)
{
	for (size_t i = 0; i < left->count; i++)
		if (left->all[i].on)
			return true;
	return false;
}

struct err *left_take_out(pid_t pid, const uint64_t *functions, size_t count)
{
	struct arenas a = {0}, all = {0};
	struct left left = {0};
	bool code;
	struct err *e = find_arenas(pid, 0, &a);
	for (size_t i = 0; i < a.count && !e; i++) {
		e = refuse_counted(&a.all[i]);
		if (!e)
			e = find_others(pid, a.inodes[i], &all);
	}
	if (!e)
		e = take_out_everywhere(&a, functions, count);
	if (!e)
		e = take_out_everywhere(&all, functions, count);
	close_arenas(&a);
	close_arenas(&all);
	if (!e)
		e = left_read(pid, &left);
	if (!e && !is_any_on(&left))
		e = left_clear(pid, &code);
	left_free(&left);
	return e;
}

/* Returns the end of the block that begins here; 0: none does. */
static uint64_t block_end(const struct arenas *a, uint64_t start)
{
	struct arena_probe p;
	for (size_t i = 0; i < a->count; i++) {
		const struct inside *in = &a->all[i];
		uint32_t chunk = atomic_load(&in->header.probes);
		for (uint32_t k = 0;
		     k < inside_probe_count(in) && inside_next_probe(in, k, &chunk, &p); k++)
			if (p.block == start && p.block_size)
				return start + p.block_size;
	}
	return 0;
}

bool left_has_islands(pid_t pid, uint64_t start, uint64_t end)
{
	struct arenas a = {0};
	err_free(find_arenas(pid, 0, &a));
	for (uint64_t next; start < end;
	     start = next) { /* those beside each other are listed as one */
		next = block_end(&a, start);
		if (next <= start)
			break;
	}
	close_arenas(&a);
	return start == end;
}
