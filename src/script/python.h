/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The calls of Python functions in a process that runs CPython 3.11 to 3.15. The interpreter has a list of its
 * threads, each of these a list of its calls, and each call a code object with name, file and lines:
 *
 *    _PyRuntime -> interpreter -> thread -> frame -> frame -> ...
 *                                             |
 *                                             v
 *                                        code object -> name, file, table of lines
 *
 * All of that is memory of another process, which may change while it is read: everything is checked, and what
 * makes no sense is left out.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "safe/python.h"

struct image;

/* Reads memory of the process; false if it cannot read all of it. */
struct python_memory {
	bool (*read)(void *context, uint64_t address, void *out, size_t size);
	void *context;
};

/* Memory of which there are copies (struct python_piece), one after another. They are checked. */
struct python_pieces {
	const char *bytes;
	uint64_t size;
};
bool python_read_pieces(void *pieces, uint64_t address, void *out, size_t size);

struct python_file { /* an executable or library that holds the interpreter; addresses are its own */
	uint64_t runtime;   /* of _PyRuntime */
	uint64_t code_type; /* of PyCode_Type */
	uint32_t version;   /* 0x030b: 3.11 */
};

/* Whether the file holds an interpreter. The version may be one that is not understood. */
bool python_in_file(struct image *image, struct python_file *out);
bool python_is_understood(const struct python_file *file);

/* `bias`: address in the process = address in the file + bias. False if it is not understood. */
bool python_open(const struct python_file *file, uint64_t bias, const struct python_memory *memory,
		 struct python *out);

/* Calls `see` with each thread, until that returns false. */
void python_threads(const struct python *python, const struct python_memory *memory,
		    bool (*see)(void *context, uint64_t thread), void *context);
/* Fills `calls` with those of a thread; returns how many there are. If there are more than `max`, the outermost are
   missing. */
size_t python_calls(const struct python *python, const struct python_memory *memory,
		    uint64_t thread, struct python_call *calls, size_t max);

struct python_function {
	char *name; /* with that of its class: "Reader.next" */
	char *file;
	uint32_t line;  /* where it begins */
	uint64_t start; /* address of its first instruction */
	uint8_t *lines; /* the table of lines, see python_line */
	size_t lines_size;
};

/* Reads a code object. False if it is none, or memory is gone. */
bool python_function_read(const struct python *python, const struct python_memory *memory,
			  uint64_t code, struct python_function *out);
void python_function_free(struct python_function *function);
/* The line of an instruction; 0: it has none. */
uint32_t python_line(const struct python_function *function, uint64_t instruction);
