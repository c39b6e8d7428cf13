/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdio.h>
#include <string.h>

static bool json, quiet;
static const char *output;
static uint64_t pid;
static int way, form;
static struct arg_list events;

static const struct arg options[] = {
	{'j', "json", NULL, "print JSON", ARG_FLAG, &json},
	{'q', NULL, NULL, "say less", ARG_FLAG, &quiet},
	{'o', "output", "FILE", "write there", ARG_STRING, &output},
	{'p', "pid", "PID", "the process", ARG_U64, &pid},
	{0, "unwind-with-a-long-name", "auto|cfi|fp", "where from", ARG_CHOICE, &way},
	{'f', "form", "tree|rows", "how", ARG_MAYBE, &form},
	{'e', "event", "EVENT", "what to count", ARG_LIST, &events},
	{0},
};

static struct args args;
static bool stop_at_operand;

/* Words separated by blanks, through args_parse. */
static struct err *parse(const char *line)
{
	static char text[1024];
	static char *argv[128];
	int argc = 0;
	char *word;
	json = quiet = false;
	output = NULL;
	pid = 0;
	way = -1;
	form = 0;
	events.count = 0;
	args = (struct args){.command = "stack",
			     .usage = "PID",
			     .summary = "S.",
			     .options = options,
			     .stop_at_operand = stop_at_operand};
	strcpy(text, line);
	for (word = strtok(text, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	return args_parse(&args, argc, argv);
}

static void assert_refused(const char *line, const char *wanted)
{
	struct err *e = parse(line);
	assert_non_null(e);
	assert_string_equal(err_text(e), wanted);
	err_free(e);
}

static void long_options(void **state)
{
	(void)state;
	assert_null(parse("stack --json --output=a=b --pid 42 --unwind-with-a-long-name=fp"));
	assert_true(json);
	assert_false(quiet);
	assert_string_equal(output, "a=b");
	assert_int_equal(pid, 42);
	assert_int_equal(way, 2);
	assert_int_equal(args.count, 0);
	assert_null(parse("stack --output="));
	assert_string_equal(output, "");
}

static void short_options(void **state)
{
	(void)state;
	assert_null(parse("stack -jqp0x1F -o out"));
	assert_true(json && quiet);
	assert_int_equal(pid, 31);
	assert_string_equal(output, "out");
	assert_null(parse("stack -o -j"));
	assert_string_equal(output, "-j");
	assert_false(json);
}

static void operands_anywhere(void **state)
{
	(void)state;
	assert_null(parse("stack one -j two - -p 3 -- --json -x"));
	assert_int_equal(args.count, 5);
	assert_string_equal(args.operands[0], "one");
	assert_string_equal(args.operands[1], "two");
	assert_string_equal(args.operands[2], "-");
	assert_string_equal(args.operands[3], "--json");
	assert_string_equal(args.operands[4], "-x");
	assert_int_equal(pid, 3);
	assert_null(parse("stack"));
	assert_int_equal(args.count, 0);
	assert_null(parse(""));
	assert_int_equal(args.count, 0);
}

static void the_first_operand_ends_options(void **state)
{
	(void)state;
	stop_at_operand = true;
	assert_null(parse("stack -j one -q --nonsense -- two"));
	assert_true(json);
	assert_false(quiet);
	assert_int_equal(args.count, 5);
	assert_string_equal(args.operands[0], "one");
	assert_string_equal(args.operands[1], "-q");
	assert_string_equal(args.operands[3], "--");
	assert_string_equal(args.operands[4], "two");
	assert_null(parse("stack -j -- -q -- two"));
	assert_int_equal(args.count, 3);
	assert_string_equal(args.operands[0], "-q");
	assert_string_equal(args.operands[1], "--");
	assert_null(parse("stack - -q"));
	assert_int_equal(args.count, 2);
	assert_string_equal(args.operands[0], "-");
	assert_null(parse("stack -j -o out one two"));
	assert_int_equal(args.count, 2);
	assert_string_equal(args.operands[1], "two");
	assert_null(args.operands[2]);
	stop_at_operand = false;
}

static void lists(void **state)
{
	char line[1024] = "stack";
	struct err *e;
	size_t i;
	(void)state;
	assert_null(parse("stack"));
	assert_int_equal(events.count, 0);
	assert_null(parse("stack -e a@1 one --event=b -ec --event d"));
	assert_int_equal(events.count, 4);
	assert_string_equal(events.values[0], "a@1");
	assert_string_equal(events.values[1], "b");
	assert_string_equal(events.values[2], "c");
	assert_string_equal(events.values[3], "d");
	assert_refused("stack -e", "a value is missing after '-e' (see culprit stack -h)");
	for (i = 0; i < ARG_LIST_MAX; i++)
		strcat(line, " -ex");
	assert_null(parse(line));
	assert_int_equal(events.count, ARG_LIST_MAX);
	strcat(line, " -ex");
	e = parse(line);
	assert_non_null(e);
	assert_string_equal(err_text(e), "-e was given more than 64 times");
	err_free(e);
	assert_int_equal(events.count, ARG_LIST_MAX);
}

static void values_that_may_be_missing(void **state)
{
	(void)state;
	assert_null(parse("stack 1"));
	assert_int_equal(form, 0);
	assert_null(parse("stack --form 1"));
	assert_int_equal(form, 1);
	assert_int_equal(args.count, 1);
	assert_null(parse("stack -jf 1"));
	assert_int_equal(form, 1);
	assert_null(parse("stack --form=tree"));
	assert_int_equal(form, 2);
	assert_null(parse("stack --form=rows --form"));
	assert_int_equal(form, 1);
	assert_null(parse("stack --form --form=rows"));
	assert_int_equal(form, 3);
	assert_refused("stack --form=", "--form takes no value, or one of tree|rows, not '' (see "
					"culprit stack -h)");
	assert_refused("stack --form=row", "--form takes no value, or one of tree|rows, not 'row' "
					   "(see culprit stack -h)");
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	assert_refused("stack --x", "unknown option '--x' (see culprit stack -h)");
	assert_refused("stack --jso",
		       "unknown option '--jso', did you mean '--json'? (see culprit stack -h)");
	assert_refused("stack --jsons=1",
		       "unknown option '--jsons=1', did you mean '--json'? (see culprit stack -h)");
	assert_refused("stack --unwind=fp", "unknown option '--unwind=fp', did you mean "
					    "'--unwind-with-a-long-name'? (see culprit stack -h)");
	assert_refused(
		"stack --evnet=x",
		"unknown option '--evnet=x', did you mean '--event'? (see culprit stack -h)");
	assert_refused("stack --d", "unknown option '--d' (see culprit stack -h)");
	assert_refused("stack --=", "unknown option '--=' (see culprit stack -h)");
	assert_refused("stack -jz", "unknown option '-z' (see culprit stack -h)");
	assert_refused("stack --json=1",
		       "this option takes no value: '--json=1' (see culprit stack -h)");
	assert_refused("stack --pid", "a value is missing after '--pid' (see culprit stack -h)");
	assert_refused("stack -p", "a value is missing after '-p' (see culprit stack -h)");
	assert_refused(
		"stack --unwind-with-a-long-name=c",
		"--unwind-with-a-long-name is one of auto|cfi|fp, not 'c' (see culprit stack -h)");
}

static void numbers_are_numbers(void **state)
{
	static const char *const wrong[] = {
		"-1", "+1", "1x", "0x", "0x-1", "a", "99999999999999999999"};
	char line[64], wanted[128];
	size_t i;
	(void)state;
	for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		snprintf(line, sizeof line, "stack -p %s", wrong[i]);
		snprintf(wanted, sizeof wanted,
			 "-p needs a number, not '%s' (see culprit stack -h)", wrong[i]);
		assert_refused(line, wanted);
	}
	assert_refused("stack --pid=", "--pid needs a number, not '' (see culprit stack -h)");
	assert_null(parse("stack -p 18446744073709551615"));
	assert_true(pid == UINT64_MAX);
}

static void help(void **state)
{
	struct buf b = {0};
	(void)state;
	assert_null(parse("stack -jh --nonsense"));
	assert_true(args.help);
	assert_null(parse("stack --help"));
	assert_true(args.help);
	assert_null(parse("stack -- -h"));
	assert_false(args.help);
	args_help(&args, &b);
	assert_string_equal(buf_text(&b), "usage: culprit stack PID\n"
					  "S.\n\n"
					  "  -j, --json                print JSON\n"
					  "  -q                        say less\n"
					  "  -o, --output=FILE         write there\n"
					  "  -p, --pid=PID             the process\n"
					  "      --unwind-with-a-long-name=auto|cfi|fp\n"
					  "                            where from\n"
					  "  -f, --form[=tree|rows]    how\n"
					  "  -e, --event=EVENT         what to count\n"
					  "  -h, --help                show this text\n"
					  "\nculprit help stack shows the manual page.\n");
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_options),
		cmocka_unit_test(short_options),
		cmocka_unit_test(operands_anywhere),
		cmocka_unit_test(values_that_may_be_missing),
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(the_first_operand_ends_options),
		cmocka_unit_test(lists),
		cmocka_unit_test(numbers_are_numbers),
		cmocka_unit_test(help),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
