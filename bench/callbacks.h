/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* See callbacks.cc. Calls `end` once, at the end of a stack of `levels` nested rounds. */
#ifdef __cplusplus
extern "C"
#endif
	void
	callbacks_run(int levels, void (*end)(void *context), void *context);
