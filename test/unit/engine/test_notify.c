/* What a button's token stands for, and when a notifier may speak. */
#include <errno.h>

#include "agent/notify/notifier.h"
#include "base/clock.h"
#include "check.h"
#include "engine/notify/inner.h"

/* ---- tokens ---- */

TEST(token_counts_once_and_uses_its_sibling)
{
	struct tokens t = {NULL};
	char yes[TOKEN_LEN + 1], no[TOKEN_LEN + 1];
	enum approval_status decision;
	const void *about;
	int message = 0;

	assert_int_equal(tokens_add(&t, &message, APPROVAL_APPROVED, 1000, yes), 0);
	assert_int_equal(tokens_add(&t, &message, APPROVAL_DENIED, 1000, no), 0);
	assert_int_equal(strlen(yes), TOKEN_LEN);
	assert_string_not_equal(yes, no);
	assert_int_equal(tokens_use(&t, text_of(yes), 999, &about, &decision), TOKEN_GOOD);
	assert_ptr_equal(about, &message);
	assert_int_equal(decision, APPROVAL_APPROVED);
	assert_int_equal(tokens_use(&t, text_of(yes), 999, &about, &decision), TOKEN_USED);
	assert_int_equal(tokens_use(&t, text_of(no), 999, &about, &decision), TOKEN_USED);
	tokens_release(&t, &message);
	assert_int_equal(tokens_use(&t, text_of(no), 999, &about, &decision), TOKEN_GOOD);
	assert_int_equal(decision, APPROVAL_DENIED);
	tokens_done(&t);
}

TEST(token_ends_with_its_time)
{
	struct tokens t = {NULL};
	char text[TOKEN_LEN + 1];
	enum approval_status decision;
	const void *about;
	int message = 0;

	assert_int_equal(tokens_add(&t, &message, APPROVAL_APPROVED, 1000, text), 0);
	assert_int_equal(tokens_use(&t, text_of(text), 1000, &about, &decision), TOKEN_LATE);
	assert_int_equal(tokens_use(&t, text_of(text), 999, &about, &decision), TOKEN_GOOD);
	tokens_done(&t);
}

TEST(other_texts_are_unknown)
{
	struct tokens t = {NULL};
	char text[TOKEN_LEN + 1], other[TOKEN_LEN + 2];
	enum approval_status decision;
	const void *about;
	int message = 0;

	assert_int_equal(tokens_use(&t, TEXT(""), 0, &about, &decision), TOKEN_UNKNOWN);
	assert_int_equal(tokens_add(&t, &message, APPROVAL_APPROVED, 1000, text), 0);
	for (unsigned i = 0; i < TOKEN_LEN; i++) {
		memcpy(other, text, sizeof(text));
		other[i] = other[i] == '0' ? '1' : '0';
		assert_int_equal(tokens_use(&t, text_of(other), 0, &about, &decision),
				 TOKEN_UNKNOWN);
		other[i] = '\0';
		assert_int_equal(tokens_use(&t, text_of(other), 0, &about, &decision),
				 TOKEN_UNKNOWN);
	}
	snprintf(other, sizeof(other), "%s0", text);
	assert_int_equal(tokens_use(&t, text_of(other), 0, &about, &decision), TOKEN_UNKNOWN);
	tokens_forget(&t, &message);
	assert_int_equal(tokens_use(&t, text_of(text), 0, &about, &decision), TOKEN_UNKNOWN);
	tokens_done(&t);
}

TEST(tokens_are_bounded_and_differ)
{
	struct tokens t = {NULL};
	char text[TOKEN_LEN + 1];
	static char all[TOKENS_MAX][TOKEN_LEN + 1];
	int messages[TOKENS_MAX] = {0};

	for (unsigned i = 0; i < TOKENS_MAX; i++) {
		assert_int_equal(tokens_add(&t, &messages[i], APPROVAL_DENIED, 1, all[i]), 0);
		assert_int_equal(strspn(all[i], "0123456789abcdef"), TOKEN_LEN);
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(all[i], all[k]);
	}
	assert_int_equal(tokens_add(&t, messages, APPROVAL_DENIED, 1, text), -ENOBUFS);
	tokens_forget(&t, &messages[7]);
	assert_int_equal(tokens_add(&t, messages, APPROVAL_DENIED, 1, text), 0);
	tokens_done(&t);
}

/* Every digit of a token takes every value: no part of a UUID that is always the same. */
TEST(tokens_have_no_fixed_digit)
{
	unsigned seen[TOKEN_LEN] = {0};
	int message = 0;

	for (unsigned i = 0; i < 2000; i++) {
		struct tokens t = {NULL};
		char text[TOKEN_LEN + 1];

		assert_int_equal(tokens_add(&t, &message, APPROVAL_DENIED, 1, text), 0);
		for (unsigned k = 0; k < TOKEN_LEN; k++)
			seen[k] |= 1U << strtoul((char[]) {text[k], '\0'}, NULL, 16);
		tokens_done(&t);
	}
	for (unsigned k = 0; k < TOKEN_LEN; k++)
		assert_int_equal(seen[k], 0xffff);
}

/* ---- what was shown ---- */

TEST(digests_tell_lists_apart)
{
	const struct text lists[][2] = {
		{TEXT("ab"), TEXT("c")},  {TEXT("a"), TEXT("bc")}, {TEXT("abc"), TEXT("")},
		{TEXT("abc"), {NULL, 0}}, {TEXT(""), TEXT("abc")},
	};
	char digests[5][NOTICE_DIGEST_LEN + 1];

	for (unsigned i = 0; i < 5; i++) {
		char again[NOTICE_DIGEST_LEN + 1];

		notice_digest(lists[i], 2, digests[i]);
		notice_digest(lists[i], 2, again);
		assert_string_equal(digests[i], again);
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(digests[i], digests[k]);
	}
}

/* ---- when ---- */

static int64_t left_at(const char *hours, const char *zone, const char *iso)
{
	struct quiet q;
	struct error error;
	int64_t now, left;

	assert_int_equal(quiet_parse(hours, zone, &q, &error), 0);
	assert_true(clock_parse_iso(text_of(iso), &now));
	left = quiet_left(&q, now);
	quiet_done(&q);
	return left;
}

TEST(quiet_hours_go_over_midnight)
{
	assert_int_equal(left_at("22:00-07:00", "UTC", "2026-03-01T21:59:59Z"), 0);
	assert_int_equal(left_at("22:00-07:00", "UTC", "2026-03-01T22:00:00Z"), 9 * 3600000 + 1000);
	assert_int_equal(left_at("22:00-07:00", "UTC", "2026-03-01T06:59:59Z"), 2000);
	assert_int_equal(left_at("22:00-07:00", "UTC", "2026-03-01T07:00:00Z"), 0);
	assert_int_equal(left_at("12:00-13:00", "UTC", "2026-03-01T12:30:00Z"), 1801000);
	assert_int_equal(left_at("12:00-13:00", "UTC", "2026-03-01T13:00:00Z"), 0);
	assert_int_equal(left_at("00:00-24:00", "UTC", "2026-03-01T13:00:00Z"),
			 11 * 3600000 + 1000);
	assert_int_equal(left_at("", "", "2026-03-01T13:00:00Z"), 0);
	/* Berlin is an hour ahead in winter, and two in summer. */
	assert_int_equal(left_at("22:00-07:00", "Europe/Berlin", "2026-01-01T20:59:59Z"), 0);
	assert_true(left_at("22:00-07:00", "Europe/Berlin", "2026-01-01T21:00:00Z") > 0);
	assert_true(left_at("22:00-07:00", "Europe/Berlin", "2026-07-01T20:00:00Z") > 0);
}

TEST(wrong_hours_are_refused)
{
	static const char *const wrong[] = {"22-7",        "22:00",       "22:00-07:0",
					    "22:00-25:00", "22:60-07:00", "22:00 07:00",
					    "2a:00-07:00", "22:00-07:000"};
	struct quiet q;
	struct error error;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(quiet_parse(wrong[i], "", &q, &error), REFUSE_PARAMS);
}

TEST(a_rate_counts_the_last_minute)
{
	struct rate r = {.per_minute = 2};

	assert_int_equal(rate_left(&r, 1000), 0);
	rate_note(&r, 1000);
	assert_int_equal(rate_left(&r, 1000), 0);
	rate_note(&r, 5000);
	assert_int_equal(rate_left(&r, 5000), 56000);
	assert_int_equal(rate_left(&r, 61000), 0);
	rate_note(&r, 61000);
	assert_int_equal(rate_left(&r, 61000), 4000);
	r = (struct rate) {.per_minute = RATE_MAX};
	for (unsigned i = 0; i < RATE_MAX; i++) {
		assert_int_equal(rate_left(&r, 100), 0);
		rate_note(&r, 100);
	}
	assert_int_equal(rate_left(&r, 100), 60000);
}

TEST(quiet_hours_that_end_as_they_begin_are_none)
{
	assert_int_equal(left_at("12:00-12:00", "UTC", "2026-03-01T12:00:00Z"), 0);
	assert_int_equal(left_at("12:00-13:00", "UTC", "2026-03-01T11:59:59Z"), 0);
	assert_int_equal(left_at("12:00-13:00", "UTC", "2026-03-01T12:00:00Z"), 3601000);
}

TEST(no_rate_is_no_limit)
{
	struct rate r = {.per_minute = 0};

	for (unsigned i = 0; i <= RATE_MAX; i++) {
		assert_int_equal(rate_left(&r, 100), 0);
		rate_note(&r, 100);
	}
}

TEST(rule_limits_are_exact_and_a_refusal_names_the_field)
{
	static char long_type[NOTIFY_TYPE_LEN + 1], many[4 * NOTIFY_TYPES_MAX];

	memset(long_type, 'x', NOTIFY_TYPE_LEN);
	for (unsigned more = 0; more < 2; more++) {
		const struct notify_rule rows[] = {
			{.on = long_type + 1 - more},
			{.on = many},
			{.on = "*", .per_minute = RATE_MAX + more},
		};
		static const char *const fields[] = {"on", "on", "per_minute"};

		many[0] = '\0';
		for (unsigned i = 0; i < NOTIFY_TYPES_MAX + more; i++)
			strcat(many, "a, ");
		many[strlen(many) - 2] = '\0';
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct notify_rule rule = rows[i];
			struct error error = {0};

			rule.quiet = rule.zone = "";
			assert_int_equal(notify_check_rule(&rule, &error),
					 more ? REFUSE_PARAMS : 0);
			assert_string_equal(error.field, more ? fields[i] : "");
		}
	}
}

/* ---- words ---- */

TEST(characters_that_are_not_displayed_are_spelled_out)
{
	static const struct {
		const char *from, *want;
	} rows[] = {
		{"", ""},
		{"a\tb\nc", "a\tb\nc"},
		{"\x80"
		 "a",
		 "\\x80a"},
		{"a\xff", "a\\xff"},
		{"\x1b[1m\x7f", "\\x1b[1m\\x7f"},
		{"\xc2\x80", "\\u{80}"},
		{"\u00e9", "\u00e9"},
		{"a\u200db", "a\\u{200d}b"},
		{"a\ufe0f", "a\\u{fe0f}"},
		/* Joiners and variants belong to the sign before them. */
		{"\u203c\ufe0f", "\u203c\ufe0f"},
		{"\u203b\ufe0f", "\u203b\\u{fe0f}"},
		{"\u2e80\u200d", "\u2e80\\u{200d}"},
		{"\U0001f000\u200d", "\U0001f000\u200d"},
		{"\uffee\u200d", "\uffee\\u{200d}"},
		{"\u2764\ufe0f\u200d\U0001f525", "\u2764\ufe0f\u200d\U0001f525"},
		{"\u2764\u200d\u200d", "\u2764\u200d\\u{200d}"},
	};
	struct arena a;
	struct text got;

	arena_init(&a, 1 << 20);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(words_plain(&a, text_of(rows[i].from), 100, &got), 0);
		if (!text_is(got, rows[i].want))
			fail_msg("%zu: %.*s", i, TEXT_ARGS(got));
	}
	assert_int_equal(words_plain(&a, (struct text) {0}, 100, &got), 0);
	assert_true(got.data && got.len == 0);
	assert_int_equal(words_plain(&a, TEXT("abc"), 3, &got), 0);
	assert_true(text_is(got, "abc"));
	assert_int_equal(words_plain(&a, TEXT("abc"), 2, &got), 0);
	assert_true(text_is(got, "ab\u2026 (3 bytes)"));
	arena_done(&a);
}

static int word_value(struct arena *a, const struct value *v, struct text *ret)
{
	*ret = v->kind == VALUE_NULL ? TEXT("null") : TEXT("[\n]");
	return v->kind == VALUE_TRUE ? -ENOMEM : 0;
}

TEST(request_says_who_asks_for_what)
{
	struct value list = {.kind = VALUE_ARRAY, .key = "l", .key_len = 1};
	struct value command = {.kind = VALUE_STRING,
				.key = "c",
				.key_len = 1,
				.text = "ls",
				.len = 2,
				.next = &list};
	const struct value input = {.kind = VALUE_OBJECT, .first = &command, .len = 2};
	struct approval row = {.tool = TEXT("Bash"), .input.value = &input};
	struct text title, text;
	struct arena a;

	arena_init(&a, 1 << 20);
	assert_int_equal(words_of_approval(&a, &row, "", word_value, &title, &text), 0);
	assert_true(text_is(title, "An agent wants to use Bash"));
	assert_true(text_is(text, "c: ls\nl:\n    [\n    ]\n\nan agent"));
	row.agent = TEXT("claude");
	row.origin = TEXT("shell");
	row.session = TEXT("0123456789");
	assert_int_equal(words_of_approval(&a, &row, "here", word_value, &title, &text), 0);
	assert_true(text_is(text,
			    "c: ls\nl:\n    [\n    ]\n\nclaude, shell, on here, session 01234567"));
	row.kind = APPROVAL_CONTACT;
	row.host = TEXT("there");
	row.input.value = &list;
	assert_int_equal(words_of_approval(&a, &row, "here", word_value, &title, &text), 0);
	assert_true(text_is(title, "claude asks"));
	assert_true(text_is(text, "\n\nclaude, shell, on there, session 01234567"));
	row.input.value = NULL;
	assert_int_equal(words_of_approval(&a, &row, "here", word_value, &title, &text), 0);
	list.kind = VALUE_TRUE;
	row.input.value = &input;
	assert_int_equal(words_of_approval(&a, &row, "here", word_value, &title, &text), -ENOMEM);
	arena_done(&a);
}

TEST(outcome_says_by_whom_if_somebody_decided)
{
	static const struct {
		enum approval_status status;
		const char *by, *comment, *want;
	} rows[] = {
		{APPROVAL_APPROVED, "Ann", "fine", "\u2713 Approved by Ann: fine"},
		{APPROVAL_APPROVED, "Ann", "", "\u2713 Approved by Ann"},
		{APPROVAL_DENIED, "", "no\nway", "\u2717 Denied: no\n way"},
		{APPROVAL_DENIED, "", "", "\u2717 Denied"},
		{APPROVAL_EXPIRED, "timeout", "x", "Timed out"},
		{APPROVAL_SUPERSEDED, "client", "x", "Withdrawn; no answer needed"},
	};
	char out[100];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		words_of_outcome(rows[i].status, text_of(rows[i].by), text_of(rows[i].comment), out,
				 sizeof(out));
		assert_string_equal(out, rows[i].want);
	}
}
