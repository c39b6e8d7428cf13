/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/event_pfm.h"

#include "base/err.h"
#include "harvest/recording.h"

#include <perfmon/pfmlib_perf_event.h>

struct err *event_pfm_encode(const char *name, struct recording_event *out)
{
	struct perf_event_attr attr = {.size = sizeof attr};
	pfm_perf_encode_arg_t arg = {.attr = &attr, .size = sizeof arg, .cpu = -1};
	pfm_err_t status = pfm_initialize();
	if (status == PFM_SUCCESS)
		status = pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT_EXT,
						   &arg);
	if (status != PFM_SUCCESS)
		return err_new("%s", pfm_strerror(status));
	out->type = attr.type;
	out->config = attr.config;
	out->config1 = attr.config1;
	out->config2 = attr.config2;
	out->user_only = attr.exclude_kernel;
	return NULL;
}
