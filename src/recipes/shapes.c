/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/shapes.h"

#include <elf.h>
#include <string.h>

#include "image/image.h"
#include "recipes/rows.h"

struct shape {
	uint16_t machine;
	const char *bytes;
	unsigned length, step;
	unsigned before; /* a handler "returns" to the first instruction, so the byte before it
			    must have the recipe too */
};

static const struct shape shapes[] = {
	{EM_X86_64, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9, 1, 1}, /* mov $15,%rax; syscall */
	{EM_X86_64, "\xb8\x0f\x00\x00\x00\x0f\x05", 7, 1, 1},         /* mov $15,%eax; syscall */
	{EM_AARCH64, "\x68\x11\x80\xd2\x01\x00\x00\xd4", 8, 4, 4},    /* mov x8,#139; svc #0 */
};

static void add_shape(const struct shape *shape, const uint8_t *code, size_t size, uint64_t address, struct rows *rows)
{
	const struct recipe recipe = {.cfa = RECIPE_SIGNAL, .source = RECIPE_FROM_SHAPE};
	if (size < shape->length)
		return;
	for (size_t at = 0; at <= size - shape->length; at += shape->step) {
		if (shape->step == 1) { /* let memchr find the first byte */
			const uint8_t *found = memchr(code + at, shape->bytes[0], size - shape->length + 1 - at);
			if (!found)
				return;
			at = (size_t)(found - code);
		}
		if (address + at >= shape->before && !memcmp(code + at, shape->bytes, shape->length))
			rows_add(rows, address + at - shape->before, address + at + shape->length,
				 rows_rule(rows, &recipe));
	}
}

void shapes_add(struct image *image, struct rows *rows)
{
	const struct image_segment *segments;
	size_t count = image_segments(image, &segments);
	for (size_t i = 0; i < count; i++) {
		size_t size;
		const uint8_t *code;
		if (!segments[i].executable)
			continue;
		code = image_bytes_at(image, segments[i].address, &size);
		for (size_t k = 0; code && k < sizeof shapes / sizeof *shapes; k++)
			if (shapes[k].machine == image_machine(image))
				add_shape(&shapes[k], code, size, segments[i].address, rows);
	}
}
