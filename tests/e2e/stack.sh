# SPDX-License-Identifier: Apache-2.0
# For the tests of stack: programs that say "ready" when they are where the test wants them.
. "$TEST_DIR/lib.sh"
targets=$SOURCE_ROOT/tests/targets

# start COMMAND...: runs it until it says "ready"; its process in $pid.
start()
{
	local word
	rm -f said
	mkfifo said
	"$@" >said &
	pid=$!
	read -r word <said && [ "$word" = ready ] || fail "$* is not ready"
}

# asleep: until all its threads wait. It says "ready" a moment before it does.
asleep()
{
	for _ in $(seq 300); do
		cat /proc/"$pid"/task/*/stat | awk '$3 == "R" || $3 == "D" { busy = 1 } END { exit busy }' && return
		sleep 0.1
	done
	fail "$pid does not stand still"
}

finish()
{
	kill -9 "$pid"
	wait "$pid" 2>/dev/null || true
}
