/* SPDX-License-Identifier: Apache-2.0 */
/* Linker symbols, mangled by C++ and Rust or by nobody. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *symbol = malloc(size + 1), *name;
	assert(symbol);
	if (size)
		memcpy(symbol, data, size);
	symbol[size] = 0;
	name = name_demangle(symbol);
	assert(name && (name[0] || !symbol[0] || symbol[0] == '@'));
	free(name);
	free(symbol);
	return 0;
}
