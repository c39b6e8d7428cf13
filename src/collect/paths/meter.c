/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of programs that count their paths: the PC and the registers, for these have the sum of the path. The program has no part in
 * it. A sample goes to the ring of the CPU that it is taken on, whatever it is of.
 *
 *    program --events, one for each CPU--> ring of the CPU --> counting.sampled
 *
 * Events are inherited by threads and forked processes, and end where another program is executed: that has its own. The kernel
 * numbers them upwards, so their list is sorted. A ring is one of an event of ours, which counts nothing.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/err.h"
#include "collect/events.h"
#include "collect/paths/work.h"
#include "process/registers.h"
#include "process/status.h"
#include "unwind/cpu.h"

#define RING_BYTES ((size_t)128 << 10)
#define RECORD_MAX (64u << 10)

struct sample_ring {
	int event;
	struct perf_event_mmap_page *head;
	const uint8_t *data;
};

struct sampled { /* an event */
	uint64_t id;
	struct program *program;
	size_t event; /* of counting->events */
	int fd;
};

struct meter {
	struct sample_ring *rings; /* by CPU */
	size_t ring_count;
	struct sampled *all; /* ascending */
	size_t count, room;
	uint8_t *record;
	int epoll;
	uint64_t lost; /* samples that had no room in a ring */
};

struct record { /* as read_attr() asks for it */
	struct perf_event_header header;
	uint64_t id, period, abi, registers[];
};

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int open_event(struct perf_event_attr *attr, pid_t pid, size_t cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* ---- rings ---- */

/* A CPU that is off has none. */
static struct err *open_ring(struct meter *s, size_t cpu)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof attr,
				       .config = PERF_COUNT_SW_DUMMY,
				       .watermark = 1,
				       .wakeup_watermark = RING_BYTES / 4,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	struct epoll_event wake = {.events = EPOLLIN};
	struct sample_ring *ring = &s->rings[cpu];
	ring->event = open_event(&attr, 0, cpu);
	if (ring->event < 0)
		return errno == ENODEV ? NULL : err_new("%s", event_refused(errno));
	void *memory = mmap(NULL, page_size() + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			    ring->event, 0);
	if (memory == MAP_FAILED)
		return err_errno("no memory for samples");
	ring->head = memory;
	ring->data = (const uint8_t *)memory + page_size();
	epoll_ctl(s->epoll, EPOLL_CTL_ADD, ring->event, &wake);
	return NULL;
}

static void close_ring(struct sample_ring *ring)
{
	if (ring->head)
		munmap(ring->head, page_size() + RING_BYTES);
	if (ring->event >= 0)
		close(ring->event);
}

struct err *meter_open(struct counting_work *work)
{
	struct meter *s;
	struct err *e = NULL;
	if (!work->counting->event_count)
		return NULL;
	work->meter = s = calloc(1, sizeof *s);
	if (!s)
		return err_new("out of memory");
	size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF);
	s->rings = calloc(cpus, sizeof *s->rings);
	s->record = malloc(RECORD_MAX);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!s->rings || !s->record || s->epoll < 0)
		return err_new("no memory for samples");
	for (; s->ring_count < cpus && !e; s->ring_count++)
		e = open_ring(s, s->ring_count);
	return e;
}

void meter_close(struct counting_work *work)
{
	struct meter *s = work->meter;
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		close(s->all[i].fd);
	for (size_t i = 0; i < s->ring_count; i++)
		close_ring(&s->rings[i]);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s->rings);
	free(s->all);
	free(s->record);
	free(s);
	work->meter = NULL;
}

int meter_fd(const struct counting_work *work)
{
	return work->meter ? work->meter->epoll : -1;
}

/* ---- programs ---- */

/* What is not the program's own code is left out, where the event knows: a path is in user code. */
static struct perf_event_attr read_attr(const struct recording_event *event)
{
	struct perf_event_attr attr = event_attr(event);
	attr.disabled = 0;
	attr.read_format = 0;
	attr.sample_period = event->period;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER;
	attr.sample_regs_user = registers_perf_mask;
	attr.inherit = 1;
	attr.remove_on_exec = 1;
	attr.watermark = 1;
	attr.wakeup_watermark = RING_BYTES / 4;
	attr.exclude_kernel = attr.exclude_hv = event->user_only || event->clock || event->counter;
	return attr;
}

static bool begin_one(struct counting_work *work, struct program *p, pid_t tid, size_t event,
		      size_t cpu)
{
	struct meter *s = work->meter;
	struct perf_event_attr attr = read_attr(&work->counting->events[event]);
	if (!s->rings[cpu].head)
		return true;
	if (!ARRAY_ROOM(s->all, s->count, s->room)) {
		errno = ENOMEM;
		return false;
	}
	struct sampled *one = &s->all[s->count];
	*one = (struct sampled){.program = p, .event = event, .fd = open_event(&attr, tid, cpu)};
	if (one->fd < 0)
		return errno == ENODEV || (errno == ESRCH && p->face.late);
	s->count++;
	return !ioctl(one->fd, PERF_EVENT_IOC_ID, &one->id) &&
	       !ioctl(one->fd, PERF_EVENT_IOC_SET_OUTPUT, s->rings[cpu].event);
}

static bool begin_thread(struct counting_work *work, struct program *p, pid_t tid)
{
	const struct meter *s = work->meter;
	bool good = true;
	for (size_t event = 0; good && event < work->counting->event_count; event++)
		for (size_t cpu = 0; cpu < s->ring_count && good; cpu++)
			good = begin_one(work, p, tid, event, cpu);
	return good;
}

/* A thread that is made meanwhile is sampled, too, if the one that makes it is already. */
static bool begin_threads(struct counting_work *work, struct program *p)
{
	pid_t *tids;
	size_t count;
	struct err *e = process_tasks(p->face.pid, &tids, &count);
	bool good = !e;
	for (size_t i = 0; i < count && good; i++)
		good = begin_thread(work, p, tids[i]);
	free(tids);
	err_free(e);
	return good;
}

void meter_begin(struct counting_work *work, struct program *p)
{
	if (!work->meter ||
	    (p->face.late ? begin_threads(work, p) : begin_thread(work, p, p->face.pid)))
		return;
	program_note(work, p, "it is counted, but not sampled: %s",
		     errno == EINVAL ? "the kernel is older than 5.13, or has no such event"
				     : event_refused(errno));
	meter_end(work, p);
}

void meter_end(struct counting_work *work, const struct program *p)
{
	struct meter *s = work->meter;
	size_t kept = 0;
	for (size_t i = 0; s && i < s->count; i++) {
		if (s->all[i].program != p)
			s->all[kept++] = s->all[i];
		else
			close(s->all[i].fd);
	}
	if (s)
		s->count = kept;
}

/* ---- samples ---- */

static void take_sample(struct counting_work *work, const struct record *r)
{
	const struct meter *s = work->meter;
	const struct counting *c = work->counting;
	size_t i = FIRST_NOT(k, s->count, s->all[k].id < r->id);
	uint64_t registers[CPU_REGISTERS], pc;
	if (i == s->count || s->all[i].id != r->id || r->abi != PERF_SAMPLE_REGS_ABI_64)
		return;
	registers_from_perf(r->registers, registers, &pc);
	c->sampled(c->context, &s->all[i].program->face, s->all[i].event, pc, registers, r->period);
}

static void take_record(struct counting_work *work, const struct record *r)
{
	const size_t whole = sizeof *r + registers_perf_count * sizeof(uint64_t);
	struct {
		struct perf_event_header header;
		uint64_t id, count;
	} const *lost = (const void *)r;
	if (r->header.type == PERF_RECORD_SAMPLE && r->header.size >= sizeof *r &&
	    (r->abi != PERF_SAMPLE_REGS_ABI_64 || r->header.size >= whole))
		take_sample(work, r);
	else if (r->header.type == PERF_RECORD_LOST && r->header.size >= sizeof *lost)
		work->meter->lost += lost->count;
}

static void copy_out(const struct sample_ring *ring, uint64_t from, void *to, size_t size)
{
	size_t at = (size_t)from & (RING_BYTES - 1), part = RING_BYTES - at;
	part = part < size ? part : size;
	memcpy(to, ring->data + at, part);
	memcpy((uint8_t *)to + part, ring->data, size - part);
}

static void empty_ring(struct counting_work *work, struct sample_ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE),
		 tail = ring->head->data_tail;
	uint8_t *record = work->meter->record;
	while (tail < head) {
		struct perf_event_header header;
		copy_out(ring, tail, &header, sizeof header);
		if (header.size < sizeof header)
			break;
		copy_out(ring, tail, record, header.size);
		take_record(work, (const struct record *)record);
		tail += header.size;
	}
	__atomic_store_n(&ring->head->data_tail, tail, __ATOMIC_RELEASE);
}

void meter_read(struct counting_work *work)
{
	struct meter *s = work->meter;
	for (size_t i = 0; s && i < s->ring_count; i++)
		if (s->rings[i].head)
			empty_ring(work, &s->rings[i]);
}

uint64_t meter_lost(const struct counting_work *work)
{
	return work->meter ? work->meter->lost : 0;
}
