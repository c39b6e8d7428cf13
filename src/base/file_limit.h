/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where files may not be as large as what we write (ulimit -f, also for shared memory), a signal ends who tries. The error that
   comes instead, where it is ignored, is enough of a sign. */

/* From now on, for this process; once is enough. */
void file_limit_ignore(void);
/* As it was: for a child, before exec. */
void file_limit_restore(void);
