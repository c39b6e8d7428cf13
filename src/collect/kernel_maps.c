/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes what code processes map, from the records that perf makes of it. A
 * process that lives is better asked itself (/proc): it knows what it has
 * unmapped, and what it made executable later. But of one that has ended, this
 * is all that is left. All processes are noted, since who is sampled is known
 * only later; those that are not are forgotten soon.
 */
#include "collect/kernel_internal.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "process/maps.h"

#define RING_PAGES 64u
#define BUCKETS 1024u
#define NOTED_MAX 65536u /* processes */
#define LINES_MAX 4096u  /* of one */
#define KEPT_NS 3000000000ull
#define RECORD_MAX 65536u

struct line {
	uint64_t start, end, offset, inode, time;
	uint32_t major, minor;
	char *path;
};

struct noted {
	struct noted *next;
	pid_t pid;
	uint64_t executed; /* what was mapped before is gone */
	uint64_t seen_ns;  /* by us */
	bool changed;      /* since it was asked last */
	struct line *lines;
	size_t count, room;
};

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
};

struct kernel_notes {
	struct ring *rings;
	unsigned ring_count;
	size_t page_size, ring_size;
	struct noted *noted[BUCKETS];
	size_t noted_count;
	char record[RECORD_MAX];
};

/* What stands behind the fixed part of each record: attr.sample_id_all. */
struct tail {
	uint32_t pid, tid;
	uint64_t time;
};

struct mapped {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, length, offset;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t protection, flags;
	char path[];
};

/* ---- what is noted ---- */

static struct noted *find(const struct kernel_notes *n, pid_t pid)
{
	struct noted *at = n->noted[(uint32_t)pid % BUCKETS];
	while (at && at->pid != pid)
		at = at->next;
	return at;
}

static struct noted *find_or_add(struct kernel_notes *n, pid_t pid)
{
	struct noted *at = find(n, pid);
	if (!at && n->noted_count < NOTED_MAX && (at = calloc(1, sizeof *at))) {
		struct noted **bucket = &n->noted[(uint32_t)pid % BUCKETS];
		at->pid = pid;
		at->next = *bucket;
		*bucket = at;
		n->noted_count++;
	}
	if (at)
		at->seen_ns = session_now();
	return at;
}

static void forget_lines(struct noted *at, uint64_t time)
{
	size_t kept = 0;
	for (size_t i = 0; i < at->count; i++)
		if (at->lines[i].time <= time)
			free(at->lines[i].path);
		else
			at->lines[kept++] = at->lines[i];
	at->count = kept;
}

static bool add_line(struct noted *at, const struct line *line)
{
	if (at->count == at->room && at->count < LINES_MAX) {
		size_t more = at->room ? at->room * 2 : 8;
		struct line *lines = reallocarray(at->lines, more, sizeof *lines);
		if (lines) {
			at->lines = lines;
			at->room = more;
		}
	}
	char *path = at->count < at->room ? strdup(line->path) : NULL;
	if (!path)
		return false;
	at->lines[at->count] = *line;
	at->lines[at->count++].path = path;
	return true;
}

/* What was there before. A program is first mapped as a whole, and then parts of it anew. */
static void cut_lines(struct noted *at, uint64_t start, uint64_t end, uint64_t time)
{
	for (size_t i = 0, count = at->count; i < count; i++) {
		struct line *l = &at->lines[i], rest = *l;
		if (l->time > time || l->start >= end || l->end <= start)
			continue;
		l->end = l->start < start ? start : l->start;
		if (rest.end <= end)
			continue;
		rest.offset += end - rest.start;
		rest.start = end;
		add_line(at, &rest); /* `l` may be elsewhere now */
	}
}

static void note_mapping(struct kernel_notes *n, const struct mapped *m, size_t size, uint64_t time)
{
	size_t room = size - sizeof *m - sizeof(struct tail);
	struct noted *at = find_or_add(n, (pid_t)m->pid);
	if (!at || time < at->executed || !memchr(m->path, 0, room) ||
	    m->address + m->length < m->address)
		return;
	at->changed = true;
	cut_lines(at, m->address, m->address + m->length, time);
	add_line(at, &(struct line){.start = m->address,
				    .end = m->address + m->length,
				    .offset = m->offset,
				    .inode = m->inode,
				    .time = time,
				    .major = m->major,
				    .minor = m->minor,
				    .path = (char *)m->path});
}

static void note_exec(struct kernel_notes *n, pid_t pid, uint64_t time)
{
	struct noted *at = find_or_add(n, pid);
	if (!at || time < at->executed)
		return;
	at->executed = time;
	forget_lines(at, time);
}

static void forget(struct kernel_notes *n, struct noted **link)
{
	struct noted *at = *link;
	*link = at->next;
	forget_lines(at, UINT64_MAX);
	free(at->lines);
	free(at);
	n->noted_count--;
}

/* ---- the rings ---- */

static void take(struct kernel_notes *n, const struct perf_event_header *header)
{
	struct tail tail;
	if (header->size < sizeof *header + sizeof tail)
		return;
	memcpy(&tail, (const char *)header + header->size - sizeof tail, sizeof tail);
	if (header->type == PERF_RECORD_MMAP2 && header->size > sizeof(struct mapped) + sizeof tail)
		note_mapping(n, (const struct mapped *)header, header->size, tail.time);
	else if (header->type == PERF_RECORD_COMM && header->misc & PERF_RECORD_MISC_COMM_EXEC)
		note_exec(n, (pid_t)tail.pid, tail.time);
}

static void copy_out(const struct kernel_notes *n, const char *bytes, uint64_t at, void *to,
		     size_t size)
{
	size_t from = at % n->ring_size, part = n->ring_size - from;
	if (part > size)
		part = size;
	memcpy(to, bytes + from, part);
	memcpy((char *)to + part, bytes, size - part);
}

static void note_ring(struct kernel_notes *n, struct ring *r)
{
	const char *bytes = (const char *)r->page + n->page_size;
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;
	struct perf_event_header *header = (struct perf_event_header *)n->record;
	while (head - tail >= sizeof *header) {
		copy_out(n, bytes, tail, header, sizeof *header);
		if (header->size < sizeof *header || header->size > head - tail)
			break;
		copy_out(n, bytes, tail, header, header->size);
		take(n, header);
		tail += header->size;
	}
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
}

void maps_note(struct kernel *k)
{
	for (unsigned i = 0; i < k->notes->ring_count; i++)
		note_ring(k->notes, &k->notes->rings[i]);
}

static bool open_ring(struct kernel *k, unsigned cpu)
{
	struct kernel_notes *n = k->notes;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return false;
	void *page = mmap(NULL, n->page_size + n->ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  0);
	if (page == MAP_FAILED) {
		close(fd);
		return false;
	}
	struct epoll_event event = {.events = EPOLLIN};
	epoll_ctl(k->epoll, EPOLL_CTL_ADD, fd, &event);
	n->rings[n->ring_count++] = (struct ring){fd, page};
	return true;
}

struct err *maps_open(struct kernel *k)
{
	struct kernel_notes *n = k->notes = calloc(1, sizeof *n);
	if (n) {
		n->page_size = (size_t)sysconf(_SC_PAGESIZE);
		n->ring_size = RING_PAGES * n->page_size;
		n->rings = calloc(k->cpus, sizeof *n->rings);
	}
	if (!n || !n->rings)
		return err_new("out of memory");
	for (unsigned cpu = 0; cpu < k->cpus; cpu++)
		open_ring(k, cpu); /* without, short processes have no names */
	return NULL;
}

void maps_close(struct kernel *k)
{
	struct kernel_notes *n = k->notes;
	if (!n)
		return;
	for (unsigned i = 0; i < n->ring_count; i++) {
		munmap(n->rings[i].page, n->page_size + n->ring_size);
		close(n->rings[i].fd);
	}
	for (size_t i = 0; i < BUCKETS; i++)
		while (n->noted[i])
			forget(n, &n->noted[i]);
	free(n->rings);
	free(n);
	k->notes = NULL;
}

/* ---- for others ---- */

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

/* As /proc would have shown it. */
bool maps_noted(const struct kernel *k, pid_t pid, struct maps *out)
{
	struct noted *at = find(k->notes, pid);
	struct buf text = {0};
	if (!at || !at->count)
		return false;
	qsort(at->lines, at->count, sizeof *at->lines, compare_lines);
	for (size_t i = 0; i < at->count; i++) {
		const struct line *l = &at->lines[i];
		if (l->start == l->end)
			continue;
		buf_printf(&text,
			   "%" PRIx64 "-%" PRIx64 " r-xp %08" PRIx64 " %02x:%02x %" PRIu64 " %s\n",
			   l->start, l->end, l->offset, l->major, l->minor, l->inode, l->path);
	}
	struct err *e = text.failed ? err_new("out of memory")
				    : maps_parse(buf_text(&text), text.size, out);
	bool good = !e;
	err_free(e);
	buf_free(&text);
	return good;
}

bool maps_changed(const struct kernel *k, pid_t pid)
{
	struct noted *at = find(k->notes, pid);
	bool changed = at && at->changed;
	if (changed)
		at->changed = false;
	return changed;
}

static bool is_sampled(const struct session *s, pid_t pid)
{
	for (const struct process *p = s->kernel->home->processes; p; p = p->next)
		if (p->pid == pid)
			return true;
	return false;
}

void maps_sweep(struct session *s)
{
	struct kernel_notes *n = s->kernel->notes;
	uint64_t now = session_now();
	if (now - s->kernel->swept_ns < KEPT_NS)
		return;
	s->kernel->swept_ns = now;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct noted **link = &n->noted[i]; *link;)
			if (now - (*link)->seen_ns > KEPT_NS && !is_sampled(s, (*link)->pid))
				forget(n, link);
			else
				link = &(*link)->next;
}
