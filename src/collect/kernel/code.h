/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the sampler knows of the code that processes have in memory. */
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
/* Takes away the lists that processes have in this map; false: none had any. */
bool code_take_lists(int processes);
/* The same for all, and what is known of them here. What was counted needs them, and is taken before. */
void code_forget_lists(struct kernel *k);
/* Takes what was counted until now. */
void code_take_counts(struct kernel *k);
/* Forgets all tables and lists, to begin anew with those that are needed now. */
void code_forget_tables(struct kernel *k);
/* Looks at the code that the process has in memory, and tells the sampler. What was noted of a young one
   will do, which it is not to be relied on for long: code_confirm. */
void code_look(struct kernel *k, struct process *p);
/* The same by asking the process. */
void code_ask(struct kernel *k, struct process *p);
/* Asks a process that goes on, where that was put off. */
void code_confirm(struct kernel *k, struct process *p);
/* Lets the sampler use the list of a process that mapped something while we looked, once it is known that no
   library went meanwhile. */
void code_trust(struct kernel *k, struct process *p);
/* The same as code_look without waiting for tables: until they are there, samples are not whole, but cost
   little. */
void code_make_do(struct kernel *k, struct process *p);
/* The code that it had in memory at that time, as far as that was noted; NULL: not known. */
const struct library_list *code_then(struct kernel *k, const struct process *p, uint64_t time);
/* The key of a place in the code of a list; false where it has none there. */
bool code_key(const struct kernel *k, uint32_t serial, uint64_t address, uint64_t *key);
/* Gives back what nobody uses (library_use) but us. */
void code_sweep(struct kernel *k);
/* What the process that forked this one has in memory; NULL: not known. */
const struct library_list *code_of_parent(struct kernel *k, const struct process *p);
/* Code of no module will stay so: samples that meet it are not worth a copy of the stack. */
void code_resign(struct kernel *k, struct process *p);
