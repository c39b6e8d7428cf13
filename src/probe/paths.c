/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/paths.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/modules.h"
#include "analyze/shorten.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "profile/profile.h"

#define FRAMES_MAX 12 /* of a path in one line */

char *path_frame(const struct profile *profile, struct modules *modules, uint32_t node)
{
	const struct profile_node *n = &profile->nodes[node];
	struct modules_function f;
	struct buf out = {0};
	if (n->kind != PROFILE_CALL && n->kind != PROFILE_EXACT)
		return NULL;
	modules_function(modules, n->module, n->address, n->kind == PROFILE_EXACT, &f);
	if (f.name)
		name_shorten(f.name, &out);
	else
		buf_printf(&out, "%s+0x%llx", path_file(profile->modules[n->module].path),
			   (unsigned long long)n->address);
	return buf_take(&out);
}

void path_print(const struct profile *profile, struct modules *modules, uint32_t node,
		struct buf *out)
{
	unsigned frames = 0;
	bool partial = false;
	for (; node; node = profile->nodes[node].parent) {
		partial = profile->nodes[node].kind == PROFILE_PARTIAL;
		char *name = path_frame(profile, modules, node);
		if (!name)
			continue;
		if (++frames > FRAMES_MAX) {
			buf_puts(out, " < …");
			free(name);
			return;
		}
		buf_puts(out, frames > 1 ? " < " : "");
		buf_put_clean(out, name, strlen(name));
		free(name);
	}
	if (partial)
		buf_puts(out, " < ?");
}

char *path_caller(const struct profile *profile, struct modules *modules, uint32_t node)
{
	char *name = NULL;
	while (node && !name && (node = profile->nodes[node].parent))
		name = path_frame(profile, modules, node);
	return name;
}

void path_json(const struct profile *profile, struct modules *modules, uint32_t node,
	       struct json *j)
{
	json_key(j, "frames");
	json_begin_array(j);
	for (; node; node = profile->nodes[node].parent) {
		char *name = path_frame(profile, modules, node);
		if (name)
			json_string(j, name);
		free(name);
	}
	json_end_array(j);
}
