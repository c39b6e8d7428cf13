/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/* What all records have, and when somebody is woken for them. */
#include "collect/kernel/bpf/maps.h"

INLINE void fill_head(struct kernel_head *head, uint32_t kind, uint32_t event, uint64_t now)
{
	uint64_t id = bpf_get_current_pid_tgid();
	head->kind = kind;
	head->process = (uint32_t)(id >> 32);
	head->thread = (uint32_t)id;
	head->event = event;
	head->time = now;
}

/* More than half full: somebody should read it. */
INLINE uint64_t wake(uint64_t urgent)
{
	return urgent || bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > 1 << 23 ? BPF_RB_FORCE_WAKEUP
									       : BPF_RB_NO_WAKEUP;
}
