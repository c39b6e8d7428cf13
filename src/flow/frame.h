/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is known about a frame at one instruction: which registers and stack
 * words hold the values that lead to the caller. Values are symbolic,
 * relative to the CFA (see unwind/recipe.h), so the same state holds for every
 * call of the procedure. Instructions transform states; recipes are read off.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct insn;
struct isa;
struct recipe;

enum frame_kind {
	FRAME_UNKNOWN,
	FRAME_CFA,     /* CFA + offset */
	FRAME_ALIGNED, /* base + offset, where base is SP right after it was rounded down or moved
			  by an unknown amount */
	FRAME_FP,      /* what the caller had in FP */
	FRAME_RA,      /* the return address */
	FRAME_EXTRA,   /* what the caller had in the extra callee-saved register */
	FRAME_CONST,   /* the number `offset` */
	FRAME_WORD,    /* what the stack word at CFA + offset held where a blank state began */
	FRAME_FP_WORD, /* the same for the word at FP + offset */
};

struct frame_value {
	uint32_t kind; /* enum frame_kind */
	int32_t offset;
};

/* A stack word that holds something worth knowing. */
struct frame_slot {
	struct frame_value at; /* FRAME_CFA or FRAME_ALIGNED */
	struct frame_value holds;
};

#define FRAME_REGS 5
#define FRAME_SLOTS 8

struct frame_state {
	struct frame_value sp, fp, link, extra;
	struct {
		uint32_t reg;
		struct frame_value value;
	} other[FRAME_REGS]; /* further registers that hold a known value; first other_count */
	struct frame_slot slots[FRAME_SLOTS];
	uint16_t other_count, slot_count;
	uint8_t root;    /* FP was set to zero by hand: an outermost frame */
	uint8_t guessed; /* derived from a heuristic, not from the procedure's entry */
	uint8_t tracing; /* began as a blank state */
	uint8_t unused;
};

/* The state right after a call to the procedure. */
void frame_entry(const struct isa *isa, struct frame_state *out);

/* The state for finding out about code whose frame is not known: FRAME_CFA is relative to SP
   here, FRAME_ALIGNED to FP here, and words that are loaded are named by where they were. */
void frame_blank(struct frame_state *out);

/* Applies one instruction (a call: what holds after its return). Returns false where nothing changed. */
bool frame_apply(const struct isa *isa, struct frame_state *state, const struct insn *insn);

/* Constants matter where they are the size of a frame that no instruction can hold. */
static inline bool frame_keeps_constant(int64_t n)
{
	return n >= 4096 && n <= INT32_MAX && n % 8 == 0;
}

/* Narrows `state` to what also holds in `other`, where two ways meet. Returns false where
   nothing changed. *conflict: SP differs, so at least one of the two cannot be true. */
bool frame_meet(struct frame_state *state, const struct frame_state *other, bool *conflict);

/* SP was found equal to another register. */
void frame_equal_sp(const struct isa *isa, struct frame_state *state, unsigned reg);

/* Is the return address known to be anywhere? */
bool frame_has_return(const struct frame_state *state);

/* As at the entry: nothing on the stack, caller's values in their registers. */
bool frame_is_entry(const struct isa *isa, const struct frame_state *state);

/* Forgets words below SP: what is left of a frame belongs to nobody in the next procedure. */
void frame_leave(struct frame_state *state);

/* The value of a register. */
struct frame_value frame_register(const struct isa *isa, const struct frame_state *state,
				  unsigned reg);

/* The stack word that holds a value of this kind; FRAME_UNKNOWN where none does. */
struct frame_value frame_saved(const struct frame_state *state, uint32_t kind);

/* The recipe that leads from this state to the caller; RECIPE_NONE where it does not. */
void frame_recipe(const struct isa *isa, const struct frame_state *state, struct recipe *out);

/* Would `recipe` (from elsewhere) find the same caller in this state? A recipe that this state
   neither confirms nor refutes is not confirmed. */
enum frame_verdict {
	FRAME_AGREES,
	FRAME_NO_STATE, /* the state gives no recipe */
	FRAME_OTHER_CFA,
	FRAME_OTHER_RA,
	FRAME_OTHER_FP,
	FRAME_NOT_SAYABLE, /* the recipe uses what states do not follow */
};
enum frame_verdict frame_confirms(const struct isa *isa, const struct frame_state *state,
				  const struct recipe *recipe);
