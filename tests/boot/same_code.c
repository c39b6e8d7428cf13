/* SPDX-License-Identifier: Apache-2.0 */
/* same_code PID: is the code of a process that of its files? It prints how many bytes differ. Exit status 1: some do, or it cannot
   be found out. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PIECE 4096

/* -1: it cannot be read. */
static long differ(int memory, const char *path, unsigned long start, unsigned long end,
		   long offset)
{
	static unsigned char theirs[PIECE], its[PIECE];
	long count = 0;
	int file = open(path, O_RDONLY);
	for (unsigned long at = start; at < end; at += PIECE) {
		long got = pread(file, its, PIECE, offset + (long)(at - start));
		if (got < 0 || pread(memory, theirs, PIECE, (long)at) != PIECE)
			return -1;
		for (long i = 0; i < got; i++)
			count += theirs[i] != its[i];
	}
	close(file);
	return count;
}

int main(int argc, char **argv)
{
	char path[64], line[4096], file[4096];
	unsigned long start, end, offset, count = 0, pieces = 0;
	snprintf(path, sizeof path, "/proc/%s/mem", argv[argc - 1]);
	int memory = open(path, O_RDONLY);
	snprintf(path, sizeof path, "/proc/%s/maps", argv[argc - 1]);
	FILE *maps = fopen(path, "r");
	while (maps && fgets(line, sizeof line, maps)) {
		if (sscanf(line, "%lx-%lx r-xp %lx %*s %*s %4095s", &start, &end, &offset, file) !=
			    4 ||
		    file[0] != '/')
			continue;
		long here = differ(memory, file, start, end, (long)offset);
		if (here < 0)
			return 1;
		count += (unsigned long)here;
		pieces++;
	}
	printf("%lu\n", count);
	return !pieces || count;
}
