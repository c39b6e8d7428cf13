/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A thread that works for a millisecond is over before we look, unless we are quick: the calling thread asks to be
   run soon and for a short time. What it starts is as if nothing had been asked. */
void hurry(void);
