/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Serial time: the time of the threads that run, divided by how many of them run at that moment. A function that runs
 * alone has all of its time; if four threads run at once, each of them has a quarter. So the sum is the time in which
 * anybody ran, and large numbers show what keeps a program from using more CPUs.
 *
 *    a   ====|========        b runs beside a for half of the time:
 *    b       ========         a has 4 + 4 of its 12, b has 4 of its 8
 *
 * It is made from the time line, as the metric EVENT.serial after those of the profile, in nanoseconds.
 */
#include <stdbool.h>
#include <stdint.h>

struct err;
struct profile;

#define SERIAL_NAME "serial"

/* Whether the name of a metric is that of serial time: "serial", "cpu-clock.serial". */
bool serial_is_wanted(const char *name);
/* Adds it. An error if there is no time line of threads that run. *metric is its number. */
struct err *serial_add(struct profile *profile, uint32_t *metric);
/* Whether that would tell something: threads ran beside each other. */
bool serial_is_telling(const struct profile *profile);
