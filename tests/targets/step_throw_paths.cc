// SPDX-License-Identifier: Apache-2.0
// Throws, or jumps, from several depths all the time. Who may call whom is known: root calls catcher,
// that relay, and that descend, which calls itself and, at the bottom, leaf. What the runtime does
// in between stands below one of these.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>

static volatile int sink;
static jmp_buf *back; // on the stack, as most are
static bool jumps;

struct guard {
	int n;
	~guard()
	{
		sink = sink + n;
	}
};

extern "C" {
__attribute__((noinline)) int leaf(int n)
{
	sink = sink + n;
	if (jumps)
		longjmp(*back, 1);
	throw std::runtime_error("leaf");
}

__attribute__((noinline)) int descend(int n)
{
	guard here{n};
	volatile char *room = (volatile char *)__builtin_alloca((size_t)n * 16 + 16);
	room[0] = (char)n;
	return (n ? descend(n - 1) : leaf(n)) + room[0];
}

__attribute__((noinline)) int relay(int n)
{
	try {
		return descend(n) + 1;
	} catch (const std::exception &) {
		sink = sink + 1;
		throw;
	}
}

__attribute__((noinline)) int catcher(int n)
{
	if (jumps)
		return setjmp(*back) ? 1 : relay(n) + 1;
	try {
		return relay(n) + 1;
	} catch (const std::exception &e) {
		return (int)std::strlen(e.what());
	}
}

__attribute__((noinline)) int root(double seconds)
{
	timespec begin, now;
	jmp_buf here;
	int sum = 0;
	back = &here;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	do {
		for (int i = 0; i < 200; i++)
			sum += catcher(i % 9);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec - begin.tv_sec + 1e-9 * (now.tv_nsec - begin.tv_nsec) < seconds);
	return sum;
}
}

int main(int argc, char **argv)
{
	jumps = argc > 2 && !std::strcmp(argv[2], "jump");
	std::printf("%d\n", root(argc > 1 ? std::atof(argv[1]) : 1));
	return 0;
}
