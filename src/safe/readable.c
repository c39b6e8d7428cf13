/* SPDX-License-Identifier: Apache-2.0 */
#include "safe/readable.h"

#include <errno.h>

#include "safe/syscall.h"

/* The kernel reads the new mask before it checks `how`. So with an invalid `how` the call changes nothing,
   but the error tells whether the mask could be read. */
bool readable_word(uint64_t address)
{
	return SAFE_SYSCALL(SYS_rt_sigprocmask, -1, address, 0, sizeof(uint64_t)) == -EINVAL;
}
