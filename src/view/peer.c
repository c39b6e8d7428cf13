/* SPDX-License-Identifier: Apache-2.0 */
#include "view/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ESTABLISHED 1

/* A socket as the kernel lists it: addresses are words of four bytes, in hexadecimal. */
struct end {
	char address[33];
	unsigned port;
};

/* `mapped`: as sockets for IPv6 name it, which many browsers use for both. */
static struct end end_of(const struct sockaddr_in *at, bool mapped)
{
	struct end e = {.port = ntohs(at->sin_port)};
	if (mapped)
		snprintf(e.address, sizeof e.address, "%016X%08X%08X", 0, htonl(0xffff),
			 at->sin_addr.s_addr);
	else
		snprintf(e.address, sizeof e.address, "%08X", at->sin_addr.s_addr);
	return e;
}

static bool is_end(const struct end *a, const struct end *b)
{
	return a->port == b->port && !strcmp(a->address, b->address);
}

static bool find_owner(const char *list, const struct end *from, const struct end *to,
		       unsigned *owner)
{
	FILE *file = fopen(list, "re");
	char line[512];
	bool found = false;
	while (!found && file && fgets(line, sizeof line, file)) {
		struct end here, there;
		unsigned state;
		found = sscanf(line, " %*d: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %*s %*s %*s %u",
			       here.address, &here.port, there.address, &there.port, &state,
			       owner) == 6 &&
			state == ESTABLISHED && is_end(&here, from) && is_end(&there, to);
	}
	if (file)
		fclose(file);
	return found;
}

bool peer_is_ours(int fd)
{
	static const char *const lists[] = {"/proc/net/tcp", "/proc/net/tcp6"};
	struct sockaddr_in peer, self;
	socklen_t peer_size = sizeof peer, self_size = sizeof self;
	if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) ||
	    getsockname(fd, (struct sockaddr *)&self, &self_size) || peer.sin_family != AF_INET ||
	    self.sin_family != AF_INET)
		return false;
	for (int i = 0; i < 2; i++) {
		struct end from = end_of(&peer, i), to = end_of(&self, i);
		unsigned owner;
		if (find_owner(lists[i], &from, &to, &owner))
			return owner == geteuid();
	}
	return false;
}
