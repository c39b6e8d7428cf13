/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A damaged database is kept for who may still read something in it, under another name. */
#include <stddef.h>

struct err;

/* Renames the database and the files beside it that belong to it. `name` (size bytes) gets the new one. */
struct err *aside_put(const char *path, char *name, size_t size);
