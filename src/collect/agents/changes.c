/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "inject/still.h"
#include "safe/probes.h"

_Static_assert(STILL_BYTES == ARENA_JUMP_BYTES && STILL_STEPS == ARENA_STEPS, "the same");

static struct still_write *add(struct changes *c, uint32_t index)
{
	if (!ARRAY_ROOM(c->all, c->count, c->room) ||
	    !ARRAY_ROOM(c->indexes, c->count, c->index_room))
		return NULL;
	c->indexes[c->count] = index;
	c->all[c->count] = (struct still_write){0};
	return &c->all[c->count++];
}

void changes_free(struct changes *c)
{
	free(c->all);
	free(c->indexes);
}

bool changes_put_in(struct changes *c, const struct arena_probe *p, uint32_t index)
{
	struct still_write *w = p->window <= STILL_BYTES && p->length <= p->window ? add(c, index)
										   : NULL;
	if (!w)
		return false;
	w->at = p->at;
	w->known = p->window;
	w->length = p->length;
	memcpy(w->expected, p->original, sizeof w->expected);
	memcpy(w->bytes, p->jump, sizeof w->bytes);
	for (unsigned i = 0; i < p->step_count && i < STILL_STEPS; i++) {
		w->steps[i].from = p->step_from[i];
		w->steps[i].to = p->island + sizeof(uint64_t) + p->step_to[i];
		w->step_count++;
	}
	return true;
}

bool changes_take_out(struct changes *c, const struct arena_probe *p, uint32_t index)
{
	struct still_write *w = p->length <= STILL_BYTES ? add(c, index) : NULL;
	if (!w)
		return false;
	w->at = p->at;
	w->known = w->length = p->length;
	memcpy(w->expected, p->jump, sizeof w->expected);
	memcpy(w->bytes, p->original, sizeof w->bytes);
	return true;
}

bool changes_any_left(const struct changes *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->all[i].result == STILL_WAITS || c->all[i].result == STILL_FAILED)
			return true;
	return false;
}

struct err *changes_left(pid_t pid)
{
	return err_new("process %d: what counts its calls cannot be taken out now: a thread sleeps "
		       "in the kernel",
		       (int)pid);
}
