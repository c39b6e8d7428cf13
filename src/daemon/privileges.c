/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/privileges.h"

#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "collect/events.h"

#define BIT(capability) (UINT64_C(1) << (capability))

/* As in systemd/culprit.service.in. Those without a text are asked for by who samples. */
static const struct {
	int capability;
	const char *name, *what;
} needed[] = {
	{CAP_BPF, "CAP_BPF", NULL},
	{CAP_PERFMON, "CAP_PERFMON", NULL},
	{CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "code of other users' processes"},
	{CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "names in files that others may not read"},
	{CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", "names in libraries that were deleted"},
	{CAP_SYSLOG, "CAP_SYSLOG", "the kernel's functions"},
};
#define NEEDED (sizeof needed / sizeof *needed)

static uint64_t needed_bits(void)
{
	/* Kernels of some distributors (Debian's) want it for events then, instead of CAP_PERFMON. */
	uint64_t bits = event_paranoid() > 2 ? BIT(CAP_SYS_ADMIN) : 0;
	for (size_t i = 0; i < NEEDED; i++)
		bits |= BIT(needed[i].capability);
	return bits;
}

/* What programs that it would start could get. Where that may not be changed, it stays: they could not
   use it either, since they get no new privileges. */
static void bound(uint64_t bits)
{
	for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (!(bits >> i & 1))
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
}

static void list_missing(uint64_t have, char *out, size_t size)
{
	struct buf text = {0};
	for (size_t i = 0; i < NEEDED; i++)
		if (needed[i].what && !(have & BIT(needed[i].capability)))
			buf_printf(&text, "%s%s (%s)", text.size ? ", " : "", needed[i].what,
				   needed[i].name);
	snprintf(out, size, "%s", buf_text(&text));
	buf_free(&text);
}

struct err *privileges_drop(char *missing, size_t size)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	uint64_t bits = needed_bits();
	bound(bits);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capget, &head, data))
		return err_errno("cannot give up privileges");
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(bits >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	list_missing((uint64_t)data[1].permitted << 32 | data[0].permitted, missing, size);
	return syscall(SYS_capset, &head, data) ? err_errno("cannot give up privileges") : NULL;
}
