/* SPDX-License-Identifier: Apache-2.0 */
#include "base/filekind.h"

#include <string.h>

static const struct {
	const char *start, *hint;
} kinds[] = {
	{"PERFILE2", "a recording of perf: culprit import makes a profile of it"},
	{"2ELIFREP", "a recording of perf on a big-endian machine, which culprit does not support"},
	{"PERFFILE", "a recording of a very old perf: record again with a newer one"},
	{"\x1f\x8b", "compressed by gzip: gunzip it first"},
	{"\x28\xb5\x2f\xfd", "compressed by zstd: unzstd it first"},
	{"\xfd"
	 "7zXZ",
	 "compressed by xz: unxz it first"},
	{"BZh", "compressed by bzip2: bunzip2 it first"},
	{"PK\x03\x04", "a zip archive: unzip it first"},
	{"SQLite format 3", "a database: culprit db show --db=FILE shows that of culprit daemon"},
	{"\x7f"
	 "ELF",
	 "a program or a library: culprit record -- COMMAND makes a profile of it"},
};

const char *filekind_hint(const void *bytes, size_t size)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		size_t length = strlen(kinds[i].start);
		if (size >= length && !memcmp(bytes, kinds[i].start, length))
			return kinds[i].hint;
	}
	return NULL;
}
