/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where procedures are, by what a file says about itself; and how well the
 * starts that the analysis found match that.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cfi_range;
struct err;
struct image;
struct rows;
struct symbols;

struct procedures {
	struct cfi_range *ranges; /* ascending by start, one per start */
	size_t count;
};

/* Symbols with a size, once per address; no stubs of imported functions, and no parts (".cold")
   of procedures. */
struct err *procedures_from_symbols(const struct image *image, const struct symbols *symbols,
				    struct procedures *out);

/* Where there are no symbols: entries of CFI that begin as procedures do, with nothing on the
   stack (`cfi`: the finished rows). Parts of procedures that were moved away mostly do not. */
struct err *procedures_from_cfi(struct image *image, struct image *debug, const struct rows *cfi,
				struct procedures *out);
void procedures_free(struct procedures *procedures);

struct procedures_match {
	uint64_t found, missed;
	uint64_t benign;    /* starts that are none, but between procedures or in parts of them */
	uint64_t malignant; /* starts that are none, in the middle of a procedure */
};

/* Compares starts of the analysis with the truth. Stubs and places that `known` (may be NULL) has
   a symbol without size for count as neither right nor wrong. */
void procedures_compare(const struct image *image, const struct procedures *truth,
			const struct symbols *known, const uint64_t *starts, size_t count,
			struct procedures_match *out);

/* Is this address in a section of stubs (.plt, .plt.sec, …)? */
bool procedures_is_stub(const struct image *image, uint64_t address);
