/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The file's numbers, as doc/format.md explains them:
 *
 *    header | section | section | ... | section of type END
 *    section: header | stored bytes (numbers in LEB128, mostly compressed)
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

#define FORMAT_MAGIC \
	"\x89"       \
	"CLP\r\n\x1a\n"
#define FORMAT_MAJOR 1
#define FORMAT_MINOR 8
#define FORMAT_HEADER_SIZE 24 /* magic, major and minor (16 bits), flags (32), checksum */

#define FORMAT_SYNC \
	"\xf5"      \
	"SECT\r\n\xfa"
#define FORMAT_SYNC_SIZE 8
#define FORMAT_SECTION_SIZE 48 /* sync, type and flags (32 bits), stored, raw, two checksums */
#define FORMAT_ZSTD 1u         /* flag: the stored bytes are a zstd frame */

enum format_type {
	FORMAT_INFO = 1,
	FORMAT_MODULES,
	FORMAT_NAMES,
	FORMAT_METRICS,
	FORMAT_PROCESSES,
	FORMAT_THREADS,
	FORMAT_NODES,
	FORMAT_VALUES,
	FORMAT_LOST,
	FORMAT_END,
	FORMAT_SPANS,    /* since version 1.1 */
	FORMAT_WAKES,    /* since version 1.3 */
	FORMAT_EDGES,    /* since version 1.5 */
	FORMAT_PATHS,    /* since version 1.6 */
	FORMAT_CONTEXTS, /* since version 1.8 */
	FORMAT_TYPES,
};

enum format_info { FORMAT_NUMBER, FORMAT_TEXT };

/* A section is refused where its raw bytes are more, or more than RATIO times the stored ones
   (a run of equal rows, which is small, may be); likewise all sections together, and a file. */
#define FORMAT_RAW_MAX (UINT64_C(64) << 20)
#define FORMAT_RAW_SMALL (UINT64_C(128) << 10)
#define FORMAT_RATIO_MAX 250
#define FORMAT_FIELDS_MAX 1000 /* of info */
#define FORMAT_RAW_SUM_MAX (UINT64_C(2) << 30)
#define FORMAT_FILE_MAX (UINT64_C(2) << 30)

/* What a writer puts into one section, so that damage costs no more than that. */
#define FORMAT_ROWS 16384
#define FORMAT_ROW_BYTES (1u << 20)

struct format_section {
	uint32_t type, flags;
	uint64_t stored, raw, checksum;
};

static inline bool format_may_inflate(uint64_t stored, uint64_t raw)
{
	return raw <= FORMAT_RAW_SMALL ||
	       (raw <= FORMAT_RAW_MAX && raw / FORMAT_RATIO_MAX <= stored);
}

/* The checksum of bytes; 64 bits; any change within eight aligned bytes changes it. */
uint64_t format_checksum(const void *bytes, size_t size);

void format_put_header(uint8_t out[FORMAT_HEADER_SIZE]);
void format_put_section(uint8_t out[FORMAT_SECTION_SIZE], const struct format_section *s);
/* False where these are not the bytes of a section's header. */
bool format_get_section(const uint8_t in[FORMAT_SECTION_SIZE], struct format_section *s);

uint64_t format_get(const uint8_t *at, unsigned bytes); /* little-endian */

/* In LEB128. */
void format_put_number(struct buf *b, uint64_t value);
void format_put_signed(struct buf *b, int64_t value);
/* Its length, at most PROFILE_STRING_MAX, and its bytes. */
void format_put_text(struct buf *b, const char *text);

/* The fields of "info", for who writes and who reads them: exactly one of `text` and `number` is
   in use by each; offsets into struct profile. */
struct format_field {
	const char *key;
	enum { FIELD_TEXT, FIELD_U64, FIELD_U32, FIELD_BOOL } kind;
	size_t offset;
};
extern const struct format_field format_fields[];
extern const size_t format_field_count;
