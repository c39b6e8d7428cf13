# SPDX-License-Identifier: Apache-2.0
# For end-to-end tests: `. "$TEST_DIR/lib.sh"`. A check that does not hold ends the test.
set -eu

fail()
{
	echo "$*"
	exit 1
}

skip()
{
	echo "$*"
	exit 77
}

# need TOOL PACKAGE: skips the test where a tool is missing.
need()
{
	command -v "$1" >/dev/null || skip "$1 is not installed (package $2)"
}

# Python that reads trees of any depth: another program on the machine may have a stack of many thousand frames.
deep_python3()
{
	(
		ulimit -S -s unlimited 2>/dev/null || true
		PYTHONPATH=$TEST_DIR/python${PYTHONPATH:+:$PYTHONPATH} exec python3 "$@"
	)
}

# run STATUS COMMAND...: runs it, output in the files out and err, and checks its exit status.
run()
{
	local wanted=$1 status=0
	shift
	"$@" >out 2>err || status=$?
	[ "$status" -eq "$wanted" ] && return
	echo "$*: exit status $status, not $wanted"
	head -n 20 out err
	exit 1
}

# steadily COMMAND...: runs it, output in the files said and err. Exit status 3 says that the machine itself stood still
# meanwhile: then it is run again.
steadily()
{
	local status
	for _ in 1 2 3; do
		status=0
		"$@" >said 2>err || status=$?
		[ "$status" -ne 3 ] && break
	done
	[ "$status" -ne 3 ] || skip "this machine stands still again and again"
	[ "$status" -eq 0 ] && [ ! -s err ] || fail "$*: exit status $status: $(cat err)"
}

# stolen: the milliseconds that this machine's host has given to others so far. The CPU time of a program is without them; clocks go on.
stolen()
{
	awk '$1 == "cpu" { print 10 * $9 }' /proc/stat
}

# has FILE PATTERN: the extended regular expression matches a line.
has()
{
	grep -qE -- "$2" "$1" && return
	echo "$1 has no line like: $2"
	head -n 40 "$1"
	exit 1
}

has_not()
{
	! grep -E -- "$2" "$1" || fail "$1 has a line like: $2"
}

# lines FILE COUNT
lines()
{
	[ "$(wc -l <"$1")" -eq "$2" ] && return
	echo "$1 has not $2 lines:"
	head -n 40 "$1"
	exit 1
}

# json FILE EXPRESSION: a Python expression over the document `d` is true.
json()
{
	deep_python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))' "$1" "$2" && return
	echo "$1: not true: $2"
	head -c 2000 "$1"
	exit 1
}

# background COMMAND...: starts it, its process in $pid; it ends with the test.
background()
{
	"$@" &
	pid=$!
}

# clean COMMAND...: what it writes is text, and nothing else; the word CANARY, which tests hide in files of root's, is not in it.
clean()
{
	"$CULPRIT" "$@" >out 2>&1 || true
	python3 - "$1" <<'END' || fail "$*"
import re, sys
text = open("out", "rb").read().decode("utf-8").replace("\r\n", "\n") # or it is no text
bad = set(re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]", text))
assert not bad, bad
assert len(text) > 20, text
assert "CANARY" not in text
END
}
