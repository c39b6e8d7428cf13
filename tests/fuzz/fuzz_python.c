/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a Python interpreter is anything: reading its calls ends, and touches nothing else. The first byte is the version,
   the rest is the memory. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "script/python.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define START 0x1000u
#define CALLS 64u

struct memory {
	const uint8_t *bytes;
	size_t size;
};

static bool read_memory(void *context, uint64_t address, void *out, size_t size)
{
	const struct memory *m = context;
	uint64_t at = address - START;
	if (at > m->size || size > m->size - at)
		return false;
	memcpy(out, m->bytes + at, size);
	return true;
}

struct look {
	const struct python *python;
	const struct python_memory *reader;
	unsigned left;
};

static bool see(void *context, uint64_t thread)
{
	struct look *l = context;
	struct python_call calls[CALLS];
	size_t count = python_calls(l->python, l->reader, thread, calls, CALLS);
	for (size_t i = 0; i < count; i++) {
		struct python_function f;
		if (!calls[i].code ||
		    !python_function_read(l->python, l->reader, calls[i].code, &f))
			continue;
		for (unsigned k = 0; k < 32; k++)
			python_line(&f, calls[i].instruction + k);
		python_function_free(&f);
	}
	return --l->left;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	struct memory memory = {data + 1, size - 1};
	struct python_memory reader = {read_memory, &memory};
	struct python_file file = {
		.runtime = START, .code_type = START, .version = data[0] & 1 ? 0x030b : 0x030d};
	struct python python;
	struct look look = {&python, &reader, 16};
	if (python_open(&file, 0, &reader, &python))
		python_threads(&python, &reader, see, &look);
	return 0;
}
