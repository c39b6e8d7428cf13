/* SPDX-License-Identifier: Apache-2.0 */
#include "base/browser.h"

#include "base/term.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool browser_possible(void)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
	return term_is_tty(STDOUT_FILENO) && ((x && *x) || (wayland && *wayland));
}

/* It outlives the terminal, and gets no signals that we hold back. */
void browser_open(const char *what)
{
	extern char **environ;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	char *copy = strdup(what), name[] = "xdg-open";
	char *argv[] = {name, copy, NULL};
	pid_t pid;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	for (int fd = 0; fd <= 2; fd++)
		posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	if (copy)
		posix_spawnp(&pid, name, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	free(copy);
}
