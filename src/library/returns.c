/* SPDX-License-Identifier: Apache-2.0 */
#include "library/returns.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "image/image.h"
#include "image/v8tab.h"
#include "safe/wire.h"

/* libc has setjmp, vfork, dlsym and others that look at where they were called. Unwinders do, too. */
static bool looks_at_its_own(const char *path)
{
	static const char *const files[] = {
		"libc.so",      "libc-",       "ld-linux",  "ld-musl",     "ld-2",   "libpthread",
		"libdl.so",     "libdl-",      "libgcc_s.", "libunwind",   "[vdso]", "linux-vdso",
		"libcoroutine", "libboost_co", "libcilkrt", "libgreenlet",
	};
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		if (!strncmp(path_file(path), files[i], strlen(files[i])))
			return true;
	return false;
}

static bool has_bytes(struct image *image, const char *section, const void *bytes, size_t count)
{
	size_t size = 0;
	const struct image_section *s = image_section(image, section);
	const uint8_t *at = s ? image_section_bytes(image, s, &size) : NULL;
	return at && memmem(at, size, bytes, count);
}

/* The collector of OCaml's runtime looks return addresses up, and expects to find each. Every program that has
   the runtime in it also has the name of its variable. */
static bool has_ocaml(struct image *image)
{
	static const char name[] = "OCAMLRUNPARAM";
	return has_bytes(image, ".rodata", name, sizeof name) ||
	       has_bytes(image, ".data", name, sizeof name);
}

/* paciasp or pacibsp anywhere in the code. */
static bool has_signatures(struct image *image)
{
	static const uint8_t a[] = {0x3f, 0x23, 0x03, 0xd5}, b[] = {0x7f, 0x23, 0x03, 0xd5};
	return image_machine(image) == EM_AARCH64 &&
	       (has_bytes(image, ".text", a, sizeof a) || has_bytes(image, ".text", b, sizeof b));
}

static bool has_v8(struct image *image)
{
	struct v8tab_builtin *all = NULL;
	size_t count = v8tab_read(image, &all);
	free(all);
	return count;
}

/* It catches exceptions, or cleans up for them, and needs nobody for that. */
static bool has_unwinder(struct image *image)
{
	static const char name[] = "\0_Unwind_Resume";
	return image_section(image, ".gcc_except_table") &&
	       !has_bytes(image, ".dynstr", name, sizeof name);
}

uint32_t returns_in_file(const char *path, struct image *image, bool go)
{
	uint32_t flags = looks_at_its_own(path) ? WIRE_MODULE_OWN_RETURNS : 0;
	flags |= !flags && has_unwinder(image) ? WIRE_MODULE_OWN_UNWINDER : 0;
	flags |= go || has_ocaml(image) ? WIRE_MODULE_OWN_WALKS : 0;
	flags |= has_signatures(image) ? WIRE_MODULE_SIGNS : 0;
	flags |= has_v8(image) ? WIRE_MODULE_V8 : 0;
	return flags;
}
