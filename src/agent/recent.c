/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/recent.h"

#include <string.h>

#include "agent/cpu.h"
#include "agent/frames.h"

#define RECENT_WORDS 14u

struct recent_path {
	uint64_t list_place; /* of the modules for which it holds; 0: empty */
	uint64_t pc, sp;     /* of the innermost frame */
	uint64_t joint_sp;
	uint32_t node, joint_node;
	uint32_t joint; /* number of frames of the memo; 0: the words are those of the whole path */
	uint32_t count;
	struct {
		uint64_t slot, word;
	} words[RECENT_WORDS]; /* innermost first */
};

#define WAYS 4u /* paths with the same SP: functions often allocate at a few places */
#define SETS \
	((uint32_t)((ARENA_CHUNK - sizeof(struct arena_chunk)) / sizeof(struct recent_path) / WAYS))

/* They are in a chunk of the arena that the thread takes when it calls us for the first time. */
static struct recent_path *set_of(const struct agent_thread *t, uint64_t sp)
{
	uint64_t hash = (sp >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	struct arena_chunk *chunk = arena_at(agent.arena, t->recent);
	return (struct recent_path *)(chunk + 1) + (hash * SETS >> 32) * WAYS;
}

static bool are_words_unchanged(const struct agent_thread *t, const struct recent_path *p)
{
	uint64_t low = t->low, size = t->high - t->low;
	for (uint32_t i = 0; i < p->count; i++) {
		uint64_t word;
		if (p->words[i].slot - low > size - sizeof word)
			return false;
		memcpy(&word, (const void *)p->words[i].slot, sizeof word);
		if ((word ^ p->words[i].word) & CPU_HERE.address_bits)
			return false;
	}
	return true;
}

uint32_t recent_find(struct agent_thread *t, uint64_t pc, uint64_t sp)
{
	if (!t->recent || t->high - t->low < sizeof(uint64_t))
		return 0;
	struct recent_path *set = set_of(t, sp);
	for (struct recent_path *p = set; p < set + WAYS; p++)
		if (p->sp == sp && p->pc == pc && p->list_place == t->list_place &&
		    are_words_unchanged(t, p) &&
		    (!p->joint || sample_memo_holds(t, p->joint, p->joint_sp, p->joint_node)))
			return p->node;
	return 0;
}

static bool take_chunk(struct agent_thread *t)
{
	if (t->recent)
		return true;
	t->recent = scratch_take(t);
	if (!t->recent)
		return false;
	/* What its last owner left may be paths of the same program, with nodes of another tree. */
	struct arena_chunk *chunk = arena_at(agent.arena, t->recent);
	memset(chunk + 1, 0, ARENA_CHUNK - sizeof *chunk);
	return true;
}

/* The words that were read for the frame that this one has called. */
static bool add_word(struct recent_path *p, const struct agent_frame *f)
{
	if (p->count == RECENT_WORDS || !f->slot || f->pc & FRAME_EXACT)
		return false;
	p->words[p->count].slot = f->slot;
	p->words[p->count++].word = f->pc;
	return true;
}

void recent_keep(struct agent_thread *t, uint32_t known, uint32_t node)
{
	const struct agent_frame *inner = t->fresh.count ? frame_at(&t->fresh, 0) : NULL;
	if (!inner || t->fresh.count > RECENT_WORDS || !take_chunk(t))
		return;
	struct recent_path *p = set_of(t, inner->sp) + t->recent_next++ % WAYS;
	p->list_place = 0;
	p->count = 0;
	p->pc = inner->pc & ~FRAME_EXACT;
	p->sp = inner->sp;
	for (uint32_t i = 1; i < t->fresh.count; i++)
		if (!add_word(p, frame_at(&t->fresh, i)))
			return;
	p->joint = known;
	if (known) {
		const struct agent_frame *joint = frame_at(&t->memo, known - 1);
		if (!add_word(p, joint))
			return;
		p->joint_sp = joint->sp;
		p->joint_node = joint->node;
	}
	p->node = node;
	p->list_place = t->list_place;
}
