/* SPDX-License-Identifier: Apache-2.0 */
#include "base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWNERS 0600
#define MAY_BE_KEPT 0666

int newfile_create(const char *beside, const char *place)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(beside, flags, OWNERS);
	struct stat st;
	if (fd < 0 && errno == EEXIST && !unlink(beside))
		fd = open(beside, flags, OWNERS);
	if (fd >= 0 && !stat(place, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		fchmod(fd, st.st_mode & MAY_BE_KEPT);
	return fd;
}
