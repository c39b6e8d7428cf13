# SPDX-License-Identifier: Apache-2.0
# For the tests of view: a recorded program with threads, loops, inlined functions and recursion, as
# view.prof.
. "$TEST_DIR/report.sh"

record_threads()
{
	need g++ g++
	cat >threads.cc <<'END'
#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>
static volatile unsigned long sink;
static unsigned long fill(int n)
{
	std::map<std::string, int> all;
	unsigned long sum = 0;
	for (int i = 0; i < n; i++)
		all["key" + std::to_string(i * 7919 % n)] = i;
	for (auto &one : all)
		for (char c : one.first)
			sum += c;
	return sum;
}
static unsigned long order(int n)
{
	std::vector<double> values(n);
	unsigned x = 1;
	for (auto &value : values)
		value = x = x * 1664525u + 1013904223u;
	std::sort(values.begin(), values.end());
	return values[n / 2];
}
__attribute__((noinline)) static unsigned long fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
static void work(int which)
{
	for (int k = 0; k < 5; k++)
		sink += fill(10000 * (which + 1)) + order(100000) + fib(30);
}
int main()
{
	std::thread other(work, 1);
	work(0);
	other.join();
}
END
	g++ -O2 -g -pthread -o threads threads.cc
	"$CULPRIT" record -q -F 5000 -e cpu-clock -e page-faults -o view.prof -- ./threads ||
		fail "cannot record"
}

# Two builds of a program: in the new one solve takes twice as long, extra is new, the rest is elsewhere in the
# file but the same. record_builds COUNT makes old1.prof, new1.prof, old2.prof, …
record_builds()
{
	need g++ g++
	cat >builds.cc <<'END'
#include <map>
#include <string>
#include <thread>
static volatile unsigned long sink;
#ifdef CHANGED
__attribute__((noinline)) static unsigned long extra(unsigned long n)
{
	for (int i = 0; i < 10000000; i++)
		n = n * 31 + i;
	return n;
}
#endif
template <typename T> __attribute__((noinline)) static T fib(T n)
{
	return n < 2 ? n : fib<T>(n - 1) + fib<T>(n - 2);
}
__attribute__((noinline)) static unsigned long fill(int n)
{
	std::map<std::string, int> all;
	unsigned long sum = 0;
	for (int i = 0; i < n; i++)
		all["key" + std::to_string(i * 7919 % n)] = i;
	for (auto &one : all)
		for (char c : one.first)
			sum += c;
	return sum;
}
__attribute__((noinline)) static unsigned long solve(int rounds)
{
	unsigned long x = 1;
	for (int r = 0; r < rounds; r++)
		for (int i = 0; i < 10000000; i++)
			x = x * 1664525u + 1013904223u + (x >> 7);
	return x;
}
static void work(int which)
{
	for (int k = 0; k < 5; k++) {
		sink += fill(10000 * (which + 1)) + fib<unsigned long>(30);
#ifdef CHANGED
		sink += solve(4) + extra(which);
#else
		sink += solve(2);
#endif
	}
}
int main()
{
	std::thread other(work, 1);
	work(0);
	other.join();
}
END
	mkdir -p old new
	g++ -O2 -g -pthread -o old/app builds.cc
	g++ -O2 -g -pthread -DCHANGED -o new/app builds.cc
	for i in $(seq "$1"); do
		for side in old new; do
			"$CULPRIT" record -q --no-kernel -F 4000 -e cpu-clock -e page-faults -o $side$i.prof -- $side/app ||
				fail "cannot record"
		done
	done
}
