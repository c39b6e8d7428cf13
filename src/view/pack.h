/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Everything that the viewer shows, as bytes:
 *
 *     4 bytes     size of the header, little-endian
 *     header      JSON: what was recorded, notes, texts, sources, and "columns":
 *                 [[name, how many numbers, how many bytes]…]
 *     columns     in that order; numbers in LEB128: 7 bits a byte, the low ones first, the
 *                 high bit set where more follow
 *
 * Columns, all unsigned. Texts are indices into "strings", where 0 is "":
 *
 *     scope.*     by scope: kind (enum scope_kind), name and short (texts), module, file (text),
 *                 line, last, flags (1 nameless, 2 guessed), function and inlined (of a loop), low
 *                 and high half of the address
 *     node.*      by node, in preorder: up (how many levels above the node before it its parent
 *                 is: 0 is that node itself), scope, call_file (text) and call_line of inlined
 *                 functions, call (the line from which it is called; 0: several, or not known)
 *     call.*      samples of nodes that are called from several lines (view/calls.h): node, line,
 *                 and for each metric call.0, …
 *     row.*       samples: node (distance from that of the row before), thread, line, reason (why the
 *                 thread waited: an index into "reasons"), and for each metric a column row.0, row.1, …
 *     wake.*      who ended the waits of a row: row (distance from that of the wake before), metric,
 *                 waker (enum profile_waker), samples, and of these while the waker waited: waited
 *     line.*      file (text), line, and for each metric total.0, … : samples in the line and in all
 *                 that it called. Line 0 is not known
 *     code.*      functions whose instructions are here: module, low and high half of the address
 *     insn.*      of those, by function: function, address (distance from that of the one before in
 *                 the same function), text, file (text), line, intel (the text in Intel's syntax; 0:
 *                 the CPU has but one), gap (1: some before it are left out),
 *                 and for each metric insn.0, …
 *     flow.*, block.*, edge.*, cost.*, blame.*, verdict.*
 *                 what is explained of some functions (view/explained.h); causes are indices into "causes"
 *     paths.*, path.*
 *                 functions whose paths were counted (view/counted.h)
 *     span.*      the time line (view/timeline.h): row, start, duration, samples,
 *                 metric, waker
 */
#include <stdbool.h>

struct attribution;
struct buf;
struct comparison;
struct err;
struct modules;
struct profile;
struct program;
struct ranking;
struct sources;

struct pack_input {
	const struct profile *profile;
	struct modules *modules;
	struct attribution *attribution; /* by function, with all details */
	struct sources *sources;         /* NULL: none are wanted */
	const char *notes;               /* lines about reliability */
	const char *title, *version;
	const struct comparison *comparison; /* NULL: nothing is compared from the start */
	const struct program *program;       /* functions that are explained; NULL: none are */
	const struct ranking
		*counted; /* functions whose paths were counted; NULL: there are none */
};

struct err *pack_make(const struct pack_input *input, struct buf *out);
