/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The call-frame instructions of a function (DWARF 5, section 6.4.2) for a copy of it: the rules stay as they are, and
 * hold from where the copy has the instruction that they held from in the function.
 */
struct buf;
struct copy_piece;
struct err;
struct frames;
struct frames_common;

/* Appends the instructions of a CIE. */
struct err *frame_program_write_common(const struct frames *frames,
				       const struct frames_common *common, struct buf *out);

/* Appends those of the entry of a piece, for a CIE with code alignment 1. An error names what cannot be said for a
   copy. */
struct err *frame_program_write(const struct frames *frames, const struct frames_common *common,
				const struct copy_piece *piece, struct buf *out);
