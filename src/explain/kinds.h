/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What each CPU knows of the kinds of its instructions. */
#include <stddef.h>
#include <stdint.h>

#include "explain/frequency.h"

/* The kind of an instruction that is no jump and no call. */
enum frequency_kind kind_aarch64(const uint8_t *code, size_t size);
enum frequency_kind kind_x86_64(const uint8_t *code, size_t size);
