/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a module does with return addresses, for recordings that count returns (agent/sentinel.c), and for
   probes (agent/probes.c). */
#include <stdbool.h>
#include <stdint.h>

struct image;

/* Returns flags of struct wire_module (safe/wire.h): WIRE_MODULE_OWN_RETURNS, …_OWN_WALKS, …_OWN_UNWINDER,
   …_SIGNS, …_V8. `go`: the file was made by Go's compiler. */
uint32_t returns_in_file(const char *path, struct image *image, bool go);
