/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <sys/types.h>

#define USER_NAME_MAX 64
/* The name of a user, or the number; returns out. */
const char *user_name(char out[USER_NAME_MAX], uid_t user);
