# SPDX-License-Identifier: Apache-2.0
# For the tests of what is live: a program whose functions have known shares, and a server of a page.
. "$TEST_DIR/lib.sh"

# ./shares SECONDS: of its time, three quarters in heavy and a quarter in light, below main; a second
# thread named "helper" only in aside, a third of the time.
make_shares()
{
	need cc gcc
	cat >shares.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline)) static void spin(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void heavy(void) { for (double end = now() + 0.03; now() < end;) spin(5000); sink++; }
__attribute__((noinline)) void light(void) { for (double end = now() + 0.01; now() < end;) spin(5000); sink++; }
__attribute__((noinline)) void aside(void) { spin(200000); usleep(2000); sink++; }
static void *help(void *unused)
{
	prctl(PR_SET_NAME, "helper");
	for (;;)
		aside();
	return unused;
}
int main(int argc, char **argv)
{
	pthread_t thread;
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
	pthread_create(&thread, NULL, help, NULL);
	while (time(NULL) < end) {
		heavy();
		light();
	}
	return 0;
}
END
	cc -O2 -g -pthread -o shares shares.c
}

# start_recording FILE SECONDS [OPTIONS]: its process in $recorder.
start_recording()
{
	local file=$1 seconds=$2
	shift 2
	"$CULPRIT" record -q "$@" -o "$file" -- ./shares "$seconds" >/dev/null 2>record.err &
	recorder=$!
	for _ in $(seq 300); do
		[ -z "$(cat /proc/$recorder/task/*/children 2>/dev/null)" ] || return 0
		sleep 0.1
	done
	fail "it does not record: $(cat record.err)"
}

# start_server ARGUMENTS: `culprit view --serve` with them; its address in $url, its process in $server.
start_server()
{
	: >serve.out # not that of another one, which is there until the new one has begun
	"$CULPRIT" view --serve --no-open "$@" >serve.out 2>serve.err &
	server=$!
	for _ in $(seq 600); do
		[ -s serve.out ] && break
		kill -0 $server 2>/dev/null || fail "the server has ended: $(cat serve.err)"
		sleep 0.1
	done
	url=$(sed -n '1s/ .*//p' serve.out)
	[ -n "$url" ] || fail "no address: $(cat serve.out serve.err)"
}
