/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* find_references of struct isa, for each CPU. */
#include "isa/insn.h"

void x86_find_references(const uint8_t *code, size_t size, uint64_t address,
			 void (*each)(void *context, uint64_t to), void *context);
void aarch64_find_references(const uint8_t *code, size_t size, uint64_t address,
			     void (*each)(void *context, uint64_t to), void *context);
