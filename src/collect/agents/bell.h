/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The bell: targets ring it when there is something to look at (safe/wire.h). agents.c waits for it. */

struct bell;
struct err;

struct err *bell_open(struct bell *bell);
/* Resets the descriptor, so that it is not readable until the next ring. */
void bell_hear(struct bell *bell);
/* Makes it readable again, for rings that were heard but not handled yet. */
void bell_ring_again(struct bell *bell);
void bell_close(struct bell *bell);
