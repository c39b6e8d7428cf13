/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of interpreted functions: safe/python.h says where the interpreter keeps them. After a walk they
 * are read, and stand in the tree in place of the frames that run them:
 *
 *    stack:  main    run    eval         sort    eval            eval: the C function that runs Python's functions
 *    calls:                 f   g                h
 *    tree:   main    run    f   g        sort    h
 *
 * A call's record on the C stack tells which frame runs it. When a function is met first, what the
 * interpreter knows about it is copied into the arena: its memory may be gone when the collector looks.
 *
 * The interpreter may be interrupted while it changes its lists. So nothing is read before the kernel was asked
 * whether it can be read, and what does not fit the stack is left out.
 */
#include <string.h>

#include "agent/agent.h"
#include "agent/cpu.h"
#include "agent/frames.h"
#include "safe/readable.h"

#define PAGE 4096u
#define PAGES 8u             /* that are known to be readable, in one sample */
#define INTERPRETERS_MAX 64u /* of a process */
#define THREADS_MAX 4096u    /* of all interpreters */
#define CALLS_MAX 4096u      /* of a sample */
#define PROBES 16u           /* in a table of functions */
#define NAME_MAX_BYTES 1024u /* of a name or a path */
#define LINES_MAX 8192u      /* bytes of a table of lines */
#define CODE_MAX 512u        /* bytes of a code object that are copied */
/* A list without end, or a long search in vain, is not worth its time in each sample: then nothing is
   read for a while. */
#define SEEN_A_SAMPLE 8u  /* threads that may be looked at in each sample */
#define ENDLESS_REST 512u /* samples */
#define CHECKED_ALWAYS 8u /* innermost calls, with the ends of groups */

struct reader {
	uint64_t pages[PAGES];
	uint32_t next;
};

/* ---- memory ---- */

static bool can_read(struct reader *r, uint64_t page)
{
	if (!page) /* which also stands for an entry that is free */
		return false;
	for (uint32_t i = 0; i < PAGES; i++)
		if (r->pages[i] == page)
			return true;
	if (!readable_word(page))
		return false;
	r->pages[r->next++ % PAGES] = page;
	return true;
}

/* How many of these bytes can be read, from the first one on. */
static uint64_t readable_part(struct reader *r, uint64_t address, uint64_t size)
{
	uint64_t part = 0;
	if (address + size < address)
		return 0;
	while (part < size && can_read(r, (address + part) & ~(uint64_t)(PAGE - 1)))
		part += PAGE - (address + part) % PAGE;
	return part < size ? part : size;
}

static bool read_bytes(struct reader *r, uint64_t address, void *out, uint64_t size)
{
	if (readable_part(r, address, size) < size)
		return false;
	memcpy(out, (const void *)(uintptr_t)address, size);
	return true;
}

/* 0 if it cannot be read. */
static uint64_t word(struct reader *r, uint64_t address)
{
	uint64_t value;
	return read_bytes(r, address, &value, sizeof value) ? value : 0;
}

/* ---- calls ---- */

/* Whether the interpreter's thread is this one. What pthread_self() says is at the thread pointer
   (x86-64) or less than a page before it. */
static bool is_self(struct reader *r, const struct python_layout *l, uint64_t thread)
{
	return cpu_thread_pointer() - word(r, thread + l->thread_ident) < PAGE;
}

/* This one, among an interpreter's threads; 0: it is none of them. `left`: how many may still be looked at. */
static uint64_t find_self(struct reader *r, const struct python_layout *l, uint64_t interpreter,
			  uint32_t *left)
{
	uint64_t thread = word(r, interpreter + l->interpreter_thread);
	for (; thread && *left; --*left) {
		if (is_self(r, l, thread))
			return thread;
		thread = word(r, thread + l->thread_next);
	}
	return 0;
}

/* The interpreter's thread that this one is; 0: none. Lists may be circles. */
static uint64_t find_thread(struct agent_thread *t, struct reader *r, const struct python *p)
{
	const struct python_layout *l = &p->layout;
	if (t->script_thread && is_self(r, l, t->script_thread))
		return t->script_thread;
	t->script_thread = 0;
	uint64_t interpreter = word(r, p->runtime + l->runtime_interpreter);
	uint32_t left = THREADS_MAX;
	for (uint32_t i = 0; interpreter && left && i < INTERPRETERS_MAX; i++) {
		t->script_thread = find_self(r, l, interpreter, &left);
		if (t->script_thread)
			return t->script_thread;
		interpreter = word(r, interpreter + l->interpreter_next);
	}
	t->script_rest = (THREADS_MAX - left) / SEEN_A_SAMPLE;
	return 0;
}

/* A call, or the end of a group of calls. They are kept in the list of fresh frames, which the walk does not
   need any more, and in chunks like those of that list. */
struct call {
	uint64_t code;        /* the code object; 0: the group ends here */
	uint64_t instruction; /* at the end of a group: where on the C stack it belongs */
	uint64_t frame;       /* the interpreter's */
	uint64_t function;    /* in the calls of the sample before: reference of its copy */
};
_Static_assert(sizeof(struct call) == sizeof(struct agent_frame),
	       "a call takes the place of a frame");

static struct call *call_at(const struct agent_thread *t, uint32_t index)
{
	return (struct call *)frame_at(&t->fresh, index);
}

static bool add_call(struct agent_thread *t, uint64_t code, uint64_t instruction, uint64_t frame)
{
	struct call *c = t->fresh.count < CALLS_MAX ? (struct call *)frames_add(t, &t->fresh)
						    : NULL;
	if (c)
		*c = (struct call){.code = code, .instruction = instruction, .frame = frame};
	return c;
}

/* Whether the group that ends with the last frame of the list is one that the C stack does not know: from 3.15 on, each
   thread has a frame of its own, outside of all others. It runs nothing. */
static bool is_threads_own(const struct agent_thread *t, uint64_t outer)
{
	return !outer && t->fresh.count && !call_at(t, t->fresh.count - 1)->code;
}

/* As python_calls() in script/python.c. False: there are too many, or it makes no sense. */
static bool read_calls(struct agent_thread *t, struct reader *r, const struct python *p)
{
	const struct python_layout *l = &p->layout;
	uint64_t thread = find_thread(t, r, p);
	uint64_t record = thread ? word(r, thread + l->thread_calls) : 0;
	uint64_t frame = l->has_record && record ? word(r, record + l->record_frame) : record;
	t->fresh.count = 0;
	while (frame) {
		uint8_t mark = 0;
		uint64_t here = frame;
		if (!read_bytes(r, here + l->frame_mark, &mark, sizeof mark))
			return false;
		bool last = mark == l->mark_last;
		frame = word(r, here + l->frame_previous);
		if (last && !l->by_record) {
			if (!is_threads_own(t, frame) && !add_call(t, 0, here, 0))
				return false;
			continue;
		}
		uint64_t code = word(r, here + l->frame_code) & ~7ull;
		if (!code || !add_call(t, code, word(r, here + l->frame_instruction), here))
			return false; /* that is no frame, or there are too many */
		if (!last)
			continue;
		if (!add_call(t, 0, record, 0))
			return false;
		record = word(r, record + l->record_previous);
		frame = record ? word(r, record + l->record_frame) : 0;
	}
	return t->fresh.count;
}

/* ---- functions ---- */

struct entry { /* of a table of functions that were met */
	uint64_t code, identity;
	uint64_t function; /* reference of its copy; 0: the entry is free */
};
#define ENTRIES ((uint32_t)((ARENA_CHUNK - sizeof(struct arena_chunk)) / sizeof(struct entry)))

/* Tells the code object from one that had its place before. As identity_of() in collect/kernel/bpf/script.h. */
static uint64_t identity_of(struct reader *r, const struct python *p, uint64_t code)
{
	uint64_t words[PYTHON_NAME_WORDS] = {0}, identity = (uint32_t)word(r, code + p->code_line);
	if (!read_bytes(r, word(r, code + p->code_name) + PYTHON_LENGTH, words, sizeof words))
		return identity;
	for (int i = 0; i < PYTHON_NAME_WORDS; i++)
		if (i != PYTHON_NAME_HASH)
			identity = (identity ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return identity;
}

/* Room for a copy; NULL: there is none. */
static struct arena_script *make_room(struct agent_thread *t, uint32_t size)
{
	struct arena_chunk *chunk = t->script_text ? arena_at(agent.arena, t->script_text) : NULL;
	if (!chunk || chunk->used + size > ARENA_CHUNK) {
		t->script_text = scratch_take(t);
		chunk = t->script_text ? arena_at(agent.arena, t->script_text) : NULL;
	}
	if (!chunk)
		return NULL;
	struct arena_script *s = (struct arena_script *)((char *)chunk + chunk->used);
	atomic_store_explicit(&chunk->used, chunk->used + size, memory_order_release);
	return s;
}

struct wanted { /* a piece of memory that the collector will want */
	uint64_t address;
	uint32_t size;
};

static struct wanted text_at(struct reader *r, uint64_t object)
{
	uint64_t length = object ? word(r, object + PYTHON_LENGTH) : 0;
	uint64_t bytes = length < NAME_MAX_BYTES ? length * 4 : 0;
	if (bytes > NAME_MAX_BYTES)
		bytes = length; /* not all of it if it is not ASCII: then it has no name */
	return (struct wanted){object, PYTHON_TEXT_HEAD + (uint32_t)bytes};
}

/* Text may end before the piece does, at the end of what can be read. */
static uint32_t copy_piece(struct reader *r, struct wanted w, struct python_piece *to)
{
	uint32_t size = (uint32_t)readable_part(r, w.address, (w.size + 7) & ~7u) & ~7u;
	memcpy(to->bytes, (const void *)(uintptr_t)w.address, size);
	to->address = w.address;
	to->size = size;
	return (uint32_t)sizeof *to + size;
}

static uint64_t copy_function(struct agent_thread *t, struct reader *r, const struct python *p,
			      uint64_t code)
{
	uint64_t lines = word(r, code + p->code_lines);
	uint64_t lines_size = lines ? word(r, lines + PYTHON_LENGTH) : 0;
	const struct wanted wanted[] = {
		{code, CODE_MAX},
		text_at(r, word(r, code + p->code_name)),
		text_at(r, word(r, code + p->code_file)),
		{lines, PYTHON_BYTES + (uint32_t)(lines_size < LINES_MAX ? lines_size : 0)},
	};
	uint32_t size = sizeof(struct arena_script), count = sizeof wanted / sizeof *wanted;
	for (uint32_t i = 0; i < count; i++)
		size += (uint32_t)sizeof(struct python_piece) + ((wanted[i].size + 7) & ~7u);
	struct arena_script *s = make_room(t, size);
	if (!s)
		return 0;
	*s = (struct arena_script){.code = code, .size = size};
	char *to = (char *)(s + 1);
	for (uint32_t i = 0; i < count; i++)
		to += copy_piece(r, wanted[i], (struct python_piece *)to);
	return (uint64_t)((char *)s - (char *)agent.arena) / 8;
}

/* The entry of a function, or a free one; NULL: the table is full. */
static struct entry *find_entry(const struct agent_thread *t, uint32_t table, uint64_t code,
				uint64_t identity)
{
	struct entry *all = (struct entry *)((struct arena_chunk *)arena_at(
						     agent.arena, t->script_tables[table]) +
					     1);
	uint32_t first = (uint32_t)((code ^ identity) * UINT64_C(0x9e3779b97f4a7c15) >> 40);
	for (uint32_t i = 0; i < PROBES; i++) {
		struct entry *e = &all[(first + i) % ENTRIES];
		if (!e->function || (e->code == code && e->identity == identity))
			return e;
	}
	return NULL;
}

static bool add_table(struct agent_thread *t)
{
	uint32_t chunk = t->script_table_count < SCRIPT_TABLES ? scratch_take(t) : 0;
	if (!chunk)
		return false;
	struct arena_chunk *head = arena_at(agent.arena, chunk);
	memset(head + 1, 0, ARENA_CHUNK - sizeof *head);
	t->script_tables[t->script_table_count++] = chunk;
	return true;
}

/* The reference of the function's copy; 0: there is no room. */
static uint64_t find_function(struct agent_thread *t, struct reader *r, const struct python *p,
			      uint64_t code)
{
	uint64_t identity = identity_of(r, p, code);
	for (uint32_t i = 0;; i++) {
		if (i == t->script_table_count && !add_table(t))
			return 0;
		struct entry *e = find_entry(t, i, code, identity);
		if (e && !e->function)
			*e = (struct entry){code, identity, copy_function(t, r, p, code)};
		if (e)
			return e->function;
	}
}

/* ---- the tree ---- */

/* Whether the outermost group of those up to `left` belongs to frame `i` of the memo. */
static bool is_host(const struct agent_thread *t, uint32_t i, uint32_t left)
{
	const struct call *group = left ? call_at(t, left - 1) : NULL;
	uint64_t end = i ? frame_at(&t->memo, i - 1)->sp : UINT64_MAX;
	if (!group || group->code)
		return false;
	uint64_t place = group->instruction;
	return place >= frame_at(&t->memo, i)->sp && place < end;
}

/* The number of calls from the outermost one of a group to its innermost one. */
static uint32_t group_size(const struct agent_thread *t, uint32_t left)
{
	uint32_t size = 0;
	while (size < left && call_at(t, left - 1 - size)->code)
		size++;
	return size;
}

/* Whether all groups belong to frames of the stack. */
static bool fits(const struct agent_thread *t)
{
	uint32_t left = t->fresh.count;
	for (uint32_t i = 0; i < t->memo.count && left; i++)
		if (is_host(t, i, left)) {
			left--;
			left -= group_size(t, left);
		}
	return !left;
}

/* The place of a call in what is kept of the sample before; NULL: it is too far in. */
static struct call *called_at(struct agent_thread *t, uint32_t number)
{
	uint32_t index = number / FRAMES_PER_CHUNK;
	if (index < CALLED_CHUNKS && !t->called[index])
		t->called[index] = scratch_take(t);
	if (index >= CALLED_CHUNKS || !t->called[index])
		return NULL;
	struct call *first = arena_at(agent.arena, t->called[index]);
	return first + 1 + number % FRAMES_PER_CHUNK;
}

/* The function of a call. Asking what is at an address takes longer than all else, so it is not done
   for a caller that is in the same frame and at the same instruction as in the sample before. `number`:
   of calls farther out; `left`: of those farther in. Returns the reference of its copy; 0: there is no
   room. */
static uint64_t know_function(struct agent_thread *t, struct reader *r, const struct python *p,
			      const struct call *call, uint32_t number, uint32_t left)
{
	struct call *before = number <= t->called_count ? called_at(t, number) : NULL;
	if (before && number < t->called_count && left >= CHECKED_ALWAYS &&
	    before->code == call->code && before->instruction == call->instruction &&
	    before->frame == call->frame)
		return before->function;
	uint64_t function = find_function(t, r, p, call->code);
	if (before) { /* what was called from here on before is of no use */
		*before = *call;
		before->function = function;
		t->called_count = function ? number + 1 : number;
	}
	return function;
}

static uint32_t insert_call(struct agent_thread *t, const struct python *p, uint32_t parent,
			    const struct call *call, uint64_t function)
{
	uint64_t unit = (call->instruction - call->code - p->code_start) / PYTHON_UNIT;
	if (unit > CCT_SCRIPT_UNIT)
		unit = CCT_SCRIPT_UNIT;
	return cct_child(&t->tree, parent,
			 cct_key(false, CCT_SCRIPT, function << CCT_SCRIPT_BITS | unit));
}

uint32_t script_insert(struct agent_thread *t, uint32_t native)
{
	const struct python *p = &agent.arena->python;
	struct reader r = {0};
	if (t->script_rest) {
		t->script_rest--;
		return native;
	}
	bool read = read_calls(t, &r, p);
	if (t->fresh.count == CALLS_MAX)
		t->script_rest = ENDLESS_REST;
	if (!read || !fits(t))
		return native;
	uint32_t node = t->tree.root, left = t->fresh.count, before = 0, number = 0;
	if (t->memo_end != WALK_COMPLETE)
		node = cct_child(&t->tree, node, cct_key(false, CCT_PARTIAL, t->memo_end));
	for (uint32_t i = 0; i < t->memo.count && node; i++) {
		uint32_t place = frame_at(&t->memo, i)->node;
		if (is_host(t, i, left)) {
			left--;
			for (uint32_t n = group_size(t, left); n && node; n--, left--) {
				const struct call *call = call_at(t, left - 1);
				uint64_t function = know_function(t, &r, p, call, number++, left);
				node = function ? insert_call(t, p, node, call, function) : 0;
			}
		} else if (place != before) {
			/* Frames that are left out have their caller's node. */
			node = cct_child(&t->tree, node, cct_node(&t->tree, place)->key);
		}
		before = place;
		if (i && frame_at(&t->memo, i - 1)->returns && node)
			frame_at(&t->memo, i - 1)->returns = node;
	}
	return node ? node : native;
}
