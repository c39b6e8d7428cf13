/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes profile_read understand db:FILE@SPAN, db:FILE and db:SPAN. */
void db_profiles(void);
