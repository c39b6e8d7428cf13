/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * V8's own table of its builtins (the layout in its embedded blob), which stays after `strip`. Builtins are what
 * V8's compiler made when V8 was built; no unwind information tells where they begin.
 */
#include <stddef.h>
#include <stdint.h>

struct image;

#define V8TAB_EXPORTED "EmbeddedBlob" /* in names that V8 exports */
#define V8TAB_PADDING 0xccu           /* between builtins */
#define V8TAB_NUMBERED "Builtins_#"   /* and a number: what symbols call them then */

struct v8tab_builtin {
	uint64_t start, size;
};

/* By number; they ascend. 0: the image has none, or no memory is left. To be freed by the caller. */
size_t v8tab_read(struct image *image, struct v8tab_builtin **out);
