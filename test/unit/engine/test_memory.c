/* The rules of memory, over a real store: what is kept, who sees it, and what searches find. */
#include "engine_fixture.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "engine/index/embedding.h"
#include "engine/index/embedding_inner.h"
#include "engine/index/vectors.h"
#include "engine/memory/lenient.h"

FIXTURE(setup, teardown);

/* ---- add ---- */

TEST(what_is_added_comes_back_in_full)
{
	struct fixture *f = *state;
	const struct text subjects[] = {TEXT("Ann"), TEXT(""), TEXT("two\nlines")};
	struct memory_new in = plain("likes tea", "ann");
	const struct memory_asker nobody = asker(NULL, NULL);
	struct memory made, got;

	in.by.chat = TEXT("c1");
	in.source = TEXT("agent");
	in.category = TEXT("preference");
	in.importance = 0.75;
	in.subjects = subjects;
	in.n_subjects = 3;
	in.created_ms = 5000;
	in.expires = true;
	in.expires_days = 2;
	in.metadata = TEXT("{\"a\":1}");
	assert_int_equal(add_new(f, &in, &made), 0);
	assert_int_equal(
		memory_get(f->engine->memories, 0, &f->arena, &nobody, made.id, &got, &f->error),
		0);
	assert_true(text_is(got.content, "likes tea") && text_is(got.source, "agent"));
	assert_true(text_is(got.category, "preference") && got.importance == 0.75);
	assert_true(text_is(got.subjects, "Ann\ntwo lines\n"));
	assert_true(text_is(got.owner, "ann") && text_is(got.chat, "c1") && !got.shared);
	assert_int_equal(got.created_ms, 5000);
	assert_int_equal(got.expires_ms - got.updated_ms, 2 * 24 * 3600 * 1000);
	assert_true(text_is(got.metadata, "{\"a\":1}"));
}

static void refused(struct fixture *f, const struct memory_new *in, const char *field)
{
	struct memory m;

	assert_int_equal(add_new(f, in, &m), REFUSE_PARAMS);
	assert_string_equal(f->error.field, field);
}

TEST(what_cannot_be_is_refused_with_its_name)
{
	struct fixture *f = *state;
	struct memory_counts n;
	const struct memory_asker nobody = asker(NULL, NULL);
	struct text subjects[MEMORY_SUBJECTS_MAX + 1];
	struct memory_new in = plain("", NULL);
	struct memory m;

	refused(f, &in, "content");
	in = plain("x", NULL);
	in.category = TEXT("gossip");
	refused(f, &in, "category");
	in.category = TEXT("");
	refused(f, &in, "category");
	in = plain("x", NULL);
	in.importance = 1.5;
	refused(f, &in, "importance");
	in.importance = -0.5;
	refused(f, &in, "importance");
	in.importance = 0.0 / 0.0;
	refused(f, &in, "importance");
	in = plain("x", NULL);
	for (unsigned i = 0; i <= MEMORY_SUBJECTS_MAX; i++)
		subjects[i] = TEXT("Ann");
	in.subjects = subjects;
	in.n_subjects = MEMORY_SUBJECTS_MAX + 1;
	refused(f, &in, "subjects");
	assert_int_equal(memory_stats(f->engine->memories, 0, &nobody, &n), 0);
	assert_int_equal(n.memories.all, 0);
	in.n_subjects--;
	assert_int_equal(add_new(f, &in, &m), 0);
	for (unsigned more = 0; more < 2; more++) {
		static char long_name[VECTORS_TEXT_MAX + 1];
		static struct text list[VECTORS_TEXTS_MAX + 1];
		const struct text text = {long_name, VECTORS_TEXT_MAX + more};

		for (unsigned i = 0; i <= VECTORS_TEXTS_MAX; i++)
			list[i] = TEXT("a");
		assert_int_equal(vectors_check("text", text, &f->error), more ? REFUSE_PARAMS : 0);
		assert_int_equal(vectors_check_list("texts", &text, 1, &f->error),
				 more ? REFUSE_PARAMS : 0);
		assert_int_equal(
			vectors_check_list("texts", list, VECTORS_TEXTS_MAX + more, &f->error),
			more ? REFUSE_PARAMS : 0);
	}
	assert_int_equal(vectors_check("text", TEXT(""), &f->error), REFUSE_PARAMS);
	assert_int_equal(vectors_check_list("texts", NULL, 0, &f->error), REFUSE_PARAMS);
	assert_int_equal(vectors_check_list("texts", &TEXT(""), 1, &f->error), REFUSE_PARAMS);
	for (unsigned i = 0; i < 5; i++) {
		static const char *const names[] = {"preference", "decision", "fact", "entity",
						    "other"};

		in = plain(names[i], NULL);
		in.category = text_of(names[i]);
		in.importance = 0.25 * i;
		assert_int_equal(add_new(f, &in, &m), 0);
	}
}

static void stats(struct fixture *f, struct memory_counts *ret)
{
	const struct memory_asker nobody = asker(NULL, NULL);

	assert_int_equal(memory_stats(f->engine->memories, 0, &nobody, ret), 0);
}

TEST(a_repetition_gives_the_first_again)
{
	struct fixture *f = *state;
	struct memory_new in = plain("once", "ann");
	struct memory one, two;

	assert_int_equal(add_new(f, &in, &one), 0);
	assert_int_equal(add_new(f, &in, &two), 0);
	assert_true(text_equal(one.id, two.id));
	in.created_ms = 77;
	assert_int_equal(add_new(f, &in, &two), 0);
	assert_false(text_equal(one.id, two.id));
	assert_int_equal(n_found(f, "once", "ann"), 2);
}

/* Each differs from the first in one thing; told again, it is a repetition of its own. */
TEST(who_says_more_about_it_does_not_repeat)
{
	struct fixture *f = *state;
	const struct memory_new first = plain("once", "ann");
	struct memory_new others[5];
	struct memory one, two;

	for (int i = 0; i < 5; i++)
		others[i] = first;
	others[0].source = TEXT("again");
	others[1].subjects = &first.content;
	others[1].n_subjects = 1;
	others[2].expires = true;
	others[2].expires_days = 4;
	others[3].expires = true;
	others[3].expires_days = 5;
	others[4].expires_ms = clock_utc_ms() + 86400000;
	assert_int_equal(add_new(f, &first, &one), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(add_new(f, &others[i], &one), 0);
		assert_false(one.repeated);
		assert_int_equal(add_new(f, &others[i], &two), 0);
		assert_true(two.repeated && text_equal(one.id, two.id));
	}
	assert_int_equal(n_found(f, "once", "ann"), 6);
}

TEST(what_has_a_chat_and_no_user_is_the_chats)
{
	struct fixture *f = *state;
	struct memory_new in = plain("the door code", NULL);
	struct memory_counts counts;
	struct memory m;

	in.by.chat = TEXT("c1");
	assert_int_equal(add_new(f, &in, &m), 0);
	assert_true(m.shared && text_is(m.chat, "c1") && !m.owner.data);
	assert_int_equal(memory_scope_of(&m), MEMORY_GROUP);
	in.by.chat = (struct text) {0};
	assert_int_equal(add_new(f, &in, &m), 0);
	assert_int_equal(memory_scope_of(&m), MEMORY_COMMON);
	stats(f, &counts);
	assert_int_equal(counts.memories.group, 1);
	assert_int_equal(counts.memories.common, 1);
}

TEST(in_one_batch_a_repetition_is_seen_too)
{
	struct fixture *f = *state;
	const struct memory_new in = plain("at once", NULL);
	struct memory one, two;

	assert_int_equal(engine_begin(f->engine), 0);
	assert_int_equal(engine_enter(f->engine), 0);
	assert_int_equal(memory_add(f->engine->memories, &f->arena, &in, &one, &f->error), 0);
	assert_int_equal(engine_leave(f->engine, true), 0);
	assert_int_equal(engine_enter(f->engine), 0);
	assert_int_equal(memory_add(f->engine->memories, &f->arena, &in, &two, &f->error), 0);
	assert_int_equal(engine_leave(f->engine, true), 0);
	assert_int_equal(engine_commit(f->engine), 0);
	assert_true(text_equal(one.id, two.id));
	assert_true(!one.repeated && two.repeated);
	assert_int_equal(n_found(f, "once", NULL), 1);
}

TEST(far_expiries_are_never_or_long_ago)
{
	static const int64_t days[] = {INT64_MAX, 100001, 100000, -100000, -100001, INT64_MIN};
	struct fixture *f = *state;

	for (unsigned i = 0; i < 6; i++) {
		struct memory_new in = plain("gone", NULL);
		char source[8];
		struct memory m;

		snprintf(source, sizeof(source), "%u", i);
		in.source = text_of(source);
		in.expires = true;
		in.expires_days = days[i];
		assert_int_equal(add_new(f, &in, &m), 0);
		assert_true((m.expires_ms == MEMORY_NEVER) == (i < 2));
		assert_true((m.expires_ms == 1) == (i > 3));
	}
	assert_int_equal(n_found(f, "gone", NULL), 3);
}

struct alike {
	struct work work;
	struct memory_wait wait;
	struct fixture *f;
	struct text content;
	struct memory *rows;
	unsigned n;
	int result;
	bool over;
};

static int alike_run(struct work *w, int lane)
{
	struct alike *a = list_entry(w, struct alike, work);
	const struct memory_asker nobody = asker(NULL, NULL);

	return memory_lenient_alike(a->f->engine->memories, lane, &a->f->arena, a->content, &nobody,
				    &a->wait, &a->rows, &a->n, &a->f->error);
}

static void alike_finished(struct work *w, int result)
{
	struct alike *a = list_entry(w, struct alike, work);

	a->result = result;
	a->over = true;
}

static int n_alike(struct fixture *f, const char *content)
{
	struct alike a = {.f = f, .content = text_of(content)};

	memory_wait_init(&a.wait, f->engine->memories);
	a.work = (struct work) {.run = alike_run, .finished = alike_finished, .wait = &a.wait.as};
	assert_int_equal(fixture_submit(f, &a.work, false), 0);
	while (!a.over && run_next(f))
		;
	return a.result == 0 ? (int)a.n : -1;
}

TEST(memories_with_most_words_in_common_are_alike)
{
	struct fixture *f = *state;
	static const char *const contents[] = {
		"Ann keeps bees behind barn", "Ann keeps bees behind house",
		"Ann keeps bees behind shed", "Ann keeps goats near river", "Bees sting"};

	for (unsigned i = 0; i < 5; i++)
		add(f, contents[i], NULL);
	assert_int_equal(n_alike(f, "Ann keeps bees behind fence"), 3);
	assert_int_equal(n_alike(f, "Ann keeps goats near river"), 1);
	assert_int_equal(n_alike(f, "Ann has a boat and sails it in summer"), 0);
	assert_int_equal(n_alike(f, ""), -1);
}

/* ---- indexes in step ---- */

static bool forget(struct fixture *f, struct text id, const char *user)
{
	const struct memory_asker by = asker(user, NULL);
	bool deleted;

	begin(f);
	assert_int_equal(memory_delete(f->engine->memories, &f->arena, &by, id, false,
				       &(struct memory) {0}, &deleted, &f->error),
			 0);
	end(f);
	return deleted;
}

static int update(struct fixture *f, struct text id, const char *user, const char *content)
{
	const struct memory_asker by = asker(user, NULL);
	const struct memory_change_in change = {.content = text_of(content), .importance = -1};
	struct memory m;
	int r;

	begin(f);
	r = memory_update(f->engine->memories, &f->arena, &by, id, &change, &m, &f->error);
	end(f);
	return r;
}

TEST(searches_follow_add_update_and_delete)
{
	struct fixture *f = *state;
	struct memory m;

	assert_int_equal(n_found(f, "boat", "ann"), 0); /* the indexes are there from now on */
	assert_int_equal(n_found(f, "boat", NULL), 0);
	m = add(f, "a boat", "ann");
	assert_int_equal(n_found(f, "boat", "ann"), 1);
	assert_int_equal(n_found(f, "boat", NULL), 1);
	assert_int_equal(n_found(f, "boat", "bob"), 0);
	assert_int_equal(update(f, m.id, "ann", "a ship"), 0);
	assert_int_equal(n_found(f, "boat", "ann") + n_found(f, "boat", NULL), 0);
	assert_int_equal(n_found(f, "ship", "ann"), 1);
	assert_true(forget(f, m.id, "ann"));
	assert_int_equal(n_found(f, "ship", "ann") + n_found(f, "ship", NULL), 0);
}

/* A hit that is gone from the store is left out of an answer, so only its place in the
 * limit shows that the index still has it. */
TEST(what_is_gone_takes_no_place_in_the_limit)
{
	struct fixture *f = *state;
	const struct memory_query q = {.text = TEXT("boat"), .by = asker("ann", NULL), .limit = 1};
	struct memory_new in = plain("boat boat", "ann");
	struct memory best = add(f, "boat", "ann"), *hits, m;
	unsigned n;
	bool more;

	add(f, "a long story with a boat somewhere in it", "ann");
	assert_int_equal(n_found(f, "boat", "ann"), 2);
	assert_true(forget(f, best.id, "ann"));
	assert_int_equal(search_with(f, &q, &hits, &n), 0);
	assert_int_equal(n, 1);
	in.expires_ms = 1;
	assert_int_equal(add_new(f, &in, &m), 0);
	begin(f);
	assert_int_equal(memory_sweep(f->engine->memories, &more), 0);
	end(f);
	assert_int_equal(search_with(f, &q, &hits, &n), 0);
	assert_int_equal(n, 1);
}

TEST(the_sweep_takes_what_expired_out_of_store_and_index)
{
	struct fixture *f = *state;
	const struct memory_filter all = {.limit = 100, .include_expired = true};
	struct memory_new in = plain("old news", "ann");
	struct memory *rows, m;
	unsigned n;
	bool more;

	add(f, "fresh news", "ann");
	in.expires = true;
	in.expires_days = -1;
	assert_int_equal(add_new(f, &in, &m), 0);
	assert_int_equal(n_found(f, "news", "ann"), 1);
	assert_int_equal(memory_list(f->engine->memories, 0, &f->arena, &all, &rows, &n, &f->error),
			 0);
	assert_int_equal(n, 2);
	begin(f);
	assert_int_equal(memory_sweep(f->engine->memories, &more), 0);
	end(f);
	assert_int_equal(memory_list(f->engine->memories, 0, &f->arena, &all, &rows, &n, &f->error),
			 0);
	assert_int_equal(n, 1);
	assert_int_equal(n_found(f, "news", "ann"), 1);
}

TEST(a_call_that_is_undone_leaves_no_trace)
{
	struct fixture *f = *state;
	const struct memory_new kept = plain("kept boat", "ann"),
				undone = plain("undone boat", "ann");
	const struct memory_asker ann = asker("ann", NULL);
	struct memory first, m;
	bool deleted;

	first = add(f, "first boat", "ann");
	assert_int_equal(n_found(f, "boat", "ann"), 1);
	assert_int_equal(engine_begin(f->engine), 0);
	assert_int_equal(engine_enter(f->engine), 0);
	assert_int_equal(memory_add(f->engine->memories, &f->arena, &kept, &m, &f->error), 0);
	assert_int_equal(engine_leave(f->engine, true), 0);
	assert_int_equal(engine_enter(f->engine), 0);
	assert_int_equal(memory_add(f->engine->memories, &f->arena, &undone, &m, &f->error), 0);
	assert_int_equal(memory_delete(f->engine->memories, &f->arena, &ann, first.id, false,
				       &(struct memory) {0}, &deleted, &f->error),
			 0);
	assert_true(deleted);
	assert_int_equal(engine_leave(f->engine, false), 0);
	/* Nothing is seen before it is committed. */
	assert_int_equal(n_found(f, "boat", "ann"), 1);
	assert_int_equal(engine_commit(f->engine), 0);
	assert_int_equal(n_found(f, "boat", "ann"), 2);
	assert_int_equal(n_found(f, "undone", "ann"), 0);
	fixture_reopen(f, 64 << 20);
	assert_int_equal(n_found(f, "boat", "ann"), 2);
}

TEST(a_commit_that_fails_leaves_no_trace)
{
	struct fixture *f = *state;
	const struct rlimit tight = {.rlim_cur = 256 << 10, .rlim_max = RLIM_INFINITY};
	char *big = malloc((1 << 20) + 1);
	struct memory_counts sizes[2];
	struct memory_new in;
	struct rlimit before;
	struct memory m;
	int r;

	assert_non_null(big);
	for (int i = 0; i < 1 << 18; i++)
		snprintf(big + 4 * i, 5, "%03x ", i & 0xfff); /* many words */
	add(f, "first boat", "ann");
	assert_int_equal(n_found(f, "boat", "ann"), 1);
	stats(f, &sizes[0]);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	in = plain(big, "ann");
	begin(f);
	r = memory_add(f->engine->memories, &f->arena, &in, &m, &f->error);
	assert_int_equal(engine_leave(f->engine, r == 0), 0);
	r = engine_commit(f->engine);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	free(big);
	assert_true(r < 0);
	stats(f, &sizes[1]);
	assert_int_equal(sizes[0].index_bytes, sizes[1].index_bytes);
	assert_int_equal(n_found(f, "boat", "ann"), 1);
	add(f, "next boat", "ann");
	assert_int_equal(n_found(f, "boat", "ann"), 2);
}

/* ---- bounded indexes ---- */

TEST(the_index_not_used_for_longest_is_dropped_and_built_again)
{
	enum { USERS = 12, EACH = 30 };
	struct fixture *f = *state;
	struct memory_counts n;
	size_t one;

	fill_users(f, USERS, EACH);
	assert_int_equal(n_found(f, "about", "user0"), EACH);
	stats(f, &n);
	assert_int_equal(n.n_indexes, 2); /* the user's, and the common ones */
	one = n.index_bytes;
	fixture_reopen(f, one * 3);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < USERS; i++) {
			char user[16];

			snprintf(user, sizeof(user), "user%d", i);
			assert_int_equal(n_found(f, "about", user), EACH);
			/* Once an index is let go, the next one to come finds room. */
			stats(f, &n);
			assert_true(n.index_bytes <= one * 4);
		}
	}
	assert_true(n.n_indexes < USERS);
	/* One that was dropped misses nothing of what came meanwhile. */
	add(f, "about something new", "user0");
	assert_int_equal(n_found(f, "about", "user0"), EACH + 1);
}

TEST(memories_that_fit_no_index_are_refused_in_words)
{
	struct fixture *f = *state;
	struct memory *hits;
	unsigned n;

	fill_users(f, 1, 300);
	fixture_reopen(f, 20000);
	assert_int_equal(search(f, "about", "user0", &hits, &n), REFUSE_LIMIT);
	assert_non_null(strstr(f->error.text, "20000 bytes"));
	/* Others are served. */
	add(f, "about little", "ann");
	assert_int_equal(n_found(f, "about", "ann"), 1);
}

TEST(an_index_that_grows_too_large_is_given_up)
{
	struct fixture *f = *state;
	struct memory *hits;
	unsigned n;
	int r = 0;

	fixture_reopen(f, 60000);
	assert_int_equal(n_found(f, "about", "user0"), 0);
	for (int i = 0; i < 50 && r == 0; i++) {
		fill_users(f, 1, 20 * (i + 1));
		r = search(f, "about", "user0", &hits, &n);
	}
	assert_int_equal(r, REFUSE_LIMIT);
}

/* ---- list, get, delete, update, export ---- */

TEST(ownership_decides_who_changes_what)
{
	struct fixture *f = *state;
	struct memory mine = add(f, "mine", "ann"), common = add(f, "everybody's", NULL);

	assert_int_equal(update(f, mine.id, "bob", "taken"), REFUSE_NOT_FOUND);
	assert_false(forget(f, mine.id, "bob"));
	/* What belongs to nobody is changed by who has no name. */
	assert_int_equal(update(f, common.id, "ann", "taken"), REFUSE_NOT_FOUND);
	assert_false(forget(f, common.id, "ann"));
	assert_int_equal(update(f, common.id, NULL, "changed"), 0);
	assert_true(forget(f, common.id, NULL));
	assert_true(forget(f, mine.id, NULL));
}

TEST(an_update_changes_only_what_is_given)
{
	struct fixture *f = *state;
	const struct memory_asker ann = asker("ann", NULL);
	struct memory_change_in change = {.importance = -1};
	struct memory made = add(f, "before", "ann"), got;

	begin(f);
	assert_int_equal(memory_update(f->engine->memories, &f->arena, &ann, made.id, &change, &got,
				       &f->error),
			 0);
	assert_true(text_is(got.content, "before") && got.importance == 0.5);
	change.importance = 0;
	change.category = TEXT("decision");
	change.metadata = TEXT("{\"b\":2}");
	assert_int_equal(memory_update(f->engine->memories, &f->arena, &ann, made.id, &change, &got,
				       &f->error),
			 0);
	change.content = TEXT("");
	assert_int_equal(memory_update(f->engine->memories, &f->arena, &ann, made.id, &change, &got,
				       &f->error),
			 REFUSE_PARAMS);
	assert_string_equal(f->error.field, "content");
	end(f);
	assert_int_equal(
		memory_get(f->engine->memories, 1, &f->arena, &ann, made.id, &got, &f->error), 0);
	assert_true(text_is(got.content, "before") && text_is(got.category, "decision"));
	assert_true(got.importance == 0 && text_is(got.metadata, "{\"b\":2}"));
	assert_int_equal(got.created_ms, made.created_ms);
}

TEST(an_export_meets_each_memory_once)
{
	enum { N = 57 };
	struct fixture *f = *state;
	const struct memory_asker nobody = asker(NULL, NULL);
	struct memory_page page = {.limit = 10}, next;
	struct memory *rows;
	unsigned n, total = 0, pages = 0;
	bool seen[N] = {false};

	fill_users(f, 3, N / 3);
	for (;;) {
		assert_int_equal(memory_export(f->engine->memories, 0, &f->arena, &nobody, &page,
					       &rows, &n, &next),
				 0);
		if (n == 0)
			break;
		for (unsigned i = 0; i < n; i++) {
			int number = atoi(rows[i].content.data + strlen("entry"));

			assert_true(number >= 0 && number < N && !seen[number]);
			seen[number] = true;
		}
		/* What comes in between is newer than the page, so not in the way. */
		if (pages++ == 2)
			add(f, "entry0 comes in between", "ann");
		total += n;
		page = next;
	}
	assert_int_equal(total, N);
	assert_int_equal(pages, 6);
}

TEST(limits_have_defaults_and_a_most)
{
	struct fixture *f = *state;
	static const struct {
		int64_t limit;
		unsigned listed, found;
	} rows[] = {{0, 20, 10},        {-1, 20, 10},       {INT64_MIN, 20, 10},    {7, 7, 7},
		    {1000, 1000, 1000}, {1001, 1000, 1000}, {INT64_MAX, 1000, 1000}};

	fill_users(f, 1, 1010);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct memory_filter filter = {.limit = rows[i].limit};
		const struct memory_query q = {.text = TEXT("about"), .limit = rows[i].limit};
		struct memory *got;
		unsigned n;

		assert_int_equal(memory_list(f->engine->memories, 0, &f->arena, &filter, &got, &n,
					     &f->error),
				 0);
		assert_int_equal(n, rows[i].listed);
		assert_int_equal(search_with(f, &q, &got, &n), 0);
		assert_int_equal(n, rows[i].found);
	}
}

TEST(a_category_filters_before_the_limit)
{
	struct fixture *f = *state;
	struct memory_query q = {.text = TEXT("about"), .limit = 1, .category = TEXT("decision")};
	struct memory_new in =
		plain("about a decision that is long and weak in every way", "user0");
	struct memory *hits, m;
	unsigned n;

	fill_users(f, 1, 50);
	in.category = TEXT("decision");
	assert_int_equal(add_new(f, &in, &m), 0);
	assert_int_equal(search_with(f, &q, &hits, &n), 0);
	assert_int_equal(n, 1);
	assert_true(text_equal(hits[0].id, m.id));
	q.category = TEXT("gossip");
	assert_int_equal(search_with(f, &q, &hits, &n), REFUSE_PARAMS);
	assert_string_equal(f->error.field, "category");
}

TEST(a_search_fetches_no_more_text_than_an_answer_holds)
{
	enum { N = 9, EACH = 8 << 20 };
	struct fixture *f = *state;
	char *content = malloc(EACH + 1);

	assert_non_null(content);
	memset(content, 'x', EACH);
	content[EACH] = '\0';
	for (int i = 0; i < N; i++) {
		memcpy(content, "boat 0 ", 7);
		content[5] = (char)('0' + i);
		add(f, content, "ann");
	}
	free(content);
	/* All of them would not fit into the arena. */
	assert_int_equal(n_found(f, "boat", "ann"), 5);
}

/* ---- the store's health ---- */

TEST(a_check_that_is_told_to_stop_finds_nothing_wrong)
{
	struct fixture *f = *state;
	struct store_health health;

	engine_check(f->engine, 0, &health);
	assert_true(health.checked && !health.failed);
	fill_users(f, 4, 5000); /* enough that it looks whether to stop */
	engine_stop(f->engine);
	engine_check(f->engine, 0, &health);
	assert_false(health.checked);
	assert_false(health.failed);
	assert_string_equal(health.text, "");
}

/* ---- a model ---- */

TEST(a_model_with_a_wrong_key_is_refused_in_words)
{
	struct fixture *f = *state;
	struct embedding_opts opts = {
		.url = "http://127.0.0.1:9", .model = "m", .key = "cl\xc3\xa9", .timeout_ms = 1};
	const struct memories_opts memories = {.store = f->engine->store, .model = &opts};
	struct memories *m = NULL;

	assert_int_equal(loop_new(&opts.loop), 0);
	assert_int_equal(memories_start(&memories, &m, &f->error), REFUSE_PARAMS);
	assert_non_null(strstr(f->error.text, "key"));
	assert_null(m);
	loop_free(opts.loop);
}

static void on_wake(void *arg)
{
}

TEST(a_query_vector_of_another_length_is_not_used)
{
	const struct text two = TEXT("{\"data\":[{\"index\":0,\"embedding\":[0.6,0.8]}]}");
	const struct text three = TEXT("{\"data\":[{\"index\":0,\"embedding\":[0.6,0.8,0]}]}");
	struct fixture *f = *state;
	struct embedding e = {.dim = 2};
	struct embedding_vector v;
	struct loop *loop;

	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(wake_new(loop, on_wake, NULL, &e.wake), 0);
	assert_int_equal(embedding_read(&e, &f->arena, two, &v), 0);
	assert_int_equal(v.dim, 2);
	assert_int_equal(embedding_read(&e, &f->arena, three, &v), 0);
	assert_int_equal(v.dim, 0);
	assert_int_equal(e.strange_dim, 3);
	wake_free(e.wake);
	loop_free(loop);
}
