// SPDX-License-Identifier: Apache-2.0
// For path_throws.cc: a function of C that cleans up when an exception passes.
void path_cleaned(const int *n);
int path_throw(int n);

static void clean(int *n)
{
	path_cleaned(n);
}

__attribute__((visibility("hidden"))) int path_pass(int n)
{
	__attribute__((cleanup(clean))) int first = n;
	int sum = path_throw(n);
	if (n % 3) {
		__attribute__((cleanup(clean))) int second = n + 2;
		sum += path_throw(n + 1);
	}
	return sum + first;
}
