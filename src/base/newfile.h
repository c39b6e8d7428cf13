/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Creates a file beside its place, which it is put in when it is whole. It is the owner's alone, unless there is a
   file already that others may read: a profile tells a lot. Exclusively, so that nobody can have put a link there; a
   leftover of that name is removed first. -1 with errno. */
int newfile_create(const char *beside, const char *place);
