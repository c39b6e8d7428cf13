/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files whose name comes from somebody else. A path below /proc/PID/root is what that process sees there: links in it, also
 * absolute ones, do not lead out of its root.
 */
struct stat;

/* Opens it for reading. To open a device, a pipe or a terminal can do something, so it is looked at first: of what is no
   regular file the descriptor says what it is (fstat) and gives nothing to read. `flags`: O_NOFOLLOW or 0. -1 with errno. */
int foreign_open(const char *path, int flags);
/* As stat. */
int foreign_stat(const char *path, struct stat *st);
