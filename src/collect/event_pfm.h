/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names of the CPU's own events, as its manuals have them, by libpfm4. events.c uses it. It is a file of
   its own, because libpfm4 brings its own copy of the kernel's header. */
struct err;
struct recording_event;

/* Sets type, config and user_only. Returns an error if the name means nothing on this CPU. */
struct err *event_pfm_encode(const char *name, struct recording_event *out);
