/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A program that runs one instruction at a time: here, by ptrace (target_ptrace.c), or for the
 * other CPU in an emulator that speaks the remote protocol of gdb (target_gdb.c).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "isa/insn.h"
#include "process/space.h"
#include "unwind/cpu.h"

struct err;

struct target_state {
	uint64_t pc;
	uint64_t registers[CPU_REGISTERS]; /* by DWARF number */
	uint64_t flags, thread;            /* as in trail/trail.h; 0: not known */
};

enum target_event {
	TARGET_STEPPED, /* an instruction, a free run, or the delivery of a signal is over */
	TARGET_SIGNAL,  /* nothing was executed: a signal will be delivered with the next step */
	TARGET_ENDED,
};

struct target {
	const struct target_ops *ops;
	const struct isa *isa;
	const struct unwind_cpu *cpu;
	const char *emulator; /* of the gdb backend: program, and where its libraries are */
	const char *root;
	pid_t pid;
	uint64_t guest_base; /* address in the process `pid` = address in the program + this */
	int signal;          /* to be delivered when it goes on, or 0 */
	bool delivered;      /* the last step delivered one, to a handler or to nobody */
	struct target_state now;
	int connection;
	char *socket_path;
	char *input; /* bytes that the emulator sent and nobody took yet */
	size_t input_size;
};

struct target_ops {
	/* Starts it and stops it before its first instruction. */
	struct err *(*start)(struct target *target, char **argv);
	enum target_event (*step)(struct target *target);
	/* Lets it run for a while. */
	enum target_event (*run)(struct target *target, unsigned microseconds);
	/* Makes `space` (zeroed, or from the last call) what is mapped now. */
	struct err *(*refresh)(struct target *target, enum recipes_mode mode, struct space *space);
	void (*end)(struct target *target);
};

extern const struct target_ops target_ptrace, target_gdb;

/* Memory of the program: how many bytes could be read. */
size_t target_read(const struct target *target, uint64_t address, void *out, size_t size);
bool target_word(const struct target *target, uint64_t address, uint64_t *out);
