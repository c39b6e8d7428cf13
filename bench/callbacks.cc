/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack as programs have them: callbacks out of libc's qsort and bsearch, a comparator that
 * std::sort calls, a stream buffer that libstdc++ flushes into, and the same again inside.
 */
#include "callbacks.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <streambuf>
#include <vector>

namespace
{
struct state {
	int levels;
	bool done;
	void (*end)(void *context);
	void *context;
};
thread_local state *current;

void descend();

class buffer : public std::streambuf
{
	int overflow(int c) override
	{
		descend();
		return c;
	}
};

void by_stream()
{
	buffer b;
	std::ostream out(&b);
	out << 1234;
}

void by_sort()
{
	std::vector<int> numbers = {5, 3, 8, 1, 9, 2};
	std::function<bool(int, int)> less = [](int a, int b) {
		if (!current->done)
			by_stream();
		return a < b;
	};
	std::sort(numbers.begin(), numbers.end(), less);
}

int search_compare(const void *a, const void *b)
{
	if (!current->done)
		by_sort();
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

int sort_compare(const void *a, const void *b)
{
	static const int sorted[] = {1, 2, 3};
	if (!current->done)
		std::bsearch(a, sorted, 3, sizeof(int), search_compare);
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

__attribute__((noinline)) void descend()
{
	int numbers[] = {4, 1, 7, 2};
	if (current->levels-- > 0) {
		std::qsort(numbers, 4, sizeof(int), sort_compare);
	} else if (!current->done) {
		current->end(current->context);
		current->done = true;
	}
}
} // namespace

extern "C" void callbacks_run(int levels, void (*end)(void *context), void *context)
{
	state s = {levels, false, end, context};
	current = &s;
	descend();
}
