/* SPDX-License-Identifier: Apache-2.0 */
/* A file whose functions are copied: its unwind information and exception tables are written again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "copies/frames.h"
#include "copies/object.h"

#define ENTRIES_MAX 8
#define STEPS_MAX 512
#define STEP_SIZE 3
#define BASE 0x40000000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t code[2 * STEPS_MAX * STEP_SIZE];

/* Each address that an entry describes is an instruction. */
static size_t add_steps(const struct frames_entry *entry, struct copy_step *steps, size_t count)
{
	for (uint64_t at = entry->start; at < entry->end && at - entry->start < STEPS_MAX; at++) {
		steps[count] = (struct copy_step){at, (uint32_t)count * STEP_SIZE};
		count++;
	}
	return count;
}

static void write_object(struct image *image, const struct copy *copy)
{
	struct object_input input = {
		.image = image, .name = "copy", .base = BASE, .copies = copy, .copy_count = 1};
	struct buf out = {0};
	err_free(object_write(&input, &out));
	buf_free(&out);
}

/* The entry and the one after it are the parts of a function. */
static void copy_entries(const struct frames *frames, size_t first)
{
	struct copy_step *steps = calloc((size_t)2 * STEPS_MAX, sizeof *steps);
	struct copy copy = {.address = BASE + 2 * OBJECT_TABLES, .code = code, .steps = steps};
	if (!steps)
		return;
	copy.entry = frames->entries[first].start;
	for (size_t i = first; i < first + 2 && i < frames->count; i++)
		copy.step_count = add_steps(&frames->entries[i], steps, copy.step_count);
	copy.size = copy.step_count * STEP_SIZE;
	struct err *e = object_check(frames, &copy);
	if (!e)
		write_object(frames->image, &copy);
	err_free(e);
	free(steps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image *image;
	struct frames frames;
	struct err *e = image_open_memory(data, size, "input", &image);
	if (!e)
		e = frames_open(image, &frames);
	else
		image = NULL;
	if (!e) {
		for (size_t i = 0; i < frames.count && i < ENTRIES_MAX; i++)
			copy_entries(&frames, i);
		frames_close(&frames);
	}
	err_free(e);
	image_close(image);
	return 0;
}
