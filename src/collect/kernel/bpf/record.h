/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/* What all records have in common, and when the collector is woken for them. count.h and sample.bpf.c
   use it. */
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

/* Returns a flag for the ring. It wakes the collector for urgent records, and if the ring is more than
   half full. */
INLINE uint64_t wake(uint64_t urgent)
{
	return urgent || bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > settings.ring / 2
		       ? BPF_RB_FORCE_WAKEUP
		       : BPF_RB_NO_WAKEUP;
}
