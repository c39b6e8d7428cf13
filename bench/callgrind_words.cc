// SPDX-License-Identifier: Apache-2.0
// An ordinary C++ program for bench/callgrind: counts the words of generated text, sorts them by
// how often they come, matches them with a regular expression, and multiplies their counts.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>

using counts = std::unordered_map<std::string, unsigned>;

static unsigned next_random(unsigned &state)
{
	state = state * 1664525 + 1013904223;
	return state >> 8;
}

__attribute__((noinline)) static std::string make_text(int words)
{
	static const char *const syllables[] = {"cul",  "prit", "stack", "walk",
						"tree", "time", "call"};
	std::string text;
	unsigned state = 1;
	for (int i = 0; i < words; i++) {
		for (unsigned n = next_random(state) % 3 + 1; n; n--)
			text += syllables[next_random(state) % 7];
		text += i % 13 == 12 ? ".\n" : " ";
	}
	return text;
}

__attribute__((noinline)) static counts count_words(const std::string &text)
{
	counts result;
	for (size_t at = 0; at < text.size();) {
		size_t end = text.find_first_of(" .\n", at);
		if (end == std::string::npos)
			end = text.size();
		if (end > at)
			result[text.substr(at, end - at)]++;
		at = end + 1;
	}
	return result;
}

__attribute__((noinline)) static std::vector<std::string> sort_words(const counts &from)
{
	std::vector<std::string> words;
	for (const auto &entry : from)
		words.push_back(entry.first);
	for (int round = 0; round < 6; round++)
		std::sort(words.begin(), words.end(),
			  [&](const std::string &a, const std::string &b) {
				  return round % 2 ? a < b
						   : from.at(a) > from.at(b) ||
							     (from.at(a) == from.at(b) && b < a);
			  });
	return words;
}

__attribute__((noinline)) static int match_words(const std::vector<std::string> &words)
{
	const std::regex pattern("(cul|call)*(prit|time)+(walk)?");
	return (int)std::count_if(words.begin(), words.end(), [&](const std::string &word) {
		return std::regex_match(word, pattern);
	});
}

__attribute__((noinline)) static double multiply(const counts &from, size_t n)
{
	std::vector<double> a(n * n), b(n * n), c(n * n);
	size_t i = 0;
	for (const auto &entry : from)
		a[i % (n * n)] += entry.second, b[i++ * 7 % (n * n)] += entry.second;
	for (i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			for (size_t j = 0; j < n; j++)
				c[i * n + j] += a[i * n + k] * b[k * n + j];
	return c[n + 1];
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
	int matched = 0;
	double product = 0;
	size_t all = 0;
	for (int i = 0; i < rounds; i++) {
		counts found = count_words(make_text(12000 + i));
		std::vector<std::string> words = sort_words(found);
		matched += match_words(words);
		product += multiply(found, 180);
		all += words.size();
	}
	std::printf("%zu words, %d match, %g\n", all, matched, product);
	return 0;
}
