/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The register that leads to a thread's bank. */
#include <stdint.h>

#if defined(__aarch64__)
#include "counter/cpu_aarch64.h"
#else
#include "counter/cpu_x86_64.h"
#endif
