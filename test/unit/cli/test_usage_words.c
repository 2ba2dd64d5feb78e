/* What the usage of a command says of an argument, for completion. */
#include "check.h"

#include <stdio.h>

#include "cli/complete/usage.h"

enum { TYPED_MAX = 4 };

static const struct {
	const char *usage;
	const char *typed[TYPED_MAX];
	const char *wanted; /* of each alternative, separated by spaces */
} rows[] = {
	{"", {NULL}, ""},
	{"", {"a"}, ""},
	{"ID", {NULL}, "ID"},
	{"ID", {"a"}, ""},
	{"[ID]", {NULL}, "ID"},
	{"ID...", {"a", "b", "c"}, "ID"},
	{"[ID]...", {"a"}, "ID"},
	{"[ID...]", {"a", "b"}, "ID"},
	{"ID TITLE...", {NULL}, "ID"},
	{"ID TITLE...", {"a"}, "TITLE"},
	{"ID TITLE...", {"a", "b", "c"}, "TITLE"},
	{"[OPTION]... [--] PROMPT... | -", {NULL}, "PROMPT"},
	{"ID [OPTION]... [--] QUERY... | -", {"a"}, "QUERY"},
	{"ID TEXT... | ID -", {NULL}, "ID ID"},
	{"ID TEXT... | ID -", {"a"}, "TEXT"},
	{"ID --comment TEXT", {NULL}, "ID"},
	{"ID --comment TEXT", {"a"}, ""},
	{"ID --force", {"a"}, ""},
	{"[--force] FILE", {NULL}, "FILE"},
	{"[--comment TEXT] FILE", {NULL}, "FILE"},
	{"[-n N]... FILE", {NULL}, "FILE"},
	{"QUERY... | - | --query QUERY", {"a"}, "QUERY"},
	{"[--list | --accept ID | --reject ID]...", {NULL}, ""},
	{"METHOD [key=value | key:=JSON | JSON | -]...", {NULL}, "METHOD"},
	{"METHOD [key=value | key:=JSON | JSON | -]...", {"a"}, "key=value"},
	{"METHOD [key=value | key:=JSON | JSON | -]...", {"a", "b", "c"}, "key=value"},
	{"[purge NUMBER...]", {NULL}, "purge"},
	{"[purge NUMBER...]", {"purge"}, "NUMBER"},
	{"[purge NUMBER...]", {"purge", "1", "2"}, "NUMBER"},
	{"[purge NUMBER...]", {"other"}, ""},
	{"[COMMAND [COMMAND]]", {NULL}, "COMMAND"},
	{"[COMMAND [COMMAND]]", {"a"}, "COMMAND"},
	{"[COMMAND [COMMAND]]", {"a", "b"}, ""},
	{"[DIR|NAME] FILE", {"a"}, "FILE"},
	{"[a | b] FILE", {"a"}, "FILE"},
	{"FILE | -", {NULL}, "FILE"},
	{"| |", {NULL}, ""},
	{"[[[", {NULL}, ""},
	{"]]] ...", {"a"}, ""},
};

TEST(the_argument_at_a_place_is_found)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct usage u = {.left = rows[i].usage, .typed = rows[i].typed};
		char got[256] = "";
		struct text word;

		while (u.n_typed < TYPED_MAX && rows[i].typed[u.n_typed])
			u.n_typed++;
		while (usage_next(&u, &word)) {
			size_t n = strlen(got);

			snprintf(got + n, sizeof(got) - n, "%s%.*s", n > 0 ? " " : "",
				 TEXT_ARGS(word));
		}
		if (strcmp(got, rows[i].wanted) != 0)
			print_error("'%s' behind %d words: '%s'\n", rows[i].usage, u.n_typed, got);
		assert_string_equal(got, rows[i].wanted);
	}
}

TEST(a_word_means_what_the_table_or_the_row_says)
{
	assert_int_equal(usage_meaning(TEXT("FILE"), COMPLETES_TASK), COMPLETES_FILE);
	assert_int_equal(usage_meaning(TEXT("ID"), COMPLETES_TASK), COMPLETES_TASK);
	assert_int_equal(usage_meaning(TEXT("ID"), COMPLETES_NOTHING), COMPLETES_NOTHING);
	assert_int_equal(usage_meaning(TEXT("DIR"), COMPLETES_NOTHING), COMPLETES_FOLDER);
	assert_int_equal(usage_meaning(TEXT("DIR"), COMPLETES_PROJECT), COMPLETES_PROJECT);
	assert_int_equal(usage_meaning(TEXT("DIR|NAME"), COMPLETES_NOTHING), COMPLETES_FOLDER);
	assert_int_equal(usage_meaning(TEXT("TEXT"), COMPLETES_TASK), COMPLETES_NOTHING);
	assert_true(usage_is_literal(TEXT("purge")));
	assert_false(usage_is_literal(TEXT("ID")));
	assert_false(usage_is_literal(TEXT("key=value")));
	assert_false(usage_is_literal(TEXT("")));
}
