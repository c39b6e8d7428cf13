/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/descriptors.h"

#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "cct/cct.h"
#include "collect/agents/state.h"
#include "harvest/objects.h"
#include "safe/arena.h"

static uint32_t act_of(uint64_t key)
{
	return (uint32_t)(key & CCT_OBJECT_ACT);
}

/* As in analyze/reasons.c. */
static const char *wait_name(uint32_t act)
{
	static const char *const names[ARENA_ACTS] = {
		[ARENA_WAITS_LOCK] = "lock",
		[ARENA_WAITS_CONDITION] = "condition",
		[ARENA_WAITS_SEMAPHORE] = "semaphore",
		[ARENA_WAITS_BARRIER] = "barrier",
		[ARENA_WAITS_THREAD] = "end of a thread",
		[ARENA_WAITS_FUTEX] = "futex",
		[ARENA_WAITS_SLEEP] = "sleep",
		[ARENA_WAITS_POLL] = "poll",
		[ARENA_WAITS_PIPE] = "pipe",
		[ARENA_WAITS_SOCKET] = "socket",
		[ARENA_WAITS_TERMINAL] = "terminal",
		[ARENA_WAITS_EVENT] = "event",
		[ARENA_WAITS_MESSAGE] = "message",
		[ARENA_WAITS_SIGNAL] = "signal",
		[ARENA_WAITS_CHILD] = "child process",
		[ARENA_WAITS_DISK] = "disk",
		[ARENA_WAITS_FILE_LOCK] = "file lock",
		[ARENA_WAITS_CPU] = "a CPU",
	};
	return act < ARENA_ACTS && names[act] ? names[act] : "(other waits)";
}

/* The arena is memory of the target: everything is checked. */
static bool read_object(const struct arena *a, uint64_t reference, struct object_facts *out,
			struct buf *name)
{
	struct arena_object head;
	uint64_t at = reference * 8;
	if (!reference || at > a->size || a->size - at < sizeof head)
		return false;
	const char *from = (const char *)a->header + at;
	memcpy(&head, from, sizeof head);
	if (head.size > ARENA_OBJECT_NAME || head.size > a->size - at - sizeof head)
		return false;
	*out = (struct object_facts){.mode = head.mode,
				     .family = head.family,
				     .type = head.type,
				     .port = head.port,
				     .other_port = head.other_port};
	memcpy(out->address, head.address, sizeof out->address);
	buf_append(name, from + sizeof head, strnlen(from + sizeof head, head.size));
	out->name = buf_text(name);
	return true;
}

/* Of what has no path, the kernel tells a kind and a number: "pipe:[4711]", "anon_inode:[eventfd]". */
static const char *plain_name(const struct object_facts *o)
{
	static const char anonymous[] = "anon_inode:";
	if (!strncmp(o->name, anonymous, sizeof anonymous - 1))
		return o->name + sizeof anonymous - 1;
	return *o->name == '/' ? o->name : "";
}

void descriptors_name(const struct arena *a, uint64_t key, struct buf *out)
{
	struct object_facts facts;
	struct buf name = {0};
	if (act_of(key) >= ARENA_WAITS) {
		buf_puts(out, wait_name(act_of(key)));
	} else if (read_object(a, (key & CCT_ADDRESS) >> CCT_OBJECT_BITS, &facts, &name)) {
		if (!S_ISSOCK(facts.mode))
			facts.name = plain_name(&facts);
		object_print(&facts, out);
	} else {
		buf_puts(out, "(not known)");
	}
	buf_free(&name);
}

static const char *act_name(uint32_t act)
{
	switch (act) {
	case ARENA_READ:
		return "read";
	case ARENA_WRITE:
		return "write";
	case ARENA_COPY:
		return "copy to";
	case ARENA_SYNC:
		return "sync";
	case ARENA_WAITS_OTHER:
		return "";
	default:
		return "wait for";
	}
}

struct err *descriptors_add_child(struct harvest *h, uint32_t parent, uint64_t key,
				  const char *object, uint32_t *node)
{
	return objects_add_child(h, parent, object, act_of(key), act_name(act_of(key)), node);
}
