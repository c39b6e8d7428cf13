/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names for functions that nobody could name later: what has them is gone by then, or is of this boot only. */
struct harvest;
struct kernel_names;
struct process;
struct recording;

/* Functions of the kernel. */
void names_of_kernel(struct harvest *h, const struct kernel_names *names);
/* Those of files that nobody can open later. */
void names_of_files(struct recording *r, struct harvest *h);
/* Code of no module that was met in the process. */
void names_of_code(struct harvest *h, const struct process *p);
