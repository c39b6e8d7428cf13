/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split DWARF: a file with skeletons, and the package (.dwp) beside it. The input is cut into
 * sections (elf_cut), first those of the file, then those of the package.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "inline_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
	".debug_info",
	".debug_abbrev",
	".debug_str",
	".debug_addr",
	".debug_line",
	".debug_ranges",
	/* the package */
	".debug_info.dwo",
	".debug_abbrev.dwo",
	".debug_str.dwo",
	".debug_str_offsets.dwo",
	".debug_rnglists.dwo",
	".debug_cu_index",
};
#define PARTS (sizeof names / sizeof names[0])
#define OWN 6

/* The name that the file has; the package has it with .dwp behind. */
static const char *path(char *package, size_t size)
{
	static char name[64];
	if (!name[0])
		snprintf(name, sizeof name, "/dev/shm/culprit-fuzz-%d", (int)getpid());
	snprintf(package, size, "%s.dwp", name);
	return name;
}

static void write_file(const char *name, const uint8_t *bytes, size_t size)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(fd >= 0);
	assert(write(fd, bytes, size) == (ssize_t)size);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_part parts[PARTS];
	char package[80];
	const char *name = path(package, sizeof package);
	size_t total;
	uint8_t *bytes;
	struct image *image;
	if (!elf_cut(data, size, names, parts, PARTS))
		return 0;
	bytes = elf_file(parts + OWN, PARTS - OWN, &total);
	write_file(package, bytes, total);
	free(bytes);
	image = elf_open(parts, OWN, name);
	inline_check_all(image);
	image_close(image);
	unlink(package);
	return 0;
}
