/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The user's browser. */
#include <stdbool.h>

/* Whether somebody at a terminal with a display would see it. */
bool browser_possible(void);
/* Opens a file or an address. Whether there is a browser matters little: its name was printed. */
void browser_open(const char *what);
