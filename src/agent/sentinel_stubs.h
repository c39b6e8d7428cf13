/* SPDX-License-Identifier: Apache-2.0 */
/* What sentinel_aarch64.S, sentinel_x86_64.S and leaves.c share. */

/* clang-format off */

/* The functions before which the sentinel is taken out, by number: leaves.c says why. dlsym is the last one. */
#define LEAVES_EACH(leave) \
	leave(_Unwind_RaiseException, 0) \
	leave(_Unwind_ForcedUnwind, 1) \
	leave(_Unwind_Resume, 2) \
	leave(_Unwind_Resume_or_Rethrow, 3) \
	leave(_Unwind_Backtrace, 4) \
	leave(backtrace, 5) \
	leave(pthread_exit, 6) \
	leave(thrd_exit, 7) \
	leave(swapcontext, 8) \
	leave(setcontext, 9) \
	leave(dlopen, 10) \
	leave(dlmopen, 11) \
	leave(dlsym, 12)

#ifdef __ASSEMBLER__
#define SENTINELS 4096
#define SENTINEL_SIZE 32
/* No instructions, on either CPU: who reads the stubs as code must not come through to what follows them. */
#define SENTINEL_SIGN 0x1e160e06
#define LEAVE_BY(name, number) leave_by name, number;

	.hidden sentinels, sentinel_returned, leaves_begin
	.globl sentinel_stubs
	.hidden sentinel_stubs

	/* How unwinders find the caller of a stub. It is a signal frame, as its CFA is that of the next one:
	   unwinders tell frames apart by that. So the caller stands right on an instruction, that of the call:
	   at the true address - 1. `reg` has the return address. It is read from the stack, and may be the
	   true address by now. `push` is the operation of an expression that pushes this register. */
	.macro describe_stub reg, push
	.cfi_signal_frame
	.cfi_escape 0x16, \reg, 31, \push, 0 /* word: */
	.cfi_escape 0x12, 0x09, 0xf0, 0x1a   /* stub = word & -16 */
	.cfi_escape 0x12, 0x23, 12, 0x94, 4  /* if what is at stub + 12 */
	.cfi_escape 0x0c, 0x06, 0x0e, 0x16, 0x1e, 0x2e, 0x28, 8, 0 /* is SENTINEL_SIGN: */
	.cfi_escape 0x23, 8, 0x12, 0x94, 4, 0x22 /* what is at stub + 8 leads to the data */
	.cfi_escape 0x06, 0x16               /* with the true word in front */
	.cfi_escape 0x13, 0x31, 0x1c         /* - 1 */
	.endm
#endif
