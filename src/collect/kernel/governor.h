/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Bounds the time that probes take (probes->budget). Each second the probes' own work is compared with the program's time.
   If it is too much, the function whose probes took most is only counted from then on. kernel.c uses it. */
struct kernel;

/* Measures what it takes to stop a thread at a place. */
void governor_open(struct kernel *k);
/* Judges the last second, if one is over. */
void governor_tick(struct kernel *k);
