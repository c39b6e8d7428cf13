/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the kernel is new enough for the sampler. Linux 6.1 is the first version that has all that is
 * needed: bpf_loop (5.17), and hash maps without preallocation in programs for perf events (6.1).
 * Distributors bring both to older kernels. So both are tried out, and the version number only rules out
 * kernels before Linux 5.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "collect/kernel/age.h"

#define OLDEST 5

/* Tries to load a program that uses a hash map without preallocation and does nothing. */
static bool takes_growing_maps(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, map_opts, .map_flags = BPF_F_NO_PREALLOC);
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	int map = bpf_map_create(BPF_MAP_TYPE_HASH, "culprit", sizeof(uint32_t), sizeof(uint32_t),
				 1, &map_opts);
	const struct bpf_insn program[] = {
		{.code = BPF_LD | BPF_DW | BPF_IMM,
		 .dst_reg = BPF_REG_1,
		 .src_reg = BPF_PSEUDO_MAP_FD,
		 .imm = map},
		{.code = 0}, /* second half of the instruction */
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = map < 0 ? -1
			 : bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "culprit", "GPL", program,
					 sizeof program / sizeof *program, &opts);
	if (map >= 0)
		close(map);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool kernel_takes_program(enum bpf_prog_type type, struct bpf_prog_load_opts *opts)
{
	static const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(type, "culprit", "GPL", nothing, 2, opts);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool kernel_is_new_enough(char *why, size_t size)
{
	struct utsname system;
	if (uname(&system))
		*system.release = '\0';
	if (atoi(system.release) >= OLDEST && takes_growing_maps() &&
	    libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1)
		return true;
	snprintf(why, size, "Linux %.32s is too old to be sampled from: boot 6.1 or a later one",
		 system.release);
	return false;
}
