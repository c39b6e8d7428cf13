/* SPDX-License-Identifier: Apache-2.0 */
#include "apart/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union room {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(PACKET_FILES_MAX * sizeof(int))];
};

ssize_t packet_send(int socket, const void *bytes, size_t size, const int *files, size_t count,
		    int flags)
{
	union room control = {0};
	struct iovec part = {(void *)bytes, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t sent;
	if (count > PACKET_FILES_MAX) {
		errno = EINVAL;
		return -1;
	}
	if (count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof *files);
		struct cmsghdr *head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(count * sizeof *files);
		memcpy(CMSG_DATA(head), files, count * sizeof *files);
	}
	do
		sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent;
}

ssize_t packet_receive(int socket, void *bytes, size_t size, int *file, int flags)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))]; /* for one: the kernel closes others */
	} control = {0};
	struct iovec part = {bytes, size};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof control};
	ssize_t got;
	*file = -1;
	do
		got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	const struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof *file))
		memcpy(file, CMSG_DATA(head), sizeof *file);
	return got;
}
