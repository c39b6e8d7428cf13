/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Walks the stacks that the sampler could only copy, as soon as their code is known. kernel.c uses it. */
struct kernel;
struct process;

/* Walks all samples that need not wait any longer. */
void walks_all(struct kernel *k);
/* At the end: walks the samples that still wait, as far as their code is known. */
void walks_give_up(struct kernel *k);
/* The process has mapped new code, so it may be of use again to look for unknown code. */
void walks_allow_looks(const struct kernel *k, struct process *p);
