/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Brings an agent into a process that runs already (inject/inject.h), and waits until it has said HELLO. agents.c uses it. */
#include <sys/types.h>

struct agents;
struct err;

struct err *attach_to(struct agents *agents, pid_t pid);
