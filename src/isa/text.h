/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Instructions as people read them, in the words of the CPU's usual assembler:
 * AT&T syntax for x86-64, or Intel's. Bytes that are no instruction become ".inst" or ".byte".
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct insn;
struct isa;
struct text;

#define TEXT_MAX 256

struct err *text_open(const struct isa *isa, struct text **out);
/* The same in Intel's syntax; *out is NULL where the CPU has but one syntax. */
struct err *text_open_intel(const struct isa *isa, struct text **out);
void text_close(struct text *text); /* NULL is fine */

/* The text of `insn`, which was decoded from `code` (at most `size` bytes). `target` stands in the
   place of the address that it jumps to or calls; NULL: the address itself, in hexadecimal. The
   mnemonic ends at the first space. Owned by `text`, until the next call. */
const char *text_insn(struct text *text, const uint8_t *code, size_t size, const struct insn *insn,
		      const char *target);
