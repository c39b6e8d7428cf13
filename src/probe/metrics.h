/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From what people write behind --metric to what is measured (harvest/measures.h). cmd/probe.c uses it. */
#include <stdbool.h>

struct err;
struct probe_metric;

/* Fills a metric:
 *
 *    cpu, blocked              time of a call on a CPU, and waiting
 *    arg:N[:TYPE]              argument number N, from 1 on; TYPE: i8 to i64, u8 to u64; else i64
 *    return[:TYPE]             what the function returns
 *
 * *known is set to whether the text is one of these: it may be an event. An error says what is wrong with it. */
struct err *probe_metric_parse(const char *text, struct probe_metric *out, bool *known);
