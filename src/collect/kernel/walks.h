/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Stacks that the sampler could only copy are walked here, as soon as their code is known. */
struct kernel;
struct process;

/* Walks those that need not wait any longer. */
void walks_all(struct kernel *k);
/* At the end: those that still wait count without their callers. */
void walks_give_up(struct kernel *k);
/* The process has new code in memory: to look for what is not known may be of use again. */
void walks_hope(const struct kernel *k, struct process *p);
