/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Paths that the sampler has walked: from what it sends to the tree of the profile. */
#include <stdint.h>

struct err;
struct kernel;
struct kernel_path;

struct err *paths_open(struct kernel *k);
void paths_close(struct kernel *k);
void paths_take(struct kernel *k, const struct kernel_path *path, const uint64_t *keys);
/* Tells the library which modules they need. */
void paths_use(struct kernel *k);
/* Records were lost: no frame of a path before is known any more. */
void paths_forget(struct kernel *k);
/* The profile is another one from now on. */
void paths_restart(struct kernel *k);
