/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What jumps and calls of an annotated function go to, in words: a label in
 * the function itself, another function, an imported one behind its stub.
 */
#include <stdint.h>

struct annotation;
struct err;
struct insn;
struct targets;

/* The annotation must outlive the result. */
struct err *targets_open(const struct annotation *annotation, struct targets **out);
void targets_close(struct targets *targets); /* NULL is fine */

/* The number of the label at an instruction of the function, from 1; 0: nothing jumps there. */
uint32_t targets_label(const struct targets *targets, uint32_t insn);

/* Where a direct jump or call goes; NULL where nothing is known of it. */
const char *targets_name(struct targets *targets, uint64_t address);
/* The import that a call or jump through memory goes to; NULL where it is none. Both are owned by
   `targets`, until the next call. */
const char *targets_import(struct targets *targets, const struct insn *insn);
