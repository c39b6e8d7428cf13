/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The CPU's own events by the names of its manuals, from libpfm4. In a file of its own, because
   libpfm4 brings its own copy of the kernel's header. */
struct err;
struct recording_event;

/* Sets type, config and user_only; an error where the name means nothing on this CPU. */
struct err *event_pfm_encode(const char *name, struct recording_event *out);
