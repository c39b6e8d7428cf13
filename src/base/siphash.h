/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * SipHash-2-4 with 128 bits: a hash of which nobody who does not know the secret
 * can find two texts that have the same one.
 */
#include <stddef.h>
#include <stdint.h>

#define SIPHASH_SIZE 16 /* of the secret, and of the hash */

struct siphash {
	uint64_t v[4];
	uint8_t rest[8]; /* bytes that are no whole word yet */
	uint64_t size;   /* of all bytes so far */
};

void siphash_start(struct siphash *hash, const uint8_t secret[SIPHASH_SIZE]);
void siphash_add(struct siphash *hash, const void *bytes, size_t size);
void siphash_end(struct siphash *hash, uint8_t out[SIPHASH_SIZE]);
