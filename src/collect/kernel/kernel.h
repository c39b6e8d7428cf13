/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sampling from the kernel: an event on each CPU runs a program of ours (bpf/)
 * that walks the stack of whoever is to be sampled. Nothing is loaded into the
 * program, so any can be sampled: static ones, running ones, ones of other users.
 *
 *    kernel.c     as a sampler (collect/sampler.h): what is done in which order
 *    can.c        what is missing where it cannot;  age.c: a newer kernel
 *    object.c     the program in the kernel, and its memory
 *    cpus.c       the events on each CPU;  periods.c: how often, never quite in step with anything
 *    reader.c     empties the ring, whatever else there is to do
 *    mapped.c     notes what processes map, for those that end before we look
 *    tasks.c      who is sampled: processes and threads come and go
 *    code.c       tells the program what code is where: modules, lists
 *    tables.c     and how to unwind it
 *    paths.c      from what the program sends to the tree of the profile, by frames.c
 *    waiting.c    stacks that it could only copy (copy.c); walks.c walks them when their code is known
 *    counters.c   samples that it only counts
 *    cost.c       what a sample costs
 *
 * For the whole machine the same program samples whoever runs, with the kernel's own frames behind those of the
 * process. Nearly all processes do nothing that matters, so nothing is asked about one before its first sample; that
 * leaves a copy, for which the process is looked at. Tables are made in the background (library/later.c), and whoever
 * waits for one waits in a queue that is bounded in bytes for each process and in all. Such a recording may go on for
 * weeks: what has ended is forgotten three seconds later, what nobody has in memory is given back.
 */
#include <stdbool.h>
#include <stddef.h>

/* Whether this kernel and user may: `why` (size bytes) gets what is missing and what provides it. */
bool kernel_can(char *why, size_t size);
