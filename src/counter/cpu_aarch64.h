/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* counter/cpu.h for aarch64: a word of each thread's own memory. Others include cpu.h. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/auxv.h>

#include "safe/banks.h"

#define CPU_OWN_WORD true
#define CPU_ATOMICS (1ul << 8) /* of AT_HWCAP: one instruction adds to memory */
#define CPU_REACH 24           /* bits: how far the code of copies can look for the word */

/* The library is there from the beginning, so the word is at the same distance from the thread pointer in all threads. */
extern _Thread_local uint64_t cpu_bank_word __attribute__((tls_model("initial-exec")));

static inline uint64_t cpu_bank(void)
{
	return cpu_bank_word;
}

static inline void cpu_set_bank(uint64_t bank)
{
	cpu_bank_word = bank;
}

static inline uint64_t cpu_word(void)
{
	return (uint64_t)&cpu_bank_word - (uint64_t)__builtin_thread_pointer();
}

static inline bool cpu_has_atomics(void)
{
	return getauxval(AT_HWCAP) & CPU_ATOMICS;
}

static inline const char *cpu_trouble(void)
{
	if (getauxval(AT_PAGESZ) != BANKS_PAGE)
		return "the kernel has large pages";
	return cpu_word() >> CPU_REACH ? "its threads have too much memory of their own" : NULL;
}

/* False: it could not. */
bool cpu_set_first_bank(uint64_t bank);
