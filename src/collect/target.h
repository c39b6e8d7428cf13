/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The command that is recorded: found in PATH, looked at before it is started
 * (can the agent come in?), started, its terminal, signals and exit status
 * passed through.
 *
 *    target_check(command, …)
 *    target_prepare(&target)                     before any thread is made
 *    target_start(&target, …)
 *    while (!target.ended) { poll(target.signals, …); target_handle(&target); }
 *    return target_exit(&target)
 *
 * The command is in our process group, so that Ctrl-C and Ctrl-Z reach both.
 * We wait for it through SIGINT and SIGQUIT, and hand on what only we got.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct err;

struct target {
	pid_t pid;   /* 0: not started */
	int signals; /* a descriptor that is readable when target_handle has something to do */
	bool ended;
	int status; /* as waitpid gives it, once it has ended */
	/* how we found the signals, which is how the command gets them */
	sigset_t mask;
	struct sigaction child_action, pipe_action;
};

/* Why `command` cannot be recorded, or NULL: not found, not executable; and where the agent is to be
   preloaded: static, setuid or with capabilities, another C library, another CPU. A script is judged
   by its interpreter. Errors say the way out. */
struct err *target_check(const char *command, bool preload);

/* Holds signals back: threads that are made from here on do not get them either. */
struct err *target_prepare(struct target *target);

/* Starts it with this environment, in the foreground of our terminal. It misses nothing of the
   beginning: the agent waits for the session's answer before anything else runs. `in_child` (may
   be NULL) is called in the new process before the command is. */
struct err *target_start(struct target *target, char **arguments, char **environment,
			 void (*in_child)(void *context), void *context);

/* Hands on signals, notices the end; returns at once. */
void target_handle(struct target *target);

/* Whether somebody has asked us to end (SIGINT, SIGQUIT, SIGTERM, SIGHUP) since the command ended, or, without
   one, since this was asked last. */
bool target_interrupted(const struct target *target);

/* Signals are as they were; what came meanwhile is dropped. */
void target_release(struct target *target);

/* The exit status that says what the command's said. Where it died of a signal, so do we (without
   a second core file), and this does not return. */
int target_exit(const struct target *target);
