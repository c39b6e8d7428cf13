/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Memory maps of programs for another CPU that run in QEMU's user mode emulation. library.c uses it. The
 * emulator maps the program's files at their own addresses, but never executable, because the CPU never
 * executes the program's code itself. Neighbouring mappings with different rights become one. So the segments
 * of the file tell which part of it is code.
 *
 * If the program's CPU has no other place for it (aarch64, which has no vDSO there), signal handlers return
 * to a page that the emulator has made. It holds the signal trampoline and nothing else. It becomes a module
 * with the name [sigreturn].
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct image;
struct map;
struct maps;

/* Turns the emulator's memory map into that of the program: code for `machine` is executable, nothing else
   is. After an error the map is empty. */
struct err *emulated_maps(pid_t pid, uint16_t machine, struct maps *maps);

/* Whether the mapping is the page of the trampoline; and opens that page as a file. */
bool emulated_is_sigreturn(const struct map *map);
struct err *emulated_open_sigreturn(pid_t pid, const struct map *map, struct image **out);
