/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Loads the BPF program into the kernel, attaches it, and gives access to its maps. kernel.c loads and
   detaches it; the other files map their parts of its memory. */
#include <stdbool.h>
#include <stddef.h>

struct bpf_link;
struct err;
struct kernel;
struct kernel_counts;

struct err *object_open(struct kernel *k);
/* Loads it. Programs that are not needed were left out before. */
struct err *object_load(struct kernel *k);
/* Attaches the programs that see forks, execs, exits and new mappings. */
struct err *object_attach(struct kernel *k);
/* Keeps a link until object_detach. If the link is NULL, attaching to `what` has failed: returns that
   error. */
struct err *object_keep(struct kernel *k, struct bpf_link *link, const char *what);
/* Destroys one link before that. NULL is allowed. */
void object_drop(struct kernel *k, struct bpf_link *link);
/* Destroys all links. */
void object_detach(struct kernel *k);
/* Returns the memory of a BPF map; NULL: it cannot be mapped (errno). */
void *object_map(struct kernel *k, const char *name, size_t size);
/* Reads how much the sampler has lost. False: it cannot be read. */
bool object_read_counts(const struct kernel *k, struct kernel_counts *out);
