/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `culprit diff --by=path`: what changed between the paths of profiles that `culprit paths` made. */

#define DIFF_PATHS_LIMIT 10u /* paths of a function, by default */

struct comparing;
struct comparing_files;
struct path_diff_options;

/* Returns the exit status. Of `comparing`, only options are used: limit, full_names, json, no_pager. */
int diff_paths(struct comparing *comparing, const struct comparing_files *files,
	       const struct path_diff_options *options);
