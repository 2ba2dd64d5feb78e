/* Who may look at the page: links that work once and not for long, and browsers that are known again. */
#include "check.h"

#include <stdio.h>

#include "engine/visitor/visitor.h"

static const int64_t now_ms = 1800000000000;

#define DIGEST(c) ((struct text) {.data = (char[]) {[0 ... 63] = (c)}, .len = VISITOR_DIGEST_LEN})

static struct visitors *start(void)
{
	struct visitors *v = NULL;

	assert_int_equal(visitors_new(&v), 0);
	return v;
}

TEST(a_link_works_once)
{
	struct visitors *v = start();

	visitor_invite(v, DIGEST('a'), TEXT(""), now_ms);
	assert_false(visitor_take_link(v, DIGEST('b'), now_ms));
	assert_true(visitor_take_link(v, DIGEST('a'), now_ms));
	assert_false(visitor_take_link(v, DIGEST('a'), now_ms));
	assert_false(visitor_take_link(v, (struct text) {"", 0}, now_ms));
	visitors_free(v);
}

TEST(one_of_two_addresses_uses_the_link_up)
{
	struct visitors *v = start();

	for (int i = 0; i < 2; i++) {
		visitor_invite(v, DIGEST('a'), DIGEST('b'), now_ms);
		assert_true(visitor_take_link(v, i ? DIGEST('a') : DIGEST('b'), now_ms));
		assert_false(visitor_take_link(v, DIGEST('a'), now_ms));
		assert_false(visitor_take_link(v, DIGEST('b'), now_ms));
	}
	visitors_free(v);
}

TEST(a_link_that_is_late_is_used_up)
{
	struct visitors *v = start();

	visitor_invite(v, DIGEST('a'), TEXT(""), now_ms);
	visitor_invite(v, DIGEST('b'), TEXT(""), now_ms);
	assert_true(visitor_take_link(v, DIGEST('a'), now_ms + VISITOR_LINK_MS));
	assert_false(visitor_take_link(v, DIGEST('b'), now_ms + VISITOR_LINK_MS + 1));
	assert_false(visitor_take_link(v, DIGEST('b'), now_ms));
	visitors_free(v);
}

TEST(a_clock_that_went_back_makes_no_link_younger)
{
	struct visitors *v = start();

	visitor_invite(v, DIGEST('a'), TEXT(""), now_ms);
	assert_false(visitor_take_link(v, DIGEST('a'), now_ms - 1));
	visitors_free(v);
}

TEST(a_visitor_is_known_again_by_user_and_time)
{
	struct visitors *v = start();
	const struct visitor row = {.id = TEXT("one"),
				    .digest = DIGEST('a'),
				    .uid = 1000,
				    .program = TEXT("a browser"),
				    .entered_ms = now_ms};
	const struct visitor *found;

	assert_int_equal(visitor_add(v, &row), 0);
	found = visitor_find(v, DIGEST('a'), 1000, now_ms + 5, 10);
	assert_non_null(found);
	assert_true(text_is(found->program, "a browser"));
	assert_int_equal(found->seen_ms, now_ms + 5);
	assert_null(visitor_find(v, DIGEST('b'), 1000, now_ms, 10));
	assert_null(visitor_find(v, DIGEST('a'), 1001, now_ms, 10));
	assert_null(visitor_find(v, DIGEST('a'), -1, now_ms, 10));
	assert_null(visitor_find(v, DIGEST('a'), 1000, now_ms + 11, 10));
	visitors_free(v);
}

TEST(the_first_gives_way_to_one_too_many)
{
	struct visitors *v = start();
	const struct visitor *rows;
	struct why why;

	for (int i = 0; i < VISITORS_MAX + 1; i++) {
		char id[8];
		char digest[VISITOR_DIGEST_LEN + 1];
		struct visitor row = {.uid = 1, .entered_ms = now_ms + i};
		const struct visitor *gone = visitor_in_the_way(v);
		struct text name = gone ? TEXT("v000") : (struct text) {0};

		assert_true(gone ? i == VISITORS_MAX && text_is(gone->id, "v000")
				 : i < VISITORS_MAX);
		snprintf(id, sizeof(id), "v%03d", i);
		snprintf(digest, sizeof(digest), "%064d", i);
		row.id = text_of(id);
		row.digest = text_of(digest);
		visitor_remove(v, name);
		assert_int_equal(visitor_add(v, &row), 0);
	}
	assert_int_equal(visitors_list(v, &rows), VISITORS_MAX);
	assert_true(text_is(rows[0].id, "v001"));
	assert_int_equal(visitor_get(v, TEXT("v00"), &rows, &why), REFUSE_PARAMS);
	assert_int_equal(visitor_get(v, TEXT("nobody"), &rows, &why), REFUSE_NOT_FOUND);
	assert_int_equal(visitor_get(v, TEXT(""), &rows, &why), REFUSE_NOT_FOUND);
	assert_int_equal(visitor_get(v, TEXT("v064"), &rows, &why), 0);
	visitors_free(v);
}
