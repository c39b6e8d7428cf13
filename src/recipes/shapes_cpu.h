/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is known by its shape on one CPU: internal to shapes. */
#include <stddef.h>
#include <stdint.h>

struct image;
struct isa;
struct rows;

struct shape_trampoline { /* ends with an empty one */
	const char *bytes;
	unsigned length;
};

extern const struct shape_trampoline trampolines_aarch64[], trampolines_x86_64[];

/* V8's builtins: where they call; and, last, what nothing else is known about. */
void shapes_add_v8(struct image *image, struct rows *rows);
void shapes_add_v8_last(struct image *image, struct rows *rows);

/* Code that GHC made of Haskell. */
void shapes_add_haskell(struct image *image, struct rows *rows);

/* The dynamic linker's lazy binding, and where a context of makecontext begins, in the code of one
   segment. */
void shapes_add_aarch64(struct image *image, const uint8_t *code, size_t size, uint64_t address,
			struct rows *rows);
void shapes_add_x86_64(struct image *image, const uint8_t *code, size_t size, uint64_t address,
		       struct rows *rows);

/* What leaves for another frame than its caller's: the end of libgcc's unwinder of exceptions,
   OCaml's raises. */
void shapes_add_throws(const struct isa *isa, const uint8_t *code, size_t size, uint64_t address,
		       struct rows *rows);

/* Where a thread begins that was not made by the C library. */
void shapes_add_threads(const struct isa *isa, const uint8_t *code, size_t size, uint64_t address,
			struct rows *rows);

/* Where a coroutine leaves for another. */
void shapes_add_switches(const struct isa *isa, const uint8_t *code, size_t size, uint64_t address,
			 struct rows *rows);
