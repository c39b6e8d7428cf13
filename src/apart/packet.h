/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Packets over a unix socket, with open files in them. Our processes talk to each other this way: the
   collector with agents, the processes of apart/apart.h with their parents, and viewers of a live
   recording with the collector. */
#include <stddef.h>
#include <sys/types.h>

#define PACKET_FILES_MAX 3

/* Like sendmsg, with copies of `count` descriptors. Tries again if a signal interrupts. */
ssize_t packet_send(int socket, const void *bytes, size_t size, const int *files, size_t count,
		    int flags);
/* Like recvmsg. *file is the descriptor that came along, or -1; the caller closes it. */
ssize_t packet_receive(int socket, void *bytes, size_t size, int *file, int flags);
