/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Takes the paths that the sampler has walked into the profile's tree. kernel.c passes on the records. */
#include <stdint.h>

struct err;
struct kernel;
struct kernel_path;

struct err *paths_open(struct kernel *k);
void paths_close(struct kernel *k);
/* Adds the sample of a record. `keys` is the array behind the record. */
void paths_take(struct kernel *k, const struct kernel_path *path, const uint64_t *keys);
/* Tells the library which modules the remembered frames need. */
void paths_mark_used(struct kernel *k);
/* Forgets all remembered frames, because records were lost. */
void paths_forget(struct kernel *k);
/* A new profile begins, in which no frame has a node yet. */
void paths_restart(struct kernel *k);
