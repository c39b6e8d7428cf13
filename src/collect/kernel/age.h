/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether the running kernel is new enough for the sampler (bpf/). can.c uses it. */
#include <stdbool.h>
#include <stddef.h>

/* Returns whether the kernel has all features that the sampler needs; if not, `why` (size bytes) gets
   the reason. The caller must have the right to load BPF programs. */
bool kernel_is_new_enough(char *why, size_t size);
