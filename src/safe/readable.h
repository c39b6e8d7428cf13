/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tells whether memory can be read, without touching it. The agent uses it before it reads a stack. */
#include <stdbool.h>
#include <stdint.h>

/* Whether this process can read the word at `address` now. One system call. Async-signal-safe; errno is
   not changed. */
bool readable_word(uint64_t address);
