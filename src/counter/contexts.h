/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Calling contexts of copies (safe/contexts.h). The code of copies knows:
 *
 *    %gs:-32   the last entry of the stack of contexts {record, SP}: its own, while it runs
 *    %gs:-40   whom it calls where a function is entered whose record it does not know
 *    %gs:-48   the same, from a call that has put the place of its slot in its record into r11
 *    %gs:-56   whom it calls where it has found that the last entry is not its own: somebody who was called was left, or
 *              the thread is on another stack
 *
 * These three may be called anywhere that nothing is in the red zone. They change no register but the one that they are asked for, and flags. They are told more
 * by the instructions behind the call.
 */
#include <stdbool.h>
#include <stdint.h>

enum { /* words before the bank */
       CONTEXTS_TOP = 4,
       CONTEXTS_ENTER,
       CONTEXTS_ENTER_DIRECT,
       CONTEXTS_CHECK,
       CONTEXTS_BANK,
       CONTEXTS_ARENA_AT,
       CONTEXTS_BEGIN,
       CONTEXTS_LIMIT,
};

/* Whether this CPU's copies can do so. */
bool contexts_known(void);
/* A thread's context is that of nobody. `stack` of this size is its own. */
void contexts_begin(uint64_t bank, uint64_t arena, char *stack, uint64_t size);
/* In a forked process: what the thread had in the bank and arena of its parent, it has in its own. The words are copies of its
   parent's. */
void contexts_move(uint64_t from_bank, uint64_t to_bank, uint64_t to_arena, uint64_t bank_bytes);
