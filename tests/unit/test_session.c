/* SPDX-License-Identifier: Apache-2.0 */
/* A session with small agents of our own: children of the test that speak as the real one does. */
#include "unit.h"

#include "base/err.h"
#include "cct/cct.h"
#include "collect/session.h"
#include "process/registers.h"
#include "profile/profile.h"
#include "safe/wire.h"
#include "unwind/walk.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct recording_options options(size_t events)
{
	struct recording_options o = {
		.event_count = events, .hz = 1000, .agent = "/nowhere/agent.so"};
	for (size_t i = 0; i < events; i++) {
		o.events[i] = (struct recording_event){.name = "cpu-clock",
						       .unit = "ns",
						       .type = PERF_TYPE_SOFTWARE,
						       .config = PERF_COUNT_SW_CPU_CLOCK,
						       .period = 1000000,
						       .clock = true};
		o.events[i].name[8] = (char)('0' + i);
	}
	return o;
}

static struct session *open_session(size_t events)
{
	struct recording_options o = options(events);
	struct session *s;
	struct err *e = session_open(&o, &s);
	if (e)
		fail_msg("%s", err_text(e));
	return s;
}

static char *socket_of(struct session *s)
{
	char *none[] = {NULL}, **environment = session_environment(s, none), *path = NULL;
	for (char **at = environment; *at; at++)
		if (!strncmp(*at, WIRE_SOCKET "=", strlen(WIRE_SOCKET "=")))
			path = strdup(*at + strlen(WIRE_SOCKET "="));
	free(environment);
	assert_non_null(path);
	return path;
}

static void handle_for(struct session *s, int milliseconds)
{
	for (int i = 0; i < milliseconds / 10; i++) {
		struct pollfd wait = {session_fd(s), POLLIN, 0};
		poll(&wait, 1, 10);
		struct err *e = session_handle(s);
		if (e)
			fail_msg("%s", err_text(e));
	}
}

/* Until the child has ended; its exit status is 0 where it was content. */
static void handle_until_end(struct session *s, pid_t pid)
{
	int status = 0, left = 20000; /* the machine may be slow */
	while (waitpid(pid, &status, WNOHANG) == 0 && --left)
		handle_for(s, 10);
	if (!left) {
		kill(pid, SIGKILL);
		fail_msg("the child hangs");
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	handle_for(s, 50);
}

static struct profile *finish(struct session *s, unsigned expected_running)
{
	struct profile *p;
	unsigned running;
	struct err *e = session_finish(s, &p, &running);
	if (e)
		fail_msg("%s", err_text(e));
	assert_int_equal(running, expected_running);
	session_close(s);
	return p;
}

/* ---- the agent's side; what is wrong ends the child with the line's number ---- */

#define CHECK(condition)                                 \
	do                                               \
		if (!(condition))                        \
			_exit((__LINE__ - 1) % 254 + 1); \
	while (0)

struct fake {
	struct wire_reply reply;
	struct arena_header *arena;
	const char *tables;
	_Atomic uint32_t *bell;
};

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	if (connect(fd, (struct sockaddr *)&address, sizeof address)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Returns the number of descriptors that came; -1: no answer. */
static int ask(const char *path, uint32_t kind, struct wire_reply *reply, int *fds)
{
	struct wire_request request = {.magic = WIRE_MAGIC, .kind = kind, .process = getpid()};
	union {
		char bytes[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {reply, sizeof *reply};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof control};
	int fd = connect_to(path), count = 0;
	CHECK(fd >= 0);
	CHECK(send(fd, &request, sizeof request, MSG_NOSIGNAL) == sizeof request);
	if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != sizeof *reply)
		return -1;
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	if (head) {
		count = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(head), (size_t)count * sizeof(int));
	}
	close(fd);
	return count;
}

static void hello(const char *path, struct fake *f)
{
	int fds[8];
	CHECK(ask(path, WIRE_HELLO, &f->reply, fds) == 3);
	CHECK(f->reply.magic == WIRE_MAGIC && f->reply.sampler == WIRE_EVENTS);
	f->arena = mmap(NULL, f->reply.arena_size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	f->tables = mmap(NULL, f->reply.tables_map, PROT_READ, MAP_SHARED, fds[1], 0);
	f->bell = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[2], 0);
	CHECK(f->arena != MAP_FAILED && f->tables != MAP_FAILED && (void *)f->bell != MAP_FAILED);
	CHECK(arena_is_sane(f->arena, f->reply.arena_size));
	/* Nobody can take the ground from under the collector, or write in the tables. */
	CHECK(ftruncate(fds[0], 4096) && ftruncate(fds[2], 0));
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0) == MAP_FAILED);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

static const struct wire_module *module_at(const struct fake *f, uint64_t place, uint64_t address)
{
	const struct wire_list *list = (const struct wire_list *)(f->tables + place);
	for (uint32_t i = 0; i < list->count; i++) {
		CHECK(list->modules[i].start < list->modules[i].end);
		CHECK(!i || list->modules[i].start >= list->modules[i - 1].end);
		if (address >= list->modules[i].start && address < list->modules[i].end)
			return &list->modules[i];
	}
	return NULL;
}

static void ring(const struct fake *f)
{
	atomic_fetch_add(&f->arena->changes, 1);
	atomic_fetch_add(f->bell, 1);
	syscall(SYS_futex, f->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static struct arena_thread *take_record(const struct fake *f, struct cct *tree)
{
	struct arena_thread *t = arena_thread_take(f->arena);
	CHECK(t);
	t->process = getpid();
	t->parent = getppid();
	t->tid = (int32_t)syscall(SYS_gettid);
	t->list_place = f->reply.list_place;
	CHECK(cct_begin(tree, f->arena, t));
	return t;
}

static void add_path(const struct fake *f, struct arena_thread *t, struct cct *tree,
		     uint64_t weight)
{
	uint64_t here = (uint64_t)(uintptr_t)add_path, leaf = (uint64_t)(uintptr_t)hello;
	const struct wire_module *m = module_at(f, t->list_place, here);
	CHECK(m && m->id && m->table_size);
	uint32_t node = cct_child(tree, tree->root, cct_key(true, m->id, here - m->bias));
	node = cct_child(tree, node, cct_key(false, m->id, leaf - m->bias));
	CHECK(node);
	cct_values(cct_node(tree, node))[0] += weight;
	t->samples[0] += weight;
	t->weight += weight;
}

static void go_live(const struct fake *f, struct arena_thread *t)
{
	atomic_store(&t->state, ARENA_LIVE);
	ring(f);
}

static void pause_for(long milliseconds)
{
	struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000};
	nanosleep(&t, NULL);
}

static pid_t start(void (*agent)(const char *path), const char *path)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(20);
		agent(path);
		_exit(0);
	}
	return pid;
}

/* ---- looking at profiles ---- */

/* The value of a path of two frames of this program. */
static uint64_t value_of(const struct profile *p, bool partial)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_node *n = &p->nodes[p->values[i].node];
		const struct profile_node *up = &p->nodes[n->parent];
		if (n->kind == PROFILE_EXACT && up->kind == PROFILE_CALL &&
		    n->module == up->module && strstr(p->modules[n->module].path, "test_session") &&
		    (p->nodes[up->parent].kind == PROFILE_PARTIAL) == partial)
			sum += p->values[i].count;
	}
	return sum;
}

static void check_gone(const char *socket)
{
	char directory[256];
	snprintf(directory, sizeof directory, "%s", socket);
	assert_int_equal(access(socket, F_OK), -1);
	*strrchr(directory, '/') = '\0';
	assert_int_equal(access(directory, F_OK), -1);
}

/* ---- tests ---- */

static void agent_counts(const char *path)
{
	struct fake f;
	struct cct tree;
	hello(path, &f);
	struct arena_thread *t = take_record(&f, &tree);
	add_path(&f, t, &tree, 7);
	cct_values(cct_node(&tree, cct_child(&tree, tree.root,
					     cct_key(false, CCT_PARTIAL, WALK_NO_RECIPE))))[0] += 2;
	t->samples[0] += 2;
	t->weight += 2;
	t->lost = 3;
	t->ticks = 1000;
	t->cpu_start_ns = 100;
	t->cpu_ns = 600;
	go_live(&f, t);
	pause_for(50);
}

static void counts_come_into_the_profile(void **state)
{
	struct session *s = open_session(1);
	char *path = socket_of(s);
	struct recording_state status;
	(void)state;
	pid_t pid = start(agent_counts, path);
	handle_until_end(s, pid);
	session_status(s, &status);
	assert_int_equal(status.samples, 9);
	assert_int_equal(status.partial, 2);
	assert_int_equal(status.lost, 3);
	assert_int_equal(status.processes, 1);
	assert_int_equal(status.live, 0);
	struct profile *p = finish(s, 0);
	assert_int_equal(profile_samples(p, 0), 9);
	assert_int_equal(profile_partial(p, 0, WALK_NO_RECIPE), 2);
	assert_int_equal(value_of(p, false), 7);
	assert_int_equal(p->process_count, 1);
	assert_int_equal(p->processes[0].pid, pid);
	assert_int_equal(p->processes[0].parent, getpid());
	assert_non_null(strstr(p->processes[0].name, "test_session"));
	assert_int_equal(p->thread_count, 1);
	assert_int_equal(p->threads[0].cpu_ns, 500);
	assert_int_equal(p->threads[0].handled, 9);
	assert_true(p->threads[0].handler_ns > 0);
	assert_int_equal(p->lost_count, 1);
	assert_int_equal(p->lost[0].count, 3);
	assert_true(p->complete && p->delivery_ns > 0 && p->duration_ns > 0);
	assert_string_equal(p->note, "");
	profile_free(p);
	check_gone(path);
	free(path);
}

static void agent_lives(const char *path)
{
	struct fake f;
	struct cct tree;
	hello(path, &f);
	struct arena_thread *t = take_record(&f, &tree);
	add_path(&f, t, &tree, 5);
	go_live(&f, t);
	pause_for(10000);
}

static void a_snapshot_disturbs_nothing(void **state)
{
	struct session *s = open_session(1);
	char *path = socket_of(s);
	struct profile *p;
	(void)state;
	pid_t pid = start(agent_lives, path);
	handle_for(s, 500);
	for (int i = 0; i < 2; i++) {
		assert_null(session_snapshot(s, &p));
		assert_false(p->complete);
		assert_int_equal(value_of(p, false), 5);
		assert_int_equal(p->process_count, 1);
		assert_int_equal(p->thread_count, 1);
		profile_free(p);
	}
	p = finish(s, 1); /* it lives on */
	assert_int_equal(value_of(p, false), 5);
	assert_int_equal(p->thread_count, 1);
	profile_free(p);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(path);
}

static void agent_forks(const char *path)
{
	struct fake f;
	struct cct tree;
	hello(path, &f);
	struct arena_thread *t = take_record(&f, &tree);
	add_path(&f, t, &tree, 1);
	go_live(&f, t);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();
		if (child) {
			waitpid(child, NULL, 0);
			continue;
		}
		t = take_record(&f, &tree);
		add_path(&f, t, &tree, 10);
		go_live(&f, t);
		if (i == 1) { /* a new program in the same process */
			munmap(f.arena, f.reply.arena_size);
			hello(path, &f);
			t = take_record(&f, &tree);
			add_path(&f, t, &tree, 100);
			go_live(&f, t);
		}
		pause_for(i == 2 ? 0 : 50); /* one is gone before anybody looks */
		_exit(0);
	}
}

static void children_and_new_images_are_there(void **state)
{
	struct session *s = open_session(1);
	char *path = socket_of(s);
	struct recording_state status;
	(void)state;
	handle_until_end(s, start(agent_forks, path));
	/* On a busy machine, the last child is noticed later. */
	session_status(s, &status);
	for (int left = 500; left && status.processes < 4; left--) {
		handle_for(s, 10);
		session_status(s, &status);
	}
	assert_int_equal(status.processes, 4);
	struct profile *p = finish(s, 0);
	assert_int_equal(value_of(p, false), 1 + 3 * 10 + 100);
	assert_int_equal(p->process_count, 5); /* one of them is two programs */
	assert_int_equal(p->thread_count, 5);
	unsigned same = 0;
	for (size_t i = 0; i < p->process_count; i++)
		for (size_t k = 0; k < i; k++)
			same += p->processes[i].pid == p->processes[k].pid;
	assert_int_equal(same, 1);
	profile_free(p);
	free(path);
}

/* A sample in memory that was made executable after HELLO, called by add_path's module. */
static void agent_leaves_a_copy(const char *path)
{
	struct fake f;
	struct cct tree;
	hello(path, &f);
	struct arena_thread *t = take_record(&f, &tree);
	go_live(&f, t);
	uint64_t place = t->list_place;
	char *code = mmap(NULL, 65536, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(code != MAP_FAILED && !module_at(&f, place, (uint64_t)(uintptr_t)code));
	uint32_t chunk = arena_take(f.arena);
	struct arena_copy *s = arena_at(f.arena, chunk);
	uint64_t stack[2] = {0x1000, (uint64_t)(uintptr_t)add_path + 4};
	memset(s->registers, 0, sizeof s->registers);
	s->event = 0;
	s->weight = 4;
	s->pc = (uint64_t)(uintptr_t)code + 16;
	s->address = 0x7000000;
	s->size = sizeof stack;
	memcpy(s->bytes, stack, sizeof stack);
#if defined(__aarch64__)
	s->registers[31] = s->address;
	s->registers[29] = s->address;
#else
	s->registers[7] = s->address;
	s->registers[6] = s->address;
#endif
	t->samples[0] = 1;
	t->weight = 4;
	atomic_store(&t->copies[3], chunk);
	ring(&f);
	/* The slot is free a moment before the new list is told. */
	for (int i = 0; i < 6000 && (atomic_load(&t->copies[3]) || t->list_place == place); i++)
		pause_for(10);
	CHECK(!atomic_load(&t->copies[3]));
	CHECK(t->list_place != place);
	const struct wire_module *m = module_at(&f, t->list_place, (uint64_t)(uintptr_t)code);
	CHECK(m && m->id == 0 && m->flags == (WIRE_MODULE_JIT | WIRE_MODULE_READ) &&
	      !m->table_size);
	/* The same code again: the same list. */
	struct wire_reply reply;
	place = t->list_place;
	CHECK(ask(path, WIRE_MODULES, &reply, NULL) == 0 && t->list_place == place);
	munmap(code, 65536);
	CHECK(ask(path, WIRE_MODULES, &reply, NULL) == 0 && t->list_place != place);
	CHECK(!module_at(&f, t->list_place, (uint64_t)(uintptr_t)code));
}

static void copies_are_walked_with_new_modules(void **state)
{
	struct session *s = open_session(1);
	char *path = socket_of(s);
	(void)state;
	handle_until_end(s, start(agent_leaves_a_copy, path));
	struct profile *p = finish(s, 0);
	assert_int_equal(profile_samples(p, 0), 4);
	const struct profile_node *leaf = &p->nodes[p->values[0].node];
	const struct profile_node *caller = &p->nodes[leaf->parent];
	assert_int_equal(leaf->kind, PROFILE_EXACT);
	assert_int_equal(p->modules[leaf->module].kind, PROFILE_JIT);
	/* Where frame records may lie anywhere in a frame, the caller's SP cannot be told here. */
	if (native_machine == EM_X86_64) {
		assert_int_equal(caller->kind, PROFILE_CALL);
		assert_non_null(strstr(p->modules[caller->module].path, "test_session"));
	} else {
		assert_int_equal(caller->kind, PROFILE_PARTIAL);
	}
	assert_int_equal(p->thread_count, 1);
	assert_int_equal(p->threads[0].handled, 1);
	profile_free(p);
	free(path);
}

/* ---- perf events ---- */

static struct arena_thread *sampled;
static struct cct sampled_tree;
static uint32_t sampled_node;
static _Atomic int strange;

static void on_sample(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	unsigned event = (unsigned)info->si_fd % 2;
	if (event >= 2 || (info->si_code != POLL_IN && info->si_code != POLL_HUP)) {
		strange++;
		return;
	}
	sampled->samples[event]++;
	sampled->weight += !event;
	cct_values(cct_node(&sampled_tree, sampled_node))[event]++;
}

static void agent_is_sampled(const char *path)
{
	struct sigaction action = {.sa_sigaction = on_sample, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct fake f;
	struct timespec now;
	hello(path, &f);
	sigaction(WIRE_SIGNAL, &action, NULL);
	sampled = take_record(&f, &sampled_tree);
	sampled_node = cct_child(&sampled_tree, sampled_tree.root, cct_key(false, 1, 0x10));
	go_live(&f, sampled);
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	while (!now.tv_sec && now.tv_nsec < 300000000);
	CHECK(!strange);
}

static bool perf_is_allowed(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof attr,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 1000000,
				       .remove_on_exec = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void threads_are_sampled(void **state)
{
	(void)state;
	if (!perf_is_allowed())
		skip();
	struct session *s = open_session(2);
	char *path = socket_of(s);
	handle_until_end(s, start(agent_is_sampled, path));
	struct profile *p = finish(s, 0);
	/* 300 ms at 1000 Hz; two at once are one signal. */
	uint64_t first = profile_samples(p, 0), second = profile_samples(p, 1);
	assert_true(first + second >= 100 && first <= 400 && second <= 400);
	assert_true(first > 10 && second > 10);
	assert_true(!*p->note || strstr(p->note, "are missing")); /* for that very reason */
	profile_free(p);
	free(path);
}

/* ---- those that mean no good ---- */

static void agent_talks_nonsense(const char *path)
{
	char bytes[4096], answer[4096];
	struct wire_request request = {.magic = WIRE_MAGIC, .kind = 77};
	memset(bytes, 0xee, sizeof bytes);
	static const size_t sizes[] = {
		1, 8, sizeof request - 1, sizeof request, sizeof request + 1, sizeof bytes};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		int fd = connect_to(path);
		CHECK(fd >= 0 && send(fd, bytes, sizes[i], MSG_NOSIGNAL) == (ssize_t)sizes[i]);
		CHECK(recv(fd, answer, sizeof answer, 0) <= 0); /* hung up on */
		close(fd);
	}
	int fd = connect_to(path);
	CHECK(send(fd, &request, sizeof request, MSG_NOSIGNAL) == sizeof request);
	CHECK(recv(fd, answer, sizeof answer, 0) <= 0);
	for (int i = 0; i < 400; i++) /* and many that say nothing */
		connect_to(path);
	struct fake f;
	hello(path, &f); /* does not keep others waiting */
}

static void nonsense_is_hung_up_on(void **state)
{
	struct session *s = open_session(1);
	char *path = socket_of(s);
	(void)state;
	handle_until_end(s, start(agent_talks_nonsense, path));
	profile_free(finish(s, 0));
	free(path);
}

static uint32_t chance = 12345;
static uint32_t random_word(void)
{
	chance = chance * 1664525 + 1013904223;
	return chance >> 8 ^ chance << 13;
}

/* Records that name others, lists that go round in circles, and all bytes by chance. */
static void agent_scribbles(const char *path)
{
	struct fake f;
	struct cct tree;
	hello(path, &f);
	struct arena_thread *t = take_record(&f, &tree);
	add_path(&f, t, &tree, 5);
	t->process = t->tid = getppid(); /* the collector itself */
	for (int i = 0; i < ARENA_COPIES; i++)
		t->copies[i] = (uint32_t)i * 1000003u;
	go_live(&f, t);
	pause_for(30);
	for (int round = 0; round < 60; round++) {
		struct arena_thread *r = take_record(&f, &tree);
		uint32_t number = (uint32_t)(((char *)r - (char *)f.arena) >> ARENA_CHUNK_BITS);
		uint32_t *words = (uint32_t *)r;
		switch (round % 6) {
		case 0:
			r->chunk.next = number;
			break;
		case 1:
			r->chunk.next = 0xffffff;
			break;
		case 2:
			for (size_t i = 2; i < sizeof *r / 4; i++)
				words[i] = 2 + random_word() % 10000;
			break;
		case 3: /* a copy that is larger than can be */
			r->copies[0] = arena_take(f.arena);
			((struct arena_copy *)arena_at(f.arena, r->copies[0]))->size =
				round % 12 == 3 ? UINT64_MAX : 5 * ARENA_CHUNK;
			break;
		case 4: /* the tree */
			words = arena_at(f.arena, r->nodes);
			for (int i = 0; i < 200; i++)
				words[random_word() % (ARENA_CHUNK / 4)] = random_word();
			break;
		default:
			f.arena->metrics = round % 12 == 5 ? 0xffffffff : 8;
			break;
		}
		go_live(&f, r);
		pause_for(3);
		f.arena->metrics = 1;
		f.arena->free_chunks = 0;
	}
	memset((char *)f.arena + 64, 0xff, 1 << 20);
	f.arena->changes++;
	pause_for(120);
	f.arena->size = 0;
	f.arena->threads = 3;
	ring(&f);
	pause_for(120);
}

static void an_arena_may_hold_anything(void **state)
{
	struct session *s = open_session(1);
	char *path = socket_of(s);
	(void)state;
	handle_until_end(s, start(agent_scribbles, path));
	struct profile *p, *copy;
	assert_null(session_snapshot(s, &copy));
	profile_free(copy);
	p = finish(s, 0);
	for (size_t i = 0; i < p->node_count; i++)
		assert_true(!i || p->nodes[i].parent < i);
	profile_free(p);
	free(path);
}

/* ---- the command's environment ---- */

static void the_environment_is_the_commands_own(void **state)
{
	struct session *s = open_session(1);
	char a[] = "A=1", preload[] = "LD_PRELOAD=/x.so", old[] = WIRE_SOCKET "=/old", b[] = "B=";
	char *given[] = {a, preload, old, b, NULL};
	(void)state;
	char **made = session_environment(s, given);
	assert_non_null(made);
	assert_ptr_equal(made[0], a);
	assert_ptr_equal(made[1], b);
	assert_string_equal(made[2], "LD_PRELOAD=/nowhere/agent.so:/x.so");
	assert_int_equal(strncmp(made[3], WIRE_SOCKET "=/", strlen(WIRE_SOCKET "=/")), 0);
	assert_null(made[4]);
	struct stat st;
	assert_int_equal(stat(strchr(made[3], '=') + 1, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0666);
	free(made);
	session_close(s);
	session_close(NULL);
}

static void wrong_options_are_refused(void **state)
{
	struct recording_options o = options(1);
	struct session *s;
	(void)state;
	o.event_count = 0;
	struct err *e = session_open(&o, &s);
	assert_non_null(e);
	assert_null(s);
	err_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_come_into_the_profile),
		cmocka_unit_test(a_snapshot_disturbs_nothing),
		cmocka_unit_test(children_and_new_images_are_there),
		cmocka_unit_test(copies_are_walked_with_new_modules),
		cmocka_unit_test(threads_are_sampled),
		cmocka_unit_test(nonsense_is_hung_up_on),
		cmocka_unit_test(an_arena_may_hold_anything),
		cmocka_unit_test(the_environment_is_the_commands_own),
		cmocka_unit_test(wrong_options_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
