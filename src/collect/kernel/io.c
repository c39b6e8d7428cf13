/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel/io.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/err.h"
#include "collect/kernel/frames.h"
#include "collect/kernel/state.h"
#include "collect/kernel/tasks.h"
#include "harvest/objects.h"
#include "harvest/recording.h"
#include "profile/profile.h"
#include "unwind/end.h"

#define NAMED_MAX 20000u /* things that have a name of their own in the profile */

/* ---- which calls ---- */

struct call {
	unsigned number;
	uint8_t act, argument;
};

/* Old calls that aarch64 does not have are not in this list, unless they move bytes. */
static const struct call calls[] = {
	{SYS_read, KERNEL_IO_READ, 0},
	{SYS_pread64, KERNEL_IO_READ, 0},
	{SYS_readv, KERNEL_IO_READ, 0},
	{SYS_preadv, KERNEL_IO_READ, 0},
	{SYS_preadv2, KERNEL_IO_READ, 0},
	{SYS_recvfrom, KERNEL_IO_READ, 0},
	{SYS_recvmsg, KERNEL_IO_READ, 0},
	{SYS_recvmmsg, KERNEL_IO_READ_MANY, 0},
	{SYS_write, KERNEL_IO_WRITE, 0},
	{SYS_pwrite64, KERNEL_IO_WRITE, 0},
	{SYS_writev, KERNEL_IO_WRITE, 0},
	{SYS_pwritev, KERNEL_IO_WRITE, 0},
	{SYS_pwritev2, KERNEL_IO_WRITE, 0},
	{SYS_sendto, KERNEL_IO_WRITE, 0},
	{SYS_sendmsg, KERNEL_IO_WRITE, 0},
	{SYS_sendmmsg, KERNEL_IO_WRITE_MANY, 0},
	{SYS_vmsplice, KERNEL_IO_WRITE, 0},
	{SYS_sendfile, KERNEL_IO_COPY, 0},
	{SYS_tee, KERNEL_IO_COPY, 1},
	{SYS_splice, KERNEL_IO_COPY, 2},
	{SYS_copy_file_range, KERNEL_IO_COPY, 2},
	{SYS_fsync, KERNEL_IO_SYNC, 0},
	{SYS_fdatasync, KERNEL_IO_SYNC, 0},
	{SYS_syncfs, KERNEL_IO_SYNC, 0},
	{SYS_sync_file_range, KERNEL_IO_SYNC, 0},
	{SYS_io_submit, KERNEL_IO_UNSEEN, 0},
	{SYS_io_uring_enter, KERNEL_IO_UNSEEN, 0},
};

void io_fill_calls(uint8_t out[KERNEL_IO_CALLS])
{
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i].number < KERNEL_IO_CALLS)
			out[calls[i].number] = KERNEL_IO_CALL(calls[i].act, calls[i].argument);
}

static const char *act_name(uint32_t act)
{
	switch (act) {
	case KERNEL_IO_READ:
	case KERNEL_IO_READ_MANY:
		return "read";
	case KERNEL_IO_COPY:
		return "copy to";
	case KERNEL_IO_SYNC:
		return "sync";
	default:
		return "write";
	}
}

/* ---- beginning and end ---- */

bool io_wanted(const struct kernel *k)
{
	for (size_t i = 0; i < k->recording->options.event_count; i++)
		if (k->recording->options.events[i].io)
			return true;
	return false;
}

static const char *const programs[] = {"io_begins", "io_ends"};

void io_choose(struct kernel *k)
{
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		struct bpf_program *program = bpf_object__find_program_by_name(k->object,
									       programs[i]);
		if (program)
			bpf_program__set_autoload(program, io_wanted(k));
	}
}

struct err *io_open(struct kernel *k)
{
	struct err *e = NULL;
	k->io.transfers = bpf_object__find_map_fd_by_name(k->object, "transfers");
	for (size_t i = 0; !e && io_wanted(k) && i < sizeof programs / sizeof *programs; i++) {
		struct bpf_program *program = bpf_object__find_program_by_name(k->object,
									       programs[i]);
		k->io.links[i] = program ? bpf_program__attach(program) : NULL;
		if (!k->io.links[i])
			e = err_errno("cannot see system calls");
	}
	return e;
}

void io_detach(struct kernel *k)
{
	for (size_t i = 0; i < sizeof k->io.links / sizeof *k->io.links; i++) {
		bpf_link__destroy(k->io.links[i]);
		k->io.links[i] = NULL;
	}
}

void io_close(struct kernel *k)
{
	io_detach(k);
	for (size_t i = 0; i < KERNEL_BUCKETS; i++) {
		for (struct kernel_io_sum *s = k->io.sums[i], *next; s; s = next) {
			next = s->next;
			free(s);
		}
		for (struct kernel_io_object *o = k->io.objects[i], *next; o; o = next) {
			next = o->next;
			free(o);
		}
	}
}

/* ---- what descriptors stand for ---- */

static void print_path(const struct kernel_object *o, struct buf *out)
{
	const char *parts[KERNEL_OBJECT_NAME];
	size_t count = 0, size = o->size < sizeof o->name ? o->size : sizeof o->name;
	for (size_t at = 0; at < size && memchr(o->name + at, 0, size - at);
	     at += strlen(o->name + at) + 1)
		parts[count++] = o->name + at;
	if (count && o->rooted)
		buf_puts(out, "/");
	for (size_t i = count; i; i--)
		buf_printf(out, "%s%s", parts[i - 1], i > 1 ? "/" : "");
}

static void print_object(const struct kernel_object *o, struct buf *out)
{
	struct buf path = {0};
	struct object_facts facts = {.mode = o->mode,
				     .family = o->family,
				     .type = o->type,
				     .port = o->port,
				     .other_port = o->other_port};
	memcpy(facts.address, o->address, sizeof facts.address);
	if (S_ISSOCK(o->mode) || !(o->mode & S_IFMT))
		buf_append(&path, o->name,
			   strnlen(o->name, S_ISSOCK(o->mode) && o->size < sizeof o->name
						    ? o->size
						    : sizeof o->name));
	else
		print_path(o, &path);
	facts.name = buf_text(&path);
	object_print(&facts, out);
	buf_free(&path);
}

static struct kernel_io_object *find_object(const struct kernel *k, uint64_t id)
{
	struct kernel_io_object *o = k->io.objects[id % KERNEL_BUCKETS];
	while (o && o->id != id)
		o = o->next;
	return o;
}

static void add_object(struct kernel *k, uint64_t id, const char *name)
{
	struct kernel_io_object *o = malloc(sizeof *o);
	struct profile *p = k->recording->harvest.profile;
	if (!o)
		return;
	bool more = ++k->io.object_count > NAMED_MAX;
	*o = (struct kernel_io_object){.next = k->io.objects[id % KERNEL_BUCKETS],
				       .id = id,
				       .name = profile_string(p, more ? "(others)" : name)};
	k->io.objects[id % KERNEL_BUCKETS] = o;
}

void io_learn(struct kernel *k, const struct kernel_object *object)
{
	struct buf name = {0};
	if (find_object(k, object->id))
		return;
	print_object(object, &name);
	add_object(k, object->id, buf_text(&name));
	buf_free(&name);
}

/* The module that stands for it in the profile. Strings of the profile are there once, so that equal names have equal
   addresses. */
static struct err *find_module(struct kernel *k, struct kernel_io_object *o, uint32_t *module)
{
	struct profile *p = k->recording->harvest.profile;
	uint64_t hash = ((uintptr_t)o->name >> 3) % KERNEL_BUCKETS;
	for (struct kernel_io_object *x = k->io.named[hash]; x && !o->module; x = x->same_name)
		if (x->name == o->name)
			o->module = x->module;
	*module = o->module;
	if (o->module)
		return NULL;
	struct err *e = profile_add_module(
		p,
		&(struct profile_module){
			.kind = PROFILE_OBJECT, .path = o->name, .build_id = "", .problem = ""},
		module);
	if (!e) {
		o->module = *module;
		o->same_name = k->io.named[hash];
		k->io.named[hash] = o;
	}
	return e;
}

/* Moves `node` to its child that says what was done there. */
static struct err *add_object_frame(struct kernel *k, const struct kernel_transfer_key *key,
				    uint32_t *node)
{
	struct kernel_io_object *o = find_object(k, key->object);
	struct profile *p = k->recording->harvest.profile;
	uint32_t module;
	if (!o) { /* no descriptor, or what it stood for was lost */
		add_object(k, key->object, "(not known)");
		o = find_object(k, key->object);
	}
	struct err *e = o ? find_module(k, o, &module) : err_new("out of memory");
	if (e)
		return e;
	struct buf name = {0};
	buf_printf(&name, "%s %s", act_name(key->act), o->name);
	e = profile_name_function(p, module, key->act, 1, buf_text(&name));
	buf_free(&name);
	return e ? e : profile_child(p, *node, PROFILE_EXACT, module, key->act, node);
}

/* ---- paths ---- */

void io_note(struct kernel *k, const struct kernel_io *io)
{
	struct kernel_thread *t = tasks_find(k, (pid_t)io->head.process, (pid_t)io->head.thread);
	if (!t)
		return;
	t->io = *io;
}

struct kernel_io io_take(const struct kernel_thread *t, uint64_t time)
{
	return t->io.head.time == time ? t->io : (struct kernel_io){0};
}

/* Counts calls at a node. */
static struct err *count(struct kernel *k, uint32_t node, uint32_t thread, uint32_t end,
			 const struct kernel_transfer *more)
{
	struct profile *p = k->recording->harvest.profile;
	struct err *e = NULL;
	for (uint32_t i = 0; !e && i < k->recording->options.event_count; i++) {
		uint8_t what = k->recording->options.events[i].io;
		uint64_t n = what == RECORDING_IO_BYTES ? more->bytes
			     : what == RECORDING_IO_NS  ? more->ns
			     : what                     ? more->calls
							: 0;
		e = n ? profile_count(p, node, thread, i, n) : NULL;
	}
	if (!e && k->recording->options.events[0].io) {
		k->recording->samples += more->calls;
		k->recording->partial += end != WALK_COMPLETE ? more->calls : 0;
	}
	return e;
}

/* Notes where a sum belongs. The sampler tells of each one once. */
static struct err *add_sum(struct kernel *k, const struct kernel_transfer_key *key, uint32_t node,
			   uint32_t thread, uint32_t end)
{
	struct kernel_io_sum **bucket = &k->io.sums[key->thread % KERNEL_BUCKETS];
	struct kernel_io_sum *s = calloc(1, sizeof *s);
	if (!s)
		return err_new("out of memory");
	*s = (struct kernel_io_sum){
		.next = *bucket, .key = *key, .node = node, .thread = thread, .end = end};
	*bucket = s;
	return NULL;
}

struct err *io_count(struct kernel *k, const struct kernel_io *io, uint32_t thread, uint32_t node,
		     uint32_t end)
{
	if (!io->head.time)
		return NULL;
	struct err *e = add_object_frame(k, &io->key, &node);
	if (e)
		return e;
	return io->sum.calls ? count(k, node, thread, end, &io->sum)
			     : add_sum(k, &io->key, node, thread, end);
}

/* ---- sums ---- */

/* Takes what was added since the last time. */
static struct err *take_sum(struct kernel *k, struct kernel_io_sum *s, bool last)
{
	struct kernel_transfer now;
	struct kernel_thread *t = tasks_has_thread(k, (pid_t)s->key.thread)
					  ? tasks_find(k, (pid_t)s->key.process,
						       (pid_t)s->key.thread)
					  : NULL;
	if (last ? bpf_map_lookup_and_delete_elem(k->io.transfers, &s->key, &now)
		 : bpf_map_lookup_elem(k->io.transfers, &s->key, &now))
		return NULL;
	const struct kernel_transfer more = {.calls = now.calls - s->taken.calls,
					     .bytes = now.bytes - s->taken.bytes,
					     .ns = now.ns - s->taken.ns};
	if (t)
		t->handler_ns += now.own_ns - s->taken.own_ns;
	s->taken = now;
	return count(k, s->node, s->thread, s->end, &more);
}

static void take_bucket(struct kernel *k, struct kernel_io_sum **link, uint32_t thread)
{
	for (struct kernel_io_sum *s; (s = *link);) {
		if (thread && s->key.thread != thread) {
			link = &s->next;
			continue;
		}
		recording_note_error(k->recording, take_sum(k, s, true));
		*link = s->next;
		free(s);
	}
}

void io_end_thread(struct kernel *k, uint32_t thread)
{
	if (io_wanted(k))
		take_bucket(k, &k->io.sums[thread % KERNEL_BUCKETS], thread);
}

void io_settle(struct kernel *k)
{
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		for (struct kernel_io_sum *s = k->io.sums[i]; s; s = s->next)
			recording_note_error(k->recording, take_sum(k, s, false));
}

/* Of calls whose path was lost, it is known who made them. */
static struct err *take_pathless(struct kernel *k, const struct kernel_transfer_key *key,
				 const struct kernel_transfer *sum)
{
	struct process *p = tasks_process(k, (pid_t)key->process, key->changes);
	uint32_t thread, node;
	if (!p)
		return err_new("out of memory");
	struct err *e = tasks_place_ended(k, p, (pid_t)key->thread, &thread);
	if (!e)
		e = frames_add_root(k, p, WALK_NO_STACK, &node);
	if (!e)
		e = add_object_frame(k, key, &node);
	return e ? e : count(k, node, thread, WALK_NO_STACK, sum);
}

void io_stop(struct kernel *k)
{
	struct kernel_transfer_key key;
	struct kernel_transfer sum;
	if (!io_wanted(k))
		return;
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		take_bucket(k, &k->io.sums[i], 0);
	while (!bpf_map_get_next_key(k->io.transfers, NULL, &key) &&
	       !bpf_map_lookup_and_delete_elem(k->io.transfers, &key, &sum))
		recording_note_error(k->recording, take_pathless(k, &key, &sum));
}
