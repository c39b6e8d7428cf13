/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How agents find us. */
struct door;
struct err;

/* `agent`: the path of the library that is preloaded. */
struct err *door_open(struct door *door, const char *agent);
/* Nobody comes in any more. */
void door_close(struct door *door);
/* See session_environment. */
char **door_environment(const struct door *door, char **environment);
