/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_limit.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction before;
static bool ignored;

static void ignore(void)
{
	const struct sigaction action = {.sa_handler = SIG_IGN};
	ignored = !sigaction(SIGXFSZ, &action, &before);
}

void file_limit_ignore(void)
{
	pthread_once(&once, ignore);
}

void file_limit_restore(void)
{
	if (ignored)
		sigaction(SIGXFSZ, &before, NULL);
}
