/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The profile of a recording while it grows: where frames of processes, as keys of the calling context tree
 * (cct/cct.h), become nodes of its tree, and threads get their places.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct harvest;
struct process;
struct process_owner;
struct profile_thread;
struct recording;

struct err *harvest_begin(const struct recording *r, struct harvest *h);
/* A copy of what there is; processes keep their places in it. */
struct err *harvest_copy(struct recording *r, struct harvest *copy);
void harvest_end(struct harvest *h);
/* The child of `parent` for a frame of this process. */
struct err *harvest_child(struct recording *r, struct harvest *h, struct process *p,
			  uint32_t parent, uint64_t key, uint32_t *node);
/* The place of a process: its index. */
struct err *harvest_process(struct recording *r, struct process *p, uint32_t *index);
/* It is over, and all of it is in the profile: says when and how (end_ns, status) there, and forgets it. */
void harvest_end_process(struct recording *r, struct process *p);
/* Whose the processes are, one for each of the profile: the caller's (free). */
struct err *harvest_owners(const struct harvest *h, struct process_owner **out);
/* The place of a thread. Of very many, the rest of a process's threads have one in common. */
struct err *harvest_add_thread(struct recording *r, struct harvest *h, struct process *p,
			       struct profile_thread *wanted, uint32_t *index);
/* More of a thread whose place is that of several. */
void harvest_join_thread(struct profile_thread *all, const struct profile_thread *one);
