/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a file is that was taken for another, by its first bytes. */
#include <stddef.h>

/* For example "compressed by gzip: gunzip it first": what it is, and the way out. NULL: unknown. */
const char *filekind_hint(const void *bytes, size_t size);
