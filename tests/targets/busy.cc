/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads with inlined functions, templates, direct and mutual recursion, and page faults: as many
   rounds of work as the argument says. */
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace
{
std::atomic<unsigned> sink;

template <typename T> struct Table {
	std::vector<T> all;
	inline __attribute__((always_inline)) T mix(T value) const
	{
		for (const T &v : all)
			value = value * 33 + v;
		return value;
	}
};

__attribute__((noinline)) unsigned even(const Table<unsigned> &t, unsigned n);
__attribute__((noinline)) unsigned odd(const Table<unsigned> &t, unsigned n)
{
	unsigned x = t.mix(n);
	return n ? x + even(t, n - 1) + 1 : x;
}
__attribute__((noinline)) unsigned even(const Table<unsigned> &t, unsigned n)
{
	unsigned x = t.mix(n + 1);
	return n ? x + odd(t, n - 1) + 3 : x;
}
__attribute__((noinline)) unsigned descend(const Table<unsigned> &t, unsigned n)
{
	unsigned x = t.mix(n);
	return n ? x ^ (descend(t, n - 1) + 7) : x ^ (odd(t, 9) + 1);
}
} // namespace

struct Order {
	bool operator()(const std::string &a, const std::string &b) const
	{
		return b < a;
	}
};

__attribute__((noinline)) void fill(std::map<std::string, int, Order> &m, int n)
{
	for (int i = 0; i < n; i++)
		m[std::to_string(i * 7919 % n)] += i;
}

__attribute__((noinline)) void work(int rounds)
{
	Table<unsigned> t;
	for (unsigned i = 0; i < 200; i++)
		t.all.push_back(i);
	while (rounds-- > 0) {
		sink += descend(t, 12);
		std::map<std::string, int, Order> m;
		fill(m, 200);
		sink += m.size();
		char *fresh = static_cast<char *>(malloc(1 << 20));
		for (int i = 0; i < 1 << 20; i += 4096)
			fresh[i] = 1;
		free(fresh);
	}
}

int main(int argc, char **argv)
{
	std::vector<std::thread> threads;
	for (int i = 0; i < 2; i++)
		threads.emplace_back(work, argc > 1 ? atoi(argv[1]) : 1000);
	for (std::thread &t : threads)
		t.join();
}
