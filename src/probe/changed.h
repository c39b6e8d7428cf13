/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Functions whose code in a process is not that of their file: somebody else has changed it. A probe of the kernel goes on with
   the code of the file, into the middle of what stands there. cmd/probe.c and cmd/probe_live.c use it. */
#include <stddef.h>
#include <sys/types.h>

struct err;
struct probes;

/* Refuses those from this one on that are so. A breakpoint at the first instruction is no change: other probes have that. */
struct err *probe_refuse_changed(struct probes *probes, size_t first, pid_t pid);
