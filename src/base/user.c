/* SPDX-License-Identifier: Apache-2.0 */
#include "base/user.h"

#include <pwd.h>
#include <stdio.h>

const char *user_name(char out[USER_NAME_MAX], uid_t user)
{
	const struct passwd *known = getpwuid(user);
	if (known)
		snprintf(out, USER_NAME_MAX, "%s", known->pw_name);
	else
		snprintf(out, USER_NAME_MAX, "%u", user);
	return out;
}
