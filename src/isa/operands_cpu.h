/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What operands.c needs of each CPU: internal to isa/. */
#include <stddef.h>
#include <stdint.h>

struct operands;

/* From the text alone, which says all of it. */
void operands_aarch64(const char *text, struct operands *out);
void operands_x86_64(const uint8_t *code, size_t size, struct operands *out);
