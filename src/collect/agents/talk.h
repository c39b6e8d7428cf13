/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Conversations with agents: HELLO and MODULES (safe/wire.h). agents.c calls it if somebody connects. */
#include <stdbool.h>

struct agents;

/* Accepts the connections that wait at the door's socket. */
void talk_accept(struct agents *agents);
/* Closes connections that have been silent for too long; all of them, if `all` is set. */
void talk_close_silent(struct agents *agents, bool all);
