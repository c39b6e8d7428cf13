/* SPDX-License-Identifier: Apache-2.0 */
/* trails ROUNDS: code of many kinds, for tests that follow it: searches, switches, numbers as text, hashes, floating
   point, copies, sorting. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
	struct node *left, *right;
	int key;
};

static struct node *insert(struct node *n, int key)
{
	if (!n) {
		n = calloc(1, sizeof *n);
		n->key = key;
	} else if (key < n->key) {
		n->left = insert(n->left, key);
	} else if (key > n->key) {
		n->right = insert(n->right, key);
	}
	return n;
}

static int choose(int x)
{
	switch (x % 9) {
	case 0:
		return x * 3;
	case 1:
		return x / 7;
	case 2:
		return x ^ 55;
	case 3:
		return x << 3;
	case 4:
		return x >> 2;
	case 5:
		return -x;
	case 6:
		return x % 13;
	case 7:
		return x | 9;
	default:
		return ~x;
	}
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000, recent[64] = {0};
	unsigned seed = 1;
	unsigned long long hash = 1469598103934665603ull;
	struct node *tree = NULL;
	long sum = 0;
	char text[200], copy[200] = "";
	for (int i = 0; i < rounds; i++) {
		seed = seed * 1103515245 + 12345;
		int value = (int)(seed >> 8) % 5000;
		tree = insert(tree, value);
		sum += choose(value);
		recent[i % 64] = value;
		int size = snprintf(text, sizeof text, "%d:%x:%5.2f:%ld", value, seed, value / 3.0,
				    sum);
		for (int k = 0; k < size; k++) {
			hash = (hash ^ (unsigned char)text[k]) * 1099511628211ull;
			hash = hash << 7 | hash >> 57;
		}
		sum += strtol(text, NULL, 10) + (long)strtod("3.25e2", NULL) +
		       (long)(hash % 1000003);
		sum += (short)hash * (signed char)seed + (strstr(text, "77") != NULL);
		memmove(copy + i % 7, text, (size_t)size);
		if (i % 64 == 63)
			qsort(recent, 64, sizeof *recent, compare);
	}
	printf("%ld %llu %s %d\n", sum, hash, copy + 7, recent[20]);
	return 0;
}
