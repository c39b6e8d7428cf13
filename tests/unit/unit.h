/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What cmocka wants before it, and cmocka. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
