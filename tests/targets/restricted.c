/* SPDX-License-Identifier: Apache-2.0 */
/* restricted strict|kill|most|raw: restricts its system calls, to next to none, to those of a list that ends it for any other (`raw`: by the
   system call itself), or to all but one. It works for a while before that, and for three times as long after it, when it may
   not ask for the time any more. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CALL(name, then) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, then)

__attribute__((noinline)) void work(unsigned long turns)
{
	for (volatile unsigned long n = 0; n < turns; n++)
		;
}

/* For a tenth of a second; returns how many turns that were. */
static unsigned long work_shortly(void)
{
	const unsigned long piece = 100000;
	unsigned long turns = 0;
	struct timespec start, now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	do {
		work(piece);
		turns += piece;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec <
		 100000000L);
	return turns;
}

__attribute__((noinline)) void work_restricted(unsigned long turns)
{
	work(turns);
}

int main(int argc, char **argv)
{
	struct sock_filter list[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		CALL(write, SECCOMP_RET_ALLOW),
		CALL(exit, SECCOMP_RET_ALLOW),
		CALL(exit_group, SECCOMP_RET_ALLOW),
		CALL(rt_sigreturn, SECCOMP_RET_ALLOW),
		CALL(rt_sigprocmask, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_filter most[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		CALL(ptrace, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog of_list = {sizeof list / sizeof *list, list},
			  of_most = {sizeof most / sizeof *most, most};
	const char *how = argc > 1 ? argv[1] : "";
	int failed = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	unsigned long turns = work_shortly();
	if (!strcmp(how, "strict"))
		failed |= prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	else if (!strcmp(how, "kill"))
		failed |= prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &of_list);
	else if (!strcmp(how, "raw"))
		failed |= (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &of_list);
	else
		failed |= prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &of_most);
	if (failed)
		return 1;
	work_restricted(3 * turns);
	if (write(1, "done\n", 5) != 5)
		return 1;
	syscall(SYS_exit, 0);
	return 0;
}
