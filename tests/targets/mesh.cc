// SPDX-License-Identifier: Apache-2.0
/* Six loops in each other, through calls and through inlined functions, two of them of the standard
   library: a mesh whose elements are looked up by their vertices, in a set with an order of its own.
   The comments at the ends of lines are what tests look for. */
#include <cstdio>
#include <cstdlib>
#include <set>
#include <vector>

#define REAL_CALL __attribute__((noinline))
#define INLINED inline __attribute__((always_inline))

struct Element {
	std::vector<int> vertices;
	long tag;
};

/* The order of elements is that of their vertices. */
struct ByVertices {
	INLINED bool operator()(const Element *a, const Element *b) const // here: less
	{
		const int *x = a->vertices.data(), *y = b->vertices.data();
		size_t count = a->vertices.size();
		for (size_t i = 0; i < count; i++) // here: loop 6
			if (x[i] != y[i])
				return x[i] < y[i];
		return false;
	}
};

static volatile long touched; // so that no call is left out

class Mesh
{
      public:
	Mesh(int size, int width);
	REAL_CALL long adjacencies();
	REAL_CALL long count_known(const std::vector<Element> &sides);

      private:
	INLINED long neighbours(size_t element);
	std::vector<Element> elements;
	std::vector<std::vector<Element>> sides; // of each element
	std::set<const Element *, ByVertices> known;
	volatile size_t reach = 3; // so that no compiler unrolls it
};

Mesh::Mesh(int size, int width) : elements(size), sides(size)
{
	for (int i = 0; i < size; i++) {
		elements[i].tag = i;
		for (int k = 0; k < width; k++)
			elements[i].vertices.push_back(k + 1 < width ? k : i * 7 % size);
		known.insert(&elements[i]);
	}
	for (int i = 0; i < size; i++)
		for (int k = 0; k < 4; k++)
			sides[i].push_back(elements[(i * 13 + k) % size]);
}

/* How many of these the mesh has. */
REAL_CALL long Mesh::count_known(const std::vector<Element> &wanted) // here: count_known
{
	long found = 0;
	for (size_t i = 0; i < wanted.size(); i++) { // here: loop 4
		auto place = known.find(&wanted[i]); // here: find is called
		if (place != known.end())
			found += (*place)->tag + touched++;
	}
	return found;
}

INLINED long Mesh::neighbours(size_t element) // here: neighbours
{
	long found = 0;
	for (size_t k = 0; k < reach; k++) // here: loop 3
		found += count_known(sides[(element + k) % sides.size()]) ^ (long)k;
	return found;
}

REAL_CALL long Mesh::adjacencies() // here: adjacencies
{
	long found = 0;
	for (size_t i = 0; i < elements.size(); i++) // here: loop 2
		found += neighbours(i);              // here: neighbours is called
	return found;
}

int main(int argc, char **argv) // here: main
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20;
	long found = 0;
	Mesh mesh(1000, 40);
	for (int round = 0; round < rounds; round++) // here: loop 1
		found += mesh.adjacencies();
	printf("%ld\n", found);
	return 0;
}
