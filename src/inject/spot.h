/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which thread of a process can be borrowed for a call of pthread_create: one whose whole path is known, and shows that
 * it holds nothing that this call needs. Such a thread waits in a system call, or runs the program's own code. Its path has
 * no function that allocates memory, loads libraries, begins or ends threads or processes, or waits for a lock; none of the
 * loader's, no signal handler, and no code that belongs to no file.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct borrow;
struct err;
struct spots;

/* Functions of libc, by their address in the process. */
struct spot_functions {
	uint64_t mmap, pthread_create, dlopen, dlsym, dlerror;
	uint64_t restorer; /* code that calls rt_sigreturn(2) */
};

/* Reads the code of a process, for looks at its threads. An error tells why nothing can be loaded there: another CPU,
   no libc or another one, Go. `otherwise`: what can be done then. */
struct err *spots_open(pid_t pid, const char *otherwise, struct spots **out);
void spots_close(struct spots *spots);
const struct spot_functions *spots_functions(const struct spots *spots);

/* Whether the thread that is held can be borrowed where it is; else *why says in a few words why not. */
bool spot_is_good(struct spots *spots, const struct borrow *held, const char **why);
