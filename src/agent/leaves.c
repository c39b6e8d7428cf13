/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions before which the sentinel is taken out (see sentinel.h). They leave frames without returning from them,
 * or they look at return addresses. The replacements are in sentinel_CPU.S. They have no frame when the real
 * function begins: it sees its true caller. longjmp is in signals.c.
 *
 * Calls of the unwinder that we do not see, such as those of libc for cancellation, find the true address by the
 * description of the stubs (.eh_frame).
 */
#include "agent/sentinel.h"

#include <dlfcn.h>
#include <stddef.h>

#include "agent/sentinel_stubs.h"

#define NAME(name, number) [number] = #name,
static const char *const names[] = {LEAVES_EACH(NAME)};
#define LEAVES (sizeof names / sizeof names[0])
#define DLSYM (LEAVES - 1)

static void *_Atomic found[LEAVES];

/* A library that the program has loaded for itself alone (RTLD_LOCAL) calls us, but is not among the next ones. */
static void *find_unwinder(const char *name)
{
	static const char *const files[] = {"libgcc_s.so.1", "libunwind.so.1"};
	void *function = NULL;
	for (size_t i = 0; !function && i < sizeof files / sizeof files[0]; i++) {
		void *library = dlopen(files[i], RTLD_LAZY | RTLD_NOLOAD);
		function = library ? dlsym(library, name) : NULL;
	}
	return function;
}

/* dlsym is one of ours: the real one is found by its version. */
static void *find_dlsym(void)
{
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
	void *function = NULL;
	for (size_t i = 0; !function && i < sizeof versions / sizeof versions[0]; i++)
		function = dlvsym(RTLD_NEXT, names[DLSYM], versions[i]);
	return function;
}

static void *find_leave(uint64_t which)
{
	void *function = which == DLSYM ? find_dlsym() : dlsym(RTLD_NEXT, names[which]);
	if (!function && which != DLSYM)
		function = find_unwinder(names[which]);
	atomic_store_explicit(&found[which], function, memory_order_relaxed);
	return function;
}

void *leaves_begin(uint64_t which, uint64_t sp, uint64_t *link)
{
	sentinel_leave(sp, sentinel_see_through(*link));
	*link = sentinel_see_through(*link); /* it is in a register if the caller has jumped here */
	void *function = atomic_load_explicit(&found[which], memory_order_relaxed);
	return function ? function : find_leave(which);
}

/* Most of them are found early. The others are of libraries that are not there yet. */
__attribute__((constructor)) static void find_leaves(void)
{
	found[DLSYM] = find_dlsym();
	for (size_t i = 0; i < DLSYM; i++)
		found[i] = dlsym(RTLD_NEXT, names[i]);
	dlerror(); /* the program does not ask for our errors */
}
