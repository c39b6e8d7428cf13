/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The door: how preloaded libraries find the collector. agents.c opens one, and talk.c talks to those who come;
 * paths/command.c opens another one, for programs that count.
 */
#include <stdbool.h>
#include <sys/types.h>

struct err;

struct door_kind {
	const char *prefix;       /* of the directory's name, which six letters follow */
	mode_t directory, socket; /* their permissions */
	const char *variable;     /* of the environment: tells the socket */
	/* Whether a file in the directory is ours, other than the socket and the link to the library. */
	bool (*is_ours)(const char *name);
};

extern const struct door_kind door_for_agents;

struct door {
	const struct door_kind *kind;
	char *directory, *socket, *preload;
	/* Of the directory: tells other collectors that its owner is alive. */
	int lock;
	int listener;
};

/* Makes the directory and the socket. `library`: the path of what to preload. If it fails, the door must still be closed. */
struct err *door_open(struct door *door, const struct door_kind *kind, const char *library);
/* Removes them, with all files of ours: nobody can connect any more. */
void door_close(struct door *door);
/* The environment for a command: see session_environment. */
char **door_environment(const struct door *door, char **environment);
