/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the stack of a program begins: the code at its entry was called by nobody, whatever it does to
 * registers and stack.
 */
struct analysis;
struct image;
struct rows;

/* Makes roots of the procedure at the entry of a program, as far as nobody calls it: to be added before what
   the file or the code says of it. Libraries have none, whatever their header says. */
void roots_add(struct image *image, const struct analysis *analysis, struct rows *rows);
