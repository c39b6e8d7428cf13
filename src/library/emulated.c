/* SPDX-License-Identifier: Apache-2.0 */
#include "library/emulated.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "isa/insn.h"
#include "process/backing.h"
#include "process/maps.h"
#include "process/reach.h"
#include "recipes/shapes.h"

#define PAGE 4096u
#define CUTS_MAX 64 /* segments of code that are looked at in one file */

/* The parts of a file that are code, in whole pages. */
struct cuts {
	uint64_t start[CUTS_MAX], end[CUTS_MAX];
	size_t count;
};

static bool is_same_file(const struct map *a, const struct map *b)
{
	return a->inode == b->inode && a->device == b->device && !strcmp(a->path, b->path);
}

static bool may_be_code(const struct map *map)
{
	return map->path[0] == '/' && map->readable && !map->writable && !map->executable &&
	       strncmp(map->path, "/memfd:", 7) != 0 && strncmp(map->path, "/dev/", 5) != 0;
}

/* Finds the code of a file. There is none if the file is for another machine. */
static void find_cuts(pid_t pid, const struct maps *maps, size_t index, uint16_t machine,
		      struct cuts *out)
{
	struct image *image;
	const struct image_segment *segments;
	struct err *e = backing_open(pid, maps, index, &image);
	out->count = 0;
	if (e) { /* not an ELF file, as many others */
		err_free(e);
		return;
	}
	size_t count = image_machine(image) == machine ? image_segments(image, &segments) : 0;
	for (size_t i = 0; i < count && out->count < CUTS_MAX; i++) {
		const struct image_segment *s = &segments[i];
		uint64_t start = s->offset / PAGE * PAGE, end = s->offset + s->file_size;
		if (!s->executable || !s->file_size || end < s->offset || end > UINT64_MAX - PAGE)
			continue;
		out->start[out->count] = start;
		out->end[out->count++] = (end + PAGE - 1) / PAGE * PAGE;
	}
	image_close(image);
}

/* The offset up to which everything from `offset` on is code (*code), or is not. */
static uint64_t same_until(const struct cuts *cuts, uint64_t offset, bool *code)
{
	uint64_t until = UINT64_MAX;
	*code = false;
	for (size_t i = 0; i < cuts->count; i++) {
		bool inside = offset >= cuts->start[i] && offset < cuts->end[i];
		uint64_t next = inside                    ? cuts->end[i]
				: offset < cuts->start[i] ? cuts->start[i]
							  : UINT64_MAX;
		*code |= inside;
		until = next < until ? next : until;
	}
	return until;
}

/* Cuts a mapping into pieces that are all code or no code. `out` must have room for the largest
   possible number. */
static size_t cut(const struct map *map, const struct cuts *cuts, struct map *out)
{
	struct map rest = *map;
	size_t count = 0;
	while (rest.start < rest.end) {
		struct map *piece = &out[count++];
		uint64_t size = same_until(cuts, rest.offset, &rest.executable) - rest.offset;
		*piece = rest;
		if (count > (size_t)2 * CUTS_MAX || size >= rest.end - rest.start)
			break;
		piece->end = piece->start + size;
		rest.start += size;
		rest.offset += size;
	}
	return count;
}

/* ---- the page of the trampoline ---- */

#define SIGRETURN "[sigreturn]"
#define PAGES_MAX 16 /* pages of anonymous memory that are looked at */

static bool read_memory(pid_t pid, uint64_t address, void *bytes, size_t size)
{
	return pid > 0 && reach_bytes(pid, address, bytes, size);
}

bool emulated_is_sigreturn(const struct map *map)
{
	return map->executable && !strcmp(map->path, SIGRETURN);
}

/* Looks for the page in anonymous memory that is not writable: a page with the trampoline and zeroes after
   it. Returns its address, or 0. */
static uint64_t find_sigreturn(pid_t pid, uint16_t machine, const struct map *map)
{
	static const uint8_t zeroes[PAGE];
	uint8_t page[PAGE];
	if (map->path[0] || map->inode || !map->readable || map->writable)
		return 0;
	for (uint64_t at = map->start; at < map->end && at < map->start + PAGES_MAX * PAGE;
	     at += PAGE) {
		if (!read_memory(pid, at, page, sizeof page))
			return 0;
		unsigned length = shapes_trampoline(machine, page, sizeof page);
		if (length && !memcmp(page + length, zeroes, sizeof page - length))
			return at;
	}
	return 0;
}

/* Handlers return to the first instruction of the page, and a walk looks up the address before a return
   address. So the module begins one instruction earlier, unless other code is there. */
static struct map sigreturn_page(uint64_t page, uint16_t machine, const struct map *before)
{
	unsigned unit = isa_for_machine(machine)->insn_min;
	bool taken = before && before->executable && before->end == page;
	return (struct map){
		.start = taken ? page : page - unit,
		.end = page + PAGE,
		.offset = taken ? PAGE + unit : PAGE, /* as in emulated_open_sigreturn */
		.inode = machine,                     /* one module for each machine */
		.readable = true,
		.executable = true,
		.path = SIGRETURN,
	};
}

struct err *emulated_open_sigreturn(pid_t pid, const struct map *map, struct image **out)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		uint8_t rest[PAGE - sizeof(Elf64_Ehdr) - sizeof(Elf64_Phdr)];
		uint8_t code[2 * PAGE]; /* an instruction that is never executed, then the page */
	} file = {0};
	const struct isa *isa = isa_for_machine((uint16_t)map->inode);
	*out = NULL;
	if (!isa || !read_memory(pid, map->end - PAGE, file.code + isa->insn_min, PAGE))
		return err_new("%s: cannot read the memory of process %d", map->path, (int)pid);
	memcpy(file.header.e_ident, ELFMAG, SELFMAG);
	file.header.e_ident[EI_CLASS] = ELFCLASS64;
	file.header.e_ident[EI_DATA] = ELFDATA2LSB;
	file.header.e_ident[EI_VERSION] = EV_CURRENT;
	file.header.e_type = ET_DYN;
	file.header.e_machine = (uint16_t)map->inode;
	file.header.e_version = EV_CURRENT;
	file.header.e_ehsize = sizeof file.header;
	file.header.e_phoff = sizeof file.header;
	file.header.e_phentsize = sizeof file.segment;
	file.header.e_phnum = 1;
	file.segment = (Elf64_Phdr){.p_type = PT_LOAD,
				    .p_flags = PF_R | PF_X,
				    .p_offset = PAGE,
				    .p_vaddr = PAGE,
				    .p_filesz = PAGE + isa->insn_min,
				    .p_memsz = PAGE + isa->insn_min,
				    .p_align = PAGE};
	return image_open_memory(&file, sizeof file, map->path, out);
}

struct err *emulated_maps(pid_t pid, uint16_t machine, struct maps *maps)
{
	struct cuts cuts = {.count = 0};
	/* A mapping of the file that `cuts` is for. The mappings of a file are neighbours. */
	const struct map *known = NULL;
	size_t used = 0;
	struct map *items = NULL;
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *map = &maps->items[i];
		struct map *more = reallocarray(items, used + 2 * CUTS_MAX + 2, sizeof *items);
		if (!more) {
			free(items);
			maps_free(maps);
			return err_new("out of memory");
		}
		items = more;
		if (!may_be_code(map)) {
			uint64_t page = find_sigreturn(pid, machine, map);
			const struct map *before = used ? &items[used - 1] : NULL;
			items[used] = page ? sigreturn_page(page, machine, before) : *map;
			items[used++].executable = page != 0;
			continue;
		}
		if (!known || !is_same_file(known, map))
			find_cuts(pid, maps, i, machine, &cuts);
		known = map;
		used += cut(map, &cuts, items + used);
	}
	free(maps->items);
	maps->items = items;
	maps->count = used;
	return NULL;
}
