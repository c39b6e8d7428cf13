/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of the kernel's functions, from a list like /proc/kallsyms. Recordings (harvest/), the daemon and
 * imports use it. The kernel has other addresses after each boot, so the list of one boot can be shifted to
 * those of another (kernel_names_move).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct kernel_names;

/* Reads a list. An error if it has no addresses: the kernel shows them to root only. */
struct err *kernel_names_open(const char *path, struct kernel_names **out);
struct err *kernel_names_parse(const char *text, size_t size, struct kernel_names **out);
void kernel_names_close(struct kernel_names *names); /* NULL is fine */
/* Whether the list has addresses, by its first lines: much sooner than reading it. */
bool kernel_names_shown(const char *path);

/* Uses the list for a kernel that has the symbol `name` at `address`. Functions of kernel modules then
   have names only if that is the address in the list, too. */
void kernel_names_move(struct kernel_names *names, const char *name, uint64_t address);

/* Returns the address of a symbol; 0 if the list does not have it. */
uint64_t kernel_names_address(const struct kernel_names *names, const char *name);
/* The function at an address, with its *start and *size; NULL if there is none. */
const char *kernel_names_find(const struct kernel_names *names, uint64_t address, uint64_t *start,
			      uint64_t *size);

/* Reads the list again if the kernel has loaded or removed modules since the last call. `path` and
   `modules` are files like /proc/kallsyms and /proc/modules. *stamp is a hash of the modules, 0 at first.
   If the list cannot be read, the old one stays. */
void kernel_names_renew(struct kernel_names **names, uint64_t *stamp, const char *path,
			const char *modules);

/* The id of the current boot, as hex digits. Addresses of the kernel are valid for one boot only. */
#define KERNEL_BOOT_SIZE 64
void kernel_names_boot(char out[KERNEL_BOOT_SIZE]);
/* The build-id of the running kernel, as hex; "" if the kernel does not tell it. */
void kernel_names_own_id(char out[41]);
