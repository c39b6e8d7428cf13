/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One machine instruction in the terms that the rest of the tool thinks in:
 * where control goes, and what happens to registers and stack slots that a
 * frame is made of. Nothing here allocates; a decoder is a pure function.
 *
 * Registers are numbered as in DWARF for the CPU (x86-64: rax 0, rdx 1, rcx 2,
 * rbx 3, rsi 4, rdi 5, rbp 6, rsp 7, r8-r15; aarch64: x0-x30, sp 31).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_kind {
	INSN_OTHER,         /* falls through, no control flow */
	INSN_NOP,           /* does nothing: padding */
	INSN_CALL,          /* direct call of `target` */
	INSN_CALL_INDIRECT, /* call through a register or memory */
	INSN_JUMP,          /* unconditional direct jump to `target` */
	INSN_JUMP_INDIRECT, /* jump through a register or memory */
	INSN_BRANCH,        /* conditional jump to `target`, or falls through */
	INSN_RETURN,
	INSN_TRAP, /* does not fall through: ud2, hlt, int3, udf, brk */
	INSN_SYSCALL,
	INSN_BAD, /* bytes that are no instruction; length is the CPU's smallest */
};

/* What an instruction does to the values a frame is made of, in order. */
enum effect_op {
	EFFECT_CONST,   /* dst = imm */
	EFFECT_MOVE,    /* dst = src + imm */
	EFFECT_ADD,     /* dst = src + src2 */
	EFFECT_SUB,     /* dst = src - src2 */
	EFFECT_ALIGN,   /* dst = src & imm */
	EFFECT_LOAD,    /* dst = 64 bits at [src + imm] */
	EFFECT_STORE,   /* 64 bits at [dst + imm] = src */
	EFFECT_COMPARE, /* SP (dst) is compared with src */
	EFFECT_SIGN, /* dst is signed or authenticated in place (pointer authentication): value kept */
	EFFECT_INSERT, /* dst = dst with the 16 bits at bit `src2` replaced by imm */
};

struct effect {
	uint8_t op;
	uint8_t dst;
	uint8_t src;
	uint8_t src2;
	int64_t imm;
};

#define INSN_MAX_EFFECTS 4
#define INSN_NO_REG 0xff

struct insn {
	uint64_t address;
	uint64_t target; /* direct control flow; or the address of the memory slot of an
	                        indirect jump or call through a fixed address; else 0 */
	uint64_t refers; /* an address the instruction computes from the PC (lea, adr, adrp,
	                        literal load), else 0 */
	uint32_t writes; /* registers written other than by `effects`: their values are lost.
	                        What a call or return itself does to sp is not among them */
	uint8_t length;
	uint8_t kind; /* enum insn_kind */
	uint8_t reg;  /* register of an indirect jump or call, of a return (x30), or of a
	                        compare-and-branch; else INSN_NO_REG */
	uint8_t base; /* register that the address of its memory operand hangs on, else INSN_NO_REG */
	uint8_t effect_count;
	struct effect effects[INSN_MAX_EFFECTS];
};

/* How an indirect jump finds where a switch statement goes on: entry number i, read from
   `table + i * entry_size`, stands for the address `base + (entry << shift)`. */
struct jump_table {
	uint64_t table;
	uint64_t base;      /* 0 with entries of 8 bytes: they are the addresses themselves */
	uint64_t count;     /* entries; 0: no bound was seen */
	uint8_t entry_size; /* 1, 2, 4, 8 */
	uint8_t shift;
	bool is_signed;
	bool exact; /* the index was compared with the bound. Else `count` is only what the
	                       width of the index allows, and the table may be shorter */
};

/* Code that runs from its first byte to its last without jumping away. */
struct code_run {
	const uint8_t *code;
	size_t size;
	uint64_t address;
	bool meets; /* it can be come to by other ways: small numbers may be others there */
};

/* A CPU. Nothing outside isa/ and unwind/cpu_*.c knows more about it. */
struct isa {
	const char *name;       /* "x86_64", "aarch64" */
	uint16_t elf_machine;   /* EM_X86_64, EM_AARCH64 */
	uint8_t register_count; /* 16, 32 */
	uint8_t sp, fp;
	uint8_t link;            /* link register, or INSN_NO_REG */
	uint8_t extra;           /* a callee-saved register that some frames hang on: rbx, x19 */
	uint8_t insn_min;        /* smallest length and alignment of an instruction: 1, 4 */
	uint8_t procedure_align; /* where compilers let procedures begin, mostly: 16, 4 */
	uint8_t probe_size; /* register that holds the size of the frame while a helper is called to
	                            touch its pages, and that survives the call: rax; or INSN_NO_REG */
	const char *system_call; /* the bytes of one */
	uint8_t system_call_length;
	uint8_t red_zone;       /* bytes below SP that code may use: 128; 8, where Go keeps FP */
	uint8_t call_pushes;    /* bytes a call puts on the stack: 8, 0 */
	uint32_t call_clobbers; /* registers whose value a call may change */
	uint32_t
		kept; /* registers that are the caller's at the entry of a procedure: it saves them, or leaves
	                      them alone; without FP */

	/* Decodes the instruction at `code` (at most `size` bytes), that runs at `address`.
	   Never reads past size, never fails: bad bytes give INSN_BAD. */
	void (*decode)(const uint8_t *code, size_t size, uint64_t address, struct insn *out);

	/* Could a procedure obviously begin here? (push %rbp; sub $n,%rsp; endbr64; stp x29,x30,[sp,-n]!;
	   sub sp,sp,#n; paciasp; bti c …) */
	bool (*is_prologue)(const uint8_t *code, size_t size);

	/* Recognises the table of the indirect jump that ends the last of `runs`, which follow each
	   other: a run that another one follows elsewhere ends in the jump, branch or indirect jump
	   that goes there.
	   False where the code before the jump does not tell. */
	bool (*find_jump_table)(const struct code_run *runs, size_t count, struct jump_table *out);

	/* Calls `each` with the addresses that code computes from the PC, in one quick pass. A few may
	   be none, and some may be missing. */
	void (*find_references)(const uint8_t *code, size_t size, uint64_t address,
				void (*each)(void *context, uint64_t to), void *context);
};

extern const struct isa isa_x86_64, isa_aarch64;

/* The CPU of an ELF machine number, or NULL where it is not one of ours. */
const struct isa *isa_for_machine(uint16_t elf_machine);
