/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel/inner_end.h"

#include "base/err.h"
#include "collect/kernel/absences.h"
#include "collect/kernel/frames.h"
#include "collect/kernel/io.h"
#include "collect/kernel/probes.h"
#include "harvest/kernel_frames.h"

struct err *inner_end_add(struct kernel *k, const struct kernel_inner_end *end)
{
	bool off = end->event == KERNEL_EVENT_OFF;
	uint32_t node = end->node;
	uint32_t skip = off ? absences_skip(k, end->kernel_frames, end->kernel_frame_count) : 0;
	struct err *e = NULL;
	if (end->event == KERNEL_EVENT_IO)
		return io_count(k, &end->io, end->thread, node, end->end);
	if (end->event == KERNEL_EVENT_PROBE)
		return probes_count(k, &end->io, end->thread, node, end->end);
	if (end->kernel_frame_count || !node)
		e = (off ? kernel_frames_add_waiting
			 : kernel_frames_add)(k->recording, end->process, end->kernel_frames + skip,
					      end->kernel_frame_count - skip, &node);
	if (e)
		return e;
	return off ? absences_count(k, end->process, end->thread, node, end->absence, end->end,
				    end->time)
		   : frames_count(k, end->thread, node, end->event, end->end, end->time, 1);
}
