// SPDX-License-Identifier: Apache-2.0
// templates SECONDS: containers, virtual calls and std::function.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct shape {
	virtual ~shape() = default;
	virtual double area(double) const = 0;
};
struct square : shape {
	double area(double x) const override
	{
		return x * x;
	}
};
struct disc : shape {
	double area(double x) const override
	{
		return x * x * 3.14159;
	}
};

int main(int argc, char **argv)
{
	time_t end = time(nullptr) + (argc > 1 ? atoi(argv[1]) : 5);
	double sum = 0;
	while (time(nullptr) < end) {
		std::map<std::string, std::unique_ptr<shape>> all;
		for (int i = 0; i < 2000; i++)
			if (i % 2)
				all[std::to_string(i * 7919 % 10007)] = std::make_unique<square>();
			else
				all[std::to_string(i * 7919 % 10007)] = std::make_unique<disc>();
		std::function<double(const shape &)> each = [&](const shape &s) {
			return s.area(sum * 1e-20);
		};
		std::vector<double> values;
		for (auto &[name, s] : all)
			values.push_back(each(*s) + name.size());
		std::sort(values.begin(), values.end(), [](double a, double b) { return a > b; });
		sum += values.front();
	}
	printf("%g\n", sum);
}
