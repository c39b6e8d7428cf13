/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All DWARF that belongs to an image: of itself or of its separate debug file,
 * of what dwz moved into a common file, of .dwo files and .dwp packages; and
 * which unit describes an address. Opened quickly; read when first asked, and
 * then by several threads at once.
 */
#include "image/dwarf_points.h"
#include "image/dwarf_unit.h"

struct dwarf_module;

/* `debug` may be NULL. Both must outlive the result. NULL: no memory. */
struct dwarf_module *dwarf_module_open(struct image *image, struct image *debug);
void dwarf_module_close(struct dwarf_module *module); /* NULL is fine */

/* Its units; an empty file where there is no .debug_info. */
struct dwarf_file *dwarf_module_file(struct dwarf_module *module);

/* From address to the unit's number. */
const struct dwarf_points *dwarf_module_points(struct dwarf_module *module);

/* Where the image has code. */
void dwarf_module_code(const struct dwarf_module *module, uint64_t *start, uint64_t *end);

/* Where the DIEs of a unit with code are: it itself, or the unit in a .dwo or .dwp file. NULL: that
   file is missing. */
struct dwarf_unit *dwarf_module_full_unit(struct dwarf_module *module, struct dwarf_unit *unit);

struct dwarf_note *dwarf_module_note(struct dwarf_module *module);
