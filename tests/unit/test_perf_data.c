/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/buf.h"
#include "base/err.h"
#include "import/import.h"
#include "import/input.h"
#include "process/kernel_names.h"
#include "import/perf_file.h"
#include "import/perf_format.h"
#include "import/perf_sample.h"
#include "import/registers.h"
#include "profile/profile.h"
#include "unwind/walk.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define ATTR 128u

static void put(struct buf *b, uint64_t value, unsigned size)
{
	uint8_t bytes[8];
	for (unsigned i = 0; i < size; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	buf_append(b, bytes, size);
}

static void put_record(struct buf *b, uint32_t type, uint16_t misc, const struct buf *body)
{
	put(b, type, 4);
	put(b, misc, 2);
	put(b, 8 + body->size, 2);
	buf_append(b, body->data, body->size);
}

struct event {
	uint64_t sample_type, id;
};

static void put_attr(struct buf *b, const struct event *e, unsigned config)
{
	size_t start = b->size;
	put(b, 1, 4); /* software */
	put(b, ATTR, 4);
	put(b, config, 8);
	put(b, 4000, 8);
	put(b, e->sample_type, 8);
	put(b, 0, 8);
	put(b, PERF_ATTR_ID_ALL | PERF_ATTR_FREQ, 8);
	while (b->size - start < ATTR)
		put(b, 0, 1);
}

/* A file with these events and records. */
static struct buf make_file(const struct event *events, unsigned count, const struct buf *records)
{
	struct buf b = {0};
	put(&b, PERF_MAGIC, 8);
	put(&b, PERF_HEADER_SIZE, 8);
	put(&b, ATTR + 16, 8);
	put(&b, PERF_HEADER_SIZE + 8 * count, 8);
	put(&b, count * (ATTR + 16), 8);
	put(&b, PERF_HEADER_SIZE + 8 * count + count * (ATTR + 16), 8);
	put(&b, records->size, 8);
	for (unsigned i = 0; i < 6; i++)
		put(&b, 0, 8);
	for (unsigned i = 0; i < count; i++)
		put(&b, events[i].id, 8);
	for (unsigned i = 0; i < count; i++) {
		put_attr(&b, &events[i], i ? 2 : 0);
		put(&b, PERF_HEADER_SIZE + 8 * i, 8);
		put(&b, 8, 8);
	}
	buf_append(&b, records->data, records->size);
	return b;
}

#define PLAIN (PERF_HAS_IP | PERF_HAS_TID | PERF_HAS_TIME)

static void put_sample(struct buf *b, uint32_t pid, uint64_t ip, uint64_t time)
{
	struct buf body = {0};
	put(&body, ip, 8);
	put(&body, pid, 4);
	put(&body, pid, 4);
	put(&body, time, 8);
	put_record(b, PERF_KERNEL_SAMPLE, PERF_MODE_USER, &body);
	buf_free(&body);
}

static void put_round(struct buf *b)
{
	put_record(b, PERF_OWN_FINISHED_ROUND, 0, &(struct buf){0});
}

struct seen {
	uint64_t times[64];
	size_t count;
};

static struct err *see(void *context, const struct perf_record *r)
{
	struct seen *s = context;
	assert_true(s->count < 64);
	s->times[s->count++] = r->time;
	return NULL;
}

static struct seen read_times(const struct buf *file, char **damage)
{
	struct input *input;
	struct perf_file *f;
	struct seen s = {0};
	assert_null(input_open_memory(file->data, file->size, &input));
	assert_null(perf_file_open(input, &f));
	assert_null(perf_file_records(f, see, &s));
	*damage = strdup(buf_text(&perf_file_info(f)->damage));
	perf_file_close(f);
	input_close(input);
	return s;
}

static void check_times(const struct buf *records, const char *damage, size_t count,
			const uint64_t *wanted)
{
	const struct event event = {PLAIN, 1};
	struct buf file = make_file(&event, 1, records);
	char *said;
	struct seen s = read_times(&file, &said);
	assert_int_equal(s.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(s.times[i], wanted[i]);
	if (damage[0])
		assert_non_null(strstr(said, damage));
	else
		assert_string_equal(said, "");
	free(said);
	buf_free(&file);
}

static void orders_records_by_time(void **state)
{
	struct buf records = {0};
	(void)state;
	put_sample(&records, 1, 1, 30);
	put_sample(&records, 1, 1, 10);
	put_sample(&records, 1, 1, 0); /* has none: at once */
	put_round(&records);
	put_sample(&records, 1, 1, 20); /* of a slower CPU */
	put_sample(&records, 1, 1, 50);
	put_round(&records);
	put_sample(&records, 1, 1, 40);
	check_times(&records, "", 6, (uint64_t[]){0, 10, 20, 30, 40, 50});
	buf_free(&records);
}

static void keeps_what_is_before_nonsense(void **state)
{
	struct buf records = {0};
	(void)state;
	put_sample(&records, 1, 1, 7);
	put_sample(&records, 1, 1, 5);
	put(&records, PERF_KERNEL_SAMPLE, 4);
	put(&records, 4 << 16, 4); /* shorter than its own head */
	put_sample(&records, 1, 1, 9);
	check_times(&records, "makes no sense", 2, (uint64_t[]){5, 7});
	records.size = 2 * 32 + 10;
	check_times(&records, "makes no sense", 2, (uint64_t[]){5, 7});
	records.size = 2 * 32 - 1;
	check_times(&records, "the last record is cut off", 1, (uint64_t[]){7});
	buf_free(&records);
}

/* A stream whose pieces end inside of records. */
static void reads_compressed_records(void **state)
{
	struct buf plain = {0}, records = {0};
	char packed[1000];
	(void)state;
	for (uint64_t i = 1; i <= 9; i++)
		put_sample(&plain, 1, 1, 10 - i);
	size_t size = ZSTD_compress(packed, sizeof packed, plain.data, plain.size, 1);
	assert_false(ZSTD_isError(size));
	for (size_t at = 0; at < size; at += 7) {
		struct buf piece = {0};
		buf_append(&piece, packed + at, size - at < 7 ? size - at : 7);
		put_record(&records, PERF_OWN_COMPRESSED, 0, &piece);
		buf_free(&piece);
	}
	check_times(&records, "", 9, (uint64_t[]){1, 2, 3, 4, 5, 6, 7, 8, 9});
	records.data[8] ^= 1; /* no zstd any more */
	check_times(&records, "compressed records are damaged", 0, NULL);
	buf_free(&plain);
	buf_free(&records);
}

static void refuses_bombs(void **state)
{
	size_t size = (size_t)100 << 20;
	char *zeros = calloc(1, size), *packed = malloc(1 << 16);
	struct buf piece = {0}, records = {0};
	(void)state;
	/* Records of 65528 bytes, one after the other, that say nothing. */
	for (size_t at = 0; at + 65528 <= size; at += 65528) {
		zeros[at] = PERF_OWN_FINISHED_ROUND;
		zeros[at + 6] = (char)0xf8;
		zeros[at + 7] = (char)0xff;
	}
	size_t packed_size = ZSTD_compress(packed, 1 << 16, zeros, size, 3);
	assert_false(ZSTD_isError(packed_size));
	buf_append(&piece, packed, packed_size);
	put_record(&records, PERF_OWN_COMPRESSED, 0, &piece);
	check_times(&records, packed_size * 1000 < size ? "too large" : "", 0, NULL);
	buf_free(&piece);
	buf_free(&records);
	free(packed);
	free(zeros);
}

/* ---- samples ---- */

static void reads_every_field_of_a_sample(void **state)
{
	struct perf_event e = {.sample_type = 0x13fff | PERF_HAS_IDENTIFIER,
			       .read_format = PERF_READ_GROUP | PERF_READ_ID | PERF_READ_LOST |
					      PERF_READ_ENABLED | PERF_READ_RUNNING,
			       .branches = PERF_BRANCHES_INDEX | PERF_BRANCHES_COUNTERS,
			       .registers = 1 << 2 | 1 << 7 | 1 << 8};
	struct perf_sample s;
	struct buf b = {0};
	(void)state;
	put(&b, 99, 8);     /* identifier */
	put(&b, 0x1234, 8); /* ip */
	put(&b, 5, 4);
	put(&b, 6, 4);
	for (uint64_t i = 0; i < 5; i++) /* time, address, id, stream, cpu */
		put(&b, 1000 + i, 8);
	put(&b, 77, 8); /* period */
	put(&b, 2, 8);  /* read: a group of two */
	for (uint64_t i = 0; i < 2 + 2 * 3; i++)
		put(&b, i, 8);
	put(&b, 3, 8); /* chain */
	put(&b, PERF_CHAIN_USER, 8);
	put(&b, 0x1234, 8);
	put(&b, 0x1300, 8);
	put(&b, 4, 4); /* raw */
	put(&b, 0xffff, 4);
	put(&b, 1, 8); /* branches */
	for (unsigned i = 0; i < 1 + 3 + 1; i++)
		put(&b, 0, 8);
	put(&b, PERF_REGISTERS_64, 8);
	put(&b, 22, 8);
	put(&b, 0x7000, 8);
	put(&b, 0x1234, 8);
	put(&b, 16, 8); /* stack */
	put(&b, 0xaaaa, 8);
	put(&b, 0xbbbb, 8);
	put(&b, 8, 8); /* of which half was there */
	assert_true(perf_sample_parse(&e, (const uint8_t *)b.data, b.size, &s));
	assert_int_equal(s.ip, 0x1234);
	assert_int_equal(s.process, 5);
	assert_int_equal(s.thread, 6);
	assert_int_equal(s.period, 77);
	assert_int_equal(s.chain_count, 3);
	assert_int_equal(perf_sample_word(s.chain, 2), 0x1300);
	assert_int_equal(s.registers_abi, PERF_REGISTERS_64);
	assert_int_equal(perf_sample_word(s.registers, 1), 0x7000);
	assert_int_equal(s.stack_wanted, 16);
	assert_int_equal(s.stack_size, 8);
	assert_int_equal(perf_sample_word(s.stack, 0), 0xaaaa);
	for (size_t size = 0; size < b.size; size++) {
		uint8_t *exact = malloc(size + !size);
		memcpy(exact, b.data, size);
		assert_false(perf_sample_parse(&e, exact, size, &s));
		free(exact);
	}
	buf_free(&b);
}

static void turns_registers_into_dwarf_numbers(void **state)
{
	uint8_t words[64 * 8] = {0};
	uint64_t out[CPU_REGISTERS], pc, one;
	(void)state;
	for (unsigned i = 0; i < 64; i++)
		words[8 * i] = (uint8_t)(100 + i);
	/* x86-64: segments are left out, so r8 is the tenth. */
	assert_true(registers_convert(&perf_cpu_x86_64, 0xff01ff, words, out, &pc));
	assert_int_equal(pc, 108);
	assert_int_equal(out[0], 100); /* rax */
	assert_int_equal(out[1], 103); /* rdx */
	assert_int_equal(out[2], 102); /* rcx */
	assert_int_equal(out[3], 101); /* rbx */
	assert_int_equal(out[4], 104); /* rsi */
	assert_int_equal(out[6], 106); /* rbp */
	assert_int_equal(out[7], 107); /* rsp */
	assert_int_equal(out[8], 109); /* r8 */
	assert_int_equal(out[15], 116);
	assert_true(registers_convert(&perf_cpu_aarch64, 0x1ffffffff, words, out, &pc));
	assert_int_equal(pc, 132);
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(out[i], 100 + i);
	/* Only the link register, as perf record -g has it. */
	assert_false(registers_convert(&perf_cpu_aarch64, 1ull << 30, words, out, &pc));
	assert_true(registers_one(&perf_cpu_aarch64, 1ull << 30, words, 30, &one));
	assert_int_equal(one, 100);
	assert_ptr_equal(perf_cpu_named("x86_64"), &perf_cpu_x86_64);
	assert_ptr_equal(perf_cpu_for(EM_AARCH64), &perf_cpu_aarch64);
	assert_null(perf_cpu_named("riscv64"));
}

/* ---- the whole ---- */

static struct err *import(const struct buf *file, struct profile **p, struct buf *notes)
{
	struct import_options options = {.kallsyms = "/nowhere"};
	return import_perf_bytes(file->data, file->size, &options, p, notes);
}

static void put_identified(struct buf *b, uint64_t id, uint64_t time)
{
	struct buf body = {0};
	put(&body, id, 8);
	put(&body, 0x1000, 8);
	put(&body, 3, 4);
	put(&body, 4, 4);
	put(&body, time, 8);
	put_record(b, PERF_KERNEL_SAMPLE, PERF_MODE_USER, &body);
	buf_free(&body);
}

static void counts_events_by_their_ids(void **state)
{
	const struct event events[] = {{PLAIN | PERF_HAS_IDENTIFIER, 41},
				       {PLAIN | PERF_HAS_IDENTIFIER, 42}};
	struct buf records = {0}, notes = {0};
	struct profile *p;
	(void)state;
	for (unsigned i = 0; i < 5; i++)
		put_identified(&records, 42, 10 + i);
	put_identified(&records, 41, 20);
	put_identified(&records, 43, 21); /* nobody's */
	struct buf file = make_file(events, 2, &records);
	assert_null(import(&file, &p, &notes));
	assert_int_equal(p->metric_count, 2);
	assert_string_equal(p->metrics[0].name, "cpu-clock");
	assert_string_equal(p->metrics[0].unit, "ns");
	assert_string_equal(p->metrics[1].name, "page-faults");
	assert_int_equal(profile_samples(p, 0), 1);
	assert_int_equal(profile_samples(p, 1), 5);
	assert_int_equal(p->lost_count, 1);
	assert_int_equal(p->lost[0].count, 1);
	assert_int_equal(p->hz, 4000);
	assert_int_equal(p->duration_ns, 10);
	assert_int_equal(p->threads[0].tid, 4);
	assert_int_equal(p->processes[0].pid, 3);
	/* No callers were recorded: none of them is whole. */
	assert_int_equal(profile_partial(p, 1, WALK_NO_RECIPE), 5);
	assert_non_null(strstr(buf_text(&notes), "no callers"));
	profile_free(p);
	buf_free(&file);
	buf_free(&records);
	buf_free(&notes);
}

/* Whatever the length: no crash, and never more samples than there are. */
static void survives_every_cut(void **state)
{
	const struct event event = {PLAIN, 1};
	struct buf records = {0};
	struct profile *p;
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		put_sample(&records, 1, 0x1000, 10 + i);
	struct buf file = make_file(&event, 1, &records);
	size_t start = file.size - records.size;
	for (size_t size = 0; size <= file.size; size++) {
		uint8_t *exact = malloc(size + !size);
		struct buf notes = {0}, cut = {.data = (char *)exact, .size = size};
		memcpy(exact, file.data, size);
		struct err *e = import(&cut, &p, &notes);
		assert_int_equal(!e, size >= start);
		if (!e) {
			assert_int_equal(profile_samples(p, 0), (size - start) / 32);
			assert_int_equal(!strstr(buf_text(&notes), "damaged"), size == file.size);
		}
		err_free(e);
		profile_free(p);
		buf_free(&notes);
		free(exact);
	}
	buf_free(&file);
	buf_free(&records);
}

static void names_the_kernel_where_it_was(void **state)
{
	static const char list[] = "ffff800080000000 T _text\nffff800080000100 t one\n"
				   "ffff800080000200 D data\nffff800080000300 T two\n"
				   "ffff800080000300 T alias\nffff800090000000 t far\t[module]\n";
	struct kernel_names *k;
	uint64_t start, size;
	(void)state;
	assert_null(kernel_names_parse(list, sizeof list - 1, &k));
	assert_string_equal(kernel_names_find(k, 0xffff8000800001ff, &start, &size), "one");
	assert_int_equal(start, 0xffff800080000100);
	assert_int_equal(size, 0x200);
	assert_string_equal(kernel_names_find(k, 0xffff800080000304, &start, &size), "two");
	assert_string_equal(kernel_names_find(k, 0xffff800090000004, &start, &size), "far");
	assert_null(kernel_names_find(k, 0x1000, &start, &size));
	/* Another boot: all moved, modules to nobody knows where. */
	kernel_names_move(k, "_text", 0xffffa00080000000);
	assert_string_equal(kernel_names_find(k, 0xffffa00080000304, &start, &size), "two");
	assert_int_equal(start, 0xffffa00080000300);
	assert_null(kernel_names_find(k, 0xffffa00090000004, &start, &size));
	kernel_names_close(k);
	/* As others than root see it. */
	struct err *e = kernel_names_parse("0000000000000000 T _text\n", 25, &k);
	assert_non_null(e);
	err_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders_records_by_time),
		cmocka_unit_test(keeps_what_is_before_nonsense),
		cmocka_unit_test(reads_compressed_records),
		cmocka_unit_test(refuses_bombs),
		cmocka_unit_test(reads_every_field_of_a_sample),
		cmocka_unit_test(turns_registers_into_dwarf_numbers),
		cmocka_unit_test(counts_events_by_their_ids),
		cmocka_unit_test(survives_every_cut),
		cmocka_unit_test(names_the_kernel_where_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
