/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apart/packet.h"
#include "base/err.h"
#include "collect/live.h"
#include "collect/live_wire.h"
#include "profile/profile.h"

#define PROFILE_BYTES_MAX (4ull << 30)

struct follow {
	int fd;
	bool asked;
};

static struct err *not_ours(const char *path, uid_t user)
{
	const struct passwd *p = getpwuid(user);
	if (p)
		return err_new("%s is being recorded by %s: only that user can look at it now",
			       path, p->pw_name);
	return err_new("%s is being recorded by user %u: only that user can look at it now", path,
		       (unsigned)user);
}

struct err *follow_open(const char *path, struct follow **out)
{
	struct sockaddr_un address;
	struct ucred peer;
	socklen_t size, peer_size = sizeof peer;
	*out = NULL;
	if (!live_address(path, &address, &size))
		return NULL;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno("cannot make a socket");
	if (connect(fd, (struct sockaddr *)&address, size) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size)) {
		bool busy = errno == EAGAIN;
		close(fd);
		return busy ? err_new("%s: too many look at this recording", path) : NULL;
	}
	if (peer.uid != geteuid()) {
		close(fd);
		return not_ours(path, peer.uid);
	}
	struct follow *f = calloc(1, sizeof *f);
	if (!f) {
		close(fd);
		return err_new("out of memory");
	}
	*f = (struct follow){.fd = fd};
	*out = f;
	return NULL;
}

void follow_close(struct follow *f)
{
	if (!f)
		return;
	close(f->fd);
	free(f);
}

int follow_fd(const struct follow *f)
{
	return f->fd;
}

bool follow_asked(const struct follow *f)
{
	return f->asked;
}

/* If the recorder has hung up, follow_take notices it. */
void follow_ask(struct follow *f)
{
	struct live_message m = {LIVE_ASK, LIVE_VERSION, 0};
	if (!f->asked)
		f->asked = send(f->fd, &m, sizeof m, MSG_NOSIGNAL) == (ssize_t)sizeof m;
}

static struct profile *read_profile(int fd, uint64_t size)
{
	struct profile *p = NULL;
	char *damage = NULL, *bytes = size <= PROFILE_BYTES_MAX ? malloc(size + 1) : NULL;
	uint64_t done = 0;
	while (bytes && done < size) {
		ssize_t part = pread(fd, bytes + done, size - done, (off_t)done);
		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0)
			break;
		done += (uint64_t)part;
	}
	if (bytes && done == size)
		err_free(profile_parse(bytes, size, &p, &damage));
	free(damage);
	free(bytes);
	return p;
}

enum follow_news follow_take(struct follow *f, struct profile **profile)
{
	struct live_message m = {0};
	int fd;
	*profile = NULL;
	ssize_t size = packet_receive(f->fd, &m, sizeof m, &fd, 0);
	if (size < 0 && errno == EAGAIN)
		return FOLLOW_NOTHING;
	bool good = size == (ssize_t)sizeof m && m.magic == LIVE_ANSWER &&
		    m.version == LIVE_VERSION;
	f->asked = false;
	if (good && fd >= 0)
		*profile = read_profile(fd, m.size);
	if (fd >= 0)
		close(fd);
	return *profile ? FOLLOW_PROFILE : good ? FOLLOW_NOTHING : FOLLOW_ENDED;
}
