/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Programs of another CPU, in QEMU's user mode emulation. The emulator maps
 * their files at their own addresses, but never executable, since it is never
 * the program's code that the CPU executes; and neighbours that the program
 * would have mapped with different rights become one mapping. Which part of a
 * file is code its segments say.
 *
 * Signal handlers return to a page of the emulator's own making, where the
 * program's CPU has no other place for that (aarch64, which has no vDSO there):
 * the trampoline and nothing else. It is a module by the name of [sigreturn].
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct image;
struct map;
struct maps;

/* Makes of the emulator's memory map the program's: code of its machine is executable, nothing else
   is. After an error the map is empty. */
struct err *emulated_maps(pid_t pid, uint16_t machine, struct maps *maps);

/* Is the mapping the page of the trampoline? And that page as a file. */
bool emulated_is_sigreturn(const struct map *map);
struct err *emulated_open_sigreturn(pid_t pid, const struct map *map, struct image **out);
