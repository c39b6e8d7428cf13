/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /proc/PID/maps, which may hold any file name. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "process/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct maps maps;
	struct err *e = maps_parse((const char *)data, size, &maps);

	if (e) {
		err_free(e);
		return 0;
	}
	for (size_t i = 0; i < maps.count; i++) {
		assert(maps.items[i].start < maps.items[i].end);
		assert(!i || maps.items[i - 1].end <= maps.items[i].start);
		assert(strlen(maps.items[i].path) <= size);
	}
	maps_free(&maps);
	return 0;
}
