/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the agent must know about the CPU that it runs on. sample.c, sandbox.c and start.c use it; cpu_NAME.h
 * defines it for each CPU:
 *
 *    CPU_HERE                 its struct unwind_cpu, a constant
 *    CPU_AUDIT                its number in filters of system calls
 *    cpu_registers()          the interrupted registers, by DWARF number; `room` may be used to store them
 *    cpu_pc()                 the interrupted PC
 *    cpu_flags()              the interrupted flags
 *    CPU_FOLLOW, CPU_GENERAL  its function of trail/trail.h, and how many registers that knows
 *    cpu_capture()            the PC and the registers of the calling function, as its unwind table has them
 *    cpu_is_after_call(), cpu_will_read(), cpu_signs(), cpu_has_shadow_stack()
 *                             for sentinel.c
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include "safe/syscall.h"
#include "unwind/cpu.h"

#if defined(__aarch64__)
#include "agent/cpu_aarch64.h"
#else
#include "agent/cpu_x86_64.h"
#endif
