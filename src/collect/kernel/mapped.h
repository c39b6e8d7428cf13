/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The history of each process: what code it mapped, and when. code.c uses it for processes that have just begun, and
   walks.c for samples of processes that have ended or changed since. kernel.c and reader.c see to it
   that records are read in time. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct kernel;
struct maps;
struct perf_event_header;

struct err *mapped_open(struct kernel *k);
/* Begins to watch what is mapped on this CPU; also again, after the CPU was off. */
void mapped_watch(struct kernel *k, unsigned cpu);
/* Ends that. */
void mapped_leave(struct kernel *k, unsigned cpu);
void mapped_close(struct kernel *k);
/* Takes what a record says: a mapping, an exec, or that records were lost. */
void mapped_take(struct kernel *k, const struct perf_event_header *header);
/* Reads the records that have come since the last call. */
void mapped_read(struct kernel *k);
/* Keeps the kernel's rings from filling up while nobody calls mapped_read. Another thread may call it. */
void mapped_hold(struct kernel *k);
/* Returns how many records found no room in the rings since the last call. */
uint64_t mapped_lost(struct kernel *k);
/* Begins the history of a process that started before us, with what it has mapped. */
void mapped_scan(struct kernel *k, pid_t pid);
/* Begins the history of a process with what its parent had. */
void mapped_forked(struct kernel *k, pid_t pid, pid_t parent, uint64_t time);
/* Sets `out` to the code that a process had in memory at that time, by its history. False: there is
   none. The caller frees it. */
bool mapped_at(const struct kernel *k, pid_t pid, uint64_t time, struct maps *out);
/* Sets `out` to the code that a process has in memory now, if the records alone can tell: it became this
   program a moment ago, no record was lost since, and all its code is of files. False: its memory map
   must be read. */
bool mapped_young(const struct kernel *k, pid_t pid, struct maps *out);
/* Whether the process has become another program since that time. */
bool mapped_executed(const struct kernel *k, pid_t pid, uint64_t since);
/* Whether the process has mapped code over other code between two times: a library has replaced another
   one. */
bool mapped_replaced(const struct kernel *k, pid_t pid, uint64_t one, uint64_t other);
/* Whether the process has mapped code since this was last called for it. */
bool mapped_changed(const struct kernel *k, pid_t pid);
/* Forgets processes that are long gone. `now` is the time when the caller began to read records: what is
   mapped later may be in records that come next. `is_there` says which processes are not long gone. */
void mapped_sweep(struct kernel *k, uint64_t now,
		  bool (*is_there)(const struct kernel *k, pid_t pid));
