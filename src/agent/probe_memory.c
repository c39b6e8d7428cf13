/* SPDX-License-Identifier: Apache-2.0 */
/* What compilers call for copies, without libc's functions: those use vector registers, in which a probed function may have
   its arguments; and they may be probed themselves. */
#include <stddef.h>
#include <stdint.h>

#define OWN __attribute__((visibility("hidden")))
OWN void *memcpy(void *restrict to, const void *restrict from, size_t size);
OWN void *memmove(void *to, const void *from, size_t size);
OWN void *memset(void *to, int value, size_t size);
OWN int memcmp(const void *a, const void *b, size_t size);

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	uint8_t *t = to;
	const uint8_t *f = from;
	for (; size >= sizeof(uint64_t); size -= 8, t += 8, f += 8)
		*(uint64_t *)t = *(const uint64_t *)f;
	while (size--)
		*t++ = *f++;
	return to;
}

void *memmove(void *to, const void *from, size_t size)
{
	uint8_t *t = to;
	const uint8_t *f = from;
	if (t <= f)
		return memcpy(to, from, size);
	while (size--)
		t[size] = f[size];
	return to;
}

void *memset(void *to, int value, size_t size)
{
	uint8_t *t = to;
	const uint64_t word = (uint8_t)value * UINT64_C(0x0101010101010101);
	for (; size >= sizeof word; size -= 8, t += 8)
		*(uint64_t *)t = word;
	while (size--)
		*t++ = (uint8_t)value;
	return to;
}

int memcmp(const void *a, const void *b, size_t size)
{
	const uint8_t *x = a, *y = b;
	for (size_t i = 0; i < size; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}
