/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/meant.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/nearest.h"
#include "base/path.h"
#include "harvest/probes.h"
#include "probe/names.h"

static bool is_meant(const struct probe_function *f, const char *text)
{
	const char *mark = strchr(text, '!');
	char *end;
	if (mark && mark > text) {
		size_t length = (size_t)(mark - text);
		const char *file = memchr(text, '/', length) ? f->module : path_file(f->module);
		if (strncmp(file, text, length) || (file[length] && file[length] != '.'))
			return false;
		text = mark + 1;
	}
	if (!strncmp(text, "0x", 2) && strtoull(text, &end, 16) == f->address && !*end)
		return true;
	return name_matches(f->name, text) != NAME_NONE;
}

bool probe_mark_meant(const struct probes *p, const char *text, bool *meant, struct buf *out)
{
	struct nearest nearest = {0};
	bool any = false;
	for (size_t i = 0; i < p->count; i++) {
		const struct probe_function *f = &p->functions[i];
		if (f->removed || f->state == PROBE_REFUSED)
			continue;
		nearest_try(&nearest, text, strlen(text), f->name);
		if (is_meant(f, text))
			any = meant[i] = true;
	}
	if (!any)
		buf_printf(out, "%s is not probed%s%s: culprit probe list shows what is\n", text,
			   nearest.name ? ", did you mean " : "", nearest.name ? nearest.name : "");
	return any;
}
