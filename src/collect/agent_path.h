/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the agent's libraries are: CULPRIT_AGENT names one, or they are near our program, as the build has them or as they
 * are installed.
 */
#include <limits.h>

struct err;

#define AGENT_USUAL "libculprit-agent.so"
#define AGENT_LATE "libculprit-agent-late.so" /* for processes that already run */

/* `name`: of the library. `libdir`: where libraries are installed, relative to the prefix. */
struct err *agent_path_find(const char *name, const char *libdir, char out[PATH_MAX]);
