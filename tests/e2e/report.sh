# SPDX-License-Identifier: Apache-2.0
# For the tests of report: profiles made from a description, see tests/report/make_profile.c.
. "$TEST_DIR/lib.sh"
make_profile=$BUILD/tests/report/make_profile
targets=$SOURCE_ROOT/tests/targets

# profile FILE: of the description on stdin.
profile()
{
	"$make_profile" "$1" || fail "cannot make $1"
}

# The beginning of most descriptions: two metrics, one module with names, two threads.
preamble()
{
	cat <<-'END'
		command ./app --fast
		hz 1000
		seconds 2
		metric cpu-clock ns 1000000
		metric page-faults faults 1
		module jit - [made]
		name 1 0x1000 0x100 main
		name 1 0x1100 0x100 solve(int)
		name 1 0x1200 0x100 inner
		name 1 0x1300 0x100 wait
		process 10 -1 app
		thread 0 10 app
		thread 0 11 worker
	END
}

# address BINARY FUNCTION: where it begins.
address()
{
	echo 0x"$(nm "$1" | awk -v f="$2" '$3 == f { print $1 }')"
}

build_id()
{
	readelf -n "$1" | sed -n 's/.*Build ID: //p'
}
