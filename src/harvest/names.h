/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names functions that nobody could name later: the process or file that has them will be gone, or their
   addresses are valid for this boot only. session.c and the kernel's sampler call it before a profile is
   taken, harvest.c when a process ends. */
struct harvest;
struct kernel_names;
struct process;
struct recording;

/* Names functions of the kernel. */
void names_of_kernel(struct harvest *h, const struct kernel_names *names);
/* Names functions of files that nobody can open later. */
void names_of_files(struct recording *r, struct harvest *h);
/* Names code of no module that was met in the process. */
void names_of_jit(struct harvest *h, const struct process *p);
