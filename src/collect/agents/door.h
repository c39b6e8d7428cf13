/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The door: how agents find the collector. agents.c opens it, and talk.c talks to those who come. */
struct door;
struct err;

/* Makes the directory and the socket. `agent`: the path of the library to preload. */
struct err *door_open(struct door *door, const char *agent);
/* Removes them: nobody can connect any more. */
void door_close(struct door *door);
/* The environment for a command: see session_environment. */
char **door_environment(const struct door *door, char **environment);
