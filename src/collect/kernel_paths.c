/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what the sampler sends to the tree of the profile. A path says which of
 * the frames of its memo stay: their nodes are kept here, so that only frames
 * that are new are looked up.
 */
#include "collect/kernel_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/err.h"
#include "cct/cct.h"
#include "collect/stack.h"

#define PAGE 4096u
#define WAITING_MAX ((uint64_t)512 << 20) /* bytes */
#define UNRESOLVED_MAX 64u /* stacks in a row that looking at the process's memory did not help */

/* The sampler cannot include the tree's header. */
_Static_assert(KERNEL_KEY_CALL == CCT_CALL && KERNEL_KEY_BITS == CCT_ADDRESS_BITS &&
		       KERNEL_KEY_KERNEL == CCT_KERNEL << CCT_ADDRESS_BITS,
	       "keys are as in the tree");

static struct kernel_memo *find_memo(struct kernel *k, uint32_t number)
{
	if (number == KERNEL_NO_MEMO)
		number = 1u << k->memo_bits; /* one for those that keep nothing */
	if (number > 1u << k->memo_bits)
		return NULL;
	struct kernel_memo **memo = &k->memos[number];
	if (!*memo)
		*memo = calloc(1, sizeof **memo);
	return *memo;
}

void paths_close(struct kernel *k)
{
	for (size_t i = 0; k->memos && i <= 1u << k->memo_bits; i++)
		free(k->memos[i]);
	for (struct kernel_waiting *w = k->waiting, *next; w; w = next) {
		next = w->next;
		free(w);
	}
}

/* With bounded recursion: the nearest frame outwards that is the same call. */
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

static struct err *add_frame(struct session *s, struct process *p, uint64_t key, uint32_t *node)
{
	uint32_t parent = *node;
	struct err *e = harvest_child(s, &s->harvest, p, parent, key, node);
	if (!e && s->options.collapse && key & CCT_CALL)
		find_ancestor(s->harvest.profile, parent, node);
	return e;
}

static struct err *add_root(struct session *s, struct process *p, uint32_t end, uint32_t *node)
{
	*node = 0;
	if (end == WALK_COMPLETE)
		return NULL;
	return harvest_child(s, &s->harvest, p, 0, cct_key(false, CCT_PARTIAL, end), node);
}

static struct err *count(struct session *s, uint32_t thread, uint32_t node, uint32_t event,
			 uint32_t end, uint64_t time)
{
	struct err *e = profile_count(s->harvest.profile, node, thread, event, 1);
	if (!e && !event && s->options.timeline)
		e = profile_time(s->harvest.profile, node, thread, 0, session_since(s, time), 1);
	if (!e && !event) {
		s->samples++;
		s->partial += end != WALK_COMPLETE;
	}
	return e;
}

/* A thread that has ended still takes a moment of the kernel's: that is its process's. */
static pid_t whose(const struct session *s, const struct kernel_path *path, const uint64_t *keys)
{
	bool after = path->fresh == 1 && cct_key_module(keys[0]) == CCT_KERNEL;
	if (!after || tasks_known(s, (pid_t)path->head.thread))
		return (pid_t)path->head.thread;
	return tasks_known(s, (pid_t)path->head.process) ? (pid_t)path->head.process : 0;
}

void paths_take(struct session *s, const struct kernel_path *path, const uint64_t *keys)
{
	struct kernel *k = s->kernel;
	pid_t tid = whose(s, path, keys);
	if (!tid)
		return;
	struct kernel_thread *t = tasks_find(s, (pid_t)path->head.process, tid);
	struct kernel_memo *memo = find_memo(k, path->memo);
	if (!t || !memo || path->head.event >= s->options.event_count ||
	    (path->kept && (memo->thread != path->head.thread || path->kept > memo->count)) ||
	    path->kept + path->fresh > KERNEL_FRAMES) {
		k->confused++;
		return;
	}
	uint32_t node, thread;
	struct err *e = tasks_keep(s, t, &thread);
	memo->thread = path->head.thread;
	memo->count = path->kept;
	if (path->kept)
		node = memo->nodes[path->kept - 1];
	else if (!e)
		e = add_root(s, t->process, path->end, &node);
	for (uint32_t i = path->fresh; !e && i; i--) {
		e = add_frame(s, t->process, keys[i - 1], &node);
		memo->nodes[memo->count++] = node;
	}
	if (!e)
		e = count(s, thread, node, path->head.event, path->end, path->head.time);
	t->handler_ns += path->ns;
	t->handled++;
	if (e) {
		memo->count = 0;
		s->notes.unkept++;
	}
	err_free(e);
}

/* ---- stacks that are walked here ---- */

/* What the sampler could not reach in the interrupt: memory that the program had not touched for
   long, and mostly has not since. */
static bool read_late(const struct kernel_waiting *stack, uint64_t address, uint64_t *out)
{
	struct iovec to = {out, sizeof *out}, from = {(void *)address, sizeof *out};
	const struct process *p = stack->process;
	return !p->gone && stack->image == p->image &&
	       process_vm_readv(p->pid, &to, 1, &from, 1, 0) == sizeof *out;
}

static bool read_word(void *context, uint64_t address, uint64_t *out)
{
	const struct kernel_waiting *stack = context;
	uint64_t offset = address - stack->address;
	if (offset > stack->size || stack->size - offset < sizeof *out || address % sizeof *out)
		return false;
	size_t page = address / PAGE - stack->address / PAGE;
	if (stack->holes[page / 64] >> page % 64 & 1)
		return page && read_late(stack, address, out);
	memcpy(out, stack->bytes + offset, sizeof *out);
	return true;
}

void paths_take_snapshot(struct session *s, const struct kernel_snapshot *from,
			 const uint8_t *bytes)
{
	struct kernel *k = s->kernel;
	struct kernel_thread *t = tasks_find(s, (pid_t)from->head.process,
					     (pid_t)from->head.thread);
	struct kernel_waiting *w = NULL;
	uint32_t thread;
	struct err *e = t ? tasks_keep(s, t, &thread) : NULL;
	if (t && !e && from->head.event < s->options.event_count && from->size <= KERNEL_STACK &&
	    k->waiting_bytes < WAITING_MAX)
		w = malloc(sizeof *w + from->size);
	err_free(e);
	if (!w) {
		k->confused++;
		return;
	}
	*w = (struct kernel_waiting){.process = t->process,
				     .list = t->process->list,
				     .image = t->process->image,
				     .thread = thread,
				     .event = from->head.event,
				     .time = from->head.time,
				     .pc = from->pc,
				     .address = from->address,
				     .unborn = from->unborn,
				     .unlisted = from->unlisted,
				     .size = from->size};
	memcpy(w->registers, from->registers, sizeof w->registers);
	memcpy(w->holes, from->holes, sizeof w->holes);
	memcpy(w->bytes, bytes, from->size);
	t->handled++;
	k->waiting_bytes += from->size;
	*k->waiting_end = w;
	k->waiting_end = &w->next;
}

static struct walk_space space_of(struct session *s, const struct library_list *list)
{
	return list ? library_walk(s->library, list) : (struct walk_space){0};
}

static enum walk_end walk(struct session *s, struct kernel_waiting *w,
			  const struct library_list *list, uint64_t *keys, uint32_t *frames)
{
	struct walk_space space = space_of(s, list);
	struct walk_reader reader = {read_word, w};
	return stack_walk(&space, w->process->machine, w->registers, w->pc, &reader, keys,
			  KERNEL_FRAMES, frames);
}

static struct err *keep(struct session *s, const struct kernel_waiting *w, const uint64_t *keys,
			uint32_t frames, enum walk_end end)
{
	uint32_t node;
	struct err *e = add_root(s, w->process, end, &node);
	for (uint32_t i = frames; !e && i; i--)
		e = add_frame(s, w->process, keys[i - 1], &node);
	return e ? e : count(s, w->thread, node, w->event, end, w->time);
}

static bool is_known(struct session *s, const struct kernel_waiting *w)
{
	struct walk_space space = space_of(s, w->process->list);
	return walk_find_module(&space, w->pc);
}

/* Of a process that has ended, become another program or unloaded a library since: by what was noted
   of it, what it had when the sample came, or what its parent has. */
static enum walk_end walk_back(struct session *s, struct kernel_waiting *w, uint64_t *keys,
			       uint32_t *frames)
{
	enum walk_end end = walk(s, w, code_then(s, w->process, w->time), keys, frames);
	if (end == WALK_NO_MODULE && w->list)
		end = walk(s, w, w->list, keys, frames);
	if (end == WALK_NO_MODULE)
		end = walk(s, w, tasks_parent_list(s, w->process), keys, frames);
	return end;
}

/* Looks at the memory of the process again where the walk met unknown code, unless that was of no
   use lately. Where it begins in unknown code it is not even tried before. */
static enum walk_end walk_looking(struct session *s, struct kernel_waiting *w, uint64_t *keys,
				  uint32_t *frames)
{
	struct process *p = w->process;
	const struct library_list *before = p->list;
	bool same = w->image == p->image && !maps_executed(s->kernel, p->pid, w->time);
	bool patient = same && !p->gone && p->useless <= UNRESOLVED_MAX;
	bool looked = patient && !is_known(s, w);
	if (looked)
		code_look(s, p);
	enum walk_end end = same ? walk(s, w, p->list, keys, frames) : WALK_NO_MODULE;
	if (end == WALK_NO_MODULE && patient && !looked) {
		code_look(s, p);
		looked = true;
		if (p->list != before)
			end = walk(s, w, p->list, keys, frames);
	}
	/* A child may have been forked before the sampler had its parent's list. */
	if (w->unlisted && patient && !looked && w->time > p->given_ns)
		code_look(s, p);
	if (end == WALK_NO_MODULE)
		end = walk_back(s, w, keys, frames);
	if (end == WALK_NO_MODULE && same) /* it gets as far as that, at least */
		end = walk(s, w, p->list, keys, frames);
	p->useless = looked && p->list == before ? p->useless + 1 : patient ? 0 : p->useless;
	if (p->useless == UNRESOLVED_MAX)
		code_resign(s, p);
	return end;
}

void paths_walk(struct session *s)
{
	struct kernel *k = s->kernel;
	uint64_t *keys = k->waiting ? reallocarray(NULL, KERNEL_FRAMES, sizeof *keys) : NULL;
	uint32_t frames;
	while (keys && k->waiting) {
		struct kernel_waiting *w = k->waiting;
		enum walk_end end = walk_looking(s, w, keys, &frames);
		if (end == WALK_BAD_MEMORY && w->unborn) { /* as in the sampler */
			keys[0] = KERNEL_KEY_KERNEL;
			frames = 1;
			end = WALK_COMPLETE;
		}
		struct err *e = keep(s, w, keys, frames, end);
		if (e)
			s->notes.unkept++;
		err_free(e);
		k->waiting = w->next;
		if (!k->waiting)
			k->waiting_end = &k->waiting;
		k->waiting_bytes -= w->size;
		free(w);
	}
	free(keys);
}
