/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangling of names that nobody vouches for. libiberty does the work; four
 * things are bounded around it:
 *
 *   output  a name of 300 bytes can expand to gigabytes by substitutions. The
 *           text is received in pieces, and the last straw jumps out. That is
 *           safe because this interface of libiberty allocates nothing.
 *   stack   libiberty refuses C++ names above 1024 bytes unless told to recurse
 *           as deep as they ask. Template libraries have such names, so they are
 *           demangled without that limit on a stack that is large enough for
 *           the longest name taken.
 *   input   longer names stay as they are.
 *   time    two habits of libiberty take time exponential in the length of the
 *           name: reading what may be a conversion to a template's parameter
 *           twice, and searching a pattern of packs wherever substitutions lead.
 *           Names with more of these than anybody writes stay as they are.
 */
#include "image/names.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#define LENGTH_ORDINARY 1000
#define LENGTH_MAX (64 << 10)
#define STACK_PER_BYTE 4096
#define TEXT_MAX (256 << 10)
#define REREAD_MAX 10       /* each doubles the time */
#define PARTS_MAX (1 << 20) /* of a name, substitutions written out */
#define REFERENCES_MAX 16   /* substitutions, where parts cannot be counted: each may double them */

struct text {
	char *bytes;
	size_t size, room;
	jmp_buf overflow;
};

static void text_append(const char *piece, size_t size, void *opaque)
{
	struct text *text = opaque;
	size_t room = text->room ? text->room : 128;
	char *moved;
	if (!size) /* then `piece` may be NULL */
		return;
	if (size >= TEXT_MAX - text->size)
		longjmp(text->overflow, 1);
	while (room <= text->size + size)
		room *= 2;
	if (room != text->room) {
		moved = realloc(text->bytes, room);
		if (!moved)
			longjmp(text->overflow, 1);
		text->bytes = moved;
		text->room = room;
	}
	memcpy(text->bytes + text->size, piece, size);
	text->size += size;
	text->bytes[text->size] = 0;
}

/* Calls one demangler; false (and an empty text) where it cannot or must not. */
static bool run_demangler(int (*demangle)(const char *, int, demangle_callbackref, void *),
			  const char *symbol, int options, struct text *text)
{
	text->size = 0;
	if (setjmp(text->overflow) != 0)
		return false;
	return demangle(symbol, options, text_append, text) && text->size > 0;
}

/* How often the arguments of a template's parameter, "T_I…", may be read twice. */
static unsigned int count_rereads(const char *symbol)
{
	unsigned int count = 0;
	if (!strstr(symbol, "cv"))
		return 0;
	for (const char *at = symbol; (at = strstr(at, "_I")); at++) {
		const char *before = at;
		while (before > symbol && strchr("0123456789ABCDEFGHIJKLMNOPQRSUVWXYZ", before[-1]))
			before--;
		count += before > symbol && before[-1] == 'T';
	}
	return count;
}

/* "S_", "S0_", "T_", "T0_" and so on. */
static unsigned int count_references(const char *symbol)
{
	unsigned int count = 0;
	for (const char *at = symbol; *at; at++)
		if (*at == 'S' || *at == 'T')
			count += at[1 + strspn(at + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")] ==
				 '_';
	return count;
}

/* Counts the parts of a name, those behind substitutions each time. False: more than *left. */
static bool count_parts(const struct demangle_component *part, unsigned int *left)
{
	if (!part)
		return true;
	if (!*left)
		return false;
	--*left;
	switch (part->type) {
	case DEMANGLE_COMPONENT_NAME:
	case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
	case DEMANGLE_COMPONENT_FUNCTION_PARAM:
	case DEMANGLE_COMPONENT_SUB_STD:
	case DEMANGLE_COMPONENT_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_FIXED_TYPE:
	case DEMANGLE_COMPONENT_OPERATOR:
	case DEMANGLE_COMPONENT_CHARACTER:
	case DEMANGLE_COMPONENT_NUMBER:
	case DEMANGLE_COMPONENT_LAMBDA:
	case DEMANGLE_COMPONENT_DEFAULT_ARG:
	case DEMANGLE_COMPONENT_UNNAMED_TYPE:
		return true;
	case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
		return count_parts(part->u.s_extended_operator.name, left);
	case DEMANGLE_COMPONENT_CTOR:
		return count_parts(part->u.s_ctor.name, left);
	case DEMANGLE_COMPONENT_DTOR:
		return count_parts(part->u.s_dtor.name, left);
	default:
		return count_parts(part->u.s_binary.left, left) &&
		       count_parts(part->u.s_binary.right, left);
	}
}

/* Whether libiberty will be done with a C++ name soon. */
static bool is_bounded(const char *symbol, int options)
{
	struct demangle_component *tree;
	unsigned int left = PARTS_MAX;
	void *memory = NULL;
	bool good;
	if (count_rereads(symbol) > REREAD_MAX)
		return false;
	if (!strstr(symbol, "Dp") && !strstr(symbol, "sp")) /* no pattern of packs */
		return true;
	symbol = strstr(symbol, "_Z"); /* behind "_GLOBAL__I_" */
	tree = symbol ? cplus_demangle_v3_components(symbol, options, &memory) : NULL;
	good = tree && count_parts(tree, &left);
	/* What was written by the rules for "sr" before they changed, as clang does, libiberty reads only
	   when it is to print it. */
	if (!tree && symbol && strstr(symbol, "sr"))
		good = count_references(symbol) <= REFERENCES_MAX;
	free(memory);
	return good;
}

static bool demangle_here(const char *symbol, int options, struct text *text)
{
	/* Rust first: its old names are valid C++ names with a hash at the end. Its new ones refer back
	   to themselves, so that depth has no bound but the demangler's own. */
	return run_demangler(rust_demangle_callback, symbol, options & ~DMGL_NO_RECURSE_LIMIT,
			     text) ||
	       (is_bounded(symbol, options) &&
		run_demangler(cplus_demangle_v3_callback, symbol, options, text));
}

struct long_name {
	const char *symbol;
	struct text *text;
	bool good;
};

static void *demangle_long_thread(void *argument)
{
	struct long_name *name = argument;
	name->good = demangle_here(name->symbol, DMGL_PARAMS | DMGL_ANSI | DMGL_NO_RECURSE_LIMIT,
				   name->text);
	return NULL;
}

static bool demangle_long(const char *symbol, size_t length, struct text *text)
{
	struct long_name name = {.symbol = symbol, .text = text};
	pthread_attr_t attributes;
	pthread_t thread;
	bool started;
	if (pthread_attr_init(&attributes) != 0)
		return false;
	started = pthread_attr_setstacksize(&attributes, length * STACK_PER_BYTE) == 0 &&
		  pthread_create(&thread, &attributes, demangle_long_thread, &name) == 0;
	pthread_attr_destroy(&attributes);
	if (started)
		pthread_join(thread, NULL);
	return started && name.good;
}

/* A copy without the symbol version: name@VERSION or name@@VERSION. */
static char *copy_without_version(const char *symbol)
{
	const char *at = strchr(symbol, '@');
	if (!at || at == symbol || strcmp(at, "@plt") == 0)
		return strdup(symbol);
	return strndup(symbol, (size_t)(at - symbol));
}

char *name_demangle(const char *symbol)
{
	char *plain = copy_without_version(symbol);
	size_t length = plain ? strlen(plain) : 0;
	struct text text = {0};
	bool good = false;
	if (length < 3 || length > LENGTH_MAX || plain[0] != '_')
		return plain;
	if (length <= LENGTH_ORDINARY)
		good = demangle_here(plain, DMGL_PARAMS | DMGL_ANSI, &text);
	else
		good = demangle_long(plain, length, &text);
	if (good) {
		free(plain);
		return text.bytes;
	}
	free(text.bytes);
	return plain;
}
