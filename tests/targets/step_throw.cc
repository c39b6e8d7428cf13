// SPDX-License-Identifier: Apache-2.0
// Exceptions through several frames with objects to destroy, for the stepping test.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

static volatile int destroyed;

struct guard {
	std::string name;
	explicit guard(int n) : name("guard number " + std::to_string(n))
	{
	}
	~guard()
	{
		destroyed = destroyed + (int)name.size();
	}
};

__attribute__((noinline)) static int descend(int depth, int limit)
{
	guard here(depth);
	if (depth == limit)
		throw std::runtime_error("at " + std::to_string(depth));
	return descend(depth + 1, limit) + (int)here.name.size();
}

struct base {
	virtual ~base() = default;
	virtual int run(int n) = 0;
};

struct rethrows : base {
	int run(int n) override
	{
		try {
			return descend(0, n % 9);
		} catch (const std::runtime_error &) {
			destroyed = destroyed + 1;
			throw;
		}
	}
};

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? std::atol(argv[1]) : 50, caught = 0;
	std::map<std::string, int> seen;
	std::vector<base *> all{new rethrows};
	for (int i = 0; i < rounds; i++) {
		try {
			all[0]->run(i);
		} catch (const std::exception &e) {
			caught++;
			seen[e.what()]++;
		}
	}
	std::printf("%ld caught, %zu kinds\n", caught, seen.size());
	delete all[0];
	return 0;
}
