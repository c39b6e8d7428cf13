/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /proc/PID/maps, which may hold any file name, of /tmp/perf-PID.map, which the process
   writes, and of its arguments and environment. */
#include <assert.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "process/jit.h"
#include "process/maps.h"
#include "process/runtime.h"

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
	const struct runtime *x86_64 = runtime_find(&maps, 0, EM_X86_64),
			     *aarch64 = runtime_find(&maps, 0, EM_AARCH64);
	assert(!strcmp(x86_64->name, aarch64->name));
	assert(x86_64->bare == !!x86_64->why[0] && aarch64->bare == !!aarch64->why[0]);
	maps_free(&maps);
}

static void read_options(const char *text, size_t size)
{
	size_t half = size / 2;
	bool java = runtime_java_keeps(text, half, text + half, size - half);
	bool erlang = runtime_erlang_keeps(text, size);
	assert(!java || memmem(text, size, "+PreserveFramePointer", 21));
	assert(!erlang || memmem(text, size, "-JPperf", 7));
}

static void read_jit(const char *text, size_t size)
{
	static const uint64_t addresses[] = {0, 1, 0x10, 0x1000, 0x7f0000000010, UINT64_MAX};
	struct jit *jit;
	struct err *e = jit_parse(text, size, &jit);
	assert(!e);
	for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
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
	read_options((const char *)data, size);
	return 0;
}
