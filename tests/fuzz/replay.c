/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target on each file of the directories given: a corpus as an ordinary test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *directory, const char *name)
{
	char path[4096];
	uint8_t *data = NULL;
	long size = -1;
	FILE *file;
	snprintf(path, sizeof path, "%s/%s", directory, name);
	file = fopen(path, "rb");
	if (file && !fseek(file, 0, SEEK_END))
		size = ftell(file);
	if (size >= 0)
		data = malloc((size_t)size + !size); /* exact, so that the sanitizer sees its end */
	if (!data || fseek(file, 0, SEEK_SET) ||
	    fread(data, 1, (size_t)size, file) != (size_t)size) {
		fprintf(stderr, "%s: cannot read\n", path);
		exit(1);
	}
	fclose(file);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
	return 1;
}

int main(int argc, char **argv)
{
	int i, count = 0;
	for (i = 1; i < argc; i++) {
		DIR *directory = opendir(argv[i]);
		struct dirent *entry;
		while (directory && (entry = readdir(directory)))
			if (entry->d_name[0] != '.')
				count += replay(argv[i], entry->d_name);
		if (directory)
			closedir(directory);
	}
	printf("%d inputs\n", count);
	return count ? 0 : 1;
}
