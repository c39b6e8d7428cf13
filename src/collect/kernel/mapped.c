/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of each process: what code it mapped, and when, from the records that perf makes of it. For a process that is
 * alive, it is better to read its memory map (/proc). That shows what was unmapped or moved, while records
 * show only what was mapped. But histories are the only source for a process that has ended, has become
 * another program, or has unloaded a library. For a process that has just begun, they say everything, and
 * cost less. The history of every process is kept, since it is known only later which of them are sampled.
 * Those of other processes are soon forgotten.
 *
 * The collector may be busy for seconds (while tables are made), and the kernel drops records that find no
 * room in a ring. So the thread that empties the sampler's ring (reader.c) watches these rings, too. It
 * takes the records out of rings that fill up, and holds them.
 */
#include "collect/kernel/mapped.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "collect/kernel/state.h"
#include "process/maps.h"

#define RING_PAGES 64u
#define BUCKETS 1024u
#define HISTORIES_MAX 65536u /* processes whose history is kept */
#define LINES_MAX 4096u      /* mappings of a process */
#define LINES_KEPT 1024u     /* of these, the latest, if there were more */
/* For how long a history is kept after we last heard of it. */
#define KEPT_NS 3000000000ull
#define LIVES_MAX 16u                /* programs that one process number has been in turn */
#define LATE_NS (60 * 1000000000ull) /* samples do not come later than this */
#define FORKS_MAX 64u                /* steps from parent to parent */
#define HELD_MAX ((size_t)64 << 20)  /* bytes of records that are held */
#define HELD_KEPT ((size_t)1 << 20)  /* bytes of memory for them that are kept for the next time */
/* For how long after its exec the history of a process is relied on: mapped_young. */
#define YOUNG_NS 1000000000ull

/* A mapping, as in a line of /proc/PID/maps. */
struct line {
	uint64_t start, end, offset, inode, time;
	uint32_t major, minor;
	char *path;
	bool replaces; /* it was mapped over code of another file */
};

struct lines {
	struct line *all;
	size_t count, room;
};

struct life { /* the time of a process as one program */
	uint64_t since;
	pid_t parent; /* it began as a copy of this process, by fork; 0: with nothing, by exec */
};

struct history {
	struct history *next;
	pid_t pid;
	struct life lives[LIVES_MAX]; /* ascending */
	size_t life_count;
	uint64_t seen_ns;      /* when we last heard of it */
	bool changed;          /* since mapped_changed was last called */
	uint64_t forgotten_ns; /* what came and went before this time is not kept */
	/* Ascending by time. Lines may overlap: a later one hides an earlier one. */
	struct lines lines;
};

struct ring { /* of a CPU; if `page` is NULL, there is none */
	int fd;
	struct perf_event_mmap_page *page;
};

struct held { /* records, one behind another */
	char *bytes;
	size_t used, room;
};

struct kernel_histories {
	pthread_mutex_t lock; /* of the rings and of `held` */
	struct held held;
	struct ring *rings;
	unsigned ring_count;
	size_t page_size, ring_size;
	struct history *histories[BUCKETS];
	size_t history_count;
	uint64_t lost_time; /* records before this time may be missing */
	uint64_t lost;      /* records, since mapped_lost was last called */
	uint64_t swept_ns;
};

/* The end of each record: attr.sample_id_all. */
struct tail {
	uint32_t pid, tid;
	uint64_t time;
};

/* PERF_RECORD_MMAP2. */
struct mapped {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, length, offset;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t protection, flags;
	char path[];
};

/* PERF_RECORD_LOST. */
struct lost {
	struct perf_event_header header;
	uint64_t id, count;
};

/* ---- histories ---- */

static struct history *find(const struct kernel_histories *n, pid_t pid)
{
	struct history *at = n->histories[(uint32_t)pid % BUCKETS];
	while (at && at->pid != pid)
		at = at->next;
	return at;
}

static struct history *find_or_add(struct kernel_histories *n, pid_t pid)
{
	struct history *at = find(n, pid);
	if (!at && n->history_count < HISTORIES_MAX && (at = calloc(1, sizeof *at))) {
		struct history **bucket = &n->histories[(uint32_t)pid % BUCKETS];
		at->pid = pid;
		at->next = *bucket;
		*bucket = at;
		n->history_count++;
	}
	if (at)
		at->seen_ns = now_ns();
	return at;
}

static bool add_line(struct lines *to, const struct line *line)
{
	if (!ARRAY_ROOM(to->all, to->count, to->room))
		return false;
	to->all[to->count++] = *line;
	return true;
}

/* Cuts a range out of all lines, because something else is mapped there. A program is first mapped as a
   whole, and then parts of it again. */
static bool cut_lines(struct lines *in, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < in->count;) {
		struct line *l = &in->all[i], rest = *l;
		if (l->start >= end || l->end <= start) {
			i++;
			continue;
		}
		if (l->start < start)
			in->all[i++].end = start;
		else /* the last line takes its place */
			*l = in->all[--in->count];
		if (rest.end <= end)
			continue;
		rest.offset += end - rest.start;
		rest.start = end;
		if (!add_line(in, &rest))
			return false;
	}
	return true;
}

/* Returns the program that the process was at that time; NULL: it started before us. */
static const struct life *life_at(const struct history *at, uint64_t time)
{
	size_t i = at->life_count;
	while (i && at->lives[i - 1].since > time)
		i--;
	return i ? &at->lives[i - 1] : NULL;
}

/* Returns when it became the program that it was at that time. */
static uint64_t began(const struct history *at, uint64_t time)
{
	const struct life *life = life_at(at, time);
	return life ? life->since : 0;
}

/* Returns the index of the first line after that time. */
static size_t first_after(const struct lines *lines, uint64_t time)
{
	return FIRST_NOT(i, lines->count, lines->all[i].time <= time);
}

/* Adds to `out` what the process had mapped itself until that time. The paths still belong to `at`. */
static bool replay(const struct history *at, uint64_t time, struct lines *out)
{
	uint64_t since = began(at, time);
	bool good = true;
	for (size_t i = first_after(&at->lines, since); good && i < at->lines.count; i++) {
		const struct line *l = &at->lines.all[i];
		if (l->time > time)
			break;
		good = cut_lines(out, l->start, l->end) && add_line(out, l);
	}
	return good;
}

/* The same, with the mappings that it has from its parents. */
static bool replay_all(const struct kernel_histories *n, pid_t pid, uint64_t time,
		       struct lines *out)
{
	const struct history *chain[FORKS_MAX];
	uint64_t times[FORKS_MAX];
	size_t count = 0;
	while (pid && count < FORKS_MAX && (chain[count] = find(n, pid))) {
		const struct life *life = life_at(chain[count], time);
		times[count++] = time;
		pid = life ? life->parent : 0;
		time = life ? life->since : 0;
	}
	bool good = true;
	while (good && count--)
		good = replay(chain[count], times[count], out);
	return good;
}

static void forget_lines(struct history *at, uint64_t until)
{
	struct lines *l = &at->lines;
	size_t kept = 0;
	for (size_t i = 0; i < l->count; i++)
		if (l->all[i].time <= until)
			free(l->all[i].path);
		else
			l->all[kept++] = l->all[i];
	l->count = kept;
}

static bool overlap(const struct line *a, const struct line *b)
{
	return a->start < b->end && b->start < a->end;
}

/* Whether the line was mapped over other code. Looks at older lines, the latest first. */
static bool replaces(const struct history *at, size_t index)
{
	const struct line *l = &at->lines.all[index];
	uint64_t since = began(at, l->time);
	for (size_t i = index; i--;) {
		const struct line *o = &at->lines.all[i];
		if (o->time <= since)
			break;
		if (!overlap(o, l))
			continue;
		if (l->inode != o->inode || l->major != o->major || l->minor != o->minor)
			return true;
		if (o->start <= l->start && o->end >= l->end)
			break;
	}
	return false;
}

/* Lines come from several CPUs, but nearly always in order. False: no memory. */
static bool insert_line(struct history *at, const struct line *line)
{
	struct lines *in = &at->lines;
	size_t index = first_after(in, line->time);
	if (!add_line(in, line))
		return false;
	memmove(in->all + index + 1, in->all + index, (in->count - 1 - index) * sizeof *line);
	in->all[index] = *line;
	for (size_t i = index; i < in->count; i++)
		if (overlap(&in->all[i], line))
			in->all[i].replaces = replaces(at, i);
	return true;
}

/* For programs that map code again and again: keeps the latest lines, and what was mapped before them. */
static void compact(struct history *at)
{
	struct lines had = {0}, *lines = &at->lines;
	at->forgotten_ns = lines->all[lines->count - LINES_KEPT].time;
	if (!replay(at, at->forgotten_ns, &had))
		had.count = 0; /* no memory */
	for (size_t i = 0; i < had.count; i++)
		had.all[i].path = strdup(had.all[i].path);
	forget_lines(at, at->forgotten_ns);
	for (size_t i = 0; i < had.count; i++)
		if (!had.all[i].path || lines->count > LINES_MAX / 2 ||
		    !insert_line(at, &had.all[i]))
			free(had.all[i].path);
	free(had.all);
}

static void add_mapping(struct kernel_histories *n, const struct mapped *m, size_t size,
			uint64_t time)
{
	size_t room = size - sizeof *m - sizeof(struct tail);
	struct history *at = find_or_add(n, (pid_t)m->pid);
	if (!at || !memchr(m->path, 0, room) || m->address + m->length < m->address)
		return;
	if (at->lines.count >= LINES_MAX)
		compact(at);
	struct line line = {.start = m->address,
			    .end = m->address + m->length,
			    .offset = m->offset,
			    .inode = m->inode,
			    .time = time,
			    .major = m->major,
			    .minor = m->minor,
			    .path = strdup(m->path)};
	at->changed = true;
	if (!line.path || !insert_line(at, &line))
		free(line.path);
}

/* Records of other CPUs may come later, although they are older. */
static void add_life(struct kernel_histories *n, pid_t pid, pid_t parent, uint64_t since)
{
	struct history *at = find_or_add(n, pid);
	if (!at)
		return;
	if (at->life_count == LIVES_MAX) {
		memmove(at->lives, at->lives + 1, --at->life_count * sizeof *at->lives);
		forget_lines(at, at->lives[0].since);
	}
	size_t i = at->life_count++;
	for (; i && at->lives[i - 1].since > since; i--)
		at->lives[i] = at->lives[i - 1];
	at->lives[i] = (struct life){since, parent};
}

void mapped_scan(struct kernel *k, pid_t pid)
{
	struct maps maps;
	struct err *e = maps_read(pid, &maps);
	struct history *at = e || !maps.count ? NULL : find_or_add(k->histories, pid);
	for (size_t i = 0; at && i < maps.count && at->lines.count < LINES_MAX / 2; i++) {
		const struct map *m = &maps.items[i];
		struct line line = {.start = m->start,
				    .end = m->end,
				    .offset = m->offset,
				    .inode = m->inode,
				    .time = now_ns(),
				    .major = major(m->device),
				    .minor = minor(m->device),
				    .path = m->executable ? strdup(m->path) : NULL};
		if (line.path && !insert_line(at, &line))
			free(line.path);
	}
	if (!e)
		maps_free(&maps);
	err_free(e);
}

void mapped_forked(struct kernel *k, pid_t pid, pid_t parent, uint64_t time)
{
	add_life(k->histories, pid, parent, time);
}

static void forget(struct kernel_histories *n, struct history **link)
{
	struct history *at = *link;
	*link = at->next;
	forget_lines(at, UINT64_MAX);
	free(at->lines.all);
	free(at);
	n->history_count--;
}

/* ---- rings ---- */

void mapped_take(struct kernel *k, const struct perf_event_header *header)
{
	struct kernel_histories *n = k->histories;
	struct tail tail;
	if (header->size < sizeof *header + sizeof tail)
		return;
	memcpy(&tail, (const char *)header + header->size - sizeof tail, sizeof tail);
	if (header->type == PERF_RECORD_MMAP2 && header->size > sizeof(struct mapped) + sizeof tail)
		add_mapping(n, (const struct mapped *)header, header->size, tail.time);
	else if (header->type == PERF_RECORD_COMM && header->misc & PERF_RECORD_MISC_COMM_EXEC)
		add_life(n, (pid_t)tail.pid, 0, tail.time);
	else if (header->type == PERF_RECORD_LOST && header->size >= sizeof(struct lost)) {
		n->lost_time = tail.time;
		n->lost += ((const struct lost *)header)->count;
	}
}

static void copy_out(const struct kernel_histories *n, const char *bytes, uint64_t at, void *to,
		     size_t size)
{
	size_t from = at % n->ring_size, part = n->ring_size - from;
	if (part > size)
		part = size;
	memcpy(to, bytes + from, part);
	memcpy((char *)to + part, bytes, size - part);
}

static bool make_room(struct held *h, size_t size)
{
	if (size <= h->room - h->used)
		return true;
	size_t room = h->room * 2 > h->used + size ? h->room * 2 : h->used + size;
	char *more = realloc(h->bytes, room);
	if (!more)
		return false;
	h->bytes = more;
	h->room = room;
	return true;
}

/* Takes the records out of a ring if they have at least `least` bytes. If there is no memory, they stay
   there. */
static void hold_ring(struct kernel_histories *n, struct ring *r, size_t least)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;
	size_t size = head - tail;
	if (size < least || !make_room(&n->held, size))
		return;
	copy_out(n, (const char *)r->page + n->page_size, tail, n->held.bytes + n->held.used, size);
	n->held.used += size;
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
}

static void hold_rings(struct kernel_histories *n, size_t least)
{
	for (unsigned i = 0; i < n->ring_count; i++)
		if (n->rings[i].page)
			hold_ring(n, &n->rings[i], least);
}

void mapped_hold(struct kernel *k)
{
	struct kernel_histories *n = k->histories;
	pthread_mutex_lock(&n->lock);
	if (n->held.used < HELD_MAX)
		hold_rings(n, n->ring_size / 4);
	pthread_mutex_unlock(&n->lock);
}

static void give_back(struct kernel_histories *n, struct held *h)
{
	pthread_mutex_lock(&n->lock);
	if (!n->held.bytes && h->room <= HELD_KEPT) {
		n->held = (struct held){h->bytes, 0, h->room};
		h->bytes = NULL;
	}
	pthread_mutex_unlock(&n->lock);
	free(h->bytes);
}

void mapped_read(struct kernel *k)
{
	struct kernel_histories *n = k->histories;
	pthread_mutex_lock(&n->lock);
	hold_rings(n, 1);
	struct held h = n->held;
	n->held = (struct held){0};
	pthread_mutex_unlock(&n->lock);
	for (size_t at = 0; h.used - at >= sizeof(struct perf_event_header);) {
		const struct perf_event_header *header = (const void *)(h.bytes + at);
		if (header->size < sizeof *header || header->size > h.used - at)
			break;
		mapped_take(k, header);
		at += header->size;
	}
	give_back(n, &h);
}

static void close_ring(struct kernel_histories *n, struct ring *r)
{
	if (!r->page)
		return;
	hold_ring(n, r, 1);
	munmap(r->page, n->page_size + n->ring_size);
	close(r->fd);
	*r = (struct ring){0};
}

void mapped_leave(struct kernel *k, unsigned cpu)
{
	pthread_mutex_lock(&k->histories->lock);
	close_ring(k->histories, &k->histories->rings[cpu]);
	pthread_mutex_unlock(&k->histories->lock);
}

void mapped_watch(struct kernel *k, unsigned cpu)
{
	struct kernel_histories *n = k->histories;
	mapped_leave(k, cpu);
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
		.wakeup_watermark = k->whole ? (uint32_t)n->ring_size / 2 : 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && errno == ENODEV) /* the CPU is off */
		return;
	void *page = fd < 0 ? MAP_FAILED
			    : mmap(NULL, n->page_size + n->ring_size, PROT_READ | PROT_WRITE,
				   MAP_SHARED, fd, 0);
	n->lost_time = page == MAP_FAILED || n->lost_time == UINT64_MAX ? UINT64_MAX : now_ns();
	if (page == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return;
	}
	struct epoll_event event = {.events = EPOLLIN};
	epoll_ctl(k->epoll, EPOLL_CTL_ADD, fd, &event);
	pthread_mutex_lock(&n->lock);
	n->rings[cpu] = (struct ring){fd, page};
	pthread_mutex_unlock(&n->lock);
}

struct err *mapped_open(struct kernel *k)
{
	struct kernel_histories *n = k->histories = calloc(1, sizeof *n);
	if (n) {
		pthread_mutex_init(&n->lock, NULL);
		n->page_size = (size_t)sysconf(_SC_PAGESIZE);
		n->ring_size = RING_PAGES * n->page_size;
		n->rings = calloc(k->cpus, sizeof *n->rings);
		n->ring_count = k->cpus;
	}
	if (!n || !n->rings)
		return err_new("out of memory");
	for (unsigned cpu = 0; cpu < k->cpus; cpu++)
		mapped_watch(k, cpu); /* if that fails, code of short processes has no names */
	return NULL;
}

void mapped_close(struct kernel *k)
{
	struct kernel_histories *n = k->histories;
	if (!n)
		return;
	for (unsigned i = 0; n->rings && i < n->ring_count; i++)
		close_ring(n, &n->rings[i]);
	for (size_t i = 0; i < BUCKETS; i++)
		while (n->histories[i])
			forget(n, &n->histories[i]);
	free(n->held.bytes);
	free(n->rings);
	free(n);
	k->histories = NULL;
}

/* ---- answers ---- */

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

/* Makes maps of lines, as /proc would have shown them. Paths are copied. */
static bool give_maps(struct lines *from, struct maps *out)
{
	size_t room = 1;
	if (from->count)
		qsort(from->all, from->count, sizeof *from->all, compare_lines);
	for (size_t i = 0; i < from->count; i++)
		room += strlen(from->all[i].path) + 1;
	*out = (struct maps){.items = reallocarray(NULL, from->count + 1, sizeof *out->items),
			     .text = malloc(room)};
	char *text = out->text;
	for (size_t i = 0; out->items && text && i < from->count; i++) {
		const struct line *l = &from->all[i];
		size_t length;
		bool deleted = maps_is_deleted(l->path, &length);
		if (l->start >= l->end)
			continue;
		if (!strncmp(l->path, "//", 2)) /* "//anon": /proc shows no name */
			length = 0;
		memcpy(text, l->path, length);
		text[length] = '\0';
		out->items[out->count++] = (struct map){.start = l->start,
							.end = l->end,
							.offset = l->offset,
							.device = makedev(l->major, l->minor),
							.inode = l->inode,
							.readable = true,
							.executable = true,
							.path = text,
							.deleted = deleted};
		text += length + 1;
	}
	if (!out->count)
		maps_free(out);
	return out->count;
}

bool mapped_at(const struct kernel *k, pid_t pid, uint64_t time, struct maps *out)
{
	struct lines then = {0};
	bool good = replay_all(k->histories, pid, time, &then) && give_maps(&then, out);
	free(then.all);
	return good;
}

/* Whether a record says everything about a mapping. Memory without a file, and memory whose file is
   gone, must be looked at. */
static bool is_plain(const char *path)
{
	static const char *const others[] = {"//", "/dev/", "/memfd:", "/SYSV"};
	size_t length;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (!strncmp(path, others[i], strlen(others[i])))
			return false;
	return !strcmp(path, "[vdso]") || (path[0] == '/' && !maps_is_deleted(path, &length));
}

bool mapped_young(const struct kernel *k, pid_t pid, struct maps *out)
{
	const struct history *at = find(k->histories, pid);
	const struct life *life = at ? life_at(at, UINT64_MAX) : NULL;
	struct lines now = {0};
	if (!life || life->parent || life->since <= k->histories->lost_time ||
	    now_ns() - life->since > YOUNG_NS)
		return false;
	bool good = replay(at, UINT64_MAX, &now);
	for (size_t i = 0; good && i < now.count; i++)
		good = is_plain(now.all[i].path);
	good = good && give_maps(&now, out);
	free(now.all);
	return good;
}

bool mapped_executed(const struct kernel *k, pid_t pid, uint64_t since)
{
	const struct history *at = find(k->histories, pid);
	return at && began(at, UINT64_MAX) > since;
}

uint64_t mapped_lost(struct kernel *k)
{
	uint64_t lost = k->histories->lost;
	k->histories->lost = 0;
	return lost;
}

bool mapped_replaced(const struct kernel *k, pid_t pid, uint64_t one, uint64_t other)
{
	const struct history *at = find(k->histories, pid);
	uint64_t from = one < other ? one : other, to = one < other ? other : one;
	if (!at || from < at->forgotten_ns)
		return at;
	for (size_t i = first_after(&at->lines, from); i < at->lines.count; i++) {
		if (at->lines.all[i].time > to)
			break;
		if (at->lines.all[i].replaces)
			return true;
	}
	return false;
}

bool mapped_changed(const struct kernel *k, pid_t pid)
{
	struct history *at = find(k->histories, pid);
	bool changed = at && at->changed;
	if (changed)
		at->changed = false;
	return changed;
}

void mapped_sweep(struct kernel *k, uint64_t now,
		  bool (*is_there)(const struct kernel *k, pid_t pid))
{
	struct kernel_histories *n = k->histories;
	if (now - n->swept_ns < KEPT_NS)
		return;
	n->swept_ns = now;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct history **link = &n->histories[i]; *link;)
			if (now > (*link)->seen_ns + KEPT_NS && !is_there(k, (*link)->pid)) {
				forget(n, link);
			} else {
				forget_lines(*link, began(*link, now - LATE_NS));
				link = &(*link)->next;
			}
}
