/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* System calls without libc, for the target side. They do not set errno, are no cancellation points, and
   use no function that the program (or the agent) may have replaced. They return the kernel's result: a
   negative errno such as -EINTR is an error. */
#include <sys/syscall.h>

#if defined(__aarch64__)
#include "safe/syscall_aarch64.h"
#else
#include "safe/syscall_x86_64.h"
#endif

#define SAFE_SYSCALL(number, a, b, c, d) \
	safe_syscall6(number, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
