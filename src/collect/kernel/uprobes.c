/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel/uprobes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "collect/kernel/age.h"

#define JOINED 48 /* BPF_TRACE_UPROBE_MULTI, which older headers do not have */
/* Linux 6.6 is the first that joins them, but until 6.10 it forgets all threads but one if a process is given. */
#define JOINS_SINCE 6011

struct joined { /* as union bpf_attr has it for BPF_LINK_CREATE */
	uint32_t program, target, type, flags;
	uint64_t path, offsets, reference_counters, cookies;
	uint32_t count, more_flags, pid, reserved;
};

static int join(int program, const char *file, const uint64_t *offsets, const uint64_t *cookies,
		size_t count, pid_t pid)
{
	struct joined attr = {.program = (uint32_t)program,
			      .type = JOINED,
			      .path = (uintptr_t)file,
			      .offsets = (uintptr_t)offsets,
			      .cookies = (uintptr_t)cookies,
			      .count = (uint32_t)count,
			      .pid = pid > 0 ? (uint32_t)pid : 0};
	return (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof attr);
}

/* A kernel that knows the call says that a directory is no file to probe. */
static bool knows_call(void)
{
	static const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = (enum bpf_attach_type)JOINED);
	uint64_t none = 0;
	int program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "culprit", "GPL", nothing, 2, &opts);
	if (program < 0)
		return false;
	int link = join(program, "/", &none, NULL, 1, -1), error = errno;
	close(program);
	if (link >= 0)
		close(link);
	return link < 0 && error == EBADF;
}

bool uprobes_can_join(void)
{
	static int known = -1;
	struct utsname system;
	int major = 0, minor = 0;
	if (known < 0)
		known = !uname(&system) && sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
			major * 1000 + minor >= JOINS_SINCE && knows_call();
	return known;
}

void uprobes_prepare(struct bpf_program *program)
{
	if (uprobes_can_join())
		bpf_program__set_expected_attach_type(program, (enum bpf_attach_type)JOINED);
}

static int attach_joined(struct bpf_program *program, const char *file,
			 const struct uprobe_place *places, size_t count, pid_t pid,
			 struct uprobes *out)
{
	uint64_t *words = calloc(2 * count, sizeof *words);
	if (!words)
		return ENOMEM;
	for (size_t i = 0; i < count; i++) {
		words[i] = places[i].offset;
		words[count + i] = places[i].cookie;
	}
	out->fd = join(bpf_program__fd(program), file, words, words + count, count, pid);
	int error = errno;
	free(words);
	return out->fd < 0 ? error : 0;
}

int uprobes_attach(struct bpf_program *program, const char *file, const struct uprobe_place *places,
		   size_t count, pid_t pid, struct uprobes *out)
{
	*out = (struct uprobes){.fd = -1};
	if (!count)
		return 0;
	if (uprobes_can_join())
		return attach_joined(program, file, places, count, pid, out);
	out->links = calloc(count, sizeof(struct bpf_link *));
	for (size_t i = 0; out->links && i < count; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = places[i].cookie);
		out->links[i] = bpf_program__attach_uprobe_opts(program, pid, file,
								places[i].offset, &opts);
		if (!out->links[i]) {
			int error = errno ? errno : EINVAL;
			uprobes_detach(out);
			return error;
		}
		out->count++;
	}
	return out->links ? 0 : ENOMEM;
}

void uprobes_detach(struct uprobes *u)
{
	for (size_t i = 0; i < u->count; i++)
		bpf_link__destroy(u->links[i]);
	free(u->links);
	if (u->fd >= 0)
		close(u->fd);
	*u = (struct uprobes){.fd = -1};
}
