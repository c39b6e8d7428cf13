/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether memory can be read, without touching it. */
#include <stdbool.h>
#include <stdint.h>

/* The word at `address`, for this process and now. Async-signal-safe; one system call; errno
   stays. */
bool readable_word(uint64_t address);
