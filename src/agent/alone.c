/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/alone.h"

#include <dlfcn.h>
#include <stddef.h>

const char *alone_told;

void alone_start(void)
{
	alone_told = dlsym(RTLD_DEFAULT, "__libc_single_threaded"); /* since glibc 2.32 */
}
