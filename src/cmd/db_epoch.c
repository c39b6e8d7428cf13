/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit db epoch`: asks the daemon for a new epoch over its control socket. One line is sent,
   "epoch", and one comes back: "ok N" with the number of the epoch, or "error WHY". */
#include "cmd/db.h"

#include "base/err.h"
#include "base/json.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define CONTROL_PATH "/run/culprit/control"
#define PATIENCE_S 60 /* an interval is written first, on a machine that may be busy */

static struct err *dial(const char *path, int *out)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = PATIENCE_S};
	if (strlen(path) >= sizeof address.sun_path)
		return err_new("%s: the path is too long for a socket", path);
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno("cannot make a socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	if (connect(fd, (struct sockaddr *)&address, sizeof address)) {
		struct err *e = errno == EACCES || errno == EPERM
					? err_errno("%s: only its owner and root may talk to the "
						    "daemon: run this command as one of them",
						    path)
					: err_errno(
						  "no daemon answers at %s: start culprit daemon, "
						  "or name its socket with --socket",
						  path);
		close(fd);
		return e;
	}
	*out = fd;
	return NULL;
}

static struct err *ask(int fd, char *answer, size_t room)
{
	static const char question[] = "epoch\n";
	size_t got = 0;
	ssize_t n = send(fd, question, sizeof question - 1, MSG_NOSIGNAL);
	if (n != (ssize_t)sizeof question - 1)
		return err_errno("cannot send to the daemon");
	while (got < room - 1 && (n = read(fd, answer + got, room - 1 - got)) > 0) {
		got += (size_t)n;
		if (memchr(answer, '\n', got))
			break;
	}
	answer[got] = 0;
	answer[strcspn(answer, "\n")] = 0;
	return got ? NULL : err_new("the daemon did not answer");
}

static void show(uint64_t epoch, bool json)
{
	struct json j = json_to_file(stdout);
	if (!json) {
		printf("epoch %llu begins\n", (unsigned long long)epoch);
		return;
	}
	json_begin_object(&j);
	json_put_u64(&j, "culprit", 1);
	json_put_u64(&j, "epoch", epoch);
	json_end_object(&j);
	json_newline(&j);
}

static int run(const char *path, bool json)
{
	char answer[512];
	int fd = -1;
	struct err *e = dial(path, &fd);
	if (!e)
		e = ask(fd, answer, sizeof answer);
	if (fd >= 0)
		close(fd);
	if (!e && !strncmp(answer, "error ", 6))
		e = err_new("the daemon refused: %s", answer + 6);
	else if (!e && strncmp(answer, "ok ", 3) != 0)
		e = err_new("what answers at %s is no daemon of this version", path);
	if (e)
		return cmd_fail("db epoch", e);
	show(strtoull(answer + 3, NULL, 10), json);
	return cmd_finish("db epoch", CMD_OK);
}

int db_epoch(int argc, char **argv)
{
	const char *path = CONTROL_PATH;
	bool json = false;
	const struct arg options[] = {
		{0, "socket", "PATH", "the daemon's control socket; " CONTROL_PATH " by default",
		 ARG_STRING, &path},
		{0, "json", NULL, "print JSON", ARG_FLAG, &json},
		{0},
	};
	struct args args = {
		.command = "db epoch",
		.usage = "[options]",
		.summary =
			"Asks the daemon to begin a new epoch: samples from before and after are separate.",
		.options = options,
	};
	int status = cmd_parse(&args, argc, argv);
	if (status >= 0)
		return status;
	return args.count ? cmd_misused("db epoch", "unexpected argument '%s'", args.operands[0])
			  : run(path, json);
}
