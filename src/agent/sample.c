/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a sample: from the registers that a signal brings to one more count in a node of the thread's tree.
 * Everything here is async-signal-safe: it takes no lock, allocates only chunks of the arena, and reads only
 * memory that is known to be mapped.
 *
 * The walk before is kept as the memo: for each frame its SP, its PC, the address of the stack word that held
 * the PC, and its node in the tree.
 *
 *      outermost                                         innermost
 *   memo:   main    run    parse    expr    term    factor
 *                                    |
 *   now:    main    run    parse    expr    sum             walked: sum, expr
 *
 * The new walk goes outwards from the innermost frame by recipes. If it comes to a frame with the SP and PC
 * of one in the memo, it compares the stack words of the memo's outer frames. If they are unchanged, so are
 * the frames. That needs no recipe, and the loads do not depend on each other. Only walked frames are
 * inserted in the tree, below the node where the walk met the memo. So a deep stack of two thousand frames
 * that changes at its inner end costs two thousand compares.
 *
 * Invariants:
 *  1. The node of a memo frame is its node for the path that the memo is.
 *  2. A frame of the agent itself has its caller's node.
 *  3. Memory is read only in [low, high). That is the thread's own stack from SP to its upper end, or pages
 *     about which the kernel was asked in this walk.
 */
#include "agent/agent.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/cpu.h"
#include "agent/frames.h"
#include "agent/probes.h"
#include "agent/sentinel.h"
#include "safe/readable.h"
#include "safe/ticks.h"

#define PAGE 4096u
#define COMPARED_AT_ONCE 8u /* frames of the memo that are compared as a group */
#define HIDDEN UINT64_MAX   /* key of frames that are left out */
#define PATIENCE_MAX 1024u
/* Copies that the collector may fail to walk before fewer are left: libraries may come and go meanwhile. */
#define VAIN_MAX 64u
#define LARGE_COPIES 128u    /* per thread: beyond this many, copies are small */
#define FEW_COPIES 256u      /* per thread: limit if the arena has little room */
#define SMALL_COPY_CHUNKS 5u /* about 80 KiB of stack */

/* ---- memory ---- */

static bool read_slowly(struct agent_thread *t, uint64_t address)
{
	uint64_t page = address & ~(uint64_t)(PAGE - 1);
	if (address % PAGE > PAGE - 8 || !readable_word(address))
		return false;
	if (page == t->high) {
		t->high += PAGE;
	} else {
		t->low = page;
		t->high = page + PAGE;
	}
	return true;
}

INLINE bool read_raw(void *context, uint64_t address, uint64_t *out)
{
	struct agent_thread *t = context;
	if (__builtin_expect(address - t->low > t->high - t->low - 8 || t->high == t->low, 0) &&
	    !read_slowly(t, address))
		return false;
	memcpy(out, (const void *)address, sizeof *out);
	return true;
}

/* As the stack would be without the sentinel, and without the stubs of probes. */
INLINE bool read_word(void *context, uint64_t address, uint64_t *out)
{
	bool read = read_raw(context, address, out);
	if (AGENT_CALLS && read && __builtin_expect(sentinel_is_stub(*out), 0))
		*out = sentinel_see_through(*out);
	if (AGENT_PROBES && read && __builtin_expect(probe_is_stub(*out), 0))
		*out = probe_see_through(*out);
	return read;
}

/* The thread's stack is known to be mapped from stack_low up to its upper end, and stays mapped as long as
   the thread lives. So the kernel is asked about each page once, and not in every walk. */
static void know_memory(struct agent_thread *t, uint64_t sp)
{
	t->low = t->high = 0;
	if (sp >= t->shared.stack_top || t->shared.stack_top - sp > t->stack_reach)
		return;
	while (sp < t->stack_low) {
		if (!readable_word(t->stack_low - 8))
			return;
		t->stack_low -= PAGE;
	}
	t->low = sp;
	t->high = t->shared.stack_top;
}

/* ---- modules ---- */

static const struct recipe no_recipe; /* RECIPE_NONE */

/* Whether the list has code made at run time. Other unknown code is not taken for such code, even if it is
   close: it may be a library that was loaded since. */
static void know_jit(struct agent_thread *t)
{
	t->has_jit = t->jit_top = t->has_unwinder = false;
	for (uint32_t i = 0; t->modules && i < t->modules->count; i++) {
		t->has_jit |= t->modules->modules[i].flags & WIRE_MODULE_JIT;
		t->jit_top |= t->modules->modules[i].flags & WIRE_MODULE_TOP;
		t->has_unwinder |= (t->modules->modules[i].flags & WIRE_MODULE_OWN_UNWINDER) != 0;
	}
}

/* Reads the list of modules again if the collector has changed it since the last sample. */
static void know_modules(struct agent_thread *t)
{
	uint64_t place = atomic_load_explicit(&t->shared.list_place, memory_order_acquire);
	if (__builtin_expect(place == t->list_place, 1))
		return;
	memset(&t->cache, 0, sizeof t->cache);
	t->memo.count = 0;
	t->list_place = place;
	t->modules = NULL;
	t->patience = 1;
	t->vain_first = t->vain = atomic_load_explicit(&t->shared.vain, memory_order_relaxed);
	if (place && place + sizeof(struct wire_list) <= agent.tables_map)
		t->modules = (const struct wire_list *)(agent.tables + place);
	if (t->modules &&
	    place + sizeof(struct wire_list) + t->modules->count * sizeof(struct wire_module) >
		    agent.tables_map)
		t->modules = NULL;
	know_jit(t);
}

static const struct wire_module *find_module(const struct agent_thread *t, uint64_t address)
{
	uint32_t low = 0, high = t->modules ? t->modules->count : 0;
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (t->modules->modules[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!t->modules || low == t->modules->count || address < t->modules->modules[low].start)
		return NULL;
	return &t->modules->modules[low];
}

static const struct recipe *find_recipe(const struct wire_module *m, uint64_t address)
{
	struct table table;
	if (m->flags & WIRE_MODULE_JIT || agent.frame_pointers)
		return NULL;
	if (!m->table_size || m->table + m->table_size > agent.tables_map ||
	    !table_adopt(&table, agent.tables + m->table, m->table_size))
		return &no_recipe;
	return table_find(&table, address - m->bias);
}

/* What is known about the code at an address, from a cache as in unwind/step.h; its key is the one for the
   tree. NULL: the code is of no module. If the place has no recipe, it is walked by frame pointers. */
INLINE const struct step_known *know_place(struct agent_thread *t, uint64_t address)
{
	struct step_known *slot =
		&t->cache.slots[(address * 0x9e3779b97f4a7c15u) >> (64 - STEP_CACHE_BITS)];
	if (__builtin_expect(slot->address != address, 0)) {
		const struct wire_module *m = find_module(t, address);
		if (!m)
			return NULL;
		slot->recipe = find_recipe(m, address);
		slot->key = m->flags & WIRE_MODULE_AGENT ? HIDDEN
							 : cct_key(false, m->id, address - m->bias);
		slot->address = address;
	}
	return slot;
}

uint64_t sample_key(struct agent_thread *t, uint64_t address, uint32_t *flags)
{
	const struct wire_module *m = find_module(t, address);
	*flags = m ? m->flags : 0;
	if (!m || !m->id || m->flags & WIRE_MODULE_AGENT)
		return 0;
	return cct_key(false, m->id, address - m->bias);
}

enum sample_caller sample_caller(struct agent_thread *t, uint64_t address)
{
	const struct wire_module *m = find_module(t, address);
	if (!m)
		return SAMPLE_UNKNOWN;
	if (m->flags & (WIRE_MODULE_JIT | WIRE_MODULE_BARE))
		return SAMPLE_MADE;
	if (!(m->flags & WIRE_MODULE_V8))
		return SAMPLE_PLAIN;
	const struct recipe *r = find_recipe(m, address);
	return r && r->source == RECIPE_FROM_CFI ? SAMPLE_PLAIN : SAMPLE_MADE;
}

const struct recipe *sample_code(struct agent_thread *t, uint64_t address, uint32_t *flags)
{
	const struct wire_module *m = find_module(t, address);
	const struct step_known *place = m ? know_place(t, address) : NULL;
	*flags = m ? m->flags : 0;
	return place ? place->recipe : NULL;
}

/* ---- the walk ---- */

/* Whether the stack word from which the frame's PC was read still holds it. */
INLINE bool is_unchanged(struct agent_thread *t, const struct agent_frame *f)
{
	uint64_t word;
	return f->slot && read_word(t, f->slot, &word) && !((word ^ f->pc) & CPU_HERE.address_bits);
}

/* The same for a group of frames from `f` outwards, with one test for all. */
INLINE bool is_group_unchanged(const struct agent_thread *t, const struct agent_frame *f)
{
	uint64_t low = t->low, size = t->high - t->low, differs = 0;
	if (size < sizeof differs)
		return false;
	for (uint32_t i = 0; i < COMPARED_AT_ONCE; i++, f--) {
		uint64_t word;
		if (f->slot - low > size - sizeof word)
			return false;
		memcpy(&word, (const void *)f->slot, sizeof word);
		differs |= word ^ f->pc;
	}
	return !(differs & CPU_HERE.address_bits);
}

/* How many of the memo's outermost frames are unchanged, because the sentinel is still in its place. */
static uint32_t count_guarded(struct agent_thread *t)
{
	uint64_t slot, stub, word;
	uint32_t count = sentinel_guarded(t, &slot, &stub);
	return count && read_raw(t, slot, &word) && word == stub ? count : 0;
}

/* How many of the outermost `count` frames of the memo must be walked again: 0 if all their words are
   unchanged; else all up to the innermost one that changed, and that one. All are compared: the thread
   may have returned to its first frame since, made another call there, and come to the same inner
   frames again. If the sentinel is still in its place, it has not. */
static uint32_t count_changed(struct agent_thread *t, uint32_t count)
{
	uint32_t guarded = AGENT_CALLS ? count_guarded(t) : 0;
	while (count > guarded) {
		const struct agent_frame *f = frame_at(&t->memo, count - 1);
		uint32_t left = (count - 1) % FRAMES_PER_CHUNK + 1; /* in its chunk */
		if (left > count - guarded)
			left = count - guarded;
		while (left) {
			uint32_t same = left >= COMPARED_AT_ONCE && is_group_unchanged(t, f)
						? COMPARED_AT_ONCE
						: is_unchanged(t, f);
			if (!same)
				return count;
			left -= same;
			f -= same;
			count -= same;
		}
	}
	return 0;
}

bool sample_memo_holds(struct agent_thread *t, uint32_t count, uint64_t sp, uint32_t node)
{
	const struct agent_frame *f = count <= t->memo.count ? frame_at(&t->memo, count - 1) : NULL;
	return f && f->sp == sp && f->node == node && !count_changed(t, count - 1);
}

/* The PC as the memo stores it. FRAME_EXACT keeps two cases apart that may have the same PC: the thread
   was interrupted at this instruction, or the instruction is where a call will return to. */
INLINE uint64_t marked_pc(const struct walk *w)
{
	return w->exact ? w->pc | FRAME_EXACT : w->pc;
}

/* Whether the walk has reached a frame of the memo, and all frames outside it are unchanged, too. *known:
   how many of the memo's outermost frames can still match; frames that cannot are taken off. No word is
   compared twice. */
INLINE bool meets(struct agent_thread *t, const struct walk *w, uint32_t *known)
{
	while (*known) {
		struct agent_frame *f = frame_at(&t->memo, *known - 1);
		if (f->sp > w->sp)
			return false;
		if (f->sp == w->sp && f->pc == marked_pc(w)) {
			if (t->fresh.count + *known > agent.max_depth) {
				*known = 0; /* the limit cuts it elsewhere than the walk before */
				return false;
			}
			uint32_t changed = count_changed(t, *known - 1);
			*known = changed ? changed : *known;
			f->slot = w->slot; /* it may have been in a register before */
			return !changed;
		}
		--*known;
	}
	return false;
}

/* Looks at the next instructions. They can be read, since the thread runs them, but only to the end of
   their page. */
static enum made_frame look_at_code(const struct agent_thread *t, const struct walk *w)
{
	_Alignas(uint32_t) uint8_t code[MADE_BYTES] = {0};
	const struct wire_module *m = w->exact ? find_module(t, w->pc) : NULL;
	uint64_t room = 4096 - w->pc % 4096;
	if (!m || !(m->flags & WIRE_MODULE_READ))
		return MADE_FRAME;
	memcpy(code, (const void *)(uintptr_t)w->pc, room < sizeof code ? room : sizeof code);
	return CPU_HERE.link == CPU_NO_REGISTER ? made_frame_x86_64(code)
						: made_frame_aarch64((const uint32_t *)code);
}

static enum walk_end step_without_recipe(struct agent_thread *t, struct walk *w)
{
	if (!step_unmade(w, look_at_code(t, w), read_word, t) && !step_pointer(w, read_word, t))
		return WALK_BAD_FRAME;
	const struct step_known *caller = know_place(t, w->pc - 1);
	if (caller && caller->recipe && !step_pointer_compiled(w, caller->recipe, t->jit_top))
		return WALK_BAD_FRAME;
	return WALK_ON;
}

/* Walks the stack and fills t->fresh. If the walk meets the memo, *known is the number of memo frames that
   stay; else it is 0. `pointer`: the first step is by the frame pointer, even if there is a recipe. */
static enum walk_end walk_stack(struct agent_thread *t, struct walk *w, uint32_t *known,
				bool pointer)
{
	enum walk_end end;
	*known = t->memo.count;
	t->fresh.count = 0;
	do {
		if (meets(t, w, known))
			return t->memo_end;
		const struct step_known *place = know_place(t, w->pc - !w->exact);
		struct agent_frame *f = t->fresh.count < agent.max_depth ? frames_add(t, &t->fresh)
									 : NULL;
		if (!f) {
			*known = 0;
			return WALK_TOO_DEEP;
		}
		uint64_t key = place ? place->key : cct_key(false, 0, w->pc - !w->exact);
		if (key != HIDDEN && !w->exact)
			key = (key + 1) | CCT_CALL; /* the key is that of the return address */
		*f = (struct agent_frame){
			.sp = w->sp, .pc = marked_pc(w), .slot = w->slot, .key = key};
		if (!place)
			end = WALK_NO_MODULE;
		else
			end = place->recipe && !(pointer && w->exact)
				      ? step_recipe(w, place->recipe, read_word, t)
				      : step_without_recipe(t, w);
	} while (end == WALK_ON);
	*known = 0;
	return end;
}

/* ---- the tree ---- */

/* For --collapse-recursion: the nearest caller that is the same call. */
static uint32_t find_ancestor(const struct cct *tree, uint32_t node, uint64_t key)
{
	while (node && cct_node(tree, node)->key != key)
		node = cct_node(tree, node)->parent;
	return node;
}

INLINE uint32_t insert_frame(struct agent_thread *t, uint32_t parent, uint64_t key)
{
	uint32_t node = 0;
	if (key == HIDDEN)
		return parent;
	if (agent.collapse && key & CCT_CALL)
		node = find_ancestor(&t->tree, parent, key);
	return node ? node : cct_child(&t->tree, parent, key);
}

/* Puts the fresh frames on the memo and into the tree. Returns the innermost frame's node; 0 if there is
   no room. */
static uint32_t insert_path(struct agent_thread *t, uint32_t known, enum walk_end end)
{
	uint32_t node = known ? frame_at(&t->memo, known - 1)->node : t->tree.root;
	if (!known && end != WALK_COMPLETE)
		node = cct_child(&t->tree, node, cct_key(false, CCT_PARTIAL, end));
	t->memo.count = known;
	t->memo_end = (uint8_t)end;
	for (uint32_t i = t->fresh.count; node && i--;) {
		const struct agent_frame *f = frame_at(&t->fresh, i);
		struct agent_frame *m = frames_add(t, &t->memo);
		node = m ? insert_frame(t, node, f->key) : 0;
		if (node)
			*m = (struct agent_frame){f->sp, f->pc, f->slot, .node = node};
	}
	if (!node)
		t->memo.count = 0;
	return node;
}

/* Copies. A sample in code that was loaded a moment ago cannot be walked here. Its registers and stack are
   copied, and the collector walks them as soon as it knows the code. If the collector does not learn of it
   either, copies become rarer. */

/* Whether half of the arena is free: trees need room, too. */
static bool has_room(void)
{
	const struct arena_header *a = agent.arena;
	uint32_t used = atomic_load_explicit(&agent.arena->fresh, memory_order_relaxed);
	return used < a->size / ARENA_CHUNK / 2;
}

/* The arena has room for only a few large copies. If many wait, or trees have taken much of the arena,
   copies are small. */
static unsigned copy_chunks(unsigned waiting)
{
	return waiting < LARGE_COPIES && has_room() ? ARENA_COPY_CHUNKS : SMALL_COPY_CHUNKS;
}

static void copy_stack(struct agent_thread *t, struct arena_copy *s, unsigned chunks)
{
	struct arena_chunk *chunk = &s->chunk;
	char *to = (char *)s->bytes;
	uint64_t from = s->address, room = ARENA_CHUNK - sizeof *s;
	s->cut = false;
	for (unsigned used = 1;;) {
		uint64_t word;
		if (from == t->shared.stack_top || !read_word(t, from, &word))
			break;
		s->cut = !room; /* there is another word, but nowhere to put it */
		if (s->cut)
			break;
		memcpy(to, &word, sizeof word);
		to += sizeof word;
		from += sizeof word;
		room -= sizeof word;
		if (room >= sizeof word)
			continue;
		uint32_t more = used++ < chunks ? arena_take(agent.arena) : 0;
		room = 0;
		if (!more)
			continue;
		atomic_store(&chunk->next, more);
		chunk = arena_at(agent.arena, more);
		to = (char *)(chunk + 1);
		room = ARENA_CHUNK - sizeof *chunk;
	}
	s->size = from - s->address;
}

/* Where the copy of a stack begins. Code may keep words below SP that matter for a walk; they are copied
   if their page is mapped. */
static uint64_t copy_begin(struct agent_thread *t, uint64_t sp)
{
	uint64_t below = sp - CPU_HERE.kept_below;
	if (below == sp || !readable_word(below))
		return sp;
	if (sp >= t->low && sp < t->high && below < t->low)
		t->low = below;
	return below;
}

/* The collector could not walk our copies either: leave fewer of them. */
static void lose_patience(struct agent_thread *t)
{
	uint32_t vain = atomic_load_explicit(&t->shared.vain, memory_order_relaxed);
	if (vain == t->vain)
		return;
	t->vain = vain;
	if (vain - t->vain_first > VAIN_MAX && t->patience < PATIENCE_MAX)
		t->patience *= 2;
}

/* `what`: what is to be counted. */
static bool leave_copy(struct agent_thread *t, const uint64_t *registers, uint64_t pc,
		       const struct arena_copy *what)
{
	unsigned slot = 0, most = has_room() ? ARENA_COPIES : FEW_COPIES;
	if (++t->unknown < t->patience)
		return false;
	while (slot < most && atomic_load(&t->shared.copies[slot]))
		slot++;
	uint32_t chunk = slot < most ? arena_take(agent.arena) : 0;
	if (!chunk)
		return false;
	t->unknown = 0;
	lose_patience(t);
	struct arena_copy *s = arena_at(agent.arena, chunk);
	memcpy((char *)s + sizeof s->chunk, (const char *)what + sizeof s->chunk,
	       sizeof *s - sizeof s->chunk);
	s->ns = agent.timeline ? agent_ns(CLOCK_MONOTONIC) : 0;
	memcpy(s->registers, registers, sizeof s->registers);
	s->pc = pc;
	s->address = copy_begin(t, registers[CPU_HERE.sp] & ~7ull);
	copy_stack(t, s, copy_chunks(slot));
	atomic_store_explicit(&t->shared.copies[slot], chunk, memory_order_release);
	t->rings = true;
	return true;
}

bool sample_leave_copy(struct agent_thread *t, const uint64_t *registers, uint64_t pc,
		       uint32_t event, uint64_t weight, uint64_t site)
{
	const struct arena_copy what = {.event = event, .weight = (uint32_t)weight, .site = site};
	return leave_copy(t, registers, pc, &what);
}

bool sample_leave_values(struct agent_thread *t, const uint64_t *registers, uint64_t pc,
			 const uint64_t below[2], const struct sample_value *values, size_t count)
{
	struct arena_copy what = {.event = values[0].metric,
				  .weight = (uint32_t)values[0].more,
				  .below = {below[0], below[1]},
				  .more_count = (uint32_t)count - 1};
	for (size_t i = 1; i < count; i++) {
		what.more_metrics[i - 1] = values[i].metric;
		what.more[i - 1] = values[i].more;
	}
	return leave_copy(t, registers, pc, &what);
}

/* Finds the rate of ticks, as soon as that can be known. */
static void know_rate(const struct agent_thread *t, uint64_t ticks)
{
	uint64_t samples = t->shared.samples[0];
	if (samples > 1024 || samples & (samples - 1))
		return;
	uint64_t ns = agent_ns(CLOCK_MONOTONIC) - agent.ns_at_start;
	if (ns > 1000000)
		agent.ms_ticks = (ticks - agent.ticks_at_start) * 1000000 / ns;
}

/* The brake. If a walk took longer than a period, the program would get no CPU time. So ten times the time
   of a walk must pass before the next one. Samples that come earlier are skipped, and counted with the
   next. The ticks of a walk may include time in which others had the CPU. So they are bounded by what so
   many frames can cost. Also the time after it may be that of others: after a long walk, the thread itself
   must have had so much CPU time. */

#define NS_WALKED 500u /* per frame, at most */
#define NS_REUSED 50u
#define NS_BESIDES 10000u
#define BRAKE 10
#define NS_LONG 50000u /* what makes a walk long: to ask for the CPU time costs far less */

static uint64_t walk_cost(const struct agent_thread *t, uint64_t ticks)
{
	uint64_t rate = atomic_load_explicit(&agent.ms_ticks, memory_order_relaxed);
	uint64_t most = NS_BESIDES + t->walked * (uint64_t)NS_WALKED +
			t->reused * (uint64_t)NS_REUSED;
	most = most * rate / 1000000;
	return rate && ticks > most ? most : ticks;
}

INLINE bool is_too_early(struct agent_thread *t, uint64_t now)
{
	if (now - t->walk_end < t->walk_ticks * BRAKE)
		return true;
	if (!t->rests_until)
		return false;
	uint64_t cpu = agent_ns(CLOCK_THREAD_CPUTIME_ID);
	if (cpu < t->rests_until)
		return true;
	t->rests_until = cpu;
	return false;
}

/* Returns the ticks that count as ours. Of a long walk after another one the thread's own CPU time is known. */
static uint64_t set_brake(struct agent_thread *t, uint64_t end, uint64_t ticks)
{
	uint64_t rate = atomic_load_explicit(&agent.ms_ticks, memory_order_relaxed);
	uint64_t began = t->rests_until;
	t->walk_end = end;
	t->walk_ticks = walk_cost(t, ticks);
	t->rests_until = 0;
	uint64_t ns = rate ? t->walk_ticks * 1000000 / rate : 0;
	if (ns <= NS_LONG)
		return ticks;
	uint64_t now = agent_ns(CLOCK_THREAD_CPUTIME_ID);
	if (began && now - began < ns) {
		ns = now - began;
		t->walk_ticks = ns * rate / 1000000;
	}
	t->rests_until = now + ns * BRAKE;
	return t->walk_ticks;
}

/* Walks once more. Perhaps the first frame is assembly code of a JIT compiler that the analysis did not
   understand: that keeps frame pointers. If that is no better, the result of the first walk is made again. */
static enum walk_end walk_by_pointer(struct agent_thread *t, struct walk *w,
				     const uint64_t *registers, uint64_t pc, uint32_t *known)
{
	step_begin(w, &CPU_HERE, registers, pc);
	enum walk_end end = walk_stack(t, w, known, true);
	if (end <= WALK_COMPLETE || *known)
		return end;
	step_begin(w, &CPU_HERE, registers, pc);
	return walk_stack(t, w, known, false);
}

static void count_sample(struct agent_thread *t, uint32_t node, uint32_t event, uint64_t weight)
{
	counter_add(&cct_values(cct_node(&t->tree, node))[event], weight);
	if (__builtin_expect(agent.timeline, 0) && !event && !time_line_add(t, node, weight))
		counter_add(&t->shared.untimed, weight);
}

/* While a stub of the sentinel works, the memo is in use: the sample counts to the frame that is returned to. */
static bool count_at_stub(struct agent_thread *t, uint32_t event, uint64_t weight,
			  const uint64_t *registers)
{
	uint32_t node = sentinel_busy_node(registers[CPU_HERE.sp]);
	if (node)
		count_sample(t, node, event, weight);
	return node;
}

/* Stands on the first frame. In a stub of the sentinel that is the one that is returned to. */
static void begin_walk(struct walk *w, const uint64_t *registers, uint64_t pc)
{
	step_begin(w, &CPU_HERE, registers, pc);
	if (AGENT_CALLS && sentinel_is_stub(pc)) {
		w->pc = sentinel_see_through(pc);
		w->exact = false;
	}
}

/* Walks the stack. Returns how that ended. *known: as for walk_stack. */
void sample_prepare(struct agent_thread *t, uint64_t sp)
{
	know_modules(t);
	know_memory(t, sp);
}

static enum walk_end finish_walk(struct agent_thread *t, enum walk_end end, uint32_t *known)
{
	counter_add(&t->shared.walked, t->fresh.count);
	counter_add(&t->shared.reused, *known);
	t->walked = t->fresh.count;
	t->reused = *known;
	return end;
}

enum walk_end sample_walk(struct agent_thread *t, const uint64_t *registers, uint64_t pc,
			  uint32_t *known)
{
	struct walk w;
	sample_prepare(t, registers[CPU_HERE.sp]);
	begin_walk(&w, registers, pc);
	enum walk_end end = walk_stack(t, &w, known, false);
	if (end > WALK_COMPLETE && end != WALK_TOO_DEEP && t->has_jit && !*known)
		end = walk_by_pointer(t, &w, registers, pc, known);
	return finish_walk(t, end, known);
}

enum walk_end sample_walk_caller(struct agent_thread *t, const uint64_t *registers,
				 uint64_t returns, uint32_t *known)
{
	struct walk w;
	sample_prepare(t, registers[CPU_HERE.sp]);
	step_begin(&w, &CPU_HERE, registers, returns);
	w.exact = false;
	return finish_walk(t, walk_stack(t, &w, known, false), known);
}

uint32_t sample_node(struct agent_thread *t, uint32_t known, enum walk_end end,
		     const uint64_t *registers)
{
	uint32_t node = insert_path(t, known, end);
	if (AGENT_CALLS && node)
		sentinel_judge(t, known, registers);
	if (node &&
	    __builtin_expect(atomic_load_explicit(&agent.arena->has_python, memory_order_acquire),
			     0))
		node = script_insert(t, node);
	return node;
}

static void take(struct agent_thread *t, uint32_t event, uint64_t weight, const ucontext_t *context)
{
	const uint64_t *registers = cpu_registers(context, t->registers);
	uint64_t pc = cpu_pc(context);
	uint32_t known;
	counter_add(&t->shared.samples[event], 1);
	if (!event)
		counter_add(&t->shared.weight, weight);
	if (AGENT_CALLS && count_at_stub(t, event, weight, registers))
		return;
	if (AGENT_CALLS)
		registers = sentinel_registers(registers, t->registers);
	enum walk_end end = sample_walk(t, registers, pc, &known);
	if (end == WALK_NO_MODULE && sample_leave_copy(t, registers, pc, event, weight, 0))
		return;
	uint32_t node = sample_node(t, known, end, registers);
	if (AGENT_CALLS && node)
		sentinel_place(t, pc, registers[CPU_HERE.sp]);
	if (node)
		count_sample(t, node, event, weight);
	else
		counter_add(&t->shared.lost, weight);
}

/* The event of a signal; -1 if the signal is not from us. */
static int event_of(const siginfo_t *info, bool *by_chance)
{
	int count = (int)agent.event_count;
	*by_chance = false;
	if (info->si_code == SI_TIMER)
		return info->si_value.sival_ptr == &agent ? 0 : -1;
	if (info->si_code < POLL_IN || info->si_code > POLL_HUP)
		return -1;
	if (!count) /* the collector has not answered yet */
		return 0;
	*by_chance = info->si_fd % (2 * count) >= count;
	return info->si_fd % count;
}

static void handle(struct agent_thread *t, uint32_t event, bool by_chance,
		   const ucontext_t *context)
{
	uint64_t entry = ticks_now();
	if (is_too_early(t, entry)) {
		t->skipped[event]++;
		return;
	}
	/* The kernel often switches to another thread when it is asked for the CPU time. That
	   is no cost of ours, so this call is not measured here; what it costs was measured
	   before (agent.clock_ticks). */
	uint64_t weight = weight_of(t, event, by_chance), start = ticks_now();
	t->walked = t->reused = 0;
	if (weight)
		take(t, event, weight, context);
	uint64_t end = ticks_now();
	know_rate(t, end);
	uint64_t ours = set_brake(t, end, end - start);
	counter_add(&t->shared.ticks, ours + (event || t->unasked ? 0 : agent.clock_ticks));
	if (__builtin_expect(agent.follow, 0) && !event && weight)
		follow_sample(t, context);
	if (t->rings) /* last, since the collector may take the CPU at once */
		agent_ring();
	t->rings = false;
}

/* ---- samples by calls ---- */

static __thread volatile bool busy __attribute__((tls_model("initial-exec")));

struct agent_thread *call_enter(void)
{
	struct agent_thread *t = agent_self;
	if (!t || busy || atomic_load_explicit(&agent.arena->stop, memory_order_relaxed))
		return NULL;
	busy = true;
	return t;
}

void call_leave(void)
{
	busy = false;
}

bool sample_on_signal(int signal, siginfo_t *info, void *context)
{
	bool by_chance;
	int saved = errno, event = event_of(info, &by_chance);
	struct agent_thread *t = AGENT_LATE ? late_enter(context) : agent_self;
	(void)signal;
	if (event >= 0 && t && busy)
		t->skipped[event]++; /* the thread walks its stack already */
	else if (event >= 0 && t && !atomic_load_explicit(&agent.arena->stop, memory_order_relaxed))
		handle(t, (uint32_t)event, by_chance, context);
	if (AGENT_LATE)
		late_leave();
	errno = saved;
	return event < 0;
}

uint32_t sample_called(struct agent_thread *t, uint32_t node, uint64_t function)
{
	const struct step_known *place = know_place(t, function);
	return place && place->key != HIDDEN ? cct_child(&t->tree, node, place->key) : node;
}

uint64_t sample_function_key(struct agent_thread *t, uint64_t function)
{
	know_modules(t);
	const struct step_known *place = function ? know_place(t, function) : NULL;
	return place && place->key != HIDDEN ? (place->key + 1) | CCT_CALL : 0;
}
