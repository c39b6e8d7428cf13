/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest/kernel_frames.h"

#include "base/err.h"
#include "cct/cct.h"
#include "harvest/harvest.h"
#include "harvest/names.h"
#include "harvest/recording.h"
#include "process/kernel_names.h"

#define LIST "/proc/kallsyms"

void kernel_frames_open(struct recording *r)
{
	r->kernel_frames = kernel_names_shown(LIST);
}

void kernel_frames_close(struct recording *r)
{
	kernel_names_close(r->kernel_names);
	r->kernel_names = NULL;
}

const struct kernel_names *kernel_frames_names(struct recording *r)
{
	if (r->kernel_frames && !r->kernel_names)
		err_free(kernel_names_open(LIST, &r->kernel_names));
	return r->kernel_names;
}

void kernel_frames_name(struct recording *r)
{
	if (!r->harvest.kernel || !kernel_frames_names(r))
		return;
	/* Modules of the kernel come and go. */
	kernel_names_renew(&r->kernel_names, &r->kernel_stamp, LIST, "/proc/modules");
	names_of_kernel(&r->harvest, r->kernel_names);
}

/* `calling`: from this frame on, counted from 1, they have made calls. */
static struct err *add(struct recording *r, struct process *p, const uint64_t *addresses,
		       uint32_t count, uint32_t calling, uint32_t *node)
{
	struct err *e = NULL;
	if (!r->kernel_frames || !count)
		return harvest_add_child(r, &r->harvest, p, *node, cct_key(false, CCT_KERNEL, 0),
					 node);
	for (uint32_t i = count; !e && i; i--)
		e = harvest_add_child(r, &r->harvest, p, *node,
				      cct_key(i >= calling, CCT_KERNEL, addresses[i - 1]), node);
	return e;
}

struct err *kernel_frames_add(struct recording *r, struct process *p, const uint64_t *addresses,
			      uint32_t count, uint32_t *node)
{
	return add(r, p, addresses, count, 2, node);
}

struct err *kernel_frames_add_waiting(struct recording *r, struct process *p,
				      const uint64_t *addresses, uint32_t count, uint32_t *node)
{
	return add(r, p, addresses, count, 1, node);
}
