/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/changed.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "harvest/probes.h"
#include "process/maps.h"
#include "process/registers.h"

#define LOOKED 16u

static ssize_t read_file(const char *path, void *out, size_t size, uint64_t offset)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : pread(fd, out, size, (off_t)offset);
	if (fd >= 0)
		close(fd);
	return got;
}

/* What a breakpoint replaces is taken for unchanged. */
static void leave_out_breakpoint(uint8_t *now, const uint8_t *before)
{
	if (native_machine == EM_X86_64 && *now == 0xcc)
		*now = *before;
	else if (native_machine == EM_AARCH64 && (now[3] == 0xd4 && now[2] >> 5 == 1))
		memcpy(now, before, 4);
}

static bool is_changed(int memory, const struct map *m, const struct probe_function *f)
{
	uint8_t before[LOOKED] = {0}, now[LOOKED] = {0};
	uint64_t offset = f->sites[0].offset;
	size_t size = f->room && f->room < LOOKED ? f->room : LOOKED;
	if (offset + size > m->offset + (m->end - m->start) ||
	    read_file(f->file, before, size, offset) != (ssize_t)size ||
	    pread(memory, now, size, (off_t)(m->start + offset - m->offset)) != (ssize_t)size)
		return false;
	leave_out_breakpoint(now, before);
	return memcmp(now, before, size) != 0;
}

static const struct map *map_of(const struct maps *maps, const struct probe_function *f)
{
	struct stat st;
	if (!f->site_count || stat(f->file, &st))
		return NULL;
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *m = &maps->items[i];
		bool same = m->inode == st.st_ino && m->device == st.st_dev;
		if (m->executable && (same || !strcmp(m->path, f->module)) &&
		    f->sites[0].offset >= m->offset &&
		    f->sites[0].offset - m->offset < m->end - m->start)
			return m;
	}
	return NULL;
}

struct err *probe_refuse_changed(struct probes *probes, size_t first, pid_t pid)
{
	char path[64];
	struct maps maps;
	struct err *e = maps_read(pid, &maps);
	if (e)
		return e;
	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	int memory = open(path, O_RDONLY | O_CLOEXEC);
	for (size_t i = first; memory >= 0 && i < probes->count; i++) {
		const struct map *m = map_of(&maps, &probes->functions[i]);
		if (m && is_changed(memory, m, &probes->functions[i]))
			probes_refuse(&probes->functions[i], PROBE_REFUSED,
				      "its code in memory is not that of its file: somebody else "
				      "has changed it");
	}
	if (memory >= 0)
		close(memory);
	maps_free(&maps);
	return NULL;
}
