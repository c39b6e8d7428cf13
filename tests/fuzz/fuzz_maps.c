/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /proc/PID/maps, which may hold any file name, and of /tmp/perf-PID.map, which the
   process writes. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "process/jit.h"
#include "process/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_maps(const char *text, size_t size)
{
	struct maps maps;
	struct err *e = maps_parse(text, size, &maps);

	assert(!e);
	for (size_t i = 0; i < maps.count; i++) {
		assert(maps.items[i].start < maps.items[i].end);
		assert(!i || maps.items[i - 1].end <= maps.items[i].start);
		assert(strlen(maps.items[i].path) <= size);
	}
	maps_free(&maps);
}

static void read_jit(const char *text, size_t size)
{
	static const uint64_t addresses[] = {0, 1, 0x10, 0x1000, 0x7f0000000010, UINT64_MAX};
	struct jit *jit;
	struct err *e = jit_parse(text, size, &jit);

	assert(!e);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		const struct jit_code *code = jit_find(jit, addresses[i]);

		assert(!code || addresses[i] - code->start < code->size);
		assert(!code || (code->name[0] && strlen(code->name) <= size));
	}
	jit_close(jit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_maps((const char *)data, size);
	read_jit((const char *)data, size);
	return 0;
}
