/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a walk ends. In a header of its own, because the sampler in the kernel walks, too. */

enum walk_end {
	WALK_ON,         /* there is a caller; the walk stands on it */
	WALK_COMPLETE,   /* this frame is a root: nobody called it */
	WALK_NO_MODULE,  /* the PC is in no known module */
	WALK_NO_RECIPE,  /* the module's table says nothing about it */
	WALK_COMPLEX,    /* it is described by an expression that recipes cannot say */
	WALK_BAD_MEMORY, /* a word of the stack cannot be read */
	WALK_BAD_FRAME,  /* SP would not move up, or a needed register is not known */
	WALK_TOO_DEEP,   /* the caller's own limit */
	WALK_NO_STACK,   /* the code was not known yet, and not all of the stack was kept */
	WALK_COUNTED,    /* nobody walked: of a sample only its place was counted */
};
