/* SPDX-License-Identifier: Apache-2.0 */
/* As Aumasson and Bernstein describe it. Words are those of a little-endian CPU, which all of ours are. */
#include "base/siphash.h"

#include <string.h>

static uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void mix(uint64_t v[4])
{
	v[0] += v[1], v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0], v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1], v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2], v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

static inline void add_word(uint64_t v[4], const void *bytes)
{
	uint64_t word;
	memcpy(&word, bytes, sizeof word);
	v[3] ^= word;
	mix(v);
	mix(v);
	v[0] ^= word;
}

void siphash_start(struct siphash *h, const uint8_t secret[SIPHASH_SIZE])
{
	uint64_t k[2];
	memcpy(k, secret, sizeof k);
	*h = (struct siphash){.v = {k[0] ^ 0x736f6d6570736575u, k[1] ^ 0x646f72616e646f6du ^ 0xee,
				    k[0] ^ 0x6c7967656e657261u, k[1] ^ 0x7465646279746573u}};
}

void siphash_add(struct siphash *h, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	size_t held = h->size % 8;
	h->size += size;
	if (held) {
		size_t more = size < 8 - held ? size : 8 - held;
		memcpy(h->rest + held, at, more);
		at += more;
		size -= more;
		if (held + more < 8)
			return;
		add_word(h->v, h->rest);
	}
	uint64_t v[4] = {h->v[0], h->v[1], h->v[2], h->v[3]}; /* in registers */
	for (; size >= 8; at += 8, size -= 8)
		add_word(v, at);
	memcpy(h->v, v, sizeof v);
	if (size)
		memcpy(h->rest, at, size);
}

static uint64_t finish(uint64_t v[4])
{
	for (int i = 0; i < 4; i++)
		mix(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void siphash_end(struct siphash *h, uint8_t out[SIPHASH_SIZE])
{
	uint64_t halves[2];
	size_t held = h->size % 8;
	memset(h->rest + held, 0, 8 - held);
	h->rest[7] = (uint8_t)h->size;
	add_word(h->v, h->rest);
	h->v[2] ^= 0xee;
	halves[0] = finish(h->v);
	h->v[1] ^= 0xdd;
	halves[1] = finish(h->v);
	memcpy(out, halves, sizeof halves);
}
