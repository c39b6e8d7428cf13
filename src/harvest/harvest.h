/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The profile of a recording while it grows. Frames of processes, as keys of the calling context tree
   (cct/cct.h), become nodes of the profile's tree. Processes and threads get their places in the
   profile. The samplers add to it. session.c begins, copies and ends it. */
#include <stddef.h>
#include <stdint.h>

struct err;
struct harvest;
struct process;
struct process_owner;
struct profile_thread;
struct recording;

/* Makes an empty harvest with the events of the recording. */
struct err *harvest_begin(const struct recording *r, struct harvest *h);
/* Copies what there is so far. Processes have the same places in the copy. */
struct err *harvest_copy(struct recording *r, struct harvest *copy);
void harvest_end(struct harvest *h);
/* Finds or adds the child of `parent` for a frame of this process. */
struct err *harvest_add_child(struct recording *r, struct harvest *h, struct process *p,
			      uint32_t parent, uint64_t key, uint32_t *node);
/* Finds or adds the module of a key, if it is that of a file; else *module is 0. */
struct err *harvest_module(struct recording *r, struct harvest *h, uint64_t key, uint32_t *module);
/* Gives a process its place in the profile, and returns the index. */
struct err *harvest_add_process(struct recording *r, struct process *p, uint32_t *index);
/* Ends a process of which everything is in the profile: notes there when and how it ended (end_ns,
   status), and forgets it. */
void harvest_end_process(struct recording *r, struct process *p);
/* Returns the owners of the profile's processes, one for each. The caller frees the array. */
struct err *harvest_owners(const struct harvest *h, struct process_owner **out);
/* Gives a thread its place in the profile. If there are very many, the rest of a process's threads share
   one. */
struct err *harvest_add_thread(struct recording *r, struct harvest *h, struct process *p,
			       struct profile_thread *wanted, uint32_t *index);
/* Adds the totals of a thread to a place that several threads share. */
void harvest_join_thread(struct profile_thread *all, const struct profile_thread *one);
