/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tells the sampler what code processes have in memory: lists of modules, and the unwind tables of these
   modules (tables.h). kernel.c calls it for processes with new code, walks.c if a walk meets unknown
   code. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct kernel;
struct library_list;
struct process;

struct err *code_open(struct kernel *k);
void code_close(struct kernel *k);
/* Takes the lists away from all processes in this BPF map. False: no process had one. */
bool code_clear_lists(int processes);
/* Takes the lists away from all processes, and forgets the lists. Takes the counted samples first, since
   they refer to lists. */
void code_forget_lists(struct kernel *k);
/* Takes the samples that were counted until now (counters.h). */
void code_take_counts(struct kernel *k);
/* Removes all tables and lists from the sampler. Those that are needed are given again. */
void code_forget_tables(struct kernel *k);
/* A look may meet tables that are still being made. Then this is what library_builds() was; 0: no look has met
   any since code_forget_waits. */
unsigned code_waits_for(const struct kernel *k);
void code_forget_waits(struct kernel *k);
/* Looks at the code that a process has in memory, and gives the list to the sampler. For a process that
   has just been started, its history (mapped.h) is enough for the moment: see code_confirm. */
void code_look(struct kernel *k, struct process *p);
/* The same, but always reads the memory map of the process. */
void code_ask(struct kernel *k, struct process *p);
/* Reads the memory map of a process whose list came from its history alone, once the list is a second old. */
void code_confirm(struct kernel *k, struct process *p);
/* Checks a list that the sampler does not use yet, because the process mapped something while we looked.
   The sampler may use it once it is known that no library was replaced meanwhile. */
void code_check_doubtful(struct kernel *k, struct process *p);
/* The same as code_look, but does not wait for tables. Until they are ready, walks end early, but cost
   little. */
void code_look_without_tables(struct kernel *k, struct process *p);
/* Returns the code that the process had in memory at that time, by its history; NULL: not known. */
const struct library_list *code_list_at(struct kernel *k, const struct process *p, uint64_t time);
/* Finds the key (cct/cct.h) of an address, by the list with this serial. False: the list has no code
   there. */
bool code_key(const struct kernel *k, uint32_t serial, uint64_t address, uint64_t *key);
/* Frees lists and tables that nobody uses. The caller has called library_mark_used for all others. */
void code_sweep(struct kernel *k);
/* Returns the list of the process that forked this one; NULL: not known. */
const struct library_list *code_parent_list(struct kernel *k, const struct process *p);
/* Tells the sampler that code of no module stays unknown in this process: no more copies of stacks for
   it. */
void code_stop_copies(struct kernel *k, struct process *p);
