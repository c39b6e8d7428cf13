/* SPDX-License-Identifier: Apache-2.0 */
/* Exceptions: through loops, recursion and clean-ups, caught by type, thrown again. */
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

static int dropped;

struct Guard {
	int n;
	explicit Guard(int n) : n(n)
	{
	}
	~Guard()
	{
		dropped += n % 3 ? 1 : 2;
	}
};

__attribute__((noinline)) static int risky(int n)
{
	if (n % 7 == 3)
		throw n;
	if (n % 11 == 5)
		throw std::runtime_error("eleven");
	if (n % 13 == 9)
		throw std::string("thirteen");
	return n * 2;
}

__attribute__((noinline)) static int deep(int n, int depth)
{
	Guard guard(depth);
	if (depth == 0)
		return risky(n);
	int sum = 0;
	for (int i = 0; i < 2; i++)
		sum += deep(n + i, depth - 1) + (i ? 1 : 2);
	return sum;
}

__attribute__((noinline)) static int catcher(int n)
{
	int sum = 0;
	for (int i = 0; i < 6; i++) {
		try {
			Guard guard(i);
			sum += deep(n + i, 2);
			if (sum % 5 == 4)
				sum += risky(sum);
		} catch (int x) {
			sum += x;
			if (x > 40)
				continue;
			sum--;
		} catch (const std::exception &e) {
			sum += e.what()[0];
		}
	}
	return sum;
}

__attribute__((noinline)) static int again(int n)
{
	try {
		try {
			return catcher(n);
		} catch (const std::string &s) {
			dropped += (int)s.size();
			if (n & 1)
				throw;
			return -1;
		}
	} catch (...) {
		return -2;
	}
}

__attribute__((noinline)) static long words()
{
	std::map<std::string, std::vector<int>> all;
	for (int i = 0; i < 40; i++)
		all[std::string(1 + i % 3, (char)('a' + i % 5))].push_back(i * i % 17);
	long sum = 0;
	for (const auto &pair : all)
		for (int n : pair.second)
			sum = sum * 3 + n + (long)pair.first.size();
	try {
		sum += all.at("zzz").at(3);
	} catch (const std::out_of_range &) {
		sum++;
	}
	return sum;
}

int main()
{
	long sum = 0;
	for (int n = 0; n < 40; n++)
		sum = sum * 7 + again(n);
	std::printf("%ld %d %ld\n", sum, dropped, words());
	return 0;
}
