/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each piece is a head and the bytes of its name:
 *
 *    from, to, start, size (8 bytes each), length (4 bytes; 0: no function is known there) | name
 */
#include "library/pieces.h"

#include <string.h>

#include "base/buf.h"
#include "image/places.h"
#include "image/symbols.h"

#define HEAD_SIZE (4 * sizeof(uint64_t) + sizeof(uint32_t))

static void write_one(const struct pieces_item *item, struct buf *out)
{
	const uint64_t numbers[] = {item->from, item->to, item->start, item->size};
	uint32_t length = (uint32_t)item->length;
	if (out->size + HEAD_SIZE + length > PIECES_MAX)
		return;
	buf_append(out, numbers, sizeof numbers);
	buf_append(out, &length, sizeof length);
	if (length)
		buf_append(out, item->name, length);
}

static struct pieces_item look_up(struct places *places, const struct symbols *symbols,
				  uint64_t address)
{
	struct pieces_item item = {0};
	const struct symbol *s = symbols_around(symbols, address, &item.from, &item.to);
	const char *name = s ? places_name(places, s->name) : "";
	if (!*name)
		return item;
	item.start = s->address;
	item.size = s->size ? s->size : item.to - s->address;
	item.name = name;
	item.length = strnlen(name, PIECES_NAME_MAX);
	return item;
}

bool pieces_write(struct places *places, const uint64_t *addresses, size_t count, struct buf *out)
{
	struct pieces_item last = {0};
	places_near(places, addresses, count);
	const struct symbols *symbols = places_symbols(places);
	for (size_t i = 0; symbols && i < count; i++) {
		if (addresses[i] >= last.from && addresses[i] < last.to)
			continue;
		last = look_up(places, symbols, addresses[i]);
		write_one(&last, out);
	}
	return symbols && !out->failed;
}

static bool is_sane(const struct pieces_item *x)
{
	if (x->from >= x->to)
		return false;
	if (!x->length)
		return !x->start && !x->size;
	return x->length <= PIECES_NAME_MAX && x->start <= x->from && x->size &&
	       x->size <= UINT64_MAX - x->start && !memchr(x->name, 0, x->length);
}

bool pieces_next(struct pieces *p, struct pieces_item *out)
{
	uint64_t numbers[4];
	uint32_t length;
	if (p->left < HEAD_SIZE)
		return false;
	memcpy(numbers, p->at, sizeof numbers);
	memcpy(&length, p->at + sizeof numbers, sizeof length);
	if (length > p->left - HEAD_SIZE)
		return false;
	*out = (struct pieces_item){.from = numbers[0],
				    .to = numbers[1],
				    .start = numbers[2],
				    .size = numbers[3],
				    .name = length ? (const char *)p->at + HEAD_SIZE : NULL,
				    .length = length};
	if (!is_sane(out) || out->from < p->end)
		return false;
	p->at += HEAD_SIZE + length;
	p->left -= HEAD_SIZE + length;
	p->end = out->to;
	return true;
}

bool pieces_are_whole(const void *bytes, size_t size)
{
	struct pieces p = {.at = bytes, .left = size};
	struct pieces_item item;
	while (pieces_next(&p, &item))
		;
	return !p.left;
}
