/* SPDX-License-Identifier: Apache-2.0 */
/* Adds paths to the profile's tree. A record says how many frames of its memo (the previous walk,
   bpf/memo.h) stay. Their nodes are kept here, so that only new frames are looked up in the tree. */
#include "collect/kernel/paths.h"

#include <stdlib.h>

#include "base/err.h"
#include "cct/cct.h"
#include "collect/kernel/absences.h"
#include "collect/kernel/frames.h"
#include "collect/kernel/inner_end.h"
#include "collect/kernel/interpreters.h"
#include "collect/kernel/io.h"
#include "collect/kernel/state.h"
#include "collect/kernel/tasks.h"
#include "harvest/recording.h"
#include "harvest/scripts.h"
#include "library/library.h"

#define MEMO_ROOM 128u /* frames, at first */

static struct kernel_memo *find_memo(struct kernel *k, uint32_t number)
{
	if (number == KERNEL_NO_MEMO)
		number = 1u << k->paths.memo_bits; /* all paths without a memo share one */
	if (number > 1u << k->paths.memo_bits)
		return NULL;
	struct kernel_memo **memo = &k->paths.memos[number];
	if (!*memo)
		*memo = calloc(1, sizeof **memo);
	return *memo;
}

struct err *paths_open(struct kernel *k)
{
	k->paths.memo_bits = 4;
	while (1u << k->paths.memo_bits < 4 * k->cpus &&
	       1u << k->paths.memo_bits < KERNEL_MEMOS_MAX)
		k->paths.memo_bits++;
	k->paths.memos = calloc((1u << k->paths.memo_bits) + 1, sizeof *k->paths.memos);
	return k->paths.memos ? NULL : err_new("out of memory");
}

void paths_close(struct kernel *k)
{
	for (size_t i = 0; k->paths.memos && i <= 1u << k->paths.memo_bits; i++) {
		if (k->paths.memos[i])
			free(k->paths.memos[i]->frames);
		free(k->paths.memos[i]);
	}
	free(k->paths.memos);
}

/* Returns the thread that a path belongs to; 0: nobody. The kernel still works for a thread for a moment
   after it has ended. Such a sample belongs to the first thread of its process. */
static pid_t whose(const struct kernel *k, const struct kernel_path *path, const uint64_t *keys)
{
	bool after = !path->kept && (!path->fresh || cct_key_module(keys[0]) == CCT_KERNEL);
	if (!after || k->whole || tasks_has_thread(k, (pid_t)path->head.thread))
		return (pid_t)path->head.thread;
	return tasks_has_thread(k, (pid_t)path->head.process) ? (pid_t)path->head.process : 0;
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
	if (memo->with_nodes > path->kept)
		memo->with_nodes = path->kept;
	for (uint32_t i = path->fresh; i; i--)
		memo->frames[memo->count++].key = keys[i - 1];
}

/* Makes nodes for the frames that have none: new ones, and all frames after a drain. */
static struct err *add_nodes(struct kernel *k, struct process *p, struct kernel_memo *memo,
			     uint32_t *node)
{
	struct err *e = NULL;
	if (memo->with_nodes)
		*node = memo->frames[memo->with_nodes - 1].node;
	else
		e = frames_add_root(k, p, memo->end, node);
	while (!e && memo->with_nodes < memo->count) {
		e = frames_add(k, p, memo->frames[memo->with_nodes].key, node);
		if (!e)
			memo->frames[memo->with_nodes++].node = *node;
	}
	return e;
}

/* The same for a sample in interpreted functions. Their calls are not in the memo. */
static struct err *add_called_nodes(struct kernel *k, struct process *p,
				    const struct kernel_memo *memo,
				    const struct script_calls *calls, uint32_t *node)
{
	size_t hosts = 0;
	for (uint32_t i = 0; i < memo->count; i++)
		hosts += frames_is_host(memo->frames[i].key);
	size_t left = hosts == calls->groups ? calls->count : 0;
	struct err *e = frames_add_root(k, p, memo->end, node);
	for (uint32_t i = 0; !e && i < memo->count; i++)
		e = frames_add_called(k, p, memo->frames[i].key, calls, &left, node);
	return e;
}

void paths_take(struct kernel *k, const struct kernel_path *path, const uint64_t *keys)
{
	pid_t tid = whose(k, path, keys);
	if (!tid)
		return;
	struct kernel_thread *t = tasks_find(k, (pid_t)path->head.process, tid);
	struct kernel_memo *memo = find_memo(k, path->memo);
	if (!t || !memo || !absences_have_event(k, path->head.event) ||
	    (path->kept && (memo->thread != path->head.thread || path->kept > memo->count)) ||
	    path->kept + path->fresh > KERNEL_FRAMES ||
	    !make_room(memo, path->kept + path->fresh)) {
		k->unusable++;
		return;
	}
	struct kernel_inner_end end = {.process = t->process,
				       .event = path->head.event,
				       .absence = absences_take(t, path->head.time),
				       .io = io_take(t, path->head.time),
				       .end = path->end,
				       .time = path->head.time,
				       .kernel_frames = keys + path->fresh,
				       .kernel_frame_count = path->kernel_frames};
	struct err *e = tasks_place(k, t, &end.thread);
	note_frames(memo, path, keys);
	struct script_calls *calls = interpreters_calls(t, path->head.time);
	if (!e)
		e = calls ? add_called_nodes(k, t->process, memo, calls, &end.node)
			  : add_nodes(k, t->process, memo, &end.node);
	free(calls);
	if (!e)
		e = inner_end_add(k, &end);
	t->handler_ns += path->ns;
	/* No interrupt has brought these. */
	t->handled += path->head.event != KERNEL_EVENT_IO && path->head.event != KERNEL_EVENT_PROBE;
	recording_note_error(k->recording, e);
}

void paths_mark_used(struct kernel *k)
{
	for (size_t i = 0; i <= 1u << k->paths.memo_bits; i++)
		for (uint32_t at = 0; k->paths.memos[i] && at < k->paths.memos[i]->count; at++)
			library_mark_module_used(k->recording->library,
						 cct_key_module(k->paths.memos[i]->frames[at].key));
}

void paths_forget(struct kernel *k)
{
	for (size_t i = 0; i <= 1u << k->paths.memo_bits; i++)
		if (k->paths.memos[i])
			k->paths.memos[i]->count = k->paths.memos[i]->with_nodes = 0;
}

void paths_restart(struct kernel *k)
{
	for (size_t i = 0; i <= 1u << k->paths.memo_bits; i++)
		if (k->paths.memos[i])
			k->paths.memos[i]->with_nodes = 0;
}
