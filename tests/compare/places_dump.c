/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we say of addresses of a file, as text for the script `places` beside this:
 *
 *     places_dump stack|report FILE    A address symbol name path line..., for each address
 *                                      on stdin, innermost first; "?" and 0 are what is not known
 *     places_dump starts FILE          where the instructions of functions with a symbol begin
 *
 * `stack` is what `culprit stack` shows, `report` what reports do, which know loops, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/answers.h"
#include "base/err.h"
#include "image/image.h"
#include "image/places.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "structure/structure.h"

static void check(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "places_dump: %s\n", err_text(e));
	exit(1);
}

static void show(uint64_t address, const struct place *places, size_t count)
{
	printf("A\t%" PRIx64, address);
	for (size_t i = 0; i < count; i++)
		printf("\t%s\t%s\t%s\t%d", places[i].symbol ? places[i].symbol : "?",
		       places[i].function ? places[i].function : "?",
		       places[i].file ? places[i].file : "?", places[i].line);
	printf("\n");
}

static void show_all(struct places *places, struct structure *structure)
{
	struct place found[PLACES_MAX];
	struct answers answers = {0};
	char line[64];
	while (fgets(line, sizeof line, stdin)) {
		uint64_t address = strtoull(line, NULL, 16);
		const struct answer *a;
		if (!structure) {
			show(address, found, places_find(places, address, found));
			continue;
		}
		answers_add(&answers, places, structure, address);
		a = answers_find(&answers, address);
		show(address, a ? a->places : NULL, a ? a->count : 0);
	}
	answers_free(&answers);
}

static void show_starts(struct image *image, const struct symbols *symbols)
{
	const struct isa *isa = isa_for_machine(image_machine(image));
	const struct symbol *all = NULL;
	size_t count = symbols && isa ? symbols_all(symbols, &all) : 0;
	for (size_t i = 0; i < count; i++) {
		size_t size = 0;
		const uint8_t *bytes = image_bytes_at(image, all[i].address, &size);
		struct insn insn;
		if (size > all[i].size)
			size = all[i].size;
		for (size_t at = 0; bytes && at < size; at += insn.length) {
			isa->decode(bytes + at, size - at, all[i].address + at, &insn);
			printf("%" PRIx64 "\n", insn.address);
		}
	}
}

int main(int argc, char **argv)
{
	struct structure_options options = {0};
	struct structure *structure = NULL;
	struct places *places;
	struct image *image;
	if (argc < 3) {
		fprintf(stderr, "usage: places_dump stack|report|starts FILE\n");
		return 2;
	}
	check(image_open(argv[2], &image));
	check(places_open(image, false, &places));
	if (strcmp(argv[1], "starts") == 0) {
		show_starts(image, places_symbols(places));
	} else {
		if (strcmp(argv[1], "report") == 0)
			check(structure_open(image, &options, &structure));
		show_all(places, structure);
	}
	structure_close(structure);
	places_close(places);
	image_close(image);
	return 0;
}
