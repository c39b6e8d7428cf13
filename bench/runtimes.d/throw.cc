// SPDX-License-Identifier: Apache-2.0
// throw SECONDS: nothing but exceptions, through frames with destructors.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>

struct guard {
	explicit guard(long &n) : count(n)
	{
	}
	~guard()
	{
		count++;
	}
	long &count;
};

[[gnu::noinline]] static void deep(int n, long &count)
{
	guard held(count);
	if (n == 0)
		throw std::runtime_error("the bottom");
	deep(n - 1, count);
	count++;
}

[[gnu::noinline]] static size_t attempt(int n, long &count)
{
	try {
		deep(n, count);
	} catch (const std::exception &e) {
		return std::string(e.what()).size();
	}
	return 0;
}

int main(int argc, char **argv)
{
	time_t end = time(nullptr) + (argc > 1 ? atoi(argv[1]) : 5);
	long count = 0;
	size_t sum = 0;
	while (time(nullptr) < end)
		for (int i = 0; i < 1000; i++)
			sum += attempt(i % 10, count);
	printf("%ld %zu\n", count, sum);
}
