/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tells the service manager how we are, where there is one (sd_notify(3)). */
#include <stdint.h>

/* Lines "NAME=VALUE". Nothing happens where nobody asked for it. */
void notify(const char *lines);
/* How often it wants to hear "WATCHDOG=1", in ns; 0: never. */
uint64_t notify_watchdog_ns(void);
