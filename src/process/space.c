/* SPDX-License-Identifier: Apache-2.0 */
#include "process/space.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/err.h"
#include "base/parallel.h"
#include "image/image.h"
#include "process/backing.h"
#include "process/runtime.h"
#include "process/status.h"

/* The largest page size. Mappings begin and end at pages. */
#define PAGE_MAX 65536u

static const struct recipe no_recipe; /* RECIPE_NONE */
static const struct table no_table = {.rules = &no_recipe, .rule_count = 1};

bool space_bias(const struct image_segment *segments, size_t count, const struct map *map,
		uint64_t *bias)
{
	uint64_t size = map->end - map->start;
	for (size_t i = 0; i < count; i++) {
		const struct image_segment *s = &segments[i];
		uint64_t slack = s->offset % PAGE_MAX; /* the kernel maps whole pages */
		if (!s->executable || map->offset + size <= s->offset ||
		    map->offset >= s->offset + s->file_size || map->offset + slack < s->offset)
			continue;
		*bias = map->start - map->offset - (s->address - s->offset);
		return true;
	}
	return false;
}

bool space_holds(const struct image_segment *segments, size_t count, uint64_t bias,
		 const struct map *map)
{
	uint64_t size = map->end - map->start;
	for (size_t i = 0; i < count; i++)
		if (segments[i].executable && map->start >= bias + segments[i].address &&
		    size <= segments[i].size &&
		    map->start - bias - segments[i].address <= segments[i].size - size)
			return true;
	return false;
}

static bool find_bias(const struct image *image, const struct map *map, uint64_t *bias)
{
	const struct image_segment *segments;
	size_t count = image_segments(image, &segments);
	return space_bias(segments, count, map, bias);
}

bool space_is_module(const struct map *map)
{
	return map->executable && (map->path[0] == '/' || !strcmp(map->path, "[vdso]"));
}

static bool belongs(const struct space_module *m, const struct map *map)
{
	uint64_t bias;
	if (m->inode != map->inode || m->device != map->device || strcmp(m->path, map->path))
		return false;
	return m->image ? find_bias(m->image, map, &bias) && bias == m->bias : true;
}

/* Adds the module of a mapping. Its table is built later. */
static struct err *add_module(pid_t pid, struct space *space, const struct maps *maps, size_t index)
{
	const struct map *map = &maps->items[index];
	struct space_module *more = reallocarray(space->modules, space->module_count + 1,
						 sizeof *more);
	char *path = strdup(map->path);
	if (more)
		space->modules = more;
	if (!more || !path) {
		free(path);
		return err_new("out of memory");
	}
	struct space_module *m = &more[space->module_count++];
	*m = (struct space_module){.path = path, .device = map->device, .inode = map->inode};
	m->table.table = no_table;
	struct err *e = backing_open(pid, maps, index, &m->image);
	if (!e && !find_bias(m->image, map, &m->bias)) {
		image_close(m->image);
		m->image = NULL;
		e = err_new("%s: an executable mapping that is no code of the file", map->path);
	}
	if (e)
		m->problem = strdup(err_text(e));
	err_free(e);
	return NULL;
}

struct table_work {
	struct space_module *modules;
	enum recipes_mode mode;
};

static void build_table(void *context, size_t index)
{
	const struct table_work *work = context;
	struct space_module *m = &work->modules[index];
	if (!m->image)
		return;
	struct err *e = cache_table(m->image, work->mode, &m->table);
	if (e) {
		m->problem = strdup(err_text(e));
		m->table = (struct module_table){.table = no_table};
		err_free(e);
	}
}

/* Some programs copy their code to large pages. Such memory is anonymous, but it is still the
   module's code. */
static const struct space_module *find_copied(const struct space *space, const struct map *map)
{
	if (!map->executable || map->path[0])
		return NULL;
	for (size_t i = 0; i < space->module_count; i++) {
		const struct space_module *m = &space->modules[i];
		const struct image_segment *segments = NULL;
		size_t count = m->image ? image_segments(m->image, &segments) : 0;
		if (space_holds(segments, count, m->bias, map))
			return m;
	}
	return NULL;
}

static const struct space_module *find_module(const struct space *space, const struct map *map)
{
	if (!space_is_module(map))
		return find_copied(space, map);
	for (size_t i = 0; i < space->module_count; i++)
		if (belongs(&space->modules[i], map))
			return &space->modules[i];
	return NULL;
}

/* Builds `walk` again from the maps. */
static struct err *list_code(struct space *space)
{
	size_t count = space->maps.count;
	struct walk_module *list = malloc((count + 1) * sizeof *list);
	uint32_t *module_of = malloc((count + 1) * sizeof *module_of);
	if (!list || !module_of) {
		free(list);
		free(module_of);
		return err_new("out of memory");
	}
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		const struct map *map = &space->maps.items[i];
		const struct space_module *m = find_module(space, map);
		if (!m)
			continue;
		module_of[used] = (uint32_t)(m - space->modules);
		list[used++] = (struct walk_module){.start = map->start,
						    .end = map->end,
						    .bias = m->bias,
						    .table = m->table.table};
	}
	free((void *)space->walk.modules);
	free(space->module_of);
	space->walk = (struct walk_space){list, used};
	space->module_of = module_of;
	return NULL;
}

struct err *space_refresh(pid_t pid, enum recipes_mode mode, struct space *space, size_t *added)
{
	struct maps maps;
	size_t before = space->module_count;
	pid_t task = process_task(pid);
	struct err *e = maps_read(pid, &maps);
	*added = 0;
	if (e)
		return e;
	maps_free(&space->maps);
	space->maps = maps;
	space->runtime = runtime_find(&maps, task, space->machine);
	for (size_t i = 0; !e && i < maps.count; i++)
		if (space_is_module(&maps.items[i]) && !find_module(space, &maps.items[i]))
			e = add_module(task, space, &maps, i);
	*added = space->module_count - before;
	struct table_work work = {space->modules + before, mode};
	if (!e)
		parallel_for(*added, build_table, &work);
	return e ? e : list_code(space);
}

/* Reads the ELF machine of the program. An error if it is not a 64-bit program. */
static struct err *read_machine(pid_t pid, uint16_t *machine)
{
	char path[64];
	Elf64_Ehdr header = {0};
	snprintf(path, sizeof path, "/proc/%d/exe", (int)process_task(pid));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		struct err *e = process_refusal(pid);
		return e ? e : process_forbidden(pid, pid);
	}
	ssize_t got = pread(fd, &header, sizeof header, 0);
	close(fd);
	if (got < EI_NIDENT || memcmp(header.e_ident, ELFMAG, SELFMAG))
		return err_new("process %d: its program is no ELF file", (int)pid);
	if (header.e_ident[EI_CLASS] != ELFCLASS64)
		return err_new("process %d runs a 32-bit program: only 64-bit ones are understood",
			       (int)pid);
	*machine = header.e_machine;
	return NULL;
}

struct err *space_open(pid_t pid, enum recipes_mode mode, struct space *out)
{
	size_t added;
	*out = (struct space){0};
	struct err *e = process_refusal(pid);
	if (!e)
		e = read_machine(pid, &out->machine);
	if (!e)
		e = space_refresh(pid, mode, out, &added);
	if (e)
		space_close(out);
	return e;
}

void space_close(struct space *space)
{
	for (size_t i = 0; i < space->module_count; i++) {
		struct space_module *m = &space->modules[i];
		if (m->table.bytes)
			module_table_free(&m->table);
		image_close(m->image);
		free((char *)m->path);
		free((char *)m->problem);
	}
	free(space->modules);
	free((void *)space->walk.modules);
	free(space->module_of);
	maps_free(&space->maps);
	*space = (struct space){0};
}

const struct space_module *space_find(const struct space *space, uint64_t address)
{
	const struct walk_module *found = walk_find_module(&space->walk, address);
	return found ? &space->modules[space->module_of[found - space->walk.modules]] : NULL;
}

const struct map *space_map(const struct space *space, uint64_t address)
{
	size_t at = FIRST_NOT(i, space->maps.count, space->maps.items[i].end <= address);
	const struct map *found = &space->maps.items[at];
	return at < space->maps.count && address >= found->start ? found : NULL;
}
