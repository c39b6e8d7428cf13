/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/modules.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/foreign.h"
#include "image/image.h"
#include "image/symbols.h"
#include "process/maps.h"
#include "structure/structure.h"

#define SCRIPTS_MAX 5            /* one run by another: as many as the kernel follows */
#define LIST_MAX (1u << 20)      /* bytes of what the dynamic linker lists */
#define GAP_BYTES_MAX (1u << 20) /* code that nothing describes is not looked at beyond this */

/* ---- the list ---- */

static struct err *add(struct probe_modules *m, const char *path, const char *file, size_t *index)
{
	struct stat info;
	if (stat(file, &info))
		return err_errno("%s", path);
	for (size_t i = 0; i < m->count; i++)
		if (m->all[i].device == info.st_dev && m->all[i].inode == info.st_ino) {
			*index = i;
			return NULL;
		}
	if (!ARRAY_ROOM(m->all, m->count, m->room))
		return err_new("out of memory");
	struct probe_module x = {.path = strdup(path),
				 .file = strdup(file),
				 .device = info.st_dev,
				 .inode = info.st_ino};
	if (!x.path || !x.file) {
		free(x.path);
		free(x.file);
		return err_new("out of memory");
	}
	m->all[m->count] = x;
	*index = m->count++;
	return NULL;
}

struct err *probe_modules_add_file(struct probe_modules *m, const char *path, size_t *index)
{
	char whole[PATH_MAX];
	if (!realpath(path, whole))
		return err_errno("%s", path);
	return add(m, whole, whole, index);
}

void probe_modules_free(struct probe_modules *m)
{
	for (size_t i = 0; i < m->count; i++) {
		structure_close(m->all[i].structure);
		symbols_free(m->all[i].symbols);
		image_close(m->all[i].image);
		free(m->all[i].path);
		free(m->all[i].file);
	}
	free(m->all);
	free(m->ranges);
	*m = (struct probe_modules){0};
}

/* ---- of a process ---- */

/* A file that was deleted can still be opened as the mapping's. */
static void name_file(pid_t pid, const struct map *map, struct buf *out)
{
	if (map->deleted)
		buf_printf(out, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, map->start,
			   map->end);
	else
		buf_printf(out, "/proc/%d/root%s", (int)pid, map->path);
}

static struct err *add_map(struct probe_modules *m, pid_t pid, const struct map *map)
{
	struct buf file = {0};
	size_t index;
	name_file(pid, map, &file);
	struct err *e = file.failed ? err_new("out of memory")
				    : add(m, map->path, file.data, &index);
	buf_free(&file);
	if (e) { /* gone, or of another world: nothing of it can be probed */
		err_free(e);
		return NULL;
	}
	if (!ARRAY_ROOM(m->ranges, m->range_count, m->range_room))
		return err_new("out of memory");
	m->ranges[m->range_count++] = (struct probe_range){map->start, map->end, map->offset,
							   index};
	return NULL;
}

struct err *probe_modules_of_process(struct probe_modules *m, pid_t pid)
{
	struct maps maps;
	char path[64], program[PATH_MAX];
	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	ssize_t length = readlink(path, program, sizeof program - 1);
	struct err *e = maps_read(pid, &maps);
	if (e)
		return e;
	program[length > 0 ? length : 0] = 0;
	/* The program first. */
	for (int turn = 0; turn < 2; turn++)
		for (size_t i = 0; i < maps.count && !e; i++) {
			const struct map *map = &maps.items[i];
			if (map->executable && map->path[0] == '/' &&
			    !strcmp(map->path, program) == !turn)
				e = add_map(m, pid, map);
		}
	maps_free(&maps);
	return e;
}

/* ---- of a program that does not run yet ---- */

/* Runs the dynamic linker, which lists what it would load. */
static struct err *run_linker(const char *linker, const char *program, struct buf *out)
{
	int lines[2];
	if (pipe2(lines, O_CLOEXEC))
		return err_errno("pipe");
	pid_t pid = fork();
	if (pid < 0) {
		struct err *e = err_errno("cannot start %s", linker);
		close(lines[0]);
		close(lines[1]);
		return e;
	}
	if (!pid) {
		int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
		dup2(nothing, STDIN_FILENO);
		dup2(nothing, STDERR_FILENO);
		dup2(lines[1], STDOUT_FILENO);
		execl(linker, linker, "--list", program, (char *)NULL);
		_exit(127);
	}
	close(lines[1]);
	char bytes[4096];
	ssize_t got;
	while (((got = read(lines[0], bytes, sizeof bytes)) > 0 && out->size < LIST_MAX) ||
	       (got < 0 && errno == EINTR))
		if (got > 0)
			buf_append(out, bytes, (size_t)got);
	close(lines[0]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return NULL;
}

/* Adds the file of a line: "libm.so.6 => /lib/libm.so.6 (0x…)", "/lib/ld-linux.so (0x…)". One that is not there is left
   out. */
static void add_listed(struct probe_modules *m, char *line)
{
	char *start = strstr(line, "=> "), *end = strstr(line, " (0x");
	size_t index;
	start = start ? start + 3 : line + strspn(line, " \t");
	if (!end || *start != '/')
		return;
	*end = 0;
	err_free(probe_modules_add_file(m, start, &index));
}

static struct err *add_libraries(struct probe_modules *m, const char *program, const char *linker)
{
	struct buf list = {0};
	/* $ORIGIN is the folder of the file itself, not of a link to it. */
	char *real = realpath(program, NULL);
	struct err *e = run_linker(linker, real ? real : program, &list);
	free(real);
	char *text = buf_take(&list), *rest = text;
	for (char *line; !e && rest && (line = strsep(&rest, "\n"));)
		add_listed(m, line);
	free(text);
	buf_free(&list);
	return e;
}

/* Returns the interpreter of a script, malloc'ed; NULL: it is none. */
static char *interpreter_of(const char *path)
{
	char first[256];
	int fd = foreign_open(path, 0);
	ssize_t size = fd < 0 ? 0 : pread(fd, first, sizeof first - 1, 0);
	if (fd >= 0)
		close(fd);
	if (size < 3 || first[0] != '#' || first[1] != '!')
		return NULL;
	first[size] = 0;
	size_t start = 2 + strspn(first + 2, " \t"), length = strcspn(first + start, " \t\n");
	return length ? strndup(first + start, length) : NULL;
}

static struct err *add_program(struct probe_modules *m, const char *path)
{
	size_t index;
	struct err *e = probe_modules_add_file(m, path, &index);
	if (!e)
		e = probe_module_open(&m->all[index]);
	char *linker = e ? NULL : image_interpreter(m->all[index].image);
	if (linker)
		e = add_libraries(m, path, linker);
	free(linker);
	return e;
}

struct err *probe_modules_of_program(struct probe_modules *m, const char *path)
{
	char *program = strdup(path);
	for (int i = 0; program && i < SCRIPTS_MAX; i++) {
		char *next = interpreter_of(program);
		if (!next)
			break;
		free(program);
		program = next;
	}
	struct err *e = program ? add_program(m, program) : err_new("out of memory");
	free(program);
	return e;
}

/* ---- who else has them ---- */

static bool is_among(pid_t pid, const pid_t *pids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return pid == getpid();
}

static void note_maps(struct probe_modules *m, const struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		for (size_t k = 0; maps->items[i].executable && k < m->count; k++)
			m->all[k].shared |= m->all[k].inode == maps->items[i].inode &&
					    m->all[k].device == maps->items[i].device;
}

void probe_modules_find_shared(struct probe_modules *m, const pid_t *pids, size_t pid_count)
{
	DIR *all = opendir("/proc");
	for (struct dirent *entry; all && (entry = readdir(all));) {
		struct maps maps;
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (!isdigit((unsigned char)entry->d_name[0]) || is_among(pid, pids, pid_count))
			continue;
		struct err *e = maps_read(pid, &maps);
		if (!e) {
			note_maps(m, &maps);
			maps_free(&maps);
		}
		err_free(e);
	}
	if (all)
		closedir(all);
}

/* ---- one file ---- */

struct err *probe_module_open(struct probe_module *m)
{
	if (m->symbols)
		return NULL;
	struct err *e = m->image ? NULL : image_open(m->file, &m->image);
	return e ? e : symbols_read(m->image, NULL, &m->symbols);
}

struct err *probe_module_structure(struct probe_module *m)
{
	struct err *e = probe_module_open(m);
	const struct structure_options options = {.gap_bytes_max = GAP_BYTES_MAX};
	return e || m->structure ? e : structure_open(m->image, &options, &m->structure);
}
