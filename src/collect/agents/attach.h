/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Brings an agent into a process that runs already (inject/inject.h), and waits until it has said HELLO. agents.c uses it. */
#include <sys/types.h>

struct agents;
struct err;

/* Finds out whether the agent, the file `agent`, can count calls in a process. An error says why not, in one line. */
struct err *attach_check(pid_t pid, const char *agent);
struct err *attach_to(struct agents *agents, pid_t pid);
