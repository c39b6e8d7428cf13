/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu_id.h"
#include "profile/profile.h"

void profile_set_origin(struct profile *p)
{
	struct utsname system;
	char cpu[CPU_ID_MAX];
	char *directory = getcwd(NULL, 0);
	if (!uname(&system)) {
		p->host = profile_string(p, system.nodename);
		p->kernel = profile_string(p, system.release);
		p->machine = profile_string(p, system.machine);
	}
	cpu_id(cpu);
	p->cpu = profile_string(p, cpu);
	p->directory = profile_string(p, directory ? directory : "");
	free(directory);
	p->start_time = (uint64_t)time(NULL);
}
