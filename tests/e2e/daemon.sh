# SPDX-License-Identifier: Apache-2.0
# For the tests of the daemon: two programs whose functions are known, and how to run it.
. "$TEST_DIR/lib.sh"
need cc gcc
db=$PWD/db
socket=$PWD/control
export CULPRIT_DB=$db

# two_programs: starts them as $one and $two; they end with the test. In the first, often takes three
# times what seldom takes; the second reads in the kernel.
two_programs()
{
	cat >one.c <<-'END'
		static volatile unsigned long sink;
		__attribute__((noinline)) static void spin(unsigned long n) { while (n--) sink += n; }
		__attribute__((noinline)) void seldom(unsigned long n) { spin(n); sink++; }
		__attribute__((noinline)) void often(unsigned long n) { spin(3 * n); sink++; }
		int main(void)
		{
			for (;;) {
				seldom(100000);
				often(100000);
			}
		}
	END
	cat >two.c <<-'END'
		#include <fcntl.h>
		#include <unistd.h>
		static char block[1 << 16];
		__attribute__((noinline)) int reading(int fd) { return read(fd, block, sizeof block) > 0; }
		__attribute__((noinline)) int deeper(int n, int fd) { return n ? deeper(n - 1, fd) + 1 : reading(fd); }
		int main(void)
		{
			int fd = open("/dev/zero", O_RDONLY), sum = 0;
			for (;;)
				sum += deeper(20, fd);
			return sum;
		}
	END
	cc -O2 -fomit-frame-pointer one.c -o one
	cc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls two.c -o two
	./one & one=$!
	./two & two=$!
	trap 'kill -KILL $one $two 2>/dev/null || true' EXIT
}

# start OPTIONS...: the daemon as $daemon, once it samples; what it says is in log.
start()
{
	: >log
	"$CULPRIT" daemon --db "$db" --socket "$socket" --interval 1 --log debug "$@" 2>log &
	daemon=$!
	for _ in $(seq 600); do
		grep -q 'epoch [0-9]*:' log && return
		kill -0 $daemon 2>/dev/null || { cat log; fail "the daemon ended"; }
		sleep 0.1
	done
	cat log
	fail "the daemon does not begin"
}

# stop: asks it to end, which is to be a good end.
stop()
{
	kill -TERM $daemon
	wait $daemon || { cat log; fail "stopped: status $?"; }
}

# wait_for PATTERN SECONDS: until the daemon says so.
wait_for()
{
	for _ in $(seq $(($2 * 10))); do
		grep -qE "$1" log && return
		sleep 0.1
	done
	cat log
	fail "the daemon does not say: $1"
}

# Samples that the daemon says it drained.
drained()
{
	sed -n 's/^culprit daemon: \([0-9]*\) samples of .* processes in .*/\1/p' "${1:-log}" |
		awk '{ sum += $1 } END { print sum + 0 }'
}

# Where the kernel or the user does not allow it, the tests are skipped.
can_run()
{
	"$CULPRIT" record -q -a -d 0.1 -o can.prof 2>can.err || skip "$(cat can.err)"
	rm -f can.prof can.err
}
