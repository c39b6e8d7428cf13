/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Makes the calling thread quick: it asks the scheduler to run it soon, and for a short time. Otherwise a
 * thread of a target that lives for a millisecond would be gone before we look at it. What the calling
 * thread starts is not affected. The session uses it, and the threads of both samplers that read what
 * targets do.
 */
void schedule_soon(void);
