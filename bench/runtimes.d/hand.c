/* SPDX-License-Identifier: Apache-2.0 */
/* hand SECONDS: calls hand_tree (hand_CPU.S) again and again. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

unsigned long hand_tree(unsigned long depth);

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
	unsigned long sum = 0;
	while (time(NULL) < end)
		sum += hand_tree(14);
	printf("%lu\n", sum);
	return 0;
}
