/* SPDX-License-Identifier: Apache-2.0 */
#include "paths/files.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "flow/graph.h"
#include "image/image.h"
#include "image/lines.h"
#include "image/places.h"
#include "isa/insn.h"

#define USUAL_LENGTH 4 /* bytes of an instruction */

/* What cannot be opened is left out. */
static void open_file(struct path_file *f)
{
	err_free(image_open(f->path, &f->image));
	f->isa = f->image ? isa_for_machine(image_machine(f->image)) : NULL;
	if (!f->isa)
		return;
	err_free(places_open(f->image, false, &f->places));
	if (f->places)
		err_free(lines_open(f->image, places_debug(f->places), &f->lines));
}

struct path_file *path_files_get(struct path_files *files, const char *path)
{
	struct path_file *f = NULL;
	for (size_t i = 0; i < files->count && !f; i++)
		if (!strcmp(files->files[i]->path, path))
			f = files->files[i];
	if (!f) {
		if (!ARRAY_ROOM(files->files, files->count, files->room))
			return NULL;
		f = calloc(1, sizeof *f);
		if (!f)
			return NULL;
		f->path = path;
		files->files[files->count++] = f;
		open_file(f);
	}
	return f->isa ? f : NULL;
}

void path_files_free(struct path_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		struct path_file *f = files->files[i];
		lines_close(f->lines);
		places_close(f->places);
		image_close(f->image);
		free(f);
	}
	free(files->files);
	*files = (struct path_files){0};
}

uint32_t path_block_length(const struct path_file *file, const struct graph_block *block)
{
	size_t size = 0;
	const uint8_t *code = file ? image_bytes_at(file->image, block->start, &size) : NULL;
	uint64_t bytes = block->end > block->start ? block->end - block->start : 0;
	uint32_t count = 0;
	if (!code || size < bytes)
		return (uint32_t)(bytes / USUAL_LENGTH) + (bytes % USUAL_LENGTH != 0);
	for (uint64_t at = 0; at < bytes; count++) {
		struct insn insn;
		file->isa->decode(code + at, (size_t)(bytes - at), block->start + at, &insn);
		at += insn.length ? insn.length : 1;
	}
	return count;
}
