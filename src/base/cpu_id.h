/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which CPU this is, in few words that other machines understand. */
#include <stddef.h>

#define CPU_ID_MAX 80

/* "0x41:0xd40:r1p1" (implementer, part, revision) or "GenuineIntel:6:85:7:0x5003604" (vendor, family, model,
   stepping, microcode), as /proc/cpuinfo says of the first CPU; "" where it says nothing. Where a virtual machine names a
   model that has not the features it says there are, it is the oldest one with these. */
void cpu_id(char out[CPU_ID_MAX]);
/* The same from a text like /proc/cpuinfo. */
void cpu_id_parse(const char *text, char out[CPU_ID_MAX]);
