/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Opens a file; the test fails where that does. */
#include "unit.h"

#include "base/err.h"
#include "image/image.h"

static inline struct image *open_image(const char *path)
{
	struct image *image;
	struct err *e = image_open(path, &image);
	if (e)
		fail_msg("%s", err_text(e));
	return image;
}
