/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Attaches our program to instructions of files, for one process or for all that have the file in memory. Newer kernels
   take many places at once; others take them one by one, and need a while to give each one back. probes.c uses it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_program;

struct uprobes { /* places that were attached together */
	struct bpf_link **links;
	size_t count;
	int fd; /* of all of them; -1: each has a link */
};

struct uprobe_place {
	uint64_t offset, cookie;
};

/* Whether the kernel takes many at once, so that the program is to be loaded for that. */
bool uprobes_can_join(void);
/* Sets what the program is loaded for. */
void uprobes_prepare(struct bpf_program *program);
/* Attaches all of the places in a file, or none. pid -1: for all processes. Returns 0, or the error. */
int uprobes_attach(struct bpf_program *program, const char *file, const struct uprobe_place *places,
		   size_t count, pid_t pid, struct uprobes *out);
void uprobes_detach(struct uprobes *uprobes);
