/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether the running kernel is new enough for the sampler (bpf/), and what it takes. can.c and off.c use it. */
#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

struct bpf_prog_load_opts;

/* Returns whether the kernel has all features that the sampler needs; if not, `why` (size bytes) gets
   the reason. The caller must have the right to load BPF programs. */
bool kernel_is_new_enough(char *why, size_t size);
/* Whether the kernel lets us load a program of this type: tries one that does nothing. If not, errno says
   why. opts: NULL for none. */
bool kernel_takes_program(enum bpf_prog_type type, struct bpf_prog_load_opts *opts);
