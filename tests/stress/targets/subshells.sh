#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Subshells, pipes, traps and jobs.
count=$((${1:-100} * 2))
sum=0
for ((i = 0; i < count; i++)); do
	sum=$((sum + $(echo $((i * 3)))))
	(exit $((i % 7))) || sum=$((sum + $?))
done
echo "sum $sum"
seq "$((count * 50))" | sort -rn | head -n 3
trap 'echo trapped' USR1
kill -USR1 $$
for i in 1 2 3; do
	(for ((k = 0; k < 20000; k++)); do :; done; exit "$i") &
done
status=0
for job in $(jobs -p); do
	wait "$job" || status=$((status + $?))
done
echo "jobs $status"
read -r first < <(yes | head -n 1000 | md5sum)
echo "$first"
exit 9
