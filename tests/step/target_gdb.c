/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single steps in QEMU's user mode emulation, which speaks gdb's remote protocol. Its process
 * holds the program's memory, so that is read directly, and its memory map tells where the
 * program's files are: QEMU maps them itself, though never executable.
 */
#include "step/target.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "image/image.h"
#include "process/maps.h"

#define INPUT_MAX 65536u

/* The protocol: $text#checksum, acknowledged with + as long as nobody asked to leave that out. */

static bool fill_input(struct target *t, int timeout_ms)
{
	struct timeval limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
	setsockopt(t->connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (t->input_size == INPUT_MAX)
		return false;
	ssize_t got = recv(t->connection, t->input + t->input_size, INPUT_MAX - t->input_size, 0);
	if (got <= 0)
		return false;
	t->input_size += (size_t)got;
	return true;
}

static void drop_input(struct target *t, size_t size)
{
	memmove(t->input, t->input + size, t->input_size - size);
	t->input_size -= size;
}

static void send_packet(struct target *t, const char *text)
{
	char packet[128];
	unsigned sum = 0;
	for (const char *c = text; *c; c++)
		sum += (unsigned char)*c;
	int size = snprintf(packet, sizeof packet, "$%s#%02x", text, sum & 0xff);
	if (send(t->connection, packet, (size_t)size, MSG_NOSIGNAL) < 0)
		t->input_size = 0; /* the next receive will say so */
}

/* The next packet's text into `out`. */
static bool receive(struct target *t, char *out, size_t size, int timeout_ms)
{
	for (;;) {
		char *start = memchr(t->input, '$', t->input_size);
		size_t left = start ? t->input_size - (size_t)(start - t->input) : 0;
		char *end = start ? memchr(start, '#', left) : NULL;
		if (end && (size_t)(end - start) + 3 <= left) {
			size_t length = (size_t)(end - start) - 1;
			if (length >= size)
				return false;
			memcpy(out, start + 1, length);
			out[length] = '\0';
			drop_input(t, (size_t)(end + 3 - t->input));
			return send(t->connection, "+", 1, MSG_NOSIGNAL) == 1;
		}
		if (!fill_input(t, timeout_ms))
			return false;
	}
}

static bool ask(struct target *t, const char *text, char *out, size_t size)
{
	send_packet(t, text);
	return receive(t, out, size, 20000);
}

/* ---- registers ---- */

static bool hex_word(const char *text, uint64_t *out)
{
	*out = 0;
	for (unsigned i = 0; i < 16; i++) {
		char c = text[i];
		uint64_t digit = c >= '0' && c <= '9' ? (uint64_t)(c - '0')
						      : (uint64_t)(c - 'a' + 10);
		if (digit > 15)
			return false;
		*out |= digit << (i / 2 * 8 + (i % 2 ? 0 : 4)); /* little endian */
	}
	return true;
}

/* gdb's order for x86-64 is rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8 to r15, rip, all of 16 digits; then flags
   and segments of 8 digits each; then eight registers of 20, eight of 8, sixteen of 32 and one of 8; fs. */
#define FLAGS_AT (17 * 16)
#define THREAD_AT (FLAGS_AT + 7 * 8 + 8 * 20 + 8 * 8 + 16 * 32 + 8)

/* Flags and the thread pointer, if the emulator tells them. */
static void read_flags(struct target *t, const char *text)
{
	char word[17] = "0000000000000000";
	size_t size = strlen(text);
	if (size < THREAD_AT + 16)
		return;
	memcpy(word, text + FLAGS_AT, 8);
	if (!hex_word(word, &t->now.flags) || !hex_word(text + THREAD_AT, &t->now.thread))
		t->now.flags = t->now.thread = 0;
}

static bool read_state(struct target *t)
{
	static const uint8_t numbers[16] = {0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	char text[8192];
	if (!ask(t, "g", text, sizeof text) || strlen(text) < 17 * 16)
		return false;
	for (unsigned i = 0; i < 16; i++)
		if (!hex_word(text + 16 * i, &t->now.registers[numbers[i]]))
			return false;
	read_flags(t, text);
	return hex_word(text + 16 * 16, &t->now.pc);
}

/* ---- start and stop ---- */

static void run_emulator(const struct target *t, char **argv)
{
	char *command[256];
	size_t n = 0;
	command[n++] = (char *)(uintptr_t)t->emulator;
	command[n++] = (char *)(uintptr_t) "-g";
	command[n++] = t->socket_path;
	if (t->root) {
		command[n++] = (char *)(uintptr_t) "-L";
		command[n++] = (char *)(uintptr_t)t->root;
	}
	while (*argv && n < sizeof command / sizeof *command - 1)
		command[n++] = *argv++;
	command[n] = NULL;
	execvp(command[0], command);
	_exit(127);
}

static bool connect_emulator(struct target *t)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timespec nap = {0, 10000000};
	snprintf(address.sun_path, sizeof address.sun_path, "%s", t->socket_path);
	for (int tries = 0; tries < 1000; tries++) {
		t->connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (!connect(t->connection, (struct sockaddr *)&address, sizeof address))
			return true;
		close(t->connection);
		nanosleep(&nap, NULL);
	}
	return false;
}

/* The address of a mapped file's entry shows where the emulator put address 0 of the program. */
static bool is_image_of(const struct map *map, uint16_t machine, struct image **image)
{
	struct err *e;
	if (map->path[0] != '/' || strstr(map->path, "qemu"))
		return false;
	e = image_open(map->path, image);
	if (e) {
		err_free(e);
		return false;
	}
	if (image_machine(*image) == machine)
		return true;
	image_close(*image);
	return false;
}

/* The address that the file's first bytes ask for: 0 where it can be anywhere. */
static uint64_t first_address(const struct image *image)
{
	const struct image_segment *s;
	size_t count = image_segments(image, &s);
	for (size_t i = 0; i < count; i++)
		if (!s[i].offset)
			return s[i].address;
	return 0;
}

static bool find_guest_base(struct target *t)
{
	struct maps maps;
	bool found = false;
	struct err *e = maps_read(t->pid, &maps);
	err_free(e);
	for (size_t i = 0; !e && !found && i < maps.count; i++) {
		const struct map *map = &maps.items[i];
		struct image *image;
		if (map->offset || !is_image_of(map, t->isa->elf_machine, &image))
			continue;
		/* Of program and interpreter, it starts in the one whose entry agrees page by page. */
		uint64_t host = map->start - first_address(image) + image_entry(image);
		found = (image_type(image) == ET_DYN || image_entry(image) == t->now.pc) &&
			!((host ^ t->now.pc) & 0xfff) &&
			(host == t->now.pc || host - t->now.pc < UINT64_C(1) << 46);
		if (found)
			t->guest_base = host - t->now.pc;
		image_close(image);
	}
	maps_free(&maps);
	return found;
}

static struct err *gdb_start(struct target *t, char **argv)
{
	char answer[256];
	t->isa = &isa_x86_64;
	t->cpu = &unwind_cpu_x86_64;
	t->input = malloc(INPUT_MAX);
	if (!t->input || asprintf(&t->socket_path, "/tmp/step-%d.socket", (int)getpid()) < 0)
		return err_new("out of memory");
	unlink(t->socket_path);
	t->pid = fork();
	if (!t->pid)
		run_emulator(t, argv);
	if (t->pid < 0 || !connect_emulator(t))
		return err_new("%s: cannot be reached", t->emulator);
	if (!ask(t, "?", answer, sizeof answer) || !read_state(t))
		return err_new("%s: does not answer", t->emulator);
	if (!find_guest_base(t))
		return err_new("%s: the program is not found in its memory", t->emulator);
	return NULL;
}

/* gdb's signal numbers are its own; only those that programs under test use are told apart. */
static enum target_event read_stop(struct target *t, const char *answer)
{
	unsigned number;
	if ((answer[0] != 'T' && answer[0] != 'S') || sscanf(answer + 1, "%2x", &number) != 1 ||
	    !read_state(t))
		return TARGET_ENDED;
	t->signal = number == SIGTRAP || number == SIGINT ? 0 : (int)number;
	return t->signal ? TARGET_SIGNAL : TARGET_STEPPED;
}

static enum target_event gdb_step(struct target *t)
{
	char command[16], answer[256];
	t->delivered = t->signal != 0;
	snprintf(command, sizeof command, t->signal ? "vCont;S%02x" : "s", (unsigned)t->signal);
	return ask(t, command, answer, sizeof answer) ? read_stop(t, answer) : TARGET_ENDED;
}

static int milliseconds_until(const struct timespec *end)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	long left = (end->tv_sec - now.tv_sec) * 1000 + (end->tv_nsec - now.tv_nsec) / 1000000;
	return left > 0 ? (int)left : 0;
}

static enum target_event gdb_run(struct target *t, unsigned microseconds)
{
	char command[16], answer[256];
	struct timespec end;
	enum target_event event;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += microseconds / 1000000;
	end.tv_nsec += microseconds % 1000000 * 1000;
	do {
		snprintf(command, sizeof command, t->signal ? "C%02x" : "c", (unsigned)t->signal);
		send_packet(t, command);
		/* The emulator does not listen while the program runs, but tells of its signals. */
		if (!receive(t, answer, sizeof answer, milliseconds_until(&end) + 1) &&
		    (kill(t->pid, SIGINT) || !receive(t, answer, sizeof answer, 5000)))
			return TARGET_ENDED;
		event = read_stop(t, answer);
	} while (event == TARGET_SIGNAL && milliseconds_until(&end));
	return event;
}

/* ---- what is mapped ---- */

static struct space_module *module_for(struct space *space, const struct target *t,
				       const struct map *map, enum recipes_mode mode)
{
	struct image *image;
	for (size_t i = 0; i < space->module_count; i++)
		if (!strcmp(space->modules[i].path, map->path))
			return &space->modules[i];
	if (!is_image_of(map, t->isa->elf_machine, &image))
		return NULL;
	struct space_module *more = reallocarray(space->modules, space->module_count + 1,
						 sizeof *more);
	if (!more) {
		image_close(image);
		return NULL;
	}
	space->modules = more;
	struct space_module *m = &more[space->module_count++];
	*m = (struct space_module){.path = strdup(map->path), .image = image};
	struct err *e = cache_table(image, mode, &m->table);
	if (e)
		fprintf(stderr, "step: %s\n", err_text(e));
	err_free(e);
	return m;
}

/* Does this mapping show code of the file? It may be one with its neighbours: none of them is
   executable for the emulator's own CPU. */
static bool shows_code(const struct image *image, const struct map *map, uint64_t *bias)
{
	const struct image_segment *segments;
	size_t count = image_segments(image, &segments);
	for (size_t i = 0; i < count; i++) {
		const struct image_segment *s = &segments[i];
		if (!s->executable || map->offset + (map->end - map->start) <= s->offset ||
		    map->offset >= s->offset + s->file_size)
			continue;
		*bias = map->start - map->offset - (s->address - s->offset);
		return true;
	}
	return false;
}

static struct err *gdb_refresh(struct target *t, enum recipes_mode mode, struct space *space)
{
	maps_free(&space->maps);
	struct err *e = maps_read(t->pid, &space->maps);
	if (e)
		return e;
	struct walk_module *list = calloc(space->maps.count + 1, sizeof *list);
	uint32_t *module_of = calloc(space->maps.count + 1, sizeof *module_of);
	size_t used = 0;
	for (size_t i = 0; list && module_of && i < space->maps.count; i++) {
		const struct map *map = &space->maps.items[i];
		struct space_module *m = module_for(space, t, map, mode);
		uint64_t bias;
		if (!m || map->writable || !m->table.table.rules ||
		    !shows_code(m->image, map, &bias))
			continue;
		m->bias = bias - t->guest_base;
		module_of[used] = (uint32_t)(m - space->modules);
		list[used++] = (struct walk_module){.start = map->start - t->guest_base,
						    .end = map->end - t->guest_base,
						    .bias = m->bias,
						    .table = m->table.table};
	}
	free((void *)(uintptr_t)space->walk.modules);
	free(space->module_of);
	space->walk = (struct walk_space){list, used};
	space->module_of = module_of;
	space->machine = t->isa->elf_machine;
	return list && module_of ? NULL : err_new("out of memory");
}

static void gdb_end(struct target *t)
{
	if (t->pid > 0) {
		kill(t->pid, SIGKILL);
		while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(t->connection);
	unlink(t->socket_path);
	free(t->socket_path);
	free(t->input);
}

const struct target_ops target_gdb = {
	.start = gdb_start,
	.step = gdb_step,
	.run = gdb_run,
	.refresh = gdb_refresh,
	.end = gdb_end,
};
