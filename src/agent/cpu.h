/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the handler must know about the CPU that it runs on, in cpu_NAME.h:
 *
 *    CPU_HERE                 its struct unwind_cpu, a constant
 *    CPU_AUDIT                what filters of system calls call it
 *    cpu_registers()          the interrupted ones by DWARF number; `room` may be used for them
 *    cpu_pc()                 where it was interrupted
 */
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "unwind/cpu.h"

#if defined(__aarch64__)
#include "agent/cpu_aarch64.h"
#else
#include "agent/cpu_x86_64.h"
#endif
