/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Calls of chosen functions (harvest/probes.h). The kernel stops a thread at the instruction of a probe, and runs our
   program there (bpf/probe.h), which walks the path and adds up the calls. Here the probes are put in place and taken
   away, and the sums are taken. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/kernel/bpf/shared.h"

struct err;
struct kernel;

/* Whether there are any. */
bool probes_wanted(const struct kernel *k);
/* Chooses the programs that are needed, before they are loaded. */
void probes_choose(struct kernel *k);
/* Puts those probes in place that are in all processes. */
struct err *probes_open(struct kernel *k);
/* Puts the others into this process. */
struct err *probes_attach(struct kernel *k, pid_t pid);
void probes_close(struct kernel *k);

/* Puts those functions in place that are fresh. From `first` on they are new. */
struct err *probes_extend(struct kernel *k, size_t first);
/* Takes the probes of a function away, by its number, from 1 on. */
void probes_remove(struct kernel *k, uint32_t number);
/* Takes those at its ends away: its calls are counted on. */
void probes_drop_ends(struct kernel *k, uint32_t number);
/* Sets what its probes are not to do: KERNEL_LIMIT_... */
void probes_limit(struct kernel *k, uint32_t number, uint32_t flags);

/* Counts a call at the node of its path, whose walk has come to this end (enum walk_end), or notes where its sum
   belongs. */
struct err *probes_count(struct kernel *k, const struct kernel_io *io, uint32_t thread,
			 uint32_t node, uint32_t end);

/* A thread has ended: takes its sums. */
void probes_end_thread(struct kernel *k, uint32_t thread);
/* Takes all sums until now. */
void probes_settle(struct kernel *k);
/* Does so if it is due. */
void probes_tick(struct kernel *k);
/* Takes all probes away. */
void probes_detach(struct kernel *k);
/* Takes all sums, also those whose path was lost. */
void probes_stop(struct kernel *k);
