/* SPDX-License-Identifier: Apache-2.0 */
#include "library/library.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"
#include "library/emulated.h"
#include "library/internal.h"
#include "library/returns.h"
#include "process/backing.h"
#include "process/maps.h"
#include "process/reach.h"
#include "process/registers.h"
#include "process/runtime.h"
#include "process/space.h"

#define ALIGNMENT 64u
#define LIST_MAX 65536u /* executable mappings of a process */
#define YOUNG_NS (3600 * 1000000000ull)
#define UNASKED_NS 1000000000ull
/* Limit for an inflated section of a file, in bytes, if this process must stay small. */
#define INFLATED_MAX (UINT64_C(4) << 20)

static const struct recipe no_recipe; /* RECIPE_NONE */
const struct table library_no_table = {.rules = &no_recipe, .rule_count = 1};

/* ---- the tables file ---- */

static struct err *make_file(struct library *l)
{
	char name[32];
	l->file = memfd_create("culprit-tables", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (l->file < 0 || ftruncate(l->file, (off_t)LIBRARY_SIZE) ||
	    fcntl(l->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return err_errno("cannot make shared memory for unwind tables");
	fchmod(l->file, 0444);
	snprintf(name, sizeof name, "/proc/self/fd/%d", l->file);
	l->shared = open(name, O_RDONLY | O_CLOEXEC);
	if (l->shared < 0)
		return err_errno("%s: cannot open", name);
	void *bytes = mmap(NULL, LIBRARY_SIZE, PROT_READ, MAP_SHARED, l->file, 0);
	if (bytes == MAP_FAILED)
		return err_errno("cannot map the memory of unwind tables");
	l->bytes = bytes;
	l->used = ALIGNMENT; /* place 0 means: none */
	return NULL;
}

/* Appends two pieces, one behind the other. Returns their offset; 0 if there is no room. */
uint64_t library_append(struct library *l, const void *head, size_t head_size, const void *bytes,
			size_t size)
{
	uint64_t place = (l->used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (size > LIBRARY_SIZE || head_size + size > LIBRARY_SIZE - place)
		return 0;
	uint64_t at = place;
	for (int piece = 0; piece < 2; piece++) {
		const char *from = piece ? bytes : head;
		size_t left = piece ? size : head_size;
		while (left) {
			ssize_t done = pwrite(l->file, from, left, (off_t)at);
			if (done <= 0 && errno != EINTR)
				return 0;
			if (done <= 0)
				continue;
			from += done;
			at += (uint64_t)done;
			left -= (size_t)done;
		}
	}
	l->used = at;
	return place;
}

/* ---- modules ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	for (; size >= 8; size -= 8, at += 8) {
		uint64_t word;
		memcpy(&word, at, sizeof word);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	for (; size; size--)
		hash = (hash ^ *at++) * 0x100000001b3u;
	return hash ^ hash >> 32;
}

static uint64_t hash_file(const struct map *map)
{
	return hash_bytes(map->device * 31 + map->inode, map->path, strlen(map->path));
}

/* Finds the module of a mapping; newer modules come first. If it is not known any more when the file was
   written, the newest with the same numbers and name is taken. Not for a deleted file: its numbers and
   name may be those of another file by now. */
static struct library_module *find_module(const struct library *l, const struct map *map,
					  uint64_t changed)
{
	struct library_module *m = l->by_file[hash_file(map) % BUCKETS];
	while (m &&
	       (m->inode != map->inode || m->device != map->device ||
		((changed || map->deleted) && m->changed != changed) || strcmp(m->path, map->path)))
		m = m->chain;
	return m;
}

void library_free_module(struct library_module *m)
{
	if (!m)
		return;
	free(m->path);
	free(m->segments);
	free(m->problem);
	free(m->here);
	if (m->names >= 0)
		close(m->names);
	module_table_free(&m->private_table);
	free(m);
}

/* Round-robin, so that an id that was given back is not used again soon. */
static uint32_t find_freed(struct library *l)
{
	do
		l->cursor = l->cursor + 1 < l->module_count ? l->cursor + 1 : 0;
	while (l->modules[l->cursor]);
	l->freed--;
	return l->cursor;
}

/* Gives the module an id; none if there are too many. False if out of memory. */
static bool keep_module(struct library *l, struct library_module *m)
{
	if (l->module_count >= l->module_limit && !l->freed)
		return true; /* its id stays 0 */
	if (l->module_count < l->module_limit && l->module_count == l->module_room) {
		uint32_t room = l->module_room ? l->module_room * 2 : 64;
		struct library_module **more = reallocarray(l->modules, room, sizeof *more);
		if (!more)
			return false;
		l->modules = more;
		l->module_room = room;
	}
	uint32_t at = l->module_count < l->module_limit ? l->module_count++ : find_freed(l);
	l->modules[at] = m;
	m->id = at + 1;
	l->unswept++;
	return true;
}

static void learn_image(struct library_module *m, struct image *image)
{
	const struct image_segment *segments;
	size_t count = image_segments(image, &segments);
	m->segments = reallocarray(NULL, count ? count : 1, sizeof *m->segments);
	if (m->segments) {
		memcpy(m->segments, segments, count * sizeof *segments);
		m->segment_count = count;
	}
	image_build_id_hex(image, m->build_id);
	/* Looking for it in all files would take a while. */
	if (!strstr(path_file(m->path), "python") || !python_in_file(image, &m->python))
		m->python.version = 0;
	m->go = image_section(image, ".go.buildinfo") || image_section(image, ".note.go.buildid");
}

/* A file that was written a short time ago may soon be gone: perhaps somebody builds or tries a program. */
static bool is_young(uint64_t changed)
{
	return changed && changed + YOUNG_NS > clock_ns(CLOCK_REALTIME);
}

static bool is_ready(const struct library_module *m)
{
	return m->id && m->state != LIBRARY_DROPPED;
}

/* The module of an old file that was checked a moment ago. Then it is not checked again. */
static struct library_module *find_checked(const struct library *l, const struct map *map,
					   uint64_t now)
{
	struct library_module *m = l->background && !map->deleted ? find_module(l, map, 0) : NULL;
	bool same = m && m->changed && m->checked_ns && now - m->checked_ns < l->unasked_ns &&
		    !is_young(m->changed);
	return same && is_ready(m) && !later_is_due(m) ? m : NULL;
}

/* Cuts a mapping that was noted to the part that is code. A file is first mapped as a whole. Then the
   parts that are not code are mapped again or unmapped, and there are no records of that. */
static void cut_to_code(const struct library_module *m, struct map *map)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), size = map->end - map->start;
	uint64_t from = UINT64_MAX, to = 0; /* offsets in the file */
	for (size_t i = 0; i < m->segment_count; i++) {
		const struct image_segment *s = &m->segments[i];
		uint64_t begin = s->offset / page * page;
		uint64_t end = (s->offset + s->file_size + page - 1) / page * page;
		if (!s->executable || begin >= map->offset + size || end <= map->offset)
			continue;
		from = begin < from ? begin : from;
		to = end > to ? end : to;
	}
	if (from >= to)
		return;
	if (to < map->offset + size)
		map->end = map->start + (to - map->offset);
	if (from > map->offset) {
		map->start += from - map->offset;
		map->offset = from;
	}
}

bool library_knows(const struct library *l, struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++) {
		struct map *map = &maps->items[i];
		const struct library_module *m = find_module(l, map, 0);
		if (!m || !is_ready(m))
			return false;
		if (map->path[0] == '/')
			cut_to_code(m, map);
	}
	return true;
}

/* Finds the path by which the module can be found later, when its functions are named. The process may be
   in a namespace, or below a root, of its own; and its file may be deleted. */
static void learn_path(struct library_module *m, pid_t task, const struct map *map)
{
	char *path = backing_path(task, map);
	m->fleeting = !path || is_young(m->changed);
	if (path && strcmp(path, m->path) != 0)
		m->here = path;
	else
		free(path);
}

struct fresh *library_add_fresh(struct library *l, struct library_module *m)
{
	struct fresh_list *fresh = &l->pending;
	if (!ARRAY_ROOM(fresh->items, fresh->count, fresh->room))
		return NULL;
	struct fresh *f = &fresh->items[fresh->count++];
	*f = (struct fresh){.module = m, .names = -1};
	m->state = LIBRARY_PENDING;
	return f;
}

/* If other processes make the large tables, reading the file must not take much memory here either. */
static struct err *open_image(const struct library *l, pid_t task, const struct maps *maps,
			      size_t index, struct image **out)
{
	struct err *e = emulated_is_sigreturn(&maps->items[index])
				? emulated_open_sigreturn(task, &maps->items[index], out)
				: backing_open(task, maps, index, out);
	if (!e && l->maker.program)
		image_bound(*out, INFLATED_MAX);
	return e;
}

/* Keeps what the file tells about the module. If the file did not answer in time, it is tried again later. */
static void learn(const struct library *l, pid_t task, const struct map *map,
		  struct library_module *m, struct image *image, const struct err *e)
{
	free(m->problem);
	m->problem = e ? strdup(err_text(e)) : NULL;
	if (e && reach_is_paused(task))
		m->again_ns = now_ns() + LIBRARY_AGAIN_NS;
	if (e)
		return;
	learn_image(m, image);
	if (l->returns)
		m->returns = returns_in_file(m->path, image, m->go);
	if (l->background && map->path[0] == '/')
		learn_path(m, task, map);
}

static struct err *add_module(struct library *l, pid_t task, const struct maps *maps, size_t index,
			      uint64_t changed, struct library_module **out)
{
	const struct map *map = &maps->items[index];
	struct library_module *m = calloc(1, sizeof *m);
	if (m) {
		m->path = strdup(map->path);
		m->names = -1;
	}
	struct fresh *f = m && m->path ? library_add_fresh(l, m) : NULL;
	if (!f || !keep_module(l, m)) {
		if (f)
			l->pending.count--;
		library_free_module(m);
		return err_new("out of memory");
	}
	m->device = map->device;
	m->inode = map->inode;
	m->changed = changed;
	m->table = library_no_table;
	m->agent = (m->inode == l->agent_inode && m->device == l->agent_device && m->inode) ||
		   !strcmp(m->path, l->agent);
	struct err *e = open_image(l, task, maps, index, &f->image);
	learn(l, task, map, m, f->image, e);
	err_free(e);
	struct library_module **bucket = &l->by_file[hash_file(map) % BUCKETS];
	m->chain = *bucket;
	*bucket = m;
	*out = m;
	return NULL;
}

/* Opens a module again: its table was freed when nobody used it, or could not be made before. */
static void renew(struct library *l, pid_t task, const struct maps *maps, size_t index,
		  struct library_module *m)
{
	struct image *image;
	struct err *e = open_image(l, task, maps, index, &image);
	if (!m->segment_count)
		learn(l, task, &maps->items[index], m, image, e);
	if (!e && !m->id && m->state != LIBRARY_PENDING)
		keep_module(l, m); /* there were too many modules when it came */
	struct fresh *f = e || m->state == LIBRARY_PENDING ? NULL : library_add_fresh(l, m);
	if (f)
		f->image = image;
	else if (!e)
		image_close(image);
	err_free(e);
}

/* Whether a program was started from a file in memory. Usually such memory holds code of a JIT compiler,
   which is no ELF file. */
static bool is_program(pid_t task, const struct maps *maps, size_t index)
{
	const struct map *map = &maps->items[index];
	char magic[SELFMAG];
	uint64_t start = 0;
	for (size_t i = index + 1; i && !start; i--)
		if (!maps->items[i - 1].offset && maps->items[i - 1].inode == map->inode)
			start = maps->items[i - 1].start;
	return task > 0 && start && reach_bytes(task, start, magic, sizeof magic) &&
	       !memcmp(magic, ELFMAG, SELFMAG);
}

/* Finds the modules of a process, and opens those that are new. */
static struct err *open_new(struct library *l, pid_t task, const struct maps *maps,
			    struct library_module **found)
{
	struct err *e = NULL;
	uint64_t now = now_ns();
	for (size_t i = 0; !e && i < maps->count; i++) {
		const struct map *map = &maps->items[i];
		found[i] = NULL;
		if (!(space_is_module(map) || emulated_is_sigreturn(map)) ||
		    !strncmp(map->path, "/dev/", 5) ||
		    ((!strncmp(map->path, "/memfd:", 7) || runtime_is_saved_code(map->path)) &&
		     !is_program(task, maps, i)) ||
		    !strncmp(map->path, "/SYSV", 5))
			continue;
		if ((found[i] = find_checked(l, map, now)))
			continue;
		uint64_t changed = backing_changed(task, map);
		found[i] = find_module(l, map, changed);
		if (!found[i])
			e = add_module(l, task, maps, i, changed, &found[i]);
		else if (found[i]->state == LIBRARY_DROPPED || (!found[i]->id && l->freed) ||
			 later_is_due(found[i]))
			renew(l, task, maps, i, found[i]);
		if (!e)
			found[i]->checked_ns = now;
	}
	return e;
}

/* ---- lists ---- */

static bool same_file(const struct wire_module *a, const struct wire_module *b)
{
	return a->end == b->start && a->id == b->id && a->flags == b->flags && a->bias == b->bias &&
	       a->table == b->table;
}

static struct wire_module describe(const struct library_module *m, const struct map *map)
{
	struct wire_module w = {.start = map->start, .end = map->end};
	uint64_t bias;
	w.id = m->id;
	w.flags = (m->agent ? WIRE_MODULE_AGENT : 0) | m->returns;
	w.bias = map->start - map->offset;
	if (space_bias(m->segments, m->segment_count, map, &bias)) {
		w.bias = bias;
		w.table = m->size ? m->place : 0;
		w.table_size = m->size;
	}
	return w;
}

/* An entry for anonymous code. It is code of a module that was copied to large pages, or it was made at
   run time. */
static struct wire_module describe_other(const struct library *l, const struct map *map,
					 const struct runtime *runtime,
					 const struct wire_module *before, size_t count)
{
	uint32_t flags = runtime->bare  ? WIRE_MODULE_BARE
			 : runtime->top ? WIRE_MODULE_JIT | WIRE_MODULE_TOP
					: WIRE_MODULE_JIT;
	for (size_t i = count; !map->path[0] && i; i--) {
		const struct wire_module *w = &before[i - 1];
		const struct library_module *m = library_module(l, w->id);
		if (m && w->table_size &&
		    space_holds(m->segments, m->segment_count, w->bias, map)) {
			struct wire_module copy = *w;
			copy.start = map->start;
			copy.end = map->end;
			return copy;
		}
	}
	return (struct wire_module){.start = map->start,
				    .end = map->end,
				    .flags = flags | (map->readable ? WIRE_MODULE_READ : 0)};
}

/* Fills the list. `found` has the module of each mapping. Modules are described first, because a copy of
   code may lie before what is left of the module's own mappings. */
static size_t fill_list(const struct library *l, const struct maps *maps,
			const struct runtime *runtime, struct library_module *const *found,
			struct wire_module *out)
{
	size_t known = 0, used = 0;
	struct wire_module *modules = reallocarray(NULL, maps->count + 1, sizeof *modules);
	if (!modules)
		return 0;
	for (size_t i = 0; i < maps->count; i++)
		if (found[i])
			modules[known++] = describe(found[i], &maps->items[i]);
	for (size_t i = 0, k = 0; i < maps->count && used < LIST_MAX; i++) {
		const struct map *map = &maps->items[i];
		bool kernels = map->start >> 63; /* [vsyscall] */
		if (!map->executable || (kernels && !found[i]))
			continue;
		struct wire_module w = found[i] ? modules[k++]
						: describe_other(l, map, runtime, modules, known);
		if (w.start >= w.end || (used && w.start < out[used - 1].end))
			continue;
		if (used && same_file(&out[used - 1], &w))
			out[used - 1].end = w.end;
		else
			out[used++] = w;
	}
	free(modules);
	return used;
}

/* The shared list with these modules; if there is none yet, it is added to the tables file. Takes over
   `modules`. NULL if there is no room. */
static struct library_list *share_list(struct library *l, struct wire_module *modules, size_t count)
{
	size_t size = count * sizeof *modules;
	uint64_t hash = hash_bytes(count, modules, size);
	struct library_list **bucket = &l->by_contents[hash % BUCKETS], *list;
	for (list = *bucket; list; list = list->chain)
		if (list->hash == hash && list->count == count &&
		    !memcmp(list->modules, modules, size)) {
			free(modules);
			return list;
		}
	const struct wire_list head = {.count = (uint32_t)count};
	list = calloc(1, sizeof *list);
	uint64_t place = !list           ? 0
			 : l->background ? 1
					 : library_append(l, &head, sizeof head, modules, size);
	if (!place) {
		free(list);
		free(modules);
		return NULL;
	}
	struct wire_module *fitting = reallocarray(modules, count + 1, sizeof *modules);
	*list = (struct library_list){.chain = *bucket,
				      .hash = hash,
				      .place = place,
				      .count = (uint32_t)count,
				      .modules = fitting ? fitting : modules};
	*bucket = list;
	l->list_count++;
	return list;
}

static const struct library_module *find_executable(pid_t task, const struct maps *maps,
						    struct library_module *const *found)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d/exe", (int)task);
	if (reach_stat(path, &st))
		return NULL;
	for (size_t i = 0; i < maps->count; i++)
		if (found[i] && maps->items[i].inode == st.st_ino &&
		    (maps->items[i].device == st.st_dev || maps->items[i].device >> 8 == 0))
			return found[i];
	return NULL;
}

/* ---- looking at a process ---- */

struct library_view {
	pid_t task;
	uint16_t machine;
	struct maps maps;
	struct library_module **found; /* for each mapping, or NULL */
	const struct library_list *list;
};

/* The list of a process with these modules. Their tables are made first; in the background that may take a
   while. */
static struct err *make_list(struct library *l, const struct maps *maps,
			     const struct runtime *runtime, struct library_module *const *found,
			     bool unready_too, struct library_look *out)
{
	if (!later_build(l, found, maps->count, unready_too)) {
		out->state = LIBRARY_LOOK_WAITING;
		out->builds = l->builds;
		return NULL;
	}
	struct wire_module *modules = calloc(maps->count + 1, sizeof *modules);
	if (!modules)
		return err_new("out of memory");
	struct library_list *list = share_list(l, modules,
					       fill_list(l, maps, runtime, found, modules));
	if (list)
		list->runtime = runtime;
	out->list = list;
	return list ? NULL : err_new("the memory for unwind tables is full");
}

static struct err *look_at(struct library *l, const struct library_question *q, pid_t task,
			   uint16_t machine, const struct maps *maps, struct library_look *out)
{
	struct library_module **found = calloc(maps->count + 1, sizeof(struct library_module *));
	struct err *e = found ? open_new(l, task, maps, found) : err_new("out of memory");
	if (!e)
		e = make_list(l, maps, runtime_find(maps, task, machine), found, q->unready_too,
			      out);
	if (!e && q->executable)
		out->executable = find_executable(task, maps, found);
	free(found);
	return e;
}

/* An emulator may also run programs of its own CPU. Then our agent is mapped, but not executable. */
static bool is_emulated(const struct library *l, const struct maps *maps)
{
	bool there = false;
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *map = &maps->items[i];
		if (!l->agent_inode || map->inode != l->agent_inode ||
		    map->device != l->agent_device)
			continue;
		if (map->executable)
			return false;
		there = true;
	}
	return there;
}

static struct err *read_maps(const struct library *l, pid_t pid, uint16_t machine, struct maps *out)
{
	struct err *e = maps_read(pid, out);
	if (!e && (machine != native_machine || is_emulated(l, out)))
		e = emulated_maps(out->task, machine, out);
	return e;
}

struct err *library_look(struct library *l, const struct library_question *q,
			 struct library_look *out)
{
	uint16_t machine = q->machine ? q->machine : native_machine;
	struct maps maps;
	*out = (struct library_look){.state = LIBRARY_LOOK_READY};
	if (q->maps)
		return look_at(l, q, q->pid, machine, q->maps, out);
	struct err *e = read_maps(l, q->pid, machine, &maps);
	if (e)
		return e;
	e = look_at(l, q, maps.task, machine, &maps, out);
	maps_free(&maps);
	return e;
}

struct err *library_view_open(struct library *l, pid_t pid, uint16_t machine,
			      struct library_view **out)
{
	struct library_view *v = calloc(1, sizeof *v);
	struct err *e = v ? read_maps(l, pid, machine, &v->maps) : err_new("out of memory");
	*out = NULL;
	if (e) {
		free(v);
		return e;
	}
	v->task = v->maps.task;
	v->machine = machine;
	v->found = calloc(v->maps.count + 1, sizeof(struct library_module *));
	e = v->found ? open_new(l, v->task, &v->maps, v->found) : err_new("out of memory");
	if (e)
		library_view_free(v);
	else
		*out = v;
	return e;
}

const struct library_list *library_view_list(struct library *l, struct library_view *v)
{
	struct library_look look = {0};
	if (!v->list) {
		err_free(make_list(l, &v->maps, runtime_find(&v->maps, v->task, v->machine),
				   v->found, false, &look));
		v->list = look.list;
	}
	return v->list;
}

bool library_view_is_same(const struct library_view *a, const struct library_view *b)
{
	size_t count = a->maps.count;
	if (count != b->maps.count || memcmp(a->found, b->found, count * sizeof *a->found))
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct map *x = &a->maps.items[i], *y = &b->maps.items[i];
		if (x->executable != y->executable ||
		    (x->executable && (x->start != y->start || x->end != y->end)))
			return false;
	}
	return true;
}

void library_view_free(struct library_view *v)
{
	if (!v)
		return;
	maps_free(&v->maps);
	free(v->found);
	free(v);
}

const struct library_list *library_list(const struct library *l, uint64_t place)
{
	for (size_t i = 0; place && i < BUCKETS; i++)
		for (const struct library_list *at = l->by_contents[i]; at; at = at->chain)
			if (at->place == place)
				return at;
	return NULL;
}

struct walk_space library_walk(struct library *l, const struct library_list *const_list)
{
	struct library_list *list = (struct library_list *)const_list;
	if (!list->walk) {
		list->walk = reallocarray(NULL, (size_t)list->count + 1, sizeof *list->walk);
		for (uint32_t i = 0; list->walk && i < list->count; i++) {
			const struct wire_module *w = &list->modules[i];
			const struct library_module *m = library_module(l, w->id);
			list->walk[i] = (struct walk_module){
				.start = w->start,
				.end = w->end,
				.bias = w->bias,
				.id = w->id,
				.flags = w->flags,
				.table = m && w->table_size ? m->table : library_no_table,
			};
		}
	}
	return (struct walk_space){list->walk, list->walk ? list->count : 0};
}

const struct library_module *library_module(const struct library *l, uint32_t id)
{
	return id && id <= l->module_count ? l->modules[id - 1] : NULL;
}

void library_set_meanwhile(struct library *l, library_meanwhile *meanwhile, void *context)
{
	l->meanwhile = meanwhile;
	l->context = context;
}

bool library_is_busy(const struct library *l)
{
	return l->busy;
}

int library_file(const struct library *l)
{
	return l->shared;
}

struct err *library_open(enum recipes_mode mode, bool tables, const char *agent,
			 struct library **out)
{
	struct stat st;
	struct library *l = calloc(1, sizeof *l);
	*out = l;
	if (!l)
		return err_new("out of memory");
	l->mode = mode;
	l->tables = tables;
	l->module_limit = WIRE_MODULE_MAX - 1;
	l->unasked_ns = UNASKED_NS;
	l->file = l->shared = l->built = l->maker.stop = -1;
	l->agent = strdup(agent ? agent : "");
	if (agent && !stat(agent, &st)) {
		l->agent_device = st.st_dev;
		l->agent_inode = st.st_ino;
	}
	struct err *e = l->agent ? make_file(l) : err_new("out of memory");
	if (e) {
		library_close(l);
		*out = NULL;
	}
	return e;
}

void library_count_returns(struct library *l)
{
	l->returns = true;
}

void library_close(struct library *l)
{
	if (!l || !later_close(l))
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct library_module *m = l->by_file[i], *next; m; m = next) {
			next = m->chain;
			library_free_module(m);
		}
		for (struct library_list *at = l->by_contents[i], *next; at; at = next) {
			next = at->chain;
			free(at->modules);
			free(at->walk);
			free(at);
		}
	}
	for (size_t i = 0; i < l->pending.count; i++)
		image_close(l->pending.items[i].image);
	free(l->pending.items);
	if (l->bytes)
		munmap((void *)l->bytes, LIBRARY_SIZE);
	if (l->shared >= 0)
		close(l->shared);
	if (l->file >= 0)
		close(l->file);
	free(l->modules);
	free(l->agent);
	free(l);
}
