/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Epilogues in which a register has the caller's value again, while CFI still finds it in the word that it was popped
 * from, as GCC describes them on x86-64:
 *
 *         pop %rbp                  rbp at CFA-16
 *         ret                       the same, which is below SP now
 *
 * That is true until the next call. But the copies of stacks that the kernel makes begin at SP: a walk of such a
 * copy has no word below it.
 */
struct analysis;
struct rows;

/* Adds rows in which FP and the extra register are unchanged, where the analysis agrees with the CFI and knows that
   they have their values again. `cfi` is finished. */
void restored_add(const struct analysis *analysis, const struct rows *cfi, struct rows *out);
