/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this kernel and this user can sample. If not, the answer says what is missing and how to get
   it. */

#include "collect/kernel/kernel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/kernel/age.h"
#include "collect/kernel/off.h"

/* Inode of the initial PID namespace: PROC_PID_INIT_INO of the kernel. */
#define PID_NAMESPACE 4026531836ull

/* Where the reason goes if the answer is no. */
struct answer {
	char *why;
	size_t size;
};

static bool refuse(const struct answer *a, const char *text)
{
	snprintf(a->why, a->size, "%s", text);
	return false;
}

static bool is_locked_down(void)
{
	char text[128];
	FILE *file = fopen("/sys/kernel/security/lockdown", "re");
	bool locked = file && fgets(text, sizeof text, file) && strstr(text, "[confidentiality]");
	if (file)
		fclose(file);
	return locked;
}

/* Whether we are in a PID namespace of our own: the sampler only sees the numbers of the initial one. */
static bool is_in_container(void)
{
	char name[64];
	ssize_t length = readlink("/proc/self/ns/pid", name, sizeof name - 1);
	if (length <= 0)
		return true;
	name[length] = '\0';
	return strtoull(name + strcspn(name, "0123456789"), NULL, 10) != PID_NAMESPACE;
}

static bool has(const struct __user_cap_data_struct data[2], unsigned capability)
{
	return data[capability / 32].effective >> capability % 32 & 1;
}

/* Whether we have CAP_BPF and CAP_PERFMON. CAP_SYS_ADMIN includes both. */
static bool is_privileged(const struct answer *a)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	if (syscall(SYS_capget, &head, data) || has(data, CAP_SYS_ADMIN))
		return true;
	bool bpf = has(data, CAP_BPF), perfmon = has(data, CAP_PERFMON);
	if (bpf && perfmon)
		return true;
	const char *way = bpf || perfmon ? "run as root, or with that one, too"
					 : "run as root, or with these two";
	if (!geteuid()) /* it lacks what root has elsewhere */
		way = "add to what this container or unit may do, as by docker run --cap-add";
	snprintf(a->why, a->size,
		 "to sample from the kernel takes CAP_BPF and CAP_PERFMON, and %s missing: %s",
		 bpf || perfmon ? (bpf ? "CAP_PERFMON is" : "CAP_BPF is") : "both are", way);
	return false;
}

static bool takes_programs(const struct answer *a)
{
	if (kernel_takes_program(BPF_PROG_TYPE_PERF_EVENT, NULL))
		return true;
	snprintf(a->why, a->size,
		 "the kernel lets nobody load programs here (bpf: %s): run as root outside of "
		 "containers and sandboxes",
		 strerror(errno));
	return false;
}

bool kernel_can_sample(char *why, size_t size)
{
	const struct answer a = {why, size};
	*why = '\0';
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return refuse(
			&a,
			"the kernel does not describe itself (/sys/kernel/btf/vmlinux is not there), so "
			"it cannot be sampled from: boot one with CONFIG_DEBUG_INFO_BTF");
	if (is_in_container())
		return refuse(&a, "process numbers in this container are not the kernel's: run it "
				  "outside, or in one with the host's (--pid=host)");
	if (is_locked_down())
		return refuse(
			&a,
			"the kernel keeps its memory to itself (lockdown=confidentiality), so it "
			"cannot be sampled from: boot it with lockdown=integrity or without");
	return is_privileged(&a) && takes_programs(&a) && kernel_is_new_enough(why, size);
}

bool kernel_can_see_waits(char *why, size_t size)
{
	const struct answer a = {why, size};
	if (!kernel_can_sample(why, size))
		return false;
	return off_way()->kind != OFF_NO_WAY ||
	       refuse(&a,
		      "this kernel does not tell when a thread is back on a CPU: Linux 6.16 and later "
		      "do, and earlier ones that let root trace functions (fentry or kprobes)");
}
