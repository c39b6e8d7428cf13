/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Spans of time as people write them, in local time:
 *
 *    all
 *    today   yesterday   2026-11-14                  a day
 *    -1h   -90m   -7d   -2w                          from then until now
 *    yesterday 14:00-15:00   -7d 14:00-15:00         a part of a day
 *    2026-11-14 14:00..15:00   14:00..15:00          the same; without a day: today
 *    2026-11-14 22:00..2026-11-15 06:00   -2d..-1d   from and to
 *    yesterday..   ..2026-11-14                      until now, or from the beginning
 *
 * A day as the end includes it; a time of day that comes before the beginning is
 * on the next day. The dash before 1h, 7d … may be left out.
 */
#include <stdint.h>

struct err;

/* [*from_ms, *to_ms). */
struct err *span_parse(const char *text, int64_t now_ms, int64_t *from_ms, int64_t *to_ms);
