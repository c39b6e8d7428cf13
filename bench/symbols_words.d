// SPDX-License-Identifier: Apache-2.0
// Ranges, templates and closures for bench/symbols: words are made, counted and sorted.
import std.algorithm : filter, map, sort, sum;
import std.array : array, split;
import std.conv : to;
import std.range : iota, take;
import std.stdio : writeln;
import std.uni : toLower;

uint nextRandom(ref uint state)
{
	state = state * 1_664_525 + 1_013_904_223;
	return state >> 8;
}

string makeText(size_t words)
{
	static immutable syllables = ["Cul", "prit", "stack", "Walk", "tree", "time", "call"];
	uint state = 1;
	string text;
	foreach (i; 0 .. words)
	{
		foreach (_; 0 .. nextRandom(state) % 3 + 1)
			text ~= syllables[nextRandom(state) % 7];
		text ~= i % 13 == 12 ? "\n" : " ";
	}
	return text;
}

size_t[string] countWords(string text)
{
	size_t[string] counts;
	foreach (word; text.split.map!(w => w.toLower).filter!(w => w.length > 3))
		counts[word]++;
	return counts;
}

double weigh(size_t[string] counts)
{
	auto words = counts.keys.sort!((a, b) => counts[a] != counts[b] ? counts[a] > counts[b] : a < b);
	auto weights = words.take(100).map!(w => counts[w].to!double / w.length).array;
	return iota(weights.length).map!(i => weights[i] / (i + 1)).sum;
}

void main(string[] args)
{
	const rounds = args.length > 1 ? args[1].to!int : 20;
	double total = 0;
	foreach (_; 0 .. rounds)
		total += weigh(countWords(makeText(50_000)));
	writeln(total);
}
