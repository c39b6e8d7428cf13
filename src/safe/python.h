/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/* Where CPython keeps the calls of a thread: offsets of fields, in bytes. script/python.h finds that
   out; the agent and the sampler in the kernel (collect/kernel/bpf/) read by it, too. */
#include <stdint.h>

struct python_layout {
	uint32_t runtime_interpreter; /* of the runtime: its first interpreter */
	uint32_t interpreter_next;
	uint32_t interpreter_thread; /* its first thread */
	uint32_t thread_next;
	uint32_t thread_ident; /* what pthread_self() says in it */
	/* In 3.11, the C function that runs Python's functions has a record on its stack. Records are
	   a list, and each has the innermost frame of those that this call of the function runs.
	   From 3.12 on, all frames are one list, and a frame on the C stack ends those of one call.
	   In 3.12, a record has the innermost frame; from 3.13 on, the thread has it. */
	uint32_t by_record;                     /* 3.11: a list of records */
	uint32_t has_record;                    /* 3.11, 3.12: the thread has a record */
	uint32_t thread_calls;                  /* the innermost record, or the innermost frame */
	uint32_t record_frame, record_previous; /* of a record */
	uint32_t frame_code, frame_previous, frame_instruction;
	uint32_t frame_mark; /* a byte that says whether the frame ends those of one call */
	uint32_t mark_last;  /* it does if it is this */
};

struct python {                      /* an interpreter in a process */
	uint64_t runtime, code_type; /* addresses of _PyRuntime and PyCode_Type */
	struct python_layout layout;
	/* of code objects */
	uint32_t code_file, code_name, code_lines, code_line, code_start;
	/* of str objects: where ASCII text is, and other text */
	uint32_t text_size, text_wide;
};

/* Fields that all versions have at the same place. */
#define PYTHON_TYPE 8u        /* of an object */
#define PYTHON_LENGTH 16u     /* of a str or bytes object */
#define PYTHON_TEXT_STATE 32u /* of a str object */
#define PYTHON_BYTES 32u      /* of a bytes object: what it holds */
#define PYTHON_TEXT_HEAD 80u  /* more than what is before the text */
#define PYTHON_UNIT 2u        /* bytes of an instruction */

/* Words of a name, from its length on, by which functions are told apart: its length, its hash, flags,
   and the first characters. The hash is left out: it is computed when it is first needed. */
#define PYTHON_NAME_WORDS 8
#define PYTHON_NAME_HASH 1

/* A call, innermost first. Behind those that one call of the C function runs is one without code. */
struct python_call {
	uint64_t code; /* the code object; 0: there is none */
	/* Its address; without code: an address in the part of the stack that the C function has. */
	uint64_t instruction;
	/* Tells the code object from one that had its place before; 0: not known. */
	uint64_t identity;
};

/* A piece of the process's memory, as a copy. With those of a code object, of its name, its file and
   its table of lines, all about a function can be read when the process has no such function any more. */
struct python_piece {
	uint64_t address;
	uint64_t size; /* of what follows */
	uint8_t bytes[];
};
