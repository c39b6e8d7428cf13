/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What CFI and the analysis of the code say about the same instructions: how
 * much each covers, where they agree, and the causes where they do not.
 */
#include <stddef.h>
#include <stdint.h>
#include "unwind/recipe.h"

struct analysis;
struct err;
struct isa;
struct rows;

enum compare_cause {
	COMPARE_AGREE,
	COMPARE_EPILOGUE,   /* the CFI is provably wrong before a return, */
	COMPARE_LATE,       /* or after a change of the stack: see recipes/corrections.h */
	COMPARE_CLOBBER,    /* or says that FP is unchanged where the code has overwritten it */
	COMPARE_ROOT,       /* the CFI ends the stack here; the code, not yet or never */
	COMPARE_UNREACHED,  /* code with CFI that the analysis never came to */
	COMPARE_NO_STATE,   /* the analysis came to it, but lost the frame */
	COMPARE_CFA,        /* they differ in the CFA, */
	COMPARE_RA,         /* in where the return address is, */
	COMPARE_FP,         /* in where the caller's frame pointer is */
	COMPARE_EXPRESSION, /* CFI that no recipe can say */
	COMPARE_CFI_ABSENT, /* the analysis came to code without CFI: not compared */
	COMPARE_CAUSES,
};

/* Neighbouring instructions with the same cause. */
struct compare_run {
	uint64_t address;
	uint64_t instructions;
	enum compare_cause cause;
	struct recipe cfi, code; /* at the first of them */
};

struct compare {
	uint64_t code_bytes;     /* of executable sections, with padding */
	uint64_t cfi_bytes;      /* of these, described by CFI */
	uint64_t analysis_bytes; /* of these, with a recipe from the code */
	uint64_t instructions;   /* that were reached or have CFI; no padding */
	uint64_t compared;       /* of these, with CFI: agree + everything but COMPARE_CFI_ABSENT */
	uint64_t count[COMPARE_CAUSES];
	struct compare_run *runs; /* the first ones of each cause but COMPARE_AGREE, ascending */
	size_t run_count;
};

/* Compares finished rows of CFI with the analysis; keeps up to `list` runs per cause. */
struct err *compare_sources(const struct analysis *analysis, const struct rows *cfi, size_t list,
			    struct compare *out);
void compare_free(struct compare *compare);

/* "cfa", "return-address", …: as in reports. */
const char *compare_cause_name(enum compare_cause cause);

/* Disagreements in which the analysis is right or no worse: the CFI is provably wrong, or
   COMPARE_ROOT. */
uint64_t compare_explained(const struct compare *compare);

/* A recipe in words, "CFA=sp+32 ra=[CFA-8] fp=same", into `out`; returns out. */
#define COMPARE_WORDS_MAX 192
const char *compare_words(const struct isa *isa, const struct recipe *recipe,
			  char out[COMPARE_WORDS_MAX]);
