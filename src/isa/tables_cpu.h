/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* find_jump_table of struct isa, for each CPU. */
#include "isa/insn.h"

bool x86_find_jump_table(const struct code_run *runs, size_t count, struct jump_table *out);
bool aarch64_find_jump_table(const struct code_run *runs, size_t count, struct jump_table *out);
