/* SPDX-License-Identifier: Apache-2.0 */
#include "process/runtime.h"

#include <ctype.h>
#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "process/maps.h"
#include "process/status.h"

/* ---- options ---- */

/* The word that begins at bytes[*at]; moves *at to the next word. NULL at the end. The last word may lack
   its zero byte. */
static const char *next_word(const char *bytes, size_t size, size_t *at, size_t *length)
{
	if (*at >= size)
		return NULL;
	const char *word = bytes + *at;
	*length = strnlen(word, size - *at);
	*at += *length + 1;
	return word;
}

static bool is_word(const char *word, size_t length, const char *wanted)
{
	return length == strlen(wanted) && !memcmp(word, wanted, length);
}

static bool begins(const char *word, size_t length, const char *wanted)
{
	return length >= strlen(wanted) && !memcmp(word, wanted, strlen(wanted));
}

static void take_flag(const char *word, size_t length, bool *keeps)
{
	if (is_word(word, length, "-XX:+PreserveFramePointer"))
		*keeps = true;
	if (is_word(word, length, "-XX:-PreserveFramePointer"))
		*keeps = false;
}

/* Options in one string, separated by spaces. */
static void take_flags(const char *text, size_t length, bool *keeps)
{
	for (size_t at = 0, end; at < length; at = end + 1) {
		for (end = at; end < length && !isspace((unsigned char)text[end]); end++)
			;
		take_flag(text + at, end - at, keeps);
	}
}

static void take_variable(const char *environment, size_t size, const char *name, bool *keeps)
{
	size_t length, at = 0;
	for (const char *word; (word = next_word(environment, size, &at, &length));)
		if (begins(word, length, name))
			take_flags(word + strlen(name), length - strlen(name), keeps);
}

/* Whether the value of this option is the next word. */
static bool has_value(const char *word, size_t length)
{
	static const char *const options[] = {
		"-cp",
		"-classpath",
		"--class-path",
		"-p",
		"--module-path",
		"--upgrade-module-path",
		"--add-modules",
		"--add-exports",
		"--add-opens",
		"--add-reads",
		"--patch-module",
		"--limit-modules",
		"--source",
		"--enable-native-access",
	};
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (is_word(word, length, options[i]))
			return true;
	return false;
}

/* Reads the options of java up to the class or file that it runs. What follows are that
   program's arguments. */
static void take_arguments(const char *arguments, size_t size, bool *keeps)
{
	size_t length, at = 0;
	const char *word = next_word(arguments, size, &at, &length);
	while (word && (word = next_word(arguments, size, &at, &length))) {
		if (has_value(word, length)) {
			next_word(arguments, size, &at, &length);
			continue;
		}
		if (!length || (*word != '-' && *word != '@') || is_word(word, length, "-jar") ||
		    is_word(word, length, "-m") || is_word(word, length, "--module"))
			return;
		take_flag(word, length, keeps);
	}
}

bool runtime_java_keeps(const char *arguments, size_t size, const char *environment,
			size_t environment_size)
{
	bool keeps = false;
	/* In this order, because the last one decides. */
	take_variable(environment, environment_size, "JAVA_TOOL_OPTIONS=", &keeps);
	take_variable(environment, environment_size, "JDK_JAVA_OPTIONS=", &keeps);
	take_arguments(arguments, size, &keeps);
	take_variable(environment, environment_size, "_JAVA_OPTIONS=", &keeps);
	return keeps;
}

bool runtime_erlang_keeps(const char *arguments, size_t size)
{
	size_t length, at = 0;
	bool keeps = false, named = false;
	for (const char *word; (word = next_word(arguments, size, &at, &length));) {
		if (is_word(word, length, "--"))
			break;
		if (named)
			keeps = is_word(word, length, "true") || is_word(word, length, "fp");
		named = is_word(word, length, "-JPperf");
		if (is_word(word, length, "-JPperftrue"))
			keeps = true;
	}
	return keeps;
}

static bool java_option(pid_t task)
{
	struct buf arguments = {0}, environment = {0};
	struct err *e = process_file(task, "cmdline", &arguments);
	if (!e)
		e = process_file(task, "environ", &environment);
	bool keeps = !e && runtime_java_keeps(buf_text(&arguments), arguments.size,
					      buf_text(&environment), environment.size);
	err_free(e);
	buf_free(&arguments);
	buf_free(&environment);
	return keeps;
}

static bool erlang_option(pid_t task)
{
	struct buf arguments = {0};
	struct err *e = process_file(task, "cmdline", &arguments);
	bool keeps = !e && runtime_erlang_keeps(buf_text(&arguments), arguments.size);
	err_free(e);
	buf_free(&arguments);
	return keeps;
}

/* ---- who makes the code ---- */

static const struct runtime nobody = {"", false, false, ""};

#define BARE(name, why) ((struct runtime){name, true, false, "made by " name " " why})
#define KEEPS(name) ((struct runtime){name, false, false, ""})
#define KEEPS_TOP(name) ((struct runtime){name, false, true, ""})

#define JAVA \
	BARE("Java", "without frame pointers: it keeps them with java -XX:+PreserveFramePointer")
#define ERLANG BARE("Erlang", "without frame pointers: it keeps them with erl +JPperf true")

/* The first one that is mapped decides. Runtimes that make most of a program's code come before libraries
   that make only a little. */
static const struct kind {
	const char *file; /* the beginning of the file's name */
	/* Reads whether an option of the program makes it keep frame pointers. */
	bool (*option)(pid_t task);
	uint16_t machine; /* where the option exists; EM_NONE: on both CPUs */
	struct runtime x86_64, aarch64, with;
} kinds[] = {
	{"libjvm.so", java_option, EM_NONE, JAVA, JAVA, KEEPS("Java")},
	/* On aarch64, FP points to the scheduler's registers. */
	{"beam.smp", erlang_option, EM_X86_64, ERLANG, BARE("Erlang", "on a stack of its own"),
	 KEEPS("Erlang")},
	{"sbcl", NULL, EM_NONE, KEEPS("SBCL"), BARE("SBCL", "on a stack of its own"), {0}},
	{"node", NULL, EM_NONE, KEEPS("V8"), KEEPS("V8"), {0}},
	{"libnode.so", NULL, EM_NONE, KEEPS("V8"), KEEPS("V8"), {0}},
	{"libv8", NULL, EM_NONE, KEEPS("V8"), KEEPS("V8"), {0}},
	{"chrome", NULL, EM_NONE, KEEPS("V8"), KEEPS("V8"), {0}},
	{"chromium", NULL, EM_NONE, KEEPS("V8"), KEEPS("V8"), {0}},
	{"libjavascriptcore", NULL, EM_NONE, KEEPS("JavaScriptCore"), KEEPS("JavaScriptCore"), {0}},
	{"libcoreclr.so", NULL, EM_NONE, KEEPS(".NET"), KEEPS(".NET"), {0}},
	/* Compiled traces run in the frame of the interpreter: on aarch64, FP stays that of
	   the interpreter. */
	{"luajit",
	 NULL,
	 EM_NONE,
	 BARE("LuaJIT", "without frame pointers: luajit -joff runs without it"),
	 KEEPS_TOP("LuaJIT"),
	 {0}},
	{"libluajit",
	 NULL,
	 EM_NONE,
	 BARE("LuaJIT", "without frame pointers: jit.off() runs without it"),
	 KEEPS_TOP("LuaJIT"),
	 {0}},
	{"libpcre2",
	 NULL,
	 EM_NONE,
	 BARE("PCRE2", "without frame pointers: PHP runs without it by pcre.jit=0"),
	 KEEPS("PCRE2"),
	 {0}},
};

/* Whether the file has this name, followed by nothing, a version or a suffix. */
static bool is_file(const char *path, const char *file)
{
	const char *name = path_file(path);
	size_t length = strlen(file);
	return *path == '/' && !strncmp(name, file, length) &&
	       !isalpha((unsigned char)name[length]);
}

static bool has_file(const struct maps *maps, const char *file)
{
	for (size_t i = 0; i < maps->count; i++)
		if (maps->items[i].executable && is_file(maps->items[i].path, file))
			return true;
	return false;
}

const struct runtime *runtime_find(const struct maps *maps, pid_t task, uint16_t machine)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const struct kind *k = &kinds[i];
		if (!has_file(maps, k->file))
			continue;
		if (k->option && (!k->machine || k->machine == machine) && task > 0 &&
		    k->option(task))
			return &k->with;
		return machine == EM_X86_64 ? &k->x86_64 : &k->aarch64;
	}
	return &nobody;
}

bool runtime_is_saved_code(const char *path)
{
	size_t length = strlen(path), end = strlen(".core");
	return *path == '/' && length > end && !strcmp(path + length - end, ".core");
}
