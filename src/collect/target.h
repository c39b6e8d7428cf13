/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The command that is recorded. It is found in PATH, checked before it is started (can the agent be
 * preloaded?), and started. Its terminal, signals and exit status are passed through. recorder.c and
 * cmd/record.c use it.
 *
 *    target_check(command, …)
 *    target_prepare(&target)                     before any thread is made
 *    target_start(&target, …)
 *    while (!target.ended) { poll(target.signals, …); target_handle(&target); }
 *    return target_exit(&target)
 *
 * The command is in our process group, so that Ctrl-C and Ctrl-Z reach both. On SIGINT and SIGQUIT we go on
 * waiting for it. We pass on signals that only we got.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct buf;
struct err;

struct target {
	pid_t pid;   /* 0: not started */
	int signals; /* a descriptor that is readable when target_handle has something to do */
	bool ended;
	int status; /* as waitpid returns it, once it has ended */
	/* Signal settings as we found them: the command gets these. */
	sigset_t mask;
	struct sigaction child_action, pipe_action;
};

struct target_hooks {                    /* each may be NULL */
	void (*in_child)(void *context); /* called in the new process, before exec */
	/* Called in ours. If it is there, the new process goes on only when it has returned. */
	void (*in_parent)(void *context, pid_t pid);
	void *context;
};

/* Finds the file of a command, in PATH if it has no slash, and appends its path. */
struct err *target_find(const char *command, struct buf *path);

enum target_use {
	TARGET_RUN,     /* nothing is preloaded */
	TARGET_SAMPLED, /* an agent is, which the kernel's sampler could take the place of */
	TARGET_COUNTED, /* a library is that nothing can take the place of */
};

/* Returns why `command` cannot be recorded, or NULL. It may not be found, or not executable. If something
   is to be preloaded, it may be static, setuid or with capabilities, for another C library, or for
   another CPU. A script is judged by its interpreter. Errors say the way out. */
struct err *target_check(const char *command, enum target_use use);

/* Holds signals back. Threads that are made from here on do not get them either. */
struct err *target_prepare(struct target *target);

/* Starts the command with this environment, in the foreground of our terminal. Nothing of its beginning
   is missed: the agent waits for the session's answer before anything else runs. */
struct err *target_start(struct target *target, char **arguments, char **environment,
			 const struct target_hooks *hooks);

/* Passes on signals, and notices the end of the command. Returns at once. */
void target_handle(struct target *target);

/* Whether somebody has asked us to end (SIGINT, SIGQUIT, SIGTERM, SIGHUP): since the command ended, or,
   without a command, since the last call. */
bool target_interrupted(const struct target *target);

/* Restores the signals. Those that came meanwhile are dropped. */
void target_release(struct target *target);

/* Returns the exit status of the command. If it died of a signal, we die of the same one (without a
   second core file), and this does not return. */
int target_exit(const struct target *target);
