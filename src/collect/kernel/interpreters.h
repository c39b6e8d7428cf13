/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Interpreters in processes: the sampler is told where they are, and what it reads of their calls
   (bpf/script.h) is made known. */
#include <stdint.h>

struct err;
struct kernel;
struct kernel_calls;
struct kernel_function;
struct kernel_thread;
struct process;
struct script_calls;

struct err *interpreters_open(struct kernel *k);
void interpreters_close(struct kernel *k);
/* Tells the sampler about the interpreter in the process's list. Returns its number + 1; 0: there is none. */
uint32_t interpreters_give(struct kernel *k, struct process *p);
/* Takes what the sampler copied of a function. */
void interpreters_learn(struct kernel *k, const struct kernel_function *function);
/* Takes the calls that belong to the next sample of the thread. */
void interpreters_take(struct kernel *k, const struct kernel_calls *calls);
/* The calls of the sample that the thread had at this time, or NULL. The caller frees them. */
struct script_calls *interpreters_calls(struct kernel_thread *t, uint64_t time);
