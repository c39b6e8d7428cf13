/* SPDX-License-Identifier: Apache-2.0 */
#include "process/backing.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "process/maps.h"
#include "process/reach.h"

#define COMPARED 4096
#define REBUILT_MAX (512u << 20)
#define HEADERS_MAX 64

static bool same_file(const struct map *a, const struct map *b)
{
	return a->inode == b->inode && a->device == b->device && !strcmp(a->path, b->path);
}

/* The mapping of the file's first bytes that belongs to the mapping at `index`, or NULL. */
static const struct map *first_mapping(const struct maps *maps, size_t index)
{
	for (size_t i = index + 1; i; i--)
		if (!maps->items[i - 1].offset &&
		    same_file(&maps->items[i - 1], &maps->items[index]))
			return &maps->items[i - 1];
	return NULL;
}

/* Whether the first bytes that the process has in memory are those of the file. */
static bool same_contents(pid_t pid, const struct map *map, int fd)
{
	char memory[COMPARED], file[COMPARED];
	ssize_t got = pread(fd, file, sizeof file, (off_t)map->offset);
	return got > 0 && reach_bytes(pid, map->start, memory, (size_t)got) &&
	       !memcmp(memory, file, (size_t)got);
}

/* On file systems made of layers, the device in the memory map (major number 0) is not the one that stat
   gives. So it is not compared then. */
static bool same_numbers(const struct stat *st, const struct map *map)
{
	return S_ISREG(st->st_mode) && st->st_ino == map->inode &&
	       (st->st_dev == map->device || !major(map->device));
}

/* Opens `path` if it is the mapped file. On file systems made of layers even the inode numbers may differ;
   so the contents are compared, too. */
static int open_same(pid_t pid, const char *path, const struct maps *maps, size_t index)
{
	const struct map *map = &maps->items[index], *first = first_mapping(maps, index);
	struct stat st;
	int fd = reach_open(path, 0, &st);
	if (fd < 0)
		return -1;
	if (S_ISREG(st.st_mode) && (same_numbers(&st, map) ||
				    (!map->deleted && same_contents(pid, first ? first : map, fd))))
		return fd;
	close(fd);
	return -1;
}

/* The path at which the kernel shows the mapped file itself, whatever its name is now. Only root can
   open it. */
static const char *map_file(struct buf *path, pid_t pid, const struct map *map)
{
	buf_clear(path);
	buf_printf(path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, map->start, map->end);
	return buf_text(path);
}

/* The process whose root is used: see PROCESS_BELOW. */
static pid_t some_process(pid_t pid)
{
	return pid < 0 ? -pid : pid;
}

/* The path below a process's root. That process may be another one than the one that has the file mapped. */
static const char *path_there(struct buf *path, pid_t pid, const struct map *map)
{
	buf_clear(path);
	buf_printf(path, "/proc/%d/root%s", (int)some_process(pid), map->path);
	return path->failed ? "" : buf_text(path);
}

static int open_regular(const char *path)
{
	struct stat st;
	int fd = reach_open(path, 0, &st);
	if (fd >= 0 && S_ISREG(st.st_mode))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The file at the path may only look like the mapped one: the process may have mounted it there, and what
   is kept for the real file would be made of it. So the kernel's own link is tried first. */
static int open_there(pid_t pid, const struct maps *maps, size_t index)
{
	const struct map *map = &maps->items[index];
	pid_t alive = pid > 0 ? pid : PROCESS_GONE;
	struct buf path = {0};
	int fd = alive ? open_regular(map_file(&path, pid, map)) : -1;
	if (fd < 0)
		fd = open_same(alive, path_there(&path, pid, map), maps, index);
	if (fd < 0 && alive) {
		buf_clear(&path);
		buf_printf(&path, "/proc/%d/exe", (int)pid);
		fd = open_same(pid, buf_text(&path), maps, index);
	}
	buf_free(&path);
	return fd;
}

static int open_file(pid_t pid, const struct maps *maps, size_t index)
{
	int fd = pid == PROCESS_GONE ? -1 : open_there(pid, maps, index);
	if (fd < 0) /* the process may have ended since its mappings were read */
		fd = open_same(PROCESS_GONE, maps->items[index].path, maps, index);
	return fd;
}

static bool stat_there(pid_t pid, const struct map *map, struct stat *st)
{
	struct buf path = {0};
	bool found = !map->deleted && !reach_stat(path_there(&path, pid, map), st) &&
		     (pid > 0 || same_numbers(st, map));
	if (!found && pid > 0)
		found = !reach_stat(map_file(&path, pid, map), st);
	buf_free(&path);
	return found;
}

uint64_t backing_changed(pid_t pid, const struct map *map)
{
	struct stat st;
	if (map->path[0] != '/')
		return 0;
	if ((pid == PROCESS_GONE || !stat_there(pid, map, &st)) &&
	    (map->deleted || reach_stat(map->path, &st) || !same_numbers(&st, map)))
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
}

static bool is_file(const char *path, const struct stat *wanted)
{
	struct stat st;
	return !reach_stat(path, &st) && st.st_ino == wanted->st_ino && st.st_dev == wanted->st_dev;
}

char *backing_path(pid_t pid, const struct map *map)
{
	char link[64], root[PATH_MAX];
	struct buf path = {0};
	struct stat st;
	bool good = false;
	if (pid != PROCESS_GONE && !map->deleted && !reach_stat(path_there(&path, pid, map), &st) &&
	    same_numbers(&st, map)) {
		snprintf(link, sizeof link, "/proc/%d/root", (int)some_process(pid));
		ssize_t length = readlink(link, root, sizeof root - 1);
		root[length > 0 ? length : 0] = '\0';
		buf_clear(&path);
		buf_printf(&path, "%s%s", strcmp(root, "/") != 0 ? root : "", map->path);
		good = !path.failed && is_file(buf_text(&path), &st);
	} else if (!map->deleted && !reach_stat(map->path, &st) && same_numbers(&st, map)) {
		buf_clear(&path); /* the process has ended */
		buf_puts(&path, map->path);
		good = !path.failed;
	}
	char *out = good ? buf_take(&path) : NULL;
	buf_free(&path);
	return out;
}

static struct err *open_vdso(pid_t pid, const struct map *map, struct image **out)
{
	size_t size = (size_t)(map->end - map->start);
	if (size > 1u << 20)
		return err_new("%s: too large", map->path);
	void *bytes = malloc(size);
	if (!bytes)
		return err_new("out of memory");
	struct err *e = reach_bytes(pid, map->start, bytes, size)
				? image_open_memory(bytes, size, map->path, out)
				: err_new("%s: cannot read the memory of process %d", map->path,
					  (int)pid);
	free(bytes);
	return e;
}

/* Makes addresses relative again that the dynamic linker has made absolute, as they were in the file. */
static void unrelocate(uint8_t *bytes, size_t size, const Elf64_Phdr *dynamic, uint64_t bias,
		       uint64_t end)
{
	Elf64_Dyn entry;
	if (dynamic->p_offset > size || dynamic->p_filesz > size - dynamic->p_offset || !bias)
		return;
	for (uint64_t at = 0; at + sizeof entry <= dynamic->p_filesz; at += sizeof entry) {
		uint8_t *place = bytes + dynamic->p_offset + at;
		memcpy(&entry, place, sizeof entry);
		if (entry.d_un.d_ptr >= bias && entry.d_un.d_ptr - bias < end) {
			entry.d_un.d_ptr -= bias;
			memcpy(place, &entry, sizeof entry);
		}
	}
}

struct rebuilt {
	Elf64_Phdr headers[HEADERS_MAX];
	size_t header_count, size;
	uint64_t bias, end;
};

/* Reads the program headers, and computes how large the file was. */
static bool read_headers(pid_t pid, const struct map *first, Elf64_Ehdr *ehdr, struct rebuilt *r)
{
	bool placed = false;
	if (!reach_bytes(pid, first->start, ehdr, sizeof *ehdr) ||
	    memcmp(ehdr->e_ident, ELFMAG, SELFMAG) || ehdr->e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr->e_phentsize != sizeof *r->headers || ehdr->e_phnum > HEADERS_MAX ||
	    ehdr->e_phoff > first->end - first->start)
		return false;
	r->header_count = ehdr->e_phnum;
	if (!reach_bytes(pid, first->start + ehdr->e_phoff, r->headers,
			 r->header_count * sizeof *r->headers))
		return false;
	for (size_t i = 0; i < r->header_count; i++) {
		const Elf64_Phdr *h = &r->headers[i];
		if (h->p_type != PT_LOAD)
			continue;
		if (h->p_offset > REBUILT_MAX || h->p_filesz > REBUILT_MAX - h->p_offset)
			return false;
		if (!placed)
			r->bias = first->start - (h->p_vaddr - h->p_offset);
		placed = true;
		if (h->p_offset + h->p_filesz > r->size)
			r->size = (size_t)(h->p_offset + h->p_filesz);
		if (h->p_vaddr <= UINT64_MAX - h->p_memsz && h->p_vaddr + h->p_memsz > r->end)
			r->end = h->p_vaddr + h->p_memsz;
	}
	return placed && r->size >= sizeof *ehdr;
}

/* Rebuilds the loaded part of a file from memory, if the file cannot be opened any more. */
static struct err *open_rebuilt(pid_t pid, const struct maps *maps, size_t index,
				struct image **out)
{
	const struct map *map = &maps->items[index], *first = first_mapping(maps, index);
	struct rebuilt r = {0};
	Elf64_Ehdr ehdr;
	if (!first || !read_headers(pid, first, &ehdr, &r))
		return err_new("%s: cannot be opened%s, and its memory is no whole ELF file",
			       map->path, map->deleted ? " (it was deleted)" : "");
	uint8_t *bytes = calloc(1, r.size);
	if (!bytes)
		return err_new("out of memory");
	for (size_t i = 0; i < r.header_count; i++) /* parts that cannot be read stay zero */
		if (r.headers[i].p_type == PT_LOAD)
			reach_bytes(pid, r.bias + r.headers[i].p_vaddr,
				    bytes + r.headers[i].p_offset, (size_t)r.headers[i].p_filesz);
	for (size_t i = 0; i < r.header_count; i++)
		if (r.headers[i].p_type == PT_DYNAMIC)
			unrelocate(bytes, r.size, &r.headers[i], r.bias, r.end);
	ehdr.e_shoff = 0; /* sections are not loaded */
	ehdr.e_shnum = ehdr.e_shstrndx = 0;
	memcpy(bytes, &ehdr, sizeof ehdr);
	struct err *e = image_open_memory(bytes, r.size, map->path, out);
	free(bytes);
	return e;
}

struct err *backing_open(pid_t pid, const struct maps *maps, size_t index, struct image **out)
{
	const struct map *map = &maps->items[index];
	*out = NULL;
	if (!strcmp(map->path, "[vdso]") && pid != getpid()) {
		/* All processes have the same vDSO, but a process could change its copy: so use ours. */
		struct err *e = backing_open_vdso(out);
		if (!e)
			return NULL;
		err_free(e);
	}
	if (map->path[0] == '[')
		return open_vdso(pid, map, out);
	int fd = open_file(pid, maps, index);
	if (fd < 0 && pid <= 0)
		return err_new("%s: cannot be opened any more", map->path);
	if (fd < 0)
		return open_rebuilt(pid, maps, index, out);
	struct err *e = image_open_fd(fd, map->path, out);
	close(fd);
	return e;
}

struct err *backing_open_vdso(struct image **out)
{
	struct maps maps;
	struct err *e = maps_read(getpid(), &maps);
	if (e)
		return e;
	size_t i = 0;
	while (i < maps.count && strcmp(maps.items[i].path, "[vdso]") != 0)
		i++;
	e = i < maps.count ? backing_open(getpid(), &maps, i, out) : err_new("there is no vDSO");
	maps_free(&maps);
	return e;
}
