/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the two sides of live.h (live.c and follow.c) send to each other: one packet each way. The answer
   comes with a descriptor of the packed profile (doc/format.md), or without one if there was no memory
   for it. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LIVE_ASK 0x3f6c7563u    /* "cul?" */
#define LIVE_ANSWER 0x216c7563u /* "cul!" */
#define LIVE_VERSION 1

struct live_message {
	uint32_t magic, version;
	uint64_t size; /* of the profile; 0 in a question */
};

/* Sets the name of the socket for a recording to this file. It depends on where the file is, not on how
   its path is written. False: the directory cannot be looked at. */
bool live_address(const char *path, struct sockaddr_un *address, socklen_t *size);
