/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/pieces.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/err.h"
#include "copies/frames.h"

/* Whether a step belongs to the same piece as the one before it. */
static bool goes_on(const struct frames *frames, const struct copy_piece *piece, size_t step)
{
	const struct copy_step *steps = piece->copy->steps;
	const struct frames_entry *entry = piece->entry;
	uint64_t from = steps[step].from;
	if (from < steps[step - 1].from)
		return false;
	if (entry)
		return from < entry->end;
	return !frames_find(frames, from);
}

static struct err *check_steps(const struct copy *copy)
{
	if (!copy->step_count)
		return err_new("a copy without instructions");
	for (size_t i = 0; i < copy->step_count; i++)
		if (copy->steps[i].to >= copy->size ||
		    (i && copy->steps[i].to < copy->steps[i - 1].to))
			return err_new("instruction %zu of the copy is not in order", i);
	return NULL;
}

struct err *copy_pieces_add(const struct frames *frames, const struct copy *copy,
			    struct copy_pieces *out)
{
	const struct copy_step *steps = copy->steps;
	struct copy_piece *piece = NULL;
	struct err *e = check_steps(copy);
	if (e)
		return e;
	for (size_t i = 0; i < copy->step_count; i++) {
		if (i && goes_on(frames, piece, i)) {
			piece->last = i + 1;
			continue;
		}
		if (!ARRAY_ROOM(out->items, out->count, out->room))
			return err_new("out of memory");
		if (i)
			out->items[out->count - 1].end = steps[i].to;
		piece = &out->items[out->count++];
		*piece = (struct copy_piece){.copy = copy,
					     .entry = frames_find(frames, steps[i].from),
					     .first = i,
					     .last = i + 1,
					     .start = i ? steps[i].to : 0,
					     .end = (uint32_t)copy->size};
		if (!piece->entry && frames->damaged)
			return err_new("unwind information of 0x%" PRIx64 " cannot be read",
				       steps[i].from);
	}
	return NULL;
}

void copy_pieces_free(struct copy_pieces *pieces)
{
	free(pieces->items);
	*pieces = (struct copy_pieces){0};
}

static size_t step_at(const struct copy_piece *piece, uint64_t address)
{
	const struct copy_step *steps = piece->copy->steps + piece->first;
	return piece->first + FIRST_NOT(i, piece->last - piece->first, steps[i].from < address);
}

uint32_t piece_place(const struct copy_piece *piece, uint64_t address)
{
	size_t step = step_at(piece, address);
	if (step == piece->first)
		return piece->start;
	return step < piece->last ? piece->copy->steps[step].to : piece->end;
}

bool copy_pieces_find(const struct copy_piece *pieces, size_t count, uint64_t address,
		      uint32_t *out)
{
	for (size_t i = 0; i < count; i++) {
		const struct copy_step *steps = pieces[i].copy->steps;
		size_t step = step_at(&pieces[i], address);
		if (step < pieces[i].last && steps[step].from == address) {
			*out = steps[step].to;
			return true;
		}
	}
	return false;
}
