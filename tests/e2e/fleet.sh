# SPDX-License-Identifier: Apache-2.0
# For the tests of fleets: a ClickHouse server of our own on a port of its own, see fleet_start.
. "$TEST_DIR/db.sh"
need clickhouse-server clickhouse-server
need python3 python3
send_store=$BUILD/tests/store/send_store
fleet_folder=$PWD/server
secret='se&c"ret \ '"'x'"

# fleet_start: starts it, or starts it again with what it has; $url is its address. It ends with the test.
fleet_start()
{
	if [ ! -d "$fleet_folder" ]; then
		mkdir -p "$fleet_folder/data/tmp"
		fleet_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
		cat >"$fleet_folder/config.xml" <<-END
			<yandex>
			<logger><level>warning</level><log>$fleet_folder/log</log><errorlog>$fleet_folder/errors</errorlog></logger>
			<listen_host>127.0.0.1</listen_host>
			<http_port>$fleet_port</http_port>
			<path>$fleet_folder/data/</path>
			<tmp_path>$fleet_folder/data/tmp/</tmp_path>
			<mark_cache_size>67108864</mark_cache_size>
			<users_config>$fleet_folder/users.xml</users_config>
			<default_profile>default</default_profile>
			<default_database>default</default_database>
			</yandex>
		END
		cat >"$fleet_folder/users.xml" <<-END
			<yandex>
			<profiles><default></default><reading><readonly>1</readonly></reading></profiles>
			<users>
			<default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
			<host><password>se&amp;c"ret \\ 'x'</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></host>
			<reader><password>look</password><networks><ip>127.0.0.1</ip></networks><profile>reading</profile><quota>default</quota></reader>
			</users>
			<quotas><default></default></quotas>
			</yandex>
		END
	fi
	url=http://127.0.0.1:$fleet_port/fleet
	clickhouse-server --config-file="$fleet_folder/config.xml" >"$fleet_folder/out" 2>&1 &
	fleet=$!
	trap fleet_end EXIT
	for _ in $(seq 900); do
		fleet_up && return
		kill -0 $fleet 2>/dev/null || { cat "$fleet_folder/out" "$fleet_folder/errors"; fail "the server ended"; }
		sleep 0.1
	done
	fail "the server does not begin"
}

fleet_up()
{
	python3 - "$fleet_port" <<-'END' 2>/dev/null
		import sys, urllib.request
		urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/", timeout=5).read()
	END
}

fleet_kill()
{
	kill -KILL $fleet 2>/dev/null || true
	wait $fleet 2>/dev/null || true
}

fleet_end()
{
	fleet_kill
	[ -z "${one:-}" ] || kill -KILL $one $two 2>/dev/null || true
	[ -z "${daemon:-}" ] || kill -KILL $daemon 2>/dev/null || true
}

# fleet_sql STATEMENT
fleet_sql()
{
	python3 - "$fleet_port" "$1" <<-'END'
		import sys, urllib.request
		sys.stdout.write(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/", sys.argv[2].encode(), timeout=60).read().decode())
	END
}

# same PART OPTIONS...: db PART says the same of file db as of the server; their names and sizes aside.
same()
{
	local part=$1
	shift
	run 0 "$CULPRIT" db "$part" --db "$file" "$@"
	sed -E "s,\"database\":\"[^\"]*\"(\,\"bytes\":[0-9]+)?,,; 1s,^[^ ]*: ([0-9.]+ .?B\, )?,," out >of_file
	run 0 "$CULPRIT" db "$part" --db "$url" --host "$host" "$@"
	sed -E "s,\"database\":\"[^\"]*\"(\,\"bytes\":[0-9]+)?,,; 1s,^[^ ]*: ([0-9.]+ .?B\, )?,," out >of_server
	cmp -s of_file of_server || { diff of_file of_server | head -n 20; fail "db $part $*: not the same"; }
}

# ledger_holds FILE: what the server has of this host is what the file has: sums by epoch, in rows of counts
# and of paths, and losses.
ledger_holds()
{
	"$CULPRIT" db list --db "$1" --json >of_file
	"$CULPRIT" db list --db "$url" --host "$2" --json >of_server
	"$CULPRIT" db show --db "$url" --host "$2" --json >shown
	"$CULPRIT" db export --db "$url" --host "$2" -q -o fetched.prof
	"$CULPRIT" report --json --by=module --view=flat fetched.prof >reported
	python3 - <<-'END' || fail "the server has not what the file has"
		import json
		def load(name):
		    return json.load(open(name))
		mine, theirs = load("of_file")["epochs"], load("of_server")["epochs"]
		def sums(epochs):
		    return [(e["start"], e["end"], e["samples"], [(v["samples"], v["walked"]) for v in e["events"]],
		             e["lost"], e["unknown"], e["daemon"]) for e in epochs]
		print([e["samples"] for e in mine], [e["samples"] for e in theirs])
		assert sums(mine) == sums(theirs), (sums(mine), sums(theirs))
		assert sum(e["samples"] for e in load("shown")["events"]) == sum(e["samples"] for e in mine)
		walked = sum(v["walked"] for e in mine for v in e["events"][:1])
		assert load("reported")["summary"]["samples"] == walked, (load("reported")["summary"], walked)
	END
}
