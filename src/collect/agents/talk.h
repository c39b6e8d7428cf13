/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What agents say and are answered: HELLO and MODULES. */
#include <stdbool.h>

struct agents;

/* Those that knock at the door's socket. */
void talk_accept(struct agents *agents);
/* Those that have been silent for too long (all: whoever is there). */
void talk_hang_up(struct agents *agents, bool all);
