/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callgrind_pack bzip2|zlib FILE: packs a file and unpacks it again, for bench/callgrind. The work is
 * done by libbz2 or libz as the distribution compiles them, linked in with all their symbols.
 */
#include <bzlib.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

static char text[3000000], packed[4000000], again[3000000];

__attribute__((noinline)) static unsigned with_bzip2(unsigned size)
{
	unsigned small = sizeof packed, large = sizeof again;
	if (BZ2_bzBuffToBuffCompress(packed, &small, text, size, 9, 0, 30) ||
	    BZ2_bzBuffToBuffDecompress(again, &large, packed, small, 0, 0))
		return 0;
	return large == size && memcmp(text, again, size) == 0 ? small : 0;
}

__attribute__((noinline)) static unsigned with_zlib(unsigned size)
{
	uLongf small = sizeof packed, large = sizeof again;

	if (compress2((Bytef *)packed, &small, (Bytef *)text, size, 6) ||
	    uncompress((Bytef *)again, &large, (Bytef *)packed, small))
		return 0;
	return large == size && memcmp(text, again, size) == 0 ? (unsigned)small : 0;
}

int main(int argc, char **argv)
{
	FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
	unsigned size, small;
	if (!file)
		return 2;
	size = (unsigned)fread(text, 1, sizeof text, file);
	small = strcmp(argv[1], "zlib") == 0 ? with_zlib(size) : with_bzip2(size);
	printf("%u bytes, packed %u\n", size, small);
	return small == 0;
}
