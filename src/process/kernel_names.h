/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of the kernel's functions, from a list as /proc/kallsyms is one. The
 * kernel lies elsewhere after each boot: `shift` is added to the addresses of
 * the list.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct kernel_names;

/* An error where it has no addresses: they are shown to root only. */
struct err *kernel_names_open(const char *path, struct kernel_names **out);
struct err *kernel_names_parse(const char *text, size_t size, struct kernel_names **out);
void kernel_names_close(struct kernel_names *names); /* NULL is fine */

/* The list is used for a kernel whose symbol `name` is at `address`. Modules of the kernel have
   names only where that is where it is now. */
void kernel_names_place(struct kernel_names *names, const char *name, uint64_t address);

/* The function at an address, NULL where there is none; *start and *size are its own. */
const char *kernel_names_find(const struct kernel_names *names, uint64_t address, uint64_t *start,
			      uint64_t *size);

/* Reads the list again where the kernel has loaded or removed modules since: `path` and `modules` are lists
   as /proc/kallsyms and /proc/modules. *stamp tells one time from another, 0 at first. Where it cannot be
   read, what was known stays. */
void kernel_names_renew(struct kernel_names **names, uint64_t *stamp, const char *path,
			const char *modules);

/* Which boot of the machine this is, in hex digits: the kernel's addresses hold for that alone. */
#define KERNEL_BOOT_SIZE 64
void kernel_names_boot(char out[KERNEL_BOOT_SIZE]);
/* The build-id of the kernel that runs, as hex into out[41]; "" where it does not say. */
void kernel_names_own_id(char out[41]);
