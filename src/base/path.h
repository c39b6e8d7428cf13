/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <string.h>

/* The last part of a path: the file's own name. Of one that ends in a slash, all of it; of NULL, NULL. */
static inline const char *path_file(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	return slash && slash[1] ? slash + 1 : path;
}
