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

int options_function(const struct args *args, const char **path, const char **function)
{
	*path = DEFAULT_FILE;
	*function = NULL;
	if (args->count > 2)
		return cmd_misused(args->command, "one function of one profile at a time");
	if (args->count == 2) {
		*path = args->operands[0];
		*function = args->operands[1];
	} else if (args->count == 1) {
		const char *only = args->operands[0], *dot = strrchr(only, '.');
		bool is_file = choose_is_profile(only) || (dot && !strcmp(dot, ".prof"));
		*(is_file ? path : function) = only;
	}
	if (*function && !**function)
		return cmd_misused(args->command, "the name of the function is empty");
	return -1;
}
