/* SPDX-License-Identifier: Apache-2.0 */
/* backtrace() of glibc: the unwinder of libgcc. */
#include "methods.h"

#include <dlfcn.h>

/* Asked of libc by name: libunwind has a function of the same name. */
static int (*libc_backtrace)(void **frames, int max);

static bool prepare(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	libc_backtrace = libc ? (int (*)(void **, int))dlsym(libc, "backtrace") : NULL;
	return libc_backtrace;
}

static __attribute__((noinline)) size_t walk(uintptr_t *frames)
{
	int n = libc_backtrace((void **)frames, FRAMES_MAX);
	__asm__ volatile("" : : : "memory");
	return n > 0 ? (size_t)n : 0;
}

const struct method method_glibc = {"backtrace", "glibc and libgcc", prepare, walk};
