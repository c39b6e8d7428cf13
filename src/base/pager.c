/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pager.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/term.h"
#include "base/utf8.h"

#define NOT_FOUND 127 /* what a shell says of a command that does not exist */

static struct err *write_all(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t done = write(fd, text, size);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_errno("cannot write");
		text += done;
		size -= (size_t)done;
	}
	return NULL;
}

static const char *pager_command(void)
{
	const char *command = getenv("PAGER");
	if (!command)
		return "less -FRX";
	return *command && strcmp(command, "cat") != 0 ? command : NULL;
}

static pid_t start(const char *command, int *to)
{
	int ends[2];
	if (pipe(ends))
		return -1;
	pid_t pid = fork();
	if (!pid) {
		dup2(ends[0], STDIN_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(NOT_FOUND);
	}
	close(ends[0]);
	if (pid < 0)
		close(ends[1]);
	*to = ends[1];
	return pid;
}

/* False: there is no such pager. */
static bool show_by(const char *command, const char *text, size_t size)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, pipe_before, interrupt_before;
	int status = 0, to;
	pid_t pid = start(command, &to);
	if (pid < 0)
		return false;
	sigaction(SIGPIPE, &ignore, &pipe_before);
	sigaction(SIGINT, &ignore, &interrupt_before); /* it is the pager's */
	err_free(write_all(to, text, size));
	close(to);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGPIPE, &pipe_before, NULL);
	sigaction(SIGINT, &interrupt_before, NULL);
	return !(WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND);
}

struct err *pager_show(struct buf *text, bool wanted)
{
	const char *command = wanted && term_is_tty(STDOUT_FILENO) ? pager_command() : NULL;
	if (text->size && term_wants_ascii())
		text->size = utf8_draw_ascii(text->data, text->size);
	fflush(stdout);
	if (command && show_by(command, buf_text(text), text->size))
		return NULL;
	return write_all(STDOUT_FILENO, buf_text(text), text->size);
}
