/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What targets ring when there is something to look at. */

struct bell;
struct err;

struct err *bell_open(struct bell *bell);
void bell_hear(struct bell *bell);       /* so that its descriptor is quiet until it rings again */
void bell_ring_again(struct bell *bell); /* for what was heard and not done yet */
void bell_close(struct bell *bell);
