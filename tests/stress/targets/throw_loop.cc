// SPDX-License-Identifier: Apache-2.0
// Exceptions through many frames, thrown again, out of threads and through futures.
#include <cstdio>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "stress.h"

namespace
{
struct Counted {
	long &count;
	explicit Counted(long &c) : count(c)
	{
	}
	~Counted()
	{
		count++;
	}
};

__attribute__((noinline)) long fall(int depth, long &unwound)
{
	Counted guard(unwound);

	if (depth == 0)
		throw std::runtime_error("bottom");
	return fall(depth - 1, unwound) + 1;
}

__attribute__((noinline)) void again(int depth, long &unwound)
{
	try {
		if (depth == 0)
			fall(20, unwound);
		again(depth - 1, unwound);
	} catch (const std::exception &) {
		unwound++;
		throw;
	}
}

long loop(int rounds)
{
	long unwound = 0, caught = 0;

	for (int i = 0; i < rounds; i++) {
		try {
			if (i % 2)
				fall(i % 60, unwound);
			else
				again(i % 6, unwound);
		} catch (const std::runtime_error &e) {
			caught += std::string(e.what()) == "bottom";
		}
	}
	return unwound + caught * 1000000;
}
} // namespace

int main(int argc, char **argv)
{
	int rounds = scaled(argc, argv, 8000);
	std::vector<std::thread> threads;
	std::vector<long> results(4);
	long broken = 0;

	for (size_t i = 0; i < results.size(); i++)
		threads.emplace_back([&results, i, rounds] { results[i] = loop(rounds / 4); });
	for (auto &thread : threads)
		thread.join();
	for (long result : results)
		printf("thread: %ld\n", result);
	printf("main: %ld\n", loop(rounds));
	for (int i = 0; i < rounds / 40; i++) {
		auto future = std::async(std::launch::async, [] {
			burn(1);
			throw std::logic_error("future");
		});
		try {
			future.get();
		} catch (const std::logic_error &) {
			broken++;
		}
	}
	printf("futures: %ld\n", broken);
	return 0;
}
