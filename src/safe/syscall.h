/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* System calls without libc: no errno, no cancellation, nothing that the program (or we) may have
   replaced. They return what the kernel does: -EINTR and so on. */
#include <sys/syscall.h>

#if defined(__aarch64__)
#include "safe/syscall_aarch64.h"
#else
#include "safe/syscall_x86_64.h"
#endif

#define SAFE_SYSCALL(number, a, b, c, d) \
	safe_syscall6(number, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
