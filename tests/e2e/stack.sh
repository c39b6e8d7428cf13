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

finish()
{
	kill -9 "$pid"
	wait "$pid" 2>/dev/null || true
}
