/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what the sampler sends to the tree of the profile. A path says which of
 * the frames of its memo stay: their nodes are kept here, so that only frames
 * that are new are looked up.
 */
#include "collect/kernel_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "cct/cct.h"
#include "collect/stack.h"
#include "process/kernel_names.h"

#define HOPES 4u
#define MEMO_ROOM 128u                     /* frames, at first */
#define WAITING_MAX ((uint64_t)512 << 20)  /* bytes */
#define WAITING_WHOLE ((uint64_t)32 << 20) /* the same for what may go on for weeks */
#define WAITING_ONE ((uint64_t)2 << 20)    /* and of one process, so that others have a part */
#define WAITING_SMALL \
	8192u /* bytes: most stacks are not larger, and are kept while there is any room */
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
	for (size_t i = 0; k->memos && i <= 1u << k->memo_bits; i++) {
		if (k->memos[i])
			free(k->memos[i]->frames);
		free(k->memos[i]);
	}
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

/* What the kernel did for it. Without names one frame stands for all. */
static struct err *add_inner(struct session *s, struct process *p, const uint64_t *addresses,
			     uint32_t count, uint32_t *node)
{
	struct err *e = NULL;
	if (!s->kernel->names || !count)
		return harvest_child(s, &s->harvest, p, *node, KERNEL_KEY_KERNEL, node);
	for (uint32_t i = count; !e && i; i--)
		e = harvest_child(s, &s->harvest, p, *node,
				  cct_key(i > 1, CCT_KERNEL, addresses[i - 1]), node);
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
	if (!after || s->kernel->whole || tasks_known(s, (pid_t)path->head.thread))
		return (pid_t)path->head.thread;
	return tasks_known(s, (pid_t)path->head.process) ? (pid_t)path->head.process : 0;
}

static bool make_room(struct kernel_memo *memo, uint32_t count)
{
	uint32_t room = memo->room ? memo->room : MEMO_ROOM;
	if (count <= memo->room)
		return true;
	while (room < count)
		room *= 2;
	void *frames = reallocarray(memo->frames, room, sizeof *memo->frames);
	if (!frames)
		return false;
	memo->frames = frames;
	memo->room = room;
	return true;
}

static void note_frames(struct kernel_memo *memo, const struct kernel_path *path,
			const uint64_t *keys)
{
	memo->thread = path->head.thread;
	memo->count = path->kept;
	if (!path->kept)
		memo->end = path->end;
	if (memo->placed > path->kept)
		memo->placed = path->kept;
	for (uint32_t i = path->fresh; i; i--)
		memo->frames[memo->count++].key = keys[i - 1];
}

/* Nodes for the frames that have none: those that are new, and after a drain all. */
static struct err *place_frames(struct session *s, struct process *p, struct kernel_memo *memo,
				uint32_t *node)
{
	struct err *e = NULL;
	if (memo->placed)
		*node = memo->frames[memo->placed - 1].node;
	else
		e = add_root(s, p, memo->end, node);
	while (!e && memo->placed < memo->count) {
		e = add_frame(s, p, memo->frames[memo->placed].key, node);
		if (!e)
			memo->frames[memo->placed++].node = *node;
	}
	return e;
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
	    path->kept + path->fresh > KERNEL_FRAMES ||
	    !make_room(memo, path->kept + path->fresh)) {
		k->confused++;
		return;
	}
	uint32_t node = 0, thread;
	struct err *e = tasks_keep(s, t, &thread);
	note_frames(memo, path, keys);
	if (!e)
		e = place_frames(s, t->process, memo, &node);
	if (!e && (path->inner || !node))
		e = add_inner(s, t->process, keys + path->fresh, path->inner, &node);
	if (!e)
		e = count(s, thread, node, path->head.event, path->end, path->head.time);
	t->handler_ns += path->ns;
	t->handled++;
	if (e)
		s->notes.unkept++;
	err_free(e);
}

/* ---- stacks that are walked here ---- */

static uint64_t bytes_of(const struct kernel_waiting *w)
{
	return w->size + (w->pieces ? w->pieces->bytes : 0);
}

static void add_waiting(struct kernel *k, struct kernel_waiting *w)
{
	w->process->waiting++;
	w->process->waiting_bytes += bytes_of(w);
	k->waiting_bytes += sizeof *w + bytes_of(w);
	*k->waiting_end = w;
	k->waiting_end = &w->next;
}

void paths_take_snapshot(struct session *s, const struct kernel_snapshot *from,
			 const uint8_t *bytes, const struct kernel_far *far)
{
	struct kernel *k = s->kernel;
	struct kernel_thread *t = tasks_find(s, (pid_t)from->head.process,
					     (pid_t)from->head.thread);
	struct kernel_waiting *w = NULL;
	uint64_t size = from->size, inner = from->inner_count * sizeof *from->inner;
	uint32_t thread;
	if (k->whole && t &&
	    (t->process->waiting_bytes > 2 * WAITING_ONE ||
	     (size > WAITING_SMALL && k->waiting_bytes > WAITING_WHOLE / 2)))
		size = 0;
	struct err *e = t ? tasks_keep(s, t, &thread) : NULL;
	if (t && !e && from->head.event < s->options.event_count &&
	    size <= KERNEL_STACK + KERNEL_MORE && from->inner_count <= KERNEL_INNER &&
	    k->waiting_bytes < (k->whole ? WAITING_WHOLE : WAITING_MAX))
		w = malloc(sizeof *w + size + inner + (far ? copy_far_size(far) : 0));
	err_free(e);
	if (!w) {
		k->confused++;
		return;
	}
	*w = (struct kernel_waiting){.process = t->process,
				     .list = t->process->list,
				     .list_ns = t->process->list_ns,
				     .list_end_ns = t->process->list_end_ns,
				     .image = t->process->image,
				     .thread = thread,
				     .tid = t->tid,
				     .event = from->head.event,
				     .time = from->head.time,
				     .pc = from->pc,
				     .address = from->address,
				     .unborn = (enum kernel_unborn)from->unborn,
				     .unlisted = from->unlisted,
				     .cut = !size,
				     .size = size,
				     .copied = from->copied < size ? from->copied : size,
				     .beyond = from->beyond};
	memcpy(w->registers, from->registers, sizeof w->registers);
	memcpy(w->holes, from->holes, sizeof w->holes);
	memcpy(w->bytes, bytes, size);
	if (from->inner_count) { /* stacks are whole words */
		w->inner = (uint64_t *)(w->bytes + w->size);
		w->inner_count = (uint32_t)from->inner_count;
		memcpy(w->bytes + w->size, from->inner, inner);
	}
	if (far) {
		w->pieces = (void *)(w->bytes + w->size + inner);
		copy_far(far, bytes + from->size, w->pieces);
	}
	t->handled++;
	k->copies++;
	add_waiting(k, w);
}

static struct err *wait(struct session *s, struct process *p, uint64_t pc, uint32_t event,
			uint64_t count, uint64_t time)
{
	struct kernel *k = s->kernel;
	struct kernel_waiting *w = k->waiting_bytes < WAITING_WHOLE ? calloc(1, sizeof *w) : NULL;
	if (!w)
		return err_new("no room");
	w->process = p;
	w->list = p->list;
	w->list_ns = p->list_ns;
	w->list_end_ns = p->list_end_ns;
	w->image = p->image;
	w->thread = KERNEL_THREAD_NONE;
	w->tid = p->pid;
	w->event = event;
	w->time = time;
	w->pc = pc;
	w->bare = count;
	add_waiting(k, w);
	return NULL;
}

struct err *paths_wait(struct session *s, struct process *p, uint64_t pc, uint32_t event,
		       uint64_t count)
{
	return wait(s, p, pc, event, count, now_ns());
}

void paths_take_place(struct session *s, const struct kernel_place *from)
{
	struct process *p = tasks_process(s, (pid_t)from->head.process, (uint32_t)from->changes);
	struct err *e = p && from->head.event < s->options.event_count
				? wait(s, p, from->pc, from->head.event, 1, from->head.time)
				: err_new("of nobody");
	if (e)
		s->kernel->confused++;
	else
		tasks_add_cost(s, p, 1, 0);
	err_free(e);
}

static struct walk_space space_of(struct session *s, const struct library_list *list)
{
	return list ? library_walk(s->library, list) : (struct walk_space){0};
}

static enum walk_end walk_with(struct session *s, struct kernel_waiting *w,
			       const struct stack_code *code, uint64_t *keys, uint32_t *frames)
{
	struct walk_reader reader = {copy_read, w};
	w->edge = 0;
	w->lacks = w->used = false;
	return stack_walk(code, w->process->machine, w->registers, w->pc, &reader, keys,
			  s->kernel->max_depth, frames);
}

/* Which still runs the same program. */
static pid_t task_of(const struct kernel_waiting *w)
{
	return w->process->gone || w->image != w->process->image ? 0 : w->process->pid;
}

static uint64_t g_of(const struct kernel_waiting *w)
{
	return w->pieces ? w->pieces->g : 0;
}

static enum walk_end walk(struct session *s, struct kernel_waiting *w,
			  const struct library_list *list, uint64_t *keys, uint32_t *frames)
{
	const struct stack_code code = {
		.space = space_of(s, list), .task = task_of(w), .g = g_of(w)};
	return walk_with(s, w, &code, keys, frames);
}

/* Whether it still is the program that it was when the sample came. */
static bool is_same(const struct session *s, const struct kernel_waiting *w)
{
	const struct process *p = w->process;
	return w->image == p->image && !maps_executed(s->kernel, p->pid, w->time);
}

/* Whether a library came into another one's place between the sample and when the process had that list. */
static bool is_other(const struct session *s, const struct kernel_waiting *w, uint64_t list_ns,
		     uint64_t list_end_ns)
{
	pid_t pid = w->process->pid;
	return maps_replaced(s->kernel, pid, w->time, list_ns) ||
	       maps_replaced(s->kernel, pid, w->time, list_end_ns);
}

/* What the process has, where it had that when the sample came; otherwise what was noted of that time. */
static const struct library_list *list_of(struct session *s, const struct kernel_waiting *w,
					  bool *now)
{
	const struct process *p = w->process;
	*now = is_same(s, w) && !is_other(s, w, p->list_ns, p->list_end_ns);
	return *now ? p->list : code_then(s, p, w->time);
}

static enum walk_end walk_listed(struct session *s, struct kernel_waiting *w, uint64_t *keys,
				 uint32_t *frames)
{
	bool now;
	return walk(s, w, list_of(s, w, &now), keys, frames);
}

/* Where nothing explains it: as far as that goes. */
static enum walk_end walk_last(struct session *s, struct kernel_waiting *w, uint64_t *keys,
			       uint32_t *frames)
{
	bool now;
	struct stack_code code = {
		.space = space_of(s, list_of(s, w, &now)), .task = task_of(w), .g = g_of(w)};
	code.fresh = now && w->process->looked_ns > w->time;
	return walk_with(s, w, &code, keys, frames);
}

struct err *paths_count_place(struct session *s, struct process *p, uint32_t thread, uint64_t key,
			      uint32_t event, uint64_t count)
{
	uint32_t node;
	struct err *e = add_root(s, p, WALK_COUNTED, &node);
	if (!e)
		e = harvest_child(s, &s->harvest, p, node, key, &node);
	if (!e)
		e = profile_count(s->harvest.profile, node, thread, event, count);
	if (!e && !event)
		s->samples += count;
	return e;
}

static struct err *keep_bare(struct session *s, const struct kernel_waiting *w, uint64_t key)
{
	uint32_t thread;
	struct err *e = tasks_keep_process(s, w->process, &thread);
	return e ? e : paths_count_place(s, w->process, thread, key, w->event, w->bare);
}

static struct err *keep(struct session *s, const struct kernel_waiting *w, const uint64_t *keys,
			uint32_t frames, enum walk_end end)
{
	uint32_t node, thread = w->thread;
	struct err *e = thread == KERNEL_THREAD_NONE
				? tasks_keep_again(s, w->process, w->tid, &thread)
				: NULL;
	if (!e)
		e = add_root(s, w->process, end, &node);
	for (uint32_t i = frames; !e && i; i--)
		e = add_frame(s, w->process, keys[i - 1], &node);
	if (!e && w->inner_count)
		e = add_inner(s, w->process, w->inner, w->inner_count, &node);
	return e ? e : count(s, thread, node, w->event, end, w->time);
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
	if (end == WALK_NO_MODULE && w->list && !is_other(s, w, w->list_ns, w->list_end_ns))
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
	bool same = is_same(s, w);
	bool patient = same && !p->gone && p->useless <= UNRESOLVED_MAX;
	/* The sampler had no list for it: its parent's was not there yet when it was forked, or a library has gone. */
	bool unlisted = patient && w->unlisted && !p->doubtful_ns && w->time > p->list_ns;
	bool looked = unlisted || (patient && !is_known(s, w));
	if (looked)
		code_look(s, p);
	if (looked && p->noted_ns && !library_is_unready(s->library) && !is_known(s, w))
		code_ask(s, p);
	if (library_is_unready(s->library))
		return WALK_NO_MODULE;
	enum walk_end end = same ? walk_listed(s, w, keys, frames) : WALK_NO_MODULE;
	if (end == WALK_NO_MODULE && patient && (!looked || p->noted_ns) &&
	    !library_is_unready(s->library)) {
		code_ask(s, p);
		looked = true;
		if (p->list != before)
			end = walk_listed(s, w, keys, frames);
	}
	if (library_is_unready(s->library))
		return WALK_NO_MODULE;
	if (end == WALK_NO_MODULE && (!s->kernel->whole || patient || !same || p->gone))
		end = walk_back(s, w, keys, frames);
	if (library_is_unready(s->library))
		return end;
	if (end == WALK_NO_MODULE && same)
		end = walk_last(s, w, keys, frames);
	p->useless = looked && p->list == before ? p->useless + 1 : patient ? 0 : p->useless;
	if (p->useless == UNRESOLVED_MAX)
		code_resign(s, p);
	return end;
}

/* A thread that has not run yet either, and has touched no stack. */
static bool is_new(const struct session *s, const struct kernel_waiting *w)
{
	uint64_t start, size;
	const char *name = s->kernel->names && w->inner_count
				   ? kernel_names_find(s->kernel->names,
						       w->inner[w->inner_count - 1] - 1, &start,
						       &size)
				   : NULL;
	return name && !strncmp(name, "ret_from_fork", strlen("ret_from_fork"));
}

static bool is_unborn(const struct session *s, const struct kernel_waiting *w, enum walk_end end)
{
	return w->unborn == KERNEL_UNBORN ||
	       (w->unborn == KERNEL_RETURNING && KERNEL_IS_NOWHERE(end)) ||
	       (end == WALK_BAD_MEMORY && (w->unborn == KERNEL_UNBORN_COPY || is_new(s, w)));
}

static void walk_one(struct session *s, struct kernel_waiting *w, uint64_t *keys, uint32_t frames,
		     enum walk_end end)
{
	if (w->bare) {
		struct err *e = keep_bare(s, w, frames ? keys[0] : w->pc & CCT_ADDRESS);
		s->notes.unkept += e ? w->bare : 0;
		err_free(e);
		return;
	}
	if (w->used && end != WALK_COMPLETE && end != WALK_TOO_DEEP) {
		/* What was read later is of another time: frames by it are believed only to the root. */
		w->strict = true;
		end = walk_listed(s, w, keys, &frames);
	}
	if (is_unborn(s, w, end)) { /* as in the sampler */
		keys[0] = KERNEL_KEY_KERNEL;
		frames = w->inner_count ? 0 : 1;
		end = WALK_COMPLETE;
	}
	if (end == WALK_BAD_MEMORY && (w->cut || w->lacks))
		end = WALK_NO_STACK;
	tables_need(s, keys, frames);
	struct err *e = keep(s, w, keys, frames, end);
	if (e)
		s->notes.unkept++;
	err_free(e);
}

/* Compilers at run time have new code again and again: what was of no use is not tried as often then. */
void paths_hope(const struct session *s, struct process *p)
{
	if (!s->kernel->whole)
		p->useless = 0;
	else if (p->useless > UNRESOLVED_MAX - HOPES)
		p->useless = UNRESOLVED_MAX - HOPES;
}

/* Whether its code is not known yet, but will be. */
static bool must_wait(struct session *s, struct kernel_waiting *w, enum walk_end end)
{
	unsigned unready = library_was_unready(s->library);
	bool wait = unready && end == WALK_NO_MODULE;
	if (wait)
		w->process->waits_for = unready;
	return wait;
}

static void remove_waiting(struct kernel *k, struct kernel_waiting **link)
{
	struct kernel_waiting *w = *link;
	*link = w->next;
	if (!w->next)
		k->waiting_end = link;
	k->waiting_bytes -= sizeof *w + bytes_of(w);
	w->process->waiting--;
	w->process->waiting_bytes -= bytes_of(w);
	free(w);
}

void paths_walk(struct session *s)
{
	struct kernel *k = s->kernel;
	uint64_t *keys = k->waiting ? reallocarray(NULL, KERNEL_FRAMES, sizeof *keys) : NULL;
	uint32_t frames = 0;
	unsigned builds = k->whole ? library_builds(s->library) : 0;
	for (struct kernel_waiting **link = &k->waiting, *w; keys && (w = *link);) {
		enum walk_end end = WALK_NO_MODULE;
		bool wait = builds && (w->process->makeshift || w->process->waits_for == builds);
		if (!wait) {
			library_was_unready(s->library); /* for others */
			end = walk_looking(s, w, keys, &frames);
			wait = must_wait(s, w, end);
		}
		if (wait) {
			if (w->process->waiting_bytes > WAITING_ONE && !w->process->makeshift &&
			    !w->process->gone)
				code_make_do(s, w->process);
			link = &w->next;
			continue;
		}
		walk_one(s, w, keys, frames, end);
		remove_waiting(k, link);
	}
	free(keys);
}

void paths_give_up(struct session *s)
{
	uint64_t *keys = s->kernel->waiting ? reallocarray(NULL, KERNEL_FRAMES, sizeof *keys)
					    : NULL;
	uint32_t frames = 0;
	for (struct kernel_waiting *w; keys && (w = s->kernel->waiting);) {
		enum walk_end end = walk_listed(s, w, keys, &frames);
		walk_one(s, w, keys, frames, end);
		remove_waiting(s->kernel, &s->kernel->waiting);
	}
	free(keys);
}

void paths_use(struct session *s)
{
	const struct kernel *k = s->kernel;
	for (const struct kernel_waiting *w = k->waiting; w; w = w->next)
		library_use(w->list);
	for (size_t i = 0; i <= 1u << k->memo_bits; i++)
		for (uint32_t at = 0; k->memos[i] && at < k->memos[i]->count; at++)
			library_use_module(s->library, cct_key_module(k->memos[i]->frames[at].key));
}

void paths_forget(struct kernel *k)
{
	for (size_t i = 0; i <= 1u << k->memo_bits; i++)
		if (k->memos[i])
			k->memos[i]->count = k->memos[i]->placed = 0;
}

void paths_restart(struct kernel *k)
{
	for (size_t i = 0; i <= 1u << k->memo_bits; i++)
		if (k->memos[i])
			k->memos[i]->placed = 0;
	for (struct kernel_waiting *w = k->waiting; w; w = w->next)
		w->thread = KERNEL_THREAD_NONE;
}
