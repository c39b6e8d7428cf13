/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Units that were compiled with -gsplit-dwarf: the linked file has skeletons,
 * the rest is in .dwo files where the compiler left them, or in a .dwp package
 * beside the program. One thread at a time.
 */
struct dwarf_note;
struct dwarf_split;
struct dwarf_unit;

/* Packages are looked for beside these two files (which may be the same). NULL: no memory. */
struct dwarf_split *dwarf_split_new(const char *program, const char *debug,
				    struct dwarf_note *note);
void dwarf_split_free(struct dwarf_split *split); /* NULL is fine */

/* The unit that belongs to a skeleton, owned by `split`; NULL: not found (noted). */
struct dwarf_unit *dwarf_split_find(struct dwarf_split *split, struct dwarf_unit *skeleton);
