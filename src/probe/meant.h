/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From what people write to functions that are probed already (choose.h: to those that could be). cmd/probe_live.c and
   cmd/probe_left.c use it. */
#include <stdbool.h>

struct buf;
struct probes;

/* Sets meant[i] for each function that `text` means. Returns false, and says so in `out`, if there is none. */
bool probe_mark_meant(const struct probes *probes, const char *text, bool *meant, struct buf *out);
