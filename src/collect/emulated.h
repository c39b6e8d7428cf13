/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Programs of another CPU, in QEMU's user mode emulation. The emulator maps
 * their files at their own addresses, but never executable, since it is never
 * the program's code that the CPU executes; and neighbours that the program
 * would have mapped with different rights become one mapping. Which part of a
 * file is code its segments say.
 */
#include <stdint.h>
#include <sys/types.h>

struct err;
struct maps;

/* Makes of the emulator's memory map the program's: code of its machine is executable, nothing else
   is. After an error the map is empty. */
struct err *emulated_maps(pid_t pid, uint16_t machine, struct maps *maps);
