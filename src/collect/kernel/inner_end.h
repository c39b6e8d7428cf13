/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The inner end of a sample's path: the kernel's frames, and the samples that are counted there. paths.c and
   walks.c use it when the frames of the process are in the tree. */
struct err;
struct kernel;
struct kernel_inner_end; /* state.h */

struct err *inner_end_add(struct kernel *k, const struct kernel_inner_end *end);
