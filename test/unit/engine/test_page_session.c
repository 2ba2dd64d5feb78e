/* Who may look at the page: links that work once and not for long, and browsers that are known again. */
#include "check.h"

#include <errno.h>

#include <stdio.h>

#include "engine/page_session/page_session.h"

static const int64_t now_ms = 1800000000000;

#define DIGEST(c)                                                                                  \
	((struct text) {.data = (char[]) {[0 ... 63] = (c)}, .len = PAGE_SESSION_DIGEST_LEN})

static struct page_sessions *start(void)
{
	struct page_sessions *v = NULL;

	assert_int_equal(page_sessions_new(&v), 0);
	return v;
}

TEST(a_link_works_once)
{
	struct page_sessions *v = start();

	page_session_invite(v, DIGEST('a'), TEXT(""), now_ms);
	assert_false(page_session_take_link(v, DIGEST('b'), now_ms));
	assert_true(page_session_take_link(v, DIGEST('a'), now_ms));
	assert_false(page_session_take_link(v, DIGEST('a'), now_ms));
	assert_false(page_session_take_link(v, (struct text) {"", 0}, now_ms));
	page_sessions_free(v);
}

TEST(one_of_two_addresses_uses_the_link_up)
{
	struct page_sessions *v = start();

	for (int i = 0; i < 2; i++) {
		page_session_invite(v, DIGEST('a'), DIGEST('b'), now_ms);
		assert_true(page_session_take_link(v, i ? DIGEST('a') : DIGEST('b'), now_ms));
		assert_false(page_session_take_link(v, DIGEST('a'), now_ms));
		assert_false(page_session_take_link(v, DIGEST('b'), now_ms));
	}
	page_sessions_free(v);
}

TEST(a_link_that_is_late_is_used_up)
{
	struct page_sessions *v = start();

	page_session_invite(v, DIGEST('a'), TEXT(""), now_ms);
	page_session_invite(v, DIGEST('b'), TEXT(""), now_ms);
	assert_true(page_session_take_link(v, DIGEST('a'), now_ms + PAGE_SESSION_LINK_MS));
	assert_false(page_session_take_link(v, DIGEST('b'), now_ms + PAGE_SESSION_LINK_MS + 1));
	assert_false(page_session_take_link(v, DIGEST('b'), now_ms));
	page_sessions_free(v);
}

TEST(a_clock_that_went_back_makes_no_link_younger)
{
	struct page_sessions *v = start();

	page_session_invite(v, DIGEST('a'), TEXT(""), now_ms);
	assert_false(page_session_take_link(v, DIGEST('a'), now_ms - 1));
	page_sessions_free(v);
}

TEST(a_visitor_is_known_again_by_user_and_time)
{
	struct page_sessions *v = start();
	const struct page_session row = {.id = TEXT("one"),
					 .digest = DIGEST('a'),
					 .uid = 1000,
					 .program = TEXT("a browser"),
					 .entered_ms = now_ms};
	const struct page_session *found;

	assert_int_equal(page_session_add(v, &row), 0);
	found = page_session_find(v, DIGEST('a'), 1000, now_ms + 5, 10);
	assert_non_null(found);
	assert_true(text_is(found->program, "a browser"));
	assert_int_equal(found->seen_ms, now_ms + 5);
	assert_null(page_session_find(v, DIGEST('b'), 1000, now_ms, 10));
	assert_null(page_session_find(v, DIGEST('a'), 1001, now_ms, 10));
	assert_null(page_session_find(v, DIGEST('a'), -1, now_ms, 10));
	assert_null(page_session_find(v, DIGEST('a'), 1000, now_ms + 11, 10));
	page_sessions_free(v);
}

TEST(the_first_gives_way_to_one_too_many)
{
	struct page_sessions *v = start();
	const struct page_session *rows;
	struct error error;

	for (int i = 0; i < VISITORS_MAX + 1; i++) {
		char id[8];
		char digest[PAGE_SESSION_DIGEST_LEN + 1];
		struct page_session row = {.uid = 1, .entered_ms = now_ms + i};
		const struct page_session *gone = page_session_in_the_way(v);
		struct text name = gone ? TEXT("v000") : (struct text) {0};

		assert_true(gone ? i == VISITORS_MAX && text_is(gone->id, "v000")
				 : i < VISITORS_MAX);
		snprintf(id, sizeof(id), "v%03d", i);
		snprintf(digest, sizeof(digest), "%064d", i);
		row.id = text_of(id);
		row.digest = text_of(digest);
		page_session_remove(v, name);
		assert_int_equal(page_session_add(v, &row), 0);
	}
	assert_int_equal(page_session_add(v, &(struct page_session) {.id = TEXT("x"),
								     .digest = DIGEST('x')}),
			 -ENOSPC);
	assert_null(page_session_find(v, TEXT("1"), 1, now_ms, 1000));
	assert_int_equal(page_sessions_list(v, &rows), VISITORS_MAX);
	assert_true(text_is(rows[0].id, "v001"));
	assert_int_equal(page_session_get(v, TEXT("v00"), &rows, &error), REFUSE_PARAMS);
	assert_int_equal(page_session_get(v, TEXT("nobody"), &rows, &error), REFUSE_NOT_FOUND);
	assert_int_equal(page_session_get(v, TEXT(""), &rows, &error), REFUSE_NOT_FOUND);
	assert_int_equal(page_session_get(v, TEXT("v064"), &rows, &error), 0);
	page_sessions_free(v);
}
