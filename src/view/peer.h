/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* Whether the other end of a TCP connection within this machine (IPv4) was made by a process of our own user: the kernel's
   list of sockets says whose each is. False where that is not to be found out. */
bool peer_is_ours(int fd);
