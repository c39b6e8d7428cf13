// SPDX-License-Identifier: Apache-2.0
// Inlined functions around a call that sleeps: wait_here <- leaf (inlined) <- Box::open (inlined)
// <- visit. The test looks the lines up by the words at their ends.
#include <cstdio>
#include <unistd.h>

static volatile int sink;

namespace shop
{

__attribute__((noinline)) void wait_here(int value)
{
	sink = value;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

static inline __attribute__((always_inline)) int leaf(int value)
{
	wait_here(value + 1); // calls wait_here
	return sink;
}

struct Box {
	int content;
	inline __attribute__((always_inline)) int open() const
	{
		return leaf(content) * 3; // calls leaf
	}
};

__attribute__((noinline)) int visit(const Box &box)
{
	int sum = sink;
	sum += box.open(); // calls open
	return sum + sink;
}

} // namespace shop

int main()
{
	alarm(300);
	shop::Box box = {sink};
	return shop::visit(box) + sink;
}
