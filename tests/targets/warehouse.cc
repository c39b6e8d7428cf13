// SPDX-License-Identifier: Apache-2.0
//
// The program that `make try` records: three threads of ordinary C++ that share a
// warehouse. One prices orders by looking parts up in a tree, one sorts shipments
// with a comparison of its own, one packs boxes by trying all orders of a few
// parts, recursively. Optimized; what is small is inlined away.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace
{

struct Random {
	uint64_t state;
	uint64_t next()
	{
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		return state;
	}
};

struct Shipment {
	std::string city;
	uint32_t weight;
};

std::string part_name(uint64_t number)
{
	return "part-" + std::to_string(number % 5000);
}

using Prices = std::map<std::string, uint32_t>;

Prices make_prices()
{
	Prices prices;
	for (uint32_t i = 0; i < 5000; i++)
		prices[part_name(i)] = i * 7 % 1000;
	return prices;
}

uint32_t price_of(const Prices &prices, const std::string &part)
{
	auto found = prices.find(part);
	return found == prices.end() ? 0 : found->second;
}

[[gnu::noinline]] uint64_t price_orders(const Prices &prices, unsigned count)
{
	Random random{42};
	uint64_t sum = 0;
	for (unsigned order = 0; order < count; order++)
		for (int line = 0; line < 8; line++)
			sum += price_of(prices, part_name(random.next()));
	return sum;
}

bool goes_first(const Shipment &a, const Shipment &b)
{
	return a.city != b.city ? a.city < b.city : a.weight > b.weight;
}

[[gnu::noinline]] uint64_t sort_shipments(unsigned rounds)
{
	static const char *const cities[] = {"Aarhus", "Bergen", "Cork", "Dundee", "Espoo"};
	Random random{7};
	uint64_t sum = 0;
	for (unsigned round = 0; round < rounds; round++) {
		std::vector<Shipment> shipments;
		for (int i = 0; i < 4000; i++)
			shipments.push_back(
				{cities[random.next() % 5], uint32_t(random.next() % 900)});
		std::sort(shipments.begin(), shipments.end(), goes_first);
		sum += shipments[round % 4000].weight;
	}
	return sum;
}

[[gnu::noinline]] uint32_t best_packing(std::vector<uint32_t> &parts, size_t from, uint32_t worst)
{
	if (from == parts.size()) {
		uint32_t gap = 0;
		for (size_t i = 1; i < parts.size(); i++)
			gap += parts[i] > parts[i - 1] ? parts[i] - parts[i - 1] : 3;
		return std::min(gap, worst);
	}
	for (size_t i = from; i < parts.size(); i++) {
		std::swap(parts[from], parts[i]);
		worst = best_packing(parts, from + 1, worst);
		std::swap(parts[from], parts[i]);
	}
	return worst;
}

[[gnu::noinline]] uint64_t pack_boxes(unsigned boxes)
{
	uint64_t sum = 0;
	for (unsigned box = 0; box < boxes; box++) {
		std::vector<uint32_t> parts = {5, 17, box % 40, 8, 31, 2, 23, 12};
		sum += best_packing(parts, 0, UINT32_MAX);
	}
	return sum;
}

} // namespace

int main()
{
	const Prices prices = make_prices();
	uint64_t priced = 0, sorted = 0, packed = 0;
	std::thread pricing([&] { priced = price_orders(prices, 120000); });
	std::thread sorting([&] { sorted = sort_shipments(150); });
	packed = pack_boxes(500);
	pricing.join();
	sorting.join();
	std::printf("priced %llu, sorted %llu, packed %llu\n", (unsigned long long)priced,
		    (unsigned long long)sorted, (unsigned long long)packed);
}
