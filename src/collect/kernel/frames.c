/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel/frames.h"

#include "base/err.h"
#include "cct/cct.h"
#include "collect/kernel/state.h"
#include "harvest/harvest.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "harvest/scripts.h"
#include "profile/profile.h"
#include "safe/wire.h"
#include "unwind/walk.h"

/* The sampler cannot include cct/cct.h, so it has copies of these constants. */
_Static_assert(KERNEL_KEY_CALL == CCT_CALL && KERNEL_KEY_BITS == CCT_ADDRESS_BITS &&
		       KERNEL_KEY_KERNEL == CCT_KERNEL << CCT_ADDRESS_BITS &&
		       KERNEL_KEY_HOST == CCT_HOST,
	       "keys are as in the tree");

/* For --collapse-recursion: moves `node` to the nearest outer frame that is the same call, if there is
   one. */
static void find_ancestor(const struct profile *p, uint32_t parent, uint32_t *node)
{
	const struct profile_node *wanted = &p->nodes[*node];
	for (uint32_t at = parent; at; at = p->nodes[at].parent)
		if (p->nodes[at].module == wanted->module && p->nodes[at].kind == wanted->kind &&
		    p->nodes[at].address == wanted->address) {
			*node = at;
			return;
		}
}

struct err *frames_add(struct kernel *k, struct process *p, uint64_t key, uint32_t *node)
{
	uint32_t parent = *node;
	struct err *e = harvest_add_child(k->recording, &k->recording->harvest, p, parent, key,
					  node);
	if (!e && k->recording->options.collapse && key & CCT_CALL)
		find_ancestor(k->recording->harvest.profile, parent, node);
	return e;
}

bool frames_is_host(uint64_t key)
{
	uint32_t module = cct_key_module(key);
	return key & CCT_HOST && module && module < WIRE_MODULE_MAX;
}

struct err *frames_add_called(struct kernel *k, struct process *p, uint64_t key,
			      const struct script_calls *calls, size_t *left, uint32_t *node)
{
	return *left && frames_is_host(key) ? scripts_add(k->recording, calls, left, node)
					    : frames_add(k, p, key, node);
}

struct err *frames_add_root(struct kernel *k, struct process *p, uint32_t end, uint32_t *node)
{
	*node = 0;
	if (end == WALK_COMPLETE)
		return NULL;
	return harvest_add_child(k->recording, &k->recording->harvest, p, 0,
				 cct_key(false, CCT_PARTIAL, end), node);
}

struct err *frames_count_only(struct kernel *k, uint32_t thread, uint32_t node, uint32_t event,
			      uint32_t end, uint64_t count)
{
	struct err *e = profile_count(k->recording->harvest.profile, node, thread, event, count);
	if (!e && !event) {
		k->recording->samples += count;
		k->recording->partial += end != WALK_COMPLETE ? count : 0;
	}
	return e;
}

struct err *frames_count(struct kernel *k, uint32_t thread, uint32_t node, uint32_t event,
			 uint32_t end, uint64_t time, uint64_t count)
{
	struct err *e = frames_count_only(k, thread, node, event, end, count);
	if (!e && !event && k->recording->options.timeline)
		e = profile_time(k->recording->harvest.profile, node, thread, 0,
				 recording_since(k->recording, time), count);
	return e;
}

struct err *frames_count_place(struct kernel *k, struct process *p, uint32_t thread, uint64_t key,
			       uint32_t event, uint64_t count)
{
	uint32_t node;
	struct err *e = frames_add_root(k, p, WALK_COUNTED, &node);
	if (!e)
		e = harvest_add_child(k->recording, &k->recording->harvest, p, node, key, &node);
	if (!e)
		e = profile_count(k->recording->harvest.profile, node, thread, event, count);
	if (!e && !event)
		k->recording->samples += count;
	return e;
}
