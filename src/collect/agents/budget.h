/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Bounds the time that probes take which programs have put in themselves (patches.h). Each second the probes' own work is
   compared with the programs' time. If it is too much, calls of the function whose probes took most are only counted from
   then on. agents.c uses it. */
struct agents;

/* Judges the last second, if one is over. */
void budget_tick(struct agents *agents);
