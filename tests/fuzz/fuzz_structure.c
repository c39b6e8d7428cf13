/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file, for either CPU, whose whole structure is made. The first byte says by which source;
 * the rest is the file.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "image/image.h"
#include "structure/structure.h"

#define SIZE_MAX_HERE (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct err *check(void *context, const struct structure_procedure *p)
{
	uint64_t *before = context, end = 0;
	assert(p->scope_count && p->scopes[0].type == STRUCTURE_PROCEDURE);
	assert(p->start >= *before);
	*before = p->start;
	for (size_t i = 1; i < p->scope_count; i++) {
		assert(p->scopes[i].parent < i);
		assert(p->scopes[i].type != STRUCTURE_PROCEDURE);
		assert(p->scopes[p->scopes[i].parent].type != STRUCTURE_LINE);
	}
	for (size_t i = 0; i < p->range_count; i++) {
		assert(p->ranges[i].start >= end && p->ranges[i].end > p->ranges[i].start);
		assert(p->ranges[i].scope < p->scope_count);
		assert(structure_scope_at(p, p->ranges[i].start) == p->ranges[i].scope);
		end = p->ranges[i].end;
	}
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct structure_options options = {.budget_ns = 100000000};
	struct structure *structure = NULL;
	struct image *image;
	uint64_t before = 0;
	if (!size || size > SIZE_MAX_HERE)
		return 0;
	setenv("XDG_CACHE_HOME", "/dev/null/none", 1); /* nothing is kept */
	options.source = (enum structure_source)(data[0] % 3);
	struct err *e = image_open_memory(data + 1, size - 1, "fuzz", &image);
	if (!e) {
		e = structure_open(image, &options, &structure);
		if (!e)
			e = structure_each(structure, 1, check, &before);
		if (structure)
			structure_damage(structure);
		structure_close(structure);
		image_close(image);
	}
	err_free(e);
	return 0;
}
