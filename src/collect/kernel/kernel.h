/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The sampler in the kernel. A perf event on each CPU runs a BPF program of ours (bpf/), which walks the
 * stack of the thread that it interrupts. Nothing is loaded into the target, so any program can be sampled:
 * static ones, running ones, those of other users. session.c uses it as `sampler_kernel`
 * (collect/sampler.h). Commands ask kernel_can_sample() whether it works here.
 *
 * In this folder "the sampler" is the BPF program, and "we" are the collector: the process that loads the
 * program and reads what it sends.
 *
 *    kernel.c         implements collect/sampler.h: what is done in which order
 *    can.c            what is missing if it cannot sample;  age.c: whether the kernel is new enough
 *    object.c         the BPF program, and its memory
 *    cpus.c           the events on each CPU;  periods.c: their periods, never quite in step with anything
 *    reader.c         empties the ring, whatever else there is to do
 *    mapped.c         notes what processes map, for those that end before we look
 *    tasks.c          processes and threads, as they come and go
 *    code.c           tells the sampler what code is where: modules, lists
 *    tables.c         tells it how to unwind that code
 *    paths.c          adds the paths that the sampler has walked to the profile's tree, by frames.c
 *    waiting.c        keeps stacks that it could only copy (copy.c);  walks.c walks them when their code is known
 *    counters.c       takes samples that it only counts
 *    interpreters.c   tells it where Python keeps its calls, and takes those that it has read
 *    off.c            time off the CPU;  absences.c: how many samples it has
 *    io.c             reads and writes
 *    cost.c           measures what a sample costs
 *
 * A recording of the whole machine uses the same program. It samples every thread that runs, and adds the
 * kernel's own frames behind those of the process. Nearly all processes do nothing that matters. So nothing
 * is asked about a process before its first sample. That sample leaves a copy, for which we look at the
 * process. Tables are made in the background (library/later.c). Copies that need such a table wait in a
 * queue, which is bounded in bytes for each process and in total. Such a recording may go on for weeks. So
 * a process is forgotten three seconds after its end, and tables that no process uses are freed.
 */
#include <stdbool.h>
#include <stddef.h>

/* Returns whether this kernel and this user can sample. If not, `why` (size bytes) gets what is missing
   and what provides it. */
bool kernel_can_sample(char *why, size_t size);
/* Returns whether it can also sample time off the CPU. */
bool kernel_can_see_waits(char *why, size_t size);
