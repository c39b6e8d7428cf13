/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Long text for people: through $PAGER where stdout is a terminal ("less -FRX"
 * unless it says otherwise; "" and "cat" mean none), else straight to stdout.
 */
#include <stdbool.h>

struct buf;
struct err;

/* Writes all of it. A reader who quits the pager early is no error. `wanted` false: no pager. Where the locale is not UTF-8,
   what is drawn in the text becomes ASCII. */
struct err *pager_show(struct buf *text, bool wanted);
