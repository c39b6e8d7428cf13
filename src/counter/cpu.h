/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What leads to a thread's bank. Each CPU has the same functions:
 *
 *    cpu_bank()         the calling thread's bank; of a thread that has none, anything else
 *    cpu_set_bank()     sets it
 *    cpu_word()         struct banks_request.thread_word
 *    cpu_has_atomics()  struct banks_request.atomics
 *    cpu_trouble()      why threads cannot have banks, asked before one has; NULL: they can
 *
 * CPU_OWN_WORD: a new thread begins with the bank that was given to cpu_set_first_bank(). Without, it begins with
 * that of the thread that creates it.
 */
#include <stdint.h>

#if defined(__aarch64__)
#include "counter/cpu_aarch64.h"
#else
#include "counter/cpu_x86_64.h"
#endif
