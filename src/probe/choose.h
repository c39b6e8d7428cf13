/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From what people write to functions and places of probes. cmd/probe.c uses it. */
#include <stdbool.h>

struct err;
struct probe_modules;
struct probes;

/* Adds the functions that `text` names:
 *
 *    NAME          a symbol, or a name of C++ or Rust: whole, without its parameters, or its last parts
 *    PATTERN       all whose symbol or name fits, as file names fit in a shell
 *    0xADDRESS     in a running process its address in memory; else that in the program's file
 *    FILE:LINE     the function that begins on this line of a source file
 *    MODULE!…      one of these in a file, by its path, its name, or its name up to ".so"
 *
 * Returns an error if there is none (with the nearest name), or if a name has several (with all of them). */
struct err *probe_choose(struct probe_modules *modules, const char *text, struct probes *out);
/* Adds what tells of exceptions. */
struct err *probe_mark_exceptions(struct probe_modules *modules, struct probes *out);
