/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/unseen.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "collect/agents/state.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "safe/arena.h"

static bool is_wanted(const struct agents *agents, const struct process *p)
{
	const struct recording_options *o = &agents->recording->options;
	for (size_t i = 0; i < o->event_count; i++)
		if (o->events[i].io)
			return !p->foreign;
	return false;
}

/* All bytes that the kernel has counted; 0: it does not tell. */
static uint64_t read_counts(const struct process *p)
{
	char text[256];
	uint64_t in, out;
	ssize_t size = p->agent->io_fd >= 0 ? pread(p->agent->io_fd, text, sizeof text - 1, 0) : 0;
	text[size > 0 ? size : 0] = 0;
	return sscanf(text, "rchar: %" SCNu64 " wchar: %" SCNu64, &in, &out) == 2 ? in + out : 0;
}

/* When it has ended, only root may open the file. So it stays open. */
void unseen_open(struct agents *agents, struct process *p)
{
	char name[48];
	snprintf(name, sizeof name, "/proc/%d/io", (int)p->pid);
	if (is_wanted(agents, p))
		p->agent->io_fd = open(name, O_RDONLY | O_CLOEXEC);
}

void unseen_begin(struct process *p)
{
	p->agent->io_start = read_counts(p);
}

void unseen_add(struct process *p, const struct arena_thread *record)
{
	p->agent->io_moved += atomic_load(&((struct arena_thread *)record)->moved);
}

void unseen_look(struct process *p)
{
	/* After an exec the counts go on, and the next program's are in them. */
	p->agent->io_end = p->replaced ? 0 : read_counts(p);
}

void unseen_end(struct agents *agents, struct process *p)
{
	const struct process_agent *a = p->agent;
	uint64_t known = a->io_start + a->io_moved;
	if (a->io_fd >= 0)
		close(a->io_fd);
	if (a->io_end > known)
		agents->recording->notes.unseen_bytes += a->io_end - known;
}
