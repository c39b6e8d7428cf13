/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * Calls of interpreted functions: safe/python.h says where the interpreter keeps them. They are read
 * before the stack is walked. The walk then finds the frames of the C function that runs them: its hosts.
 * take.h uses it.
 *
 * The state of the loops is in the map's memory. On the stack, the verifier would follow each round.
 */
#include "collect/kernel/bpf/maps.h"
#include "collect/kernel/bpf/record.h"

#define THREADS_SEEN 4096u /* of an interpreter, when the current one is looked for */
#define SEEN_A_SAMPLE 8u   /* threads that may be looked at in each sample */
#define ENDLESS_REST 512u  /* samples */
#define FRAME_BYTES 128u   /* of an interpreter's frame that are read at once */
/* What pthread_self() says is at the thread pointer (x86-64) or less than this before it. */
#define THREAD_BYTES 4096u

struct script_reader {
	struct workspace *ws;
	struct kernel_script *script;
};

INLINE uint64_t user_word(uint64_t address)
{
	uint64_t word = 0;
	return bpf_probe_read_user(&word, sizeof word, (void *)address) ? 0 : word;
}

INLINE bool is_current(struct kernel_script *s, uint64_t thread)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	return cpu_thread_pointer(task) - user_word(thread + s->layout.thread_ident) < THREAD_BYTES;
}

/* Looks at one thread of the interpreter. */
static long see_thread(uint32_t i, struct script_reader *r)
{
	struct kernel_script *s = r->script;
	struct workspace *ws = r->ws;
	ws->calls.seen++;
	if (!ws->calls.thread) {
		ws->calls.interpreter = user_word(ws->calls.interpreter +
						  s->layout.interpreter_next);
		if (!ws->calls.interpreter)
			return 1;
		ws->calls.thread = user_word(ws->calls.interpreter + s->layout.interpreter_thread);
		return 0;
	}
	if (is_current(s, ws->calls.thread))
		return 1;
	ws->calls.thread = user_word(ws->calls.thread + s->layout.thread_next);
	return 0;
}

/* Finds the interpreter's thread that runs now; it was the one in the memo most of the time. On aarch64
   the kernel learns the thread pointer when the thread first leaves the CPU: until then the first
   thread is taken if it is the only one. */
INLINE void find_thread(struct script_reader *r, struct memo *memo)
{
	struct kernel_script *s = r->script;
	struct workspace *ws = r->ws;
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	ws->calls.thread = memo->script_thread;
	if (ws->calls.thread && is_current(s, ws->calls.thread))
		return;
	ws->calls.interpreter = user_word(s->runtime + s->layout.runtime_interpreter);
	if (!ws->calls.interpreter)
		return;
	uint64_t first = user_word(ws->calls.interpreter + s->layout.interpreter_thread);
	ws->calls.thread = first;
	bpf_loop(THREADS_SEEN, see_thread, r, 0);
	if (!ws->calls.thread && !cpu_thread_pointer(task) && task->pid == task->tgid && first &&
	    !user_word(first + s->layout.thread_next))
		ws->calls.thread = first;
	memo->script_thread = ws->calls.thread;
}

INLINE uint64_t frame_word(const struct calls *c, uint64_t offset)
{
	MASK(offset, FRAME_BYTES - 8);
	return *(const uint64_t *)(c->bytes + offset);
}

INLINE void add_call(struct calls *c, uint64_t code, uint64_t instruction, uint64_t identity)
{
	uint64_t n = c->head.count;
	if (n >= KERNEL_CALLS)
		return;
	MASK(n, KERNEL_CALLS - 1);
	c->all[n].code = code;
	c->all[n].instruction = instruction;
	c->all[n].identity = identity;
	c->head.count++;
}

/* Ends a group of calls: `at` is on the C stack, in the frame that runs them. */
INLINE void add_mark(struct calls *c, uint64_t at)
{
	uint64_t n = c->marks;
	MASK(n, KERNEL_MARKS - 1);
	if (c->marks < KERNEL_MARKS)
		c->at[n] = at;
	c->marks++;
	add_call(c, 0, at, 0);
}

/* Goes to the frames of the next record outwards. */
INLINE long next_record(struct calls *c, struct kernel_script *s)
{
	c->record = user_word(c->record + s->layout.record_previous);
	c->frame = c->record ? user_word(c->record + s->layout.record_frame) : 0;
	return !c->frame;
}

/* Code objects may be freed, and others take their places, even with names and tables at the same
   addresses: what they say tells them apart. */
INLINE uint64_t identity_of(struct calls *c, struct kernel_script *s, uint64_t code)
{
	uint64_t name = user_word(code + s->code_name) + PYTHON_LENGTH,
		 identity = (uint32_t)user_word(code + s->code_line);
	if (bpf_probe_read_user(c->name, sizeof c->name, (void *)name))
		return identity;
#pragma clang loop unroll(full)
	for (int i = 0; i < PYTHON_NAME_WORDS; i++)
		if (i != PYTHON_NAME_HASH)
			identity = (identity ^ c->name[i]) * 0x9e3779b97f4a7c15ull;
	return identity;
}

static long read_call(uint32_t i, struct script_reader *r)
{
	struct kernel_script *s = r->script;
	struct calls *c = &r->ws->calls;
	uint64_t frame = c->frame, mark = s->layout.frame_mark;
	if (!frame || c->head.count >= KERNEL_CALLS - 1 ||
	    bpf_probe_read_user(c->bytes, FRAME_BYTES, (void *)frame))
		return 1;
	MASK(mark, FRAME_BYTES - 1);
	bool last = c->bytes[mark] == s->layout.mark_last;
	c->frame = frame_word(c, s->layout.frame_previous);
	if (last && !s->layout.by_record) {
		add_mark(c, frame);
		return 0;
	}
	/* The lowest bits are marks of references. */
	uint64_t code = frame_word(c, s->layout.frame_code) & ~7ull;
	if (!code) /* that is no frame */
		return 1;
	add_call(c, code, frame_word(c, s->layout.frame_instruction), identity_of(c, s, code));
	if (!last)
		return 0;
	add_mark(c, c->record);
	return next_record(c, s);
}

/* Reads the calls of the current thread into the workspace. A list without end, or a long search in
   vain, is not worth its time in each sample: then nothing is read for a while. */
CHECKED int read_calls(struct workspace *ws, struct memo *memo, struct kernel_script *script)
{
	if (!ws || !memo || !script)
		return 0;
	if (memo->script_rest) {
		memo->script_rest--;
		return 0;
	}
	struct script_reader r = {ws, script};
	ws->calls.seen = 0;
	find_thread(&r, memo);
	uint64_t first = ws->calls.thread;
	if (!first) {
		memo->script_rest = ws->calls.seen / SEEN_A_SAMPLE;
		return 0;
	}
	first = user_word(first + script->layout.thread_calls);
	ws->calls.record = first;
	ws->calls.frame = script->layout.has_record && first
				  ? user_word(first + script->layout.record_frame)
				  : first;
	bpf_loop(KERNEL_CALLS, read_call, &r, 0);
	if (ws->calls.head.count >= KERNEL_CALLS - 2) {
		ws->calls.marks = ws->calls.head.count = 0;
		memo->script_rest = ENDLESS_REST;
	}
	return 0;
}

/* Copies memory: as much as there is room for; if not all of that can be read, what is in the same page. */
#define COPY_PIECE(f, piece, from)                                                             \
	do {                                                                                   \
		uint64_t at_ = (from), rest_ = 4096 - (at_ & 4095);                            \
		if (rest_ > sizeof f->piece.bytes)                                             \
			rest_ = sizeof f->piece.bytes;                                         \
		f->piece.address = at_;                                                        \
		f->piece.size = sizeof f->piece.bytes;                                         \
		if (bpf_probe_read_user(f->piece.bytes, sizeof f->piece.bytes, (void *)at_) && \
		    bpf_probe_read_user(f->piece.bytes, (uint32_t)rest_, (void *)at_))         \
			f->piece.address = 0;                                                  \
	} while (0)

/* Sends what the interpreter knows of a function: it may be gone when the collector looks. */
INLINE long send_function(struct script_reader *r, uint64_t code, uint64_t identity)
{
	struct kernel_function *f = &r->ws->function;
	fill_head(&f->head, KERNEL_FUNCTION, 0, bpf_ktime_get_ns());
	f->code = code;
	f->identity = identity;
	COPY_PIECE(f, object, code);
	COPY_PIECE(f, name, user_word(code + r->script->code_name));
	COPY_PIECE(f, file, user_word(code + r->script->code_file));
	COPY_PIECE(f, lines, user_word(code + r->script->code_lines));
	return bpf_ringbuf_output(&ring, f, sizeof *f, wake(0));
}

/* Sends the function of a call if the collector does not know it. */
static long see_code(uint32_t i, struct script_reader *r)
{
	struct calls *c = &r->ws->calls;
	uint64_t n = i, one = 1;
	if (n >= c->head.count)
		return 1;
	MASK(n, KERNEL_CALLS - 1);
	uint64_t code = c->all[n].code, identity = c->all[n].identity;
	uint64_t key = code ^ identity << 8 ^ (bpf_get_current_pid_tgid() >> 32) << 40;
	if (!code || bpf_map_lookup_elem(&codes, &key))
		return 0;
	if (send_function(r, code, identity))
		__sync_fetch_and_add(&counts.lost_records, 1);
	else
		bpf_map_update_elem(&codes, &key, &one, BPF_ANY);
	return 0;
}

/* Sends the calls, before the path or the copy that they belong to. */
CHECKED int send_calls(struct workspace *ws, struct kernel_script *script, uint32_t event,
		       uint64_t start)
{
	if (!ws || !script)
		return 0;
	struct script_reader r = {ws, script};
	struct calls *c = &ws->calls;
	bpf_loop(KERNEL_CALLS, see_code, &r, 0);
	uint64_t count = c->head.count;
	fill_head(&c->head.head, KERNEL_CALLED, event, start);
	if (count > KERNEL_CALLS)
		count = KERNEL_CALLS;
	if (bpf_ringbuf_output(&ring, &c->head, sizeof c->head + count * sizeof *c->all, wake(0)))
		__sync_fetch_and_add(&counts.lost_records, 1);
	return 0;
}
