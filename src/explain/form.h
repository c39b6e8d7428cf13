/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The form of an instruction: its mnemonic and the kinds of its operands, "ldr x,[x,i]", by which the tables
 * of CPUs are ordered. tools/make-cpu-models makes the same from LLVM's text.
 */
#include <stddef.h>

struct isa;

#define FORM_MAX 128

/* Of the text of an instruction (isa/text.h), cut where it is too long. */
void form_make(const struct isa *isa, const char *text, char out[FORM_MAX]);
