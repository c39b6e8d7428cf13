/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a new thread begins as libc finds it in our library, in memory. So that is changed, not the file. */
#include <elf.h>
#include <sys/mman.h>

#include "counter/counter.h"
#include "counter/cpu_aarch64.h"
#include "safe/syscall.h"

#define UNSET 1 /* no address; not 0, or it would be in no file */

_Thread_local uint64_t cpu_bank_word = UNSET;

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden"))); /* by the linker */

static uint64_t first_word(void)
{
	const Elf64_Phdr *segments = (const Elf64_Phdr *)((const char *)&__ehdr_start +
							  __ehdr_start.e_phoff);
	for (int i = 0; i < __ehdr_start.e_phnum; i++)
		if (segments[i].p_type == PT_TLS && segments[i].p_filesz == sizeof(uint64_t))
			return (uint64_t)&__ehdr_start + segments[i].p_vaddr;
	return 0;
}

bool cpu_set_first_bank(uint64_t bank)
{
	uint64_t word = first_word(), page = word & ~(uint64_t)(BANKS_PAGE - 1);
	if (!word || SAFE_SYSCALL(SYS_mprotect, page, BANKS_PAGE, PROT_READ | PROT_WRITE, 0))
		return false;
	*(volatile uint64_t *)word = bank;
	return SAFE_SYSCALL(SYS_mprotect, page, BANKS_PAGE, PROT_READ, 0) == 0;
}
