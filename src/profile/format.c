/* SPDX-License-Identifier: Apache-2.0 */
/* Headers, their checksums, and the table of the fields of "info". */
#include <string.h>

#include "base/buf.h"
#include "base/leb.h"
#include "profile/format.h"

static void put(uint8_t *out, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		out[i] = (uint8_t)(value >> 8 * i);
}

uint64_t format_get(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

/* Each step maps states to states one to one, and words too: what changes one word changes the
   state for good. */
static uint64_t step(uint64_t state, uint64_t word)
{
	state ^= word * 0x9fb21c651e98df25u;
	state = (state << 29 | state >> 35) * 0xc2b2ae3d27d4eb4fu;
	return state;
}

uint64_t format_checksum(const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	uint64_t state = step(0x9e3779b97f4a7c15u, size);
	for (; size >= 8; size -= 8, at += 8)
		state = step(state, format_get(at, 8));
	if (size)
		state = step(state, format_get(at, (unsigned)size));
	state ^= state >> 32;
	state *= 0x9fb21c651e98df25u;
	return state ^ state >> 29;
}

void format_put_header(uint8_t out[FORMAT_HEADER_SIZE])
{
	memcpy(out, FORMAT_MAGIC, 8);
	put(out + 8, FORMAT_MAJOR, 2);
	put(out + 10, FORMAT_MINOR, 2);
	put(out + 12, 0, 4);
	put(out + 16, format_checksum(out, 16), 8);
}

void format_put_section(uint8_t out[FORMAT_SECTION_SIZE], const struct format_section *s)
{
	memcpy(out, FORMAT_SYNC, FORMAT_SYNC_SIZE);
	put(out + 8, s->type, 4);
	put(out + 12, s->flags, 4);
	put(out + 16, s->stored, 8);
	put(out + 24, s->raw, 8);
	put(out + 32, s->checksum, 8);
	put(out + 40, format_checksum(out, 40), 8);
}

bool format_get_section(const uint8_t in[FORMAT_SECTION_SIZE], struct format_section *s)
{
	if (memcmp(in, FORMAT_SYNC, FORMAT_SYNC_SIZE) != 0 ||
	    format_get(in + 40, 8) != format_checksum(in, 40))
		return false;
	s->type = (uint32_t)format_get(in + 8, 4);
	s->flags = (uint32_t)format_get(in + 12, 4);
	s->stored = format_get(in + 16, 8);
	s->raw = format_get(in + 24, 8);
	s->checksum = format_get(in + 32, 8);
	return true;
}

void format_put_number(struct buf *b, uint64_t value)
{
	leb_put(b, value);
}

void format_put_signed(struct buf *b, int64_t value)
{
	leb_put(b, zigzag(value));
}

void format_put_text(struct buf *b, const char *text)
{
	size_t size = strnlen(text, PROFILE_STRING_MAX);
	format_put_number(b, size);
	buf_append(b, text, size);
}

#define AT(member) offsetof(struct profile, member)

const struct format_field format_fields[] = {
	{"command", FIELD_TEXT, AT(command)},     {"directory", FIELD_TEXT, AT(directory)},
	{"host", FIELD_TEXT, AT(host)},           {"kernel", FIELD_TEXT, AT(kernel)},
	{"machine", FIELD_TEXT, AT(machine)},     {"version", FIELD_TEXT, AT(version)},
	{"note", FIELD_TEXT, AT(note)},           {"start", FIELD_U64, AT(start_time)},
	{"duration", FIELD_U64, AT(duration_ns)}, {"hz", FIELD_U64, AT(hz)},
	{"delivery", FIELD_U64, AT(delivery_ns)}, {"unwind", FIELD_U32, AT(unwind)},
	{"complete", FIELD_BOOL, AT(complete)},   {"timeline", FIELD_BOOL, AT(timed)},
	{"untimed", FIELD_U64, AT(untimed)},      {"cpu", FIELD_TEXT, AT(cpu)},
	{"stolen", FIELD_U64, AT(stolen_ns)},     {"forks", FIELD_U64, AT(forks)},
};
const size_t format_field_count = sizeof format_fields / sizeof format_fields[0];
