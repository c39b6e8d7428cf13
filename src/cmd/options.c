/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/options.h"

#include <string.h>

#include "analyze/choose.h"
#include "base/err.h"
#include "cmd/cmd.h"

int options_profile(const char *command, const char *path)
{
	if (!choose_is_missing(path))
		return -1;
	return cmd_fail(command, err_new("there is no %s%s: make one by culprit record -- COMMAND",
					 path, strcmp(path, DEFAULT_FILE) ? "" : " here"));
}

int options_pattern(const char *command, const char *option, const char *text, regex_t *out)
{
	char why[128];
	int failed = text ? regcomp(out, text, REG_EXTENDED | REG_NOSUB) : 0;
	if (!failed)
		return -1;
	regerror(failed, out, why, sizeof why);
	return cmd_misused(command, "--%s='%s' is no regular expression: %s", option, text, why);
}

int options_path_maps(const char *command, const struct arg_list *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		if (!strchr(maps->values[i], '='))
			return cmd_misused(command, "--path-map takes FROM=TO, not '%s'",
					   maps->values[i]);
	return -1;
}
