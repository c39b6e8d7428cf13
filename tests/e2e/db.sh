# SPDX-License-Identifier: Apache-2.0
# For the tests of db: databases that are filled from recordings, see tests/store/fill_store.c.
. "$TEST_DIR/report.sh"
fill_store=$BUILD/tests/store/fill_store
export TZ=UTC
start=1794700800 # 2026-11-15 00:00 in UTC

# fill OPTIONS... DATABASE PROFILE...: prints nothing but errors.
fill()
{
	"$fill_store" --start $start "$@" >ledger || fail "cannot fill: $*"
}

# Two metrics, two processes; names are in the profile.
two_programs()
{
	preamble
	cat <<-'END'
		process 20 -1 other
		thread 1 20 other
		path 0 0 600 1:0x1010 1:0x1120 1:0x1230
		path 0 0 300 1:0x1010 1:0x1120
		path 2 0 100 1:0x1010 1:0x1310
		path 0 1 7 1:0x1010 1:0x1230
		path 2 1 21 1:0x1010 1:0x1310
	END
}
