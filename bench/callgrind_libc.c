/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C library's functions that the programs of bench/callgrind call in what is measured, in the
 * program itself: on aarch64 callgrind does not see the returns of calls that go through the PLT.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static _Alignas(16) char heap[256u << 20];
static size_t used;

void *malloc(size_t size)
{
	size_t *block = (size_t *)(heap + used);
	size = (size + 15) & ~(size_t)15;
	if (size + 16 > sizeof heap - used)
		return NULL;
	used += size + 16;
	*block = size;
	return (char *)block + 16;
}

void free(void *block)
{
	size_t size;
	if (!block)
		return;
	size = *(size_t *)((char *)block - 16);
	if ((char *)block + size == heap + used)
		used -= size + 16;
}

void *calloc(size_t count, size_t size)
{
	void *block = malloc(count * size);
	return block ? memset(block, 0, count * size) : NULL;
}

void *realloc(void *old, size_t size)
{
	void *block = malloc(size);
	size_t before;
	if (!block || !old)
		return block;
	before = *(size_t *)((char *)old - 16);
	return memcpy(block, old, before < size ? before : size);
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	char *t = to;
	const char *f = from;
	for (; size >= 8; size -= 8, t += 8, f += 8)
		__builtin_memcpy(t, f, 8);
	while (size--)
		*t++ = *f++;
	return to;
}

void *memmove(void *to, const void *from, size_t size)
{
	char *t = to;
	const char *f = from;
	if ((uintptr_t)t - (uintptr_t)f >= size)
		return memcpy(to, from, size);
	while (size--)
		t[size] = f[size];
	return to;
}

void *memset(void *to, int byte, size_t size)
{
	char *t = to;
	while (size--)
		*t++ = (char)byte;
	return to;
}

int memcmp(const void *a, const void *b, size_t size)
{
	const unsigned char *x = a, *y = b;
	for (; size; size--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

void *memchr(const void *in, int byte, size_t size)
{
	const unsigned char *p = in;
	for (; size; size--, p++)
		if (*p == (unsigned char)byte)
			return (void *)(uintptr_t)p;
	return NULL;
}

size_t strlen(const char *text)
{
	const char *end = text;
	while (*end)
		end++;
	return (size_t)(end - text);
}
