/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What code processes have mapped, and when: for those that have just begun, and those that end before we look. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct kernel;
struct maps;
struct perf_event_header;

struct err *mapped_open(struct kernel *k);
/* From now on what is mapped on this CPU is noted; also anew, where it was switched off meanwhile. */
void mapped_watch(struct kernel *k, unsigned cpu);
void mapped_leave(struct kernel *k, unsigned cpu);
void mapped_close(struct kernel *k);
/* Notes what a record says: one of a mapping, of a new program, or that some were lost. */
void mapped_take(struct kernel *k, const struct perf_event_header *header);
/* Notes what has been mapped since. */
void mapped_note(struct kernel *k);
/* Keeps the kernel's memory for that from filling up while nobody notes it; for another thread. */
void mapped_hold(struct kernel *k);
/* How many records found no room, since the last call. */
uint64_t mapped_lost(struct kernel *k);
/* Notes what a process has now that was there before us. */
void mapped_scan(struct kernel *k, pid_t pid);
/* Notes that a process began with what its parent had. */
void mapped_forked(struct kernel *k, pid_t pid, pid_t parent, uint64_t time);
/* The code that a process had in memory at that time, as noted; false where nothing is. The caller
   frees it. */
bool mapped_at(const struct kernel *k, pid_t pid, uint64_t time, struct maps *out);
/* What a process has now, where that follows from the records alone: it became this program a moment ago,
   nothing was lost since, and all its code is of files. False: it must be asked itself. */
bool mapped_young(const struct kernel *k, pid_t pid, struct maps *out);
/* Whether it has become another program since. */
bool mapped_executed(const struct kernel *k, pid_t pid, uint64_t since);
/* Whether it has mapped code where other code had been, between two times: libraries that come and go. */
bool mapped_replaced(const struct kernel *k, pid_t pid, uint64_t one, uint64_t other);
/* Whether it has mapped code since this was asked last. */
bool mapped_changed(const struct kernel *k, pid_t pid);
/* Forgets those that are long gone. `now` is when we began to take records: who maps code after that may
   be told of in those that come next. `is_there`: who is not long gone. */
void mapped_sweep(struct kernel *k, uint64_t now,
		  bool (*is_there)(const struct kernel *k, pid_t pid));
