/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Packets between processes of ours on one machine, with open files in them. */
#include <stddef.h>
#include <sys/types.h>

#define PACKET_FILES_MAX 3

/* As sendmsg, with copies of `count` descriptors; goes on after a signal. */
ssize_t packet_send(int socket, const void *bytes, size_t size, const int *files, size_t count,
		    int flags);
/* As recvmsg; *file is the descriptor that came with it, the caller's, or -1. */
ssize_t packet_receive(int socket, void *bytes, size_t size, int *file, int flags);
