// SPDX-License-Identifier: Apache-2.0
// Functions whose paths are counted, and that exceptions leave, come to, and pass by.
#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#define KEPT __attribute__((noinline, noclone))

struct Shop {
	std::map<std::string, int> stock;
	KEPT int find(const std::string &name) const;
	KEPT int add(const std::vector<std::string> &names);
};

KEPT int Shop::find(const std::string &name) const
{
	auto it = stock.find(name);
	if (it == stock.end())
		throw std::out_of_range(name);
	return it->second;
}

KEPT int Shop::add(const std::vector<std::string> &names)
{
	int missing = 0;
	for (const auto &name : names) {
		try {
			if (find(name) > 1)
				stock[name]++;
			else
				stock[name] = 5;
		} catch (const std::out_of_range &) {
			stock[name] = 1;
			missing++;
		}
	}
	return missing;
}

struct Guard {
	int &count;
	KEPT ~Guard()
	{
		count++;
	}
};

KEPT int passed_by(int n, int &count)
{
	Guard guard{count};
	if (n % 3 == 0)
		throw n;
	return n * 2;
}

KEPT int caught_here(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		try {
			if (i % 4 == 2)
				throw i;
			sum += i;
		} catch (int x) {
			sum -= x;
		}
	}
	return sum;
}

KEPT long heap(std::vector<int> values)
{
	long sum = 0;
	std::sort(values.begin(), values.end());
	for (size_t i = 0; i < values.size(); i++)
		sum += (long)i * values[i];
	return sum;
}

int main()
{
	Shop shop;
	int count = 0, sum = 0;
	sum += shop.add({"apple", "pear", "apple", "apple", "fig"});
	sum += shop.add({"fig", "fig", "kiwi"});
	for (int i = 0; i < 9; i++)
		try {
			sum += passed_by(i, count);
		} catch (int) {
			sum--;
		}
	sum += caught_here(11) +
	       (int)heap({5, 3, 9, 1, 1, 7, 2, 8, 30, 20, 10, 15, 14, 13, 12, 11, 3, 4, 5, 6});
	std::printf("%d %d\n", sum, count);
}
