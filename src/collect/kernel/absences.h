/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Absences: times that threads were off the CPU. The sampler sends one (struct kernel_off) before the path of the
   thread that came back, if the absence has samples (bpf/off.h). Here it is decided how many, and they are
   counted. paths.c and walks.c use it. */
#include <stdbool.h>
#include <stdint.h>

struct err;
struct kernel;
struct kernel_absence;
struct kernel_off;
struct kernel_thread;
struct process;

/* Returns the time off the CPU from sample to sample, in ns, of the event that has the most samples; 0: no event
   wants it. */
uint64_t absences_period(const struct kernel *k);
/* Whether this is the number of an event, or KERNEL_EVENT_OFF, or KERNEL_EVENT_IO. */
bool absences_have_event(const struct kernel *k, uint32_t event);
/* Decides whether an absence has a sample, if the sampler has not done so: as is_off_sampled() in bpf/off.h. */
bool absences_have_sample(struct kernel *k, uint64_t ns);
/* Keeps an absence that has one until its path comes. */
void absences_note(struct kernel *k, const struct kernel_off *off);
/* Returns the samples of the absence that ended then; none if it was lost. */
struct kernel_absence absences_take(const struct kernel_thread *t, uint64_t time);
/* Counts them at a node. `end` and `time` are as for frames_count(). */
struct err *absences_count(struct kernel *k, struct process *process, uint32_t thread,
			   uint32_t node, struct kernel_absence absence, uint32_t end,
			   uint64_t time);
/* Returns how many of a thread's innermost frames in the kernel only put it to sleep, and woke it. */
uint32_t absences_skip(struct kernel *k, const uint64_t *addresses, uint32_t count);
