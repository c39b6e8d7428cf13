/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agent_path.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

/* An agent that wraps nothing would count nothing. */
static struct err *check_given(const char *name, const char *given)
{
	const char *slash = strrchr(given, '/');
	if (!strcmp(name, AGENT_USUAL) || !strcmp(slash ? slash + 1 : given, name))
		return NULL;
	return err_new("CULPRIT_AGENT: this recording needs %s, not %s", name, given);
}

static bool is_in(const char *directory, const char *folder, const char *name, char out[PATH_MAX])
{
	char path[3 * PATH_MAX];
	snprintf(path, sizeof path, "%s/%s/%s", directory, folder, name);
	return realpath(path, out) && !access(out, R_OK);
}

struct err *agent_path_find(const char *name, const char *libdir, char out[PATH_MAX])
{
	const char *given = getenv("CULPRIT_AGENT");
	if (given && *given) {
		if (!realpath(given, out) || access(out, R_OK))
			return err_errno("CULPRIT_AGENT: %s", given);
		return check_given(name, out);
	}
	char installed[PATH_MAX], self[PATH_MAX];
	snprintf(installed, sizeof installed, "../%s/culprit", libdir);
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	self[length > 0 ? length : 0] = 0;
	char *slash = strrchr(self, '/');
	if (slash)
		*slash = 0;
	if (is_in(self, "../agent", name, out) || is_in(self, "../counter", name, out) ||
	    is_in(self, installed, name, out))
		return NULL;
	return err_new(
		"%s is neither in %s/%s nor where the build has it: install culprit again, or set "
		"CULPRIT_AGENT to its path",
		name, self, installed);
}
