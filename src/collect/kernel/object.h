/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The program in the kernel: loaded, attached, its memory. */
#include <stdbool.h>
#include <stddef.h>

struct bpf_link;
struct err;
struct kernel;
struct kernel_counts;

struct err *object_load(struct kernel *k);
/* To what processes and threads do. */
struct err *object_attach(struct kernel *k);
/* Keeps a link until the end; NULL: it could not be made, to `what`. */
struct err *object_keep(struct kernel *k, struct bpf_link *link, const char *what);
/* Not this one. NULL is fine. */
void object_drop(struct kernel *k, struct bpf_link *link);
void object_detach(struct kernel *k);
/* The memory of a map; NULL: it cannot be had (errno). */
void *object_map(struct kernel *k, const char *name, size_t size);
bool object_read_counts(const struct kernel *k, struct kernel_counts *out);
