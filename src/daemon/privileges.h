/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the daemon may do. It reads what all programs of a machine map, so it is worth
 * attacking; what it does not need itself it gives up for good.
 */
struct err;

/* Before there are other threads: each has its own. Nothing that is missing is an error. */
struct err *privileges_drop(void);
