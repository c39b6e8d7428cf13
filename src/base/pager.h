/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Long text for people: through $PAGER where stdout is a terminal ("less -FRX"
 * unless it says otherwise; "" and "cat" mean none), else straight to stdout.
 */
#include <stdbool.h>
#include <stddef.h>

struct err;

/* Writes all of it. A reader who quits the pager early is no error. `wanted` false: no pager. */
struct err *pager_show(const char *text, size_t size, bool wanted);
