/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/privileges.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

#define BIT(capability) (UINT64_C(1) << (capability))

/* As in systemd/culprit.service.in, where each is said to be needed for what. */
static const uint64_t needed = BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_SYS_PTRACE) |
			       BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_CHECKPOINT_RESTORE) |
			       BIT(CAP_SYSLOG);

/* What programs that it would start could get. Where that may not be changed, it stays: they could not
   use it either, since they get no new privileges. */
static void bound(void)
{
	for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (!(needed >> i & 1))
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
}

struct err *privileges_drop(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	bound();
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capget, &head, data))
		return err_errno("cannot give up privileges");
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(needed >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, data) ? err_errno("cannot give up privileges") : NULL;
}
