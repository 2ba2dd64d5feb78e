/* Memories in the store: what is found, by whom, and in which order. */
#include "store_rows.h"

#include <errno.h>
#include <inttypes.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char ANN[] = "ann", BOB[] = "bob", TEAM[] = "team", CLUB[] = "club";

/* Adds in a batch of its own. */
static int64_t add(struct fixture *f, const struct memory *row)
{
	int64_t seq = 0;

	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_memory_add(store_writer(f->store), row, &seq), 0);
	assert_int_equal(store_commit(f->store), 0);
	return seq;
}

static int64_t add_of(struct fixture *f, const char *id, const char *owner, const char *chat,
		      int64_t created_ms)
{
	struct memory row = plain_row(text_of(id), text_of(id));

	row.owner = text_of(owner);
	row.chat = text_of(chat);
	row.created_ms = created_ms;
	return add(f, &row);
}

static struct store_scope scope_of(const char *user, const char *chat)
{
	return (struct store_scope) {.user = text_of(user), .chat = text_of(chat)};
}

/* The ids of a list, each followed by a space. */
struct ids {
	char text[400];
};

static int append_id(void *arg, const struct memory *row)
{
	struct ids *ids = arg;
	size_t n = strlen(ids->text);

	snprintf(ids->text + n, sizeof(ids->text) - n, "%.*s ", TEXT_ARGS(row->id));
	return 0;
}

static void assert_listed(struct fixture *f, const struct store_memory_list_opts *opts,
			  const char *expected)
{
	struct memory *rows = NULL;
	struct ids ids = {""};
	unsigned n = 0;

	assert_int_equal(store_memory_list(reader(f), opts, &f->arena, &rows, &n), 0);
	for (unsigned i = 0; i < n; i++)
		append_id(&ids, &rows[i]);
	assert_string_equal(ids.text, expected);
}

static void assert_walked(struct fixture *f, struct store_scope scope, const char *expected)
{
	for (unsigned limit = 1; limit <= 1000; limit *= 10) {
		struct store_walk walk = {.limit = limit};
		struct ids ids = {""};

		while (!walk.end)
			assert_int_equal(
				store_memory_each(reader(f), &scope, &walk, append_id, &ids), 0);
		assert_string_equal(ids.text, expected);
	}
}

FIXTURE(setup, teardown);

TEST(every_member_comes_back)
{
	struct fixture *f = *state;
	const struct memory row = {
		.id = TEXT("11111111-2222-4333-8444-555555555555"),
		.content = TEXT("Ann likes tea"),
		.source = TEXT("agent"),
		.category = TEXT("preference"),
		.importance = 0.875,
		.subjects = TEXT("[\"Ann\"]"),
		.owner = TEXT("ann"),
		.chat = TEXT(""),
		.shared = true,
		.created_ms = -5,
		.updated_ms = 6,
		.stored_ms = 7,
		.expires_ms = 8,
		.metadata = TEXT("{\"a\":1}"),
	};
	int64_t seq = add(f, &row);
	struct memory got;
	bool found = false;

	assert_int_equal(store_memory_find(reader(f), &EVERYTHING, row.id, &f->arena, &got, &found),
			 0);
	assert_true(found);
	assert_int_equal(got.seq, seq);
	assert_text(got.id, row.id.data);
	assert_text(got.content, "Ann likes tea");
	assert_text(got.source, "agent");
	assert_text(got.category, "preference");
	assert_true(got.importance == 0.875);
	assert_text(got.subjects, "[\"Ann\"]");
	assert_text(got.owner, "ann");
	assert_text(got.chat, "");
	assert_true(got.shared);
	assert_int_equal(got.created_ms, -5);
	assert_int_equal(got.updated_ms, 6);
	assert_int_equal(got.stored_ms, 7);
	assert_int_equal(got.expires_ms, 8);
	assert_text(got.metadata, "{\"a\":1}");
	found = false;
	assert_int_equal(
		store_memory_find_seq(reader(f), &EVERYTHING, seq, &f->arena, &got, &found), 0);
	assert_true(found);
	assert_text(got.id, row.id.data);
}

TEST(what_is_absent_stays_absent)
{
	struct fixture *f = *state;
	struct memory got;
	bool found = true;

	add_of(f, "one", NULL, NULL, 1);
	assert_int_equal(
		store_memory_find(reader(f), &EVERYTHING, TEXT("two"), &f->arena, &got, &found), 0);
	assert_false(found);
	assert_int_equal(
		store_memory_find(reader(f), &EVERYTHING, TEXT("one"), &f->arena, &got, &found), 0);
	assert_true(found);
	assert_null(got.owner.data);
	assert_null(got.chat.data);
	assert_true(got.expires_ms == MEMORY_NEVER);
	assert_false(got.shared);
}

TEST(any_bytes_are_content)
{
	enum { LARGE = 10 << 20 };
	struct fixture *f = *state;
	char *large = malloc(LARGE);
	const struct text contents[] = {
		{"\0", 1},
		{"a\0b\0", 4},
		{"", 0},
		TEXT("\xf0\x9f\x98\x80 e\xcc\x81 \xd7\xa9\xd7\x9c \xe4\xb8\xad\xe6\x96\x87"),
		TEXT("'; DROP TABLE memory; --"),
		{large, LARGE},
	};

	assert_non_null(large);
	for (size_t i = 0; i < LARGE; i++)
		large[i] = (char)(i * 31 >> 4);
	for (size_t i = 0; i < N_OF(contents); i++) {
		struct memory row, got;
		bool found = false;
		char id[8];

		snprintf(id, sizeof(id), "m%zu", i);
		row = plain_row(text_of(id), contents[i]);
		add(f, &row);
		assert_int_equal(
			store_memory_find(reader(f), &EVERYTHING, row.id, &f->arena, &got, &found),
			0);
		assert_true(found);
		assert_int_equal(got.content.len, contents[i].len);
		assert_memory_equal(got.content.data, contents[i].data, contents[i].len);
		found = false;
		assert_int_equal(
			store_memory_find_same(reader(f), &row, 0, &f->arena, &got, &found), 0);
		assert_true(found);
		assert_text(got.id, id);
	}
	free(large);
}

TEST(an_id_is_taken_once)
{
	struct fixture *f = *state;
	struct memory row = plain_row(TEXT("one"), TEXT("x"));
	int64_t seq = -1;

	add(f, &row);
	if (on_server())
		skip(); /* It is found out with the commit: a_fault_that_comes_late_fails_the_batch. */
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_memory_add(store_writer(f->store), &row, &seq), -EEXIST);
	assert_int_equal(seq, -1);
	assert_int_equal(store_commit(f->store), 0);
	row = plain_row(TEXT("two"), (struct text) {0});
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_memory_add(store_writer(f->store), &row, &seq), -EINVAL);
	assert_int_equal(store_commit(f->store), 0);
	assert_int_equal(count_all(reader(f)), 1);
}

/* An id that is taken is our own mistake. Others of the batch are not told that all is well. */
TEST(a_fault_that_comes_late_fails_the_batch)
{
	struct fixture *f = *state;

	only_on_a_server();
	assert_int_equal(add_and_commit(f->store, "one", TEXT("x")), 0);
	begin(f);
	assert_int_equal(store_savepoint(f->store), 0);
	assert_int_equal(add_plain(f->store, "two", TEXT("x")), 0);
	assert_int_equal(store_release(f->store), 0);
	assert_int_equal(store_savepoint(f->store), 0);
	assert_int_equal(add_plain(f->store, "one", TEXT("x")), 0);
	assert_int_equal(store_release(f->store), 0);
	assert_int_equal(store_commit(f->store), -EIO);
	assert_int_equal(count_all(reader(f)), 1);
	assert_int_equal(add_and_commit(f->store, "three", TEXT("x")), 0);
	assert_int_equal(count_all(reader(f)), 2);
}

/* The same, where a query of the next call finds it. Nothing of that one goes on its own. */
TEST(a_fault_that_comes_late_ends_the_calls_behind_it)
{
	struct fixture *f = *state;

	only_on_a_server();
	assert_int_equal(add_and_commit(f->store, "one", TEXT("x")), 0);
	begin(f);
	assert_int_equal(store_savepoint(f->store), 0);
	assert_int_equal(add_plain(f->store, "one", TEXT("x")), 0);
	assert_int_equal(store_release(f->store), 0);
	assert_int_equal(store_savepoint(f->store), 0);
	assert_int_equal(store_memory_delete(writer(f), &EVERYTHING, TEXT("one"), &(bool) {false}),
			 -EIO);
	assert_int_equal(store_rollback_to(f->store), -EIO);
	assert_int_equal(store_savepoint(f->store), -EIO);
	assert_int_equal(store_commit(f->store), -EIO);
	assert_true(has_id(f, reader(f), "one"));
	assert_int_equal(add_and_commit(f->store, "two", TEXT("x")), 0);
	assert_int_equal(count_all(reader(f)), 2);
}

/* A call's writes are its own until it is kept, and it sees them itself. */
TEST(a_call_is_kept_or_undone_as_a_whole)
{
	struct fixture *f = *state;
	static char large[700 << 10];

	memset(large, 'x', sizeof(large));
	for (int looks = 0; looks < 2; looks++) {
		begin(f);
		for (int i = 0; i < 8; i++) {
			bool undo = i % 2 == 1;
			char id[8];

			snprintf(id, sizeof(id), "%d-%d", looks, i);
			assert_int_equal(store_savepoint(f->store), 0);
			for (int k = 0; k < 3; k++)
				assert_int_equal(
					add_plain(f->store, k == 0 ? id : NULL,
						  i < 4 ? TEXT("x")
							: (struct text) {large, sizeof(large)}),
					0);
			if (looks == 1)
				assert_true(has_id(f, writer(f), id));
			if (undo)
				assert_int_equal(store_rollback_to(f->store), 0);
			else
				assert_int_equal(store_release(f->store), 0);
		}
		commit(f);
		assert_int_equal(count_all(reader(f)), 12 * (looks + 1));
	}
	assert_true(has_id(f, reader(f), "1-6"));
	assert_false(has_id(f, reader(f), "1-7"));
}

/* No index of a server takes so long a name; whoever comes with one is refused alone. */
TEST(a_name_that_no_index_takes_fails_its_call_alone)
{
	struct fixture *f = *state;
	struct memory row = plain_row(TEXT("long"), TEXT("x"));
	char owner[8000];
	uint64_t n = 1;
	int64_t seq;

	only_on_a_server();
	for (size_t i = 0; i < sizeof(owner); i++) {
		n = n * 6364136223846793005U + 1442695040888963407U;
		owner[i] = (char)('!' + (n >> 33) % 90);
	}
	row.owner = (struct text) {owner, sizeof(owner)};
	begin(f);
	assert_int_equal(store_savepoint(f->store), 0);
	assert_int_equal(add_plain(f->store, "one", TEXT("x")), 0);
	assert_int_equal(store_release(f->store), 0);
	assert_int_equal(store_savepoint(f->store), 0);
	assert_int_equal(store_memory_add(writer(f), &row, &seq), -EMSGSIZE);
	assert_int_equal(store_rollback_to(f->store), 0);
	commit(f);
	assert_int_equal(count_all(reader(f)), 1);
}

TEST(a_seq_never_comes_again)
{
	struct fixture *f = *state;
	int64_t first, second;
	bool found = false;

	first = add_of(f, "one", NULL, NULL, 1);
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(
		store_memory_delete(store_writer(f->store), &EVERYTHING, TEXT("one"), &found), 0);
	assert_int_equal(store_commit(f->store), 0);
	assert_true(found);
	fixture_close(f);
	fixture_open(f);
	second = add_of(f, "two", NULL, NULL, 1);
	assert_true(second > first);
}

/* One of each kind. */
static void add_scopes(struct fixture *f)
{
	add_of(f, "ann1", ANN, NULL, 10);
	add_of(f, "bob1", BOB, NULL, 20);
	add_of(f, "team1", NULL, TEAM, 30);
	add_of(f, "club1", NULL, CLUB, 40);
	add_of(f, "all1", NULL, NULL, 50);
	add_of(f, "ann2", ANN, TEAM, 60); /* owned, so the chat does not see it */
}

static const struct {
	const char *user, *chat;
	bool without_common;
	const char *seen; /* oldest first */
} SCOPES[] = {
	{ANN, NULL, false, "ann1 all1 ann2 "},  {ANN, TEAM, false, "ann1 team1 all1 ann2 "},
	{BOB, TEAM, false, "bob1 team1 all1 "}, {NULL, TEAM, false, "team1 all1 "},
	{NULL, NULL, false, "all1 "},           {"", "", false, "all1 "},
	{"eve", "eve", false, "all1 "},         {ANN, NULL, true, "ann1 ann2 "},
	{NULL, CLUB, true, "club1 "},           {NULL, NULL, true, ""},
};

TEST(a_scope_sees_its_own_its_chats_and_the_common)
{
	struct fixture *f = *state;

	add_scopes(f);
	for (size_t i = 0; i < N_OF(SCOPES); i++) {
		struct store_scope scope = scope_of(SCOPES[i].user, SCOPES[i].chat);

		scope.without_common = SCOPES[i].without_common;
		assert_walked(f, scope, SCOPES[i].seen);
	}
	assert_walked(f, EVERYTHING, "ann1 bob1 team1 club1 all1 ann2 ");
}

TEST(every_query_keeps_to_its_scope)
{
	static const char *const ids[] = {"ann1", "bob1", "team1", "club1", "all1", "ann2"};
	struct fixture *f = *state;

	add_scopes(f);
	for (size_t i = 0; i < N_OF(SCOPES) * N_OF(ids); i++) {
		struct store_scope scope =
			scope_of(SCOPES[i % N_OF(SCOPES)].user, SCOPES[i % N_OF(SCOPES)].chat);
		const char *id = ids[i / N_OF(SCOPES)];
		bool seen = strstr(SCOPES[i % N_OF(SCOPES)].seen, id), found = !seen;
		struct memory row;
		unsigned n = 7;

		scope.without_common = SCOPES[i % N_OF(SCOPES)].without_common;
		assert_int_equal(
			store_memory_find(reader(f), &scope, text_of(id), &f->arena, &row, &found),
			0);
		assert_int_equal(found, seen);
		assert_int_equal(store_memory_find_prefix(reader(f), &scope, text_of(id), &f->arena,
							  &row, &n),
				 0);
		assert_int_equal(n, seen);
		assert_int_equal(store_begin(f->store), 0);
		assert_int_equal(
			store_memory_delete(store_writer(f->store), &scope, text_of(id), &found),
			0);
		assert_int_equal(found, seen);
		store_rollback(f->store);
		found = !seen;
		assert_int_equal(store_memory_find(store_writer(f->store), &EVERYTHING, text_of(id),
						   &f->arena, &row, &found),
				 0);
		assert_int_equal(
			store_memory_find_seq(reader(f), &scope, row.seq, &f->arena, &row, &found),
			0);
		assert_int_equal(found, seen);
	}
}

static int64_t add_in(struct fixture *f, const char *id, const char *owner, const char *chat,
		      const char *project, int64_t created_ms)
{
	struct memory row = plain_row(text_of(id), text_of(id));

	row.owner = text_of(owner);
	row.chat = text_of(chat);
	row.project = text_of(project);
	row.created_ms = created_ms;
	return add(f, &row);
}

/* What has an owner or a chat is theirs, and the project only where it was learnt. */
TEST(a_project_sees_its_own_and_the_common)
{
	static const struct {
		const char *user, *chat, *project;
		bool without_common;
		const char *seen;
		int64_t n_project;
	} cases[] = {
		{NULL, NULL, "boat", false, "all1 boat1 ", 1},
		{NULL, NULL, "boat", true, "boat1 ", 1},
		{NULL, NULL, "car", false, "all1 car1 ", 1},
		{NULL, NULL, "", false, "all1 ", 0},
		{ANN, NULL, NULL, false, "ann1 all1 ann2 ann3 ", 0},
		{ANN, NULL, "boat", false, "ann1 all1 ann2 boat1 ann3 ", 1},
		{NULL, TEAM, NULL, false, "team1 all1 team2 ", 0},
		{BOB, TEAM, "car", false, "bob1 team1 all1 car1 team2 ", 1},
		{"boat", "boat", NULL, false, "all1 ", 0},
	};
	struct fixture *f = *state;
	struct memory_totals totals;

	add_scopes(f);
	add_in(f, "boat1", NULL, NULL, "boat", 70);
	add_in(f, "car1", NULL, NULL, "car", 80);
	add_in(f, "ann3", ANN, NULL, "boat", 90);
	add_in(f, "team2", NULL, TEAM, "boat", 100);
	for (size_t i = 0; i < N_OF(cases); i++) {
		struct store_scope scope = scope_of(cases[i].user, cases[i].chat);
		unsigned n = 0;

		scope.project = text_of(cases[i].project);
		scope.without_common = cases[i].without_common;
		assert_walked(f, scope, cases[i].seen);
		for (const char *at = cases[i].seen; *at; at++)
			n += *at == ' ';
		assert_int_equal(store_memory_count(reader(f), &scope, 1, &totals), 0);
		assert_int_equal(totals.all, n);
		assert_int_equal(totals.project, cases[i].n_project);
	}
	assert_walked(f, EVERYTHING, "ann1 bob1 team1 club1 all1 ann2 boat1 car1 ann3 team2 ");
	assert_int_equal(store_memory_count(reader(f), &EVERYTHING, 1, &totals), 0);
	assert_int_equal(totals.project, 2);
	assert_int_equal(totals.common, 1);
}

/* The scope is bound once for all of them. */
TEST(finds_several_by_their_numbers)
{
	struct fixture *f = *state;
	const struct store_scope ann = scope_of(ANN, TEAM);
	int64_t seqs[5];
	struct memory rows[5];
	unsigned n = 0;

	seqs[0] = add_of(f, "common", NULL, NULL, 1);
	seqs[1] = add_of(f, "bob", BOB, NULL, 2);
	seqs[2] = add_of(f, "ann", ANN, NULL, 3);
	seqs[3] = 12345;
	seqs[4] = add_of(f, "team", NULL, TEAM, 4);
	assert_int_equal(
		store_memory_find_seqs(reader(f), &ann, seqs, 5, 1000, &f->arena, rows, &n), 0);
	assert_int_equal(n, 3);
	assert_text(rows[0].id, "common");
	assert_text(rows[1].id, "ann");
	assert_text(rows[2].id, "team");
	assert_int_equal(
		store_memory_find_seqs(reader(f), &EVERYTHING, seqs, 5, 1000, &f->arena, rows, &n),
		0);
	assert_int_equal(n, 4);
	/* Enough once they are too long. */
	assert_int_equal(
		store_memory_find_seqs(reader(f), &EVERYTHING, seqs, 5, 1, &f->arena, rows, &n), 0);
	assert_int_equal(n, 1);
}

TEST(lists_newest_first)
{
	struct fixture *f = *state;
	struct store_memory_list_opts opts = {.scope = EVERYTHING, .limit = 10};

	add_scopes(f);
	add_of(f, "old", ANN, NULL, 5); /* told of late */
	add_of(f, "same", ANN, NULL, 60);
	assert_listed(f, &opts, "same ann2 all1 club1 team1 bob1 ann1 old ");
	opts.limit = 2;
	assert_listed(f, &opts, "same ann2 ");
	opts.limit = 0;
	assert_listed(f, &opts, "");
	opts = (struct store_memory_list_opts) {.scope = scope_of(ANN, CLUB), .limit = 10};
	assert_listed(f, &opts, "same ann2 all1 club1 ann1 old ");
	assert_walked(f, opts.scope, "old ann1 club1 all1 ann2 same ");
}

TEST(pages_follow_each_other)
{
	struct fixture *f = *state;
	struct store_memory_list_opts all = {.scope = scope_of(ANN, TEAM), .limit = 100};
	struct store_memory_list_opts page = {.scope = all.scope, .limit = 3};
	struct memory *rows;
	struct ids whole = {""}, paged = {""};
	unsigned n;
	char id[8];

	for (int i = 0; i < 25; i++) {
		snprintf(id, sizeof(id), "m%d", i);
		add_of(f, id, i % 3 ? ANN : NULL, i % 3 == 0 && i % 2 ? TEAM : NULL, i / 4);
	}
	assert_int_equal(store_memory_list(reader(f), &all, &f->arena, &rows, &n), 0);
	assert_int_equal(n, 25);
	for (unsigned i = 0; i < n; i++)
		append_id(&whole, &rows[i]);
	do {
		assert_int_equal(store_memory_list(reader(f), &page, &f->arena, &rows, &n), 0);
		for (unsigned i = 0; i < n; i++) {
			append_id(&paged, &rows[i]);
			page.before_ms = rows[i].created_ms;
			page.before_seq = rows[i].seq;
		}
	} while (n > 0);
	assert_string_equal(paged.text, whole.text);
}

TEST(lists_hide_what_is_expired)
{
	static const int64_t expiries[] = {99, 100, 101, MEMORY_NEVER};
	struct fixture *f = *state;
	struct store_memory_list_opts opts = {
		.scope = scope_of(ANN, NULL), .limit = 9, .now_ms = 100};

	for (size_t i = 0; i < N_OF(expiries); i++) {
		char id[8];
		struct memory row;

		snprintf(id, sizeof(id), "m%zu", i);
		row = plain_row(text_of(id), TEXT("x"));
		row.owner = text_of(ANN);
		row.expires_ms = expiries[i];
		row.created_ms = (int64_t)i;
		add(f, &row);
	}
	assert_listed(f, &opts, "m3 m2 ");
	/* Hidden before the limit counts, not after. */
	opts.limit = 2;
	opts.now_ms = 0;
	assert_listed(f, &opts, "m3 m2 ");
	opts.now_ms = 100;
	opts.include_expired = true;
	opts.limit = 9;
	assert_listed(f, &opts, "m3 m2 m1 m0 ");
	opts.scope = EVERYTHING;
	opts.include_expired = false;
	assert_listed(f, &opts, "m3 m2 ");
}

TEST(lists_one_category)
{
	static const char *const categories[] = {"fact", "entity", "fact", "other"};
	struct fixture *f = *state;
	struct store_memory_list_opts opts = {
		.scope = scope_of(ANN, NULL), .limit = 2, .category = TEXT("fact")};

	for (size_t i = 0; i < N_OF(categories); i++) {
		char id[8];
		struct memory row;

		snprintf(id, sizeof(id), "m%zu", i);
		row = plain_row(text_of(id), TEXT("x"));
		row.owner = text_of(ANN);
		row.category = text_of(categories[i]);
		add(f, &row);
	}
	assert_listed(f, &opts, "m2 m0 ");
	opts.category = TEXT("none");
	assert_listed(f, &opts, "");
}

TEST(a_list_is_cut_to_what_it_may_weigh)
{
	struct fixture *f = *state;
	struct store_memory_list_opts opts = {.scope = EVERYTHING, .limit = 100};
	struct memory *rows;
	struct arena small;
	unsigned n;
	char id[8];

	for (int i = 0; i < 50; i++) {
		struct memory row;

		snprintf(id, sizeof(id), "m%02d", i);
		row = plain_row(text_of(id), TEXT("0123456789012345678901234567890123456789"));
		add(f, &row);
	}
	/* 3 + 40 + test, fact, [] and {}: 55 each. */
	opts.max_bytes = 5 * 55;
	assert_int_equal(store_memory_list(reader(f), &opts, &f->arena, &rows, &n), 0);
	assert_int_equal(n, 5);
	assert_text(rows[4].id, "m45");
	opts.max_bytes--;
	assert_int_equal(store_memory_list(reader(f), &opts, &f->arena, &rows, &n), 0);
	assert_int_equal(n, 4);
	opts.max_bytes = 0;
	assert_int_equal(store_memory_list(reader(f), &opts, &f->arena, &rows, &n), 0);
	assert_int_equal(n, 50);
	arena_init(&small, 4096);
	assert_int_equal(store_memory_list(reader(f), &opts, &small, &rows, &n), -ENOMEM);
	arena_done(&small);
}

static void assert_prefix(struct fixture *f, struct text prefix, unsigned expected, const char *id)
{
	struct memory row = {0};
	unsigned n = 9;

	assert_int_equal(
		store_memory_find_prefix(reader(f), &EVERYTHING, prefix, &f->arena, &row, &n), 0);
	assert_int_equal(n, expected);
	assert_text(row.id, id);
}

TEST(a_prefix_finds_one_or_says_that_there_are_more)
{
	static const char *const ids[] = {
		"12345678-0000-4000-8000-000000000000",
		"12345678-1111-4000-8000-000000000000",
		"12345679-0000-4000-8000-000000000000",
		"ffffffff-ffff-4fff-bfff-ffffffffffff",
	};
	struct fixture *f = *state;
	char longer[80];

	for (size_t i = 0; i < N_OF(ids); i++)
		add_of(f, ids[i], NULL, NULL, 1);
	assert_prefix(f, TEXT("12345679"), 1, ids[2]);
	assert_prefix(f, TEXT("12345678"), 2, NULL);
	assert_prefix(f, TEXT("1"), 2, NULL); /* three */
	assert_prefix(f, TEXT("12345678-1"), 1, ids[1]);
	assert_prefix(f, text_of(ids[0]), 1, ids[0]);
	assert_prefix(f, TEXT("f"), 1, ids[3]);
	assert_prefix(f, TEXT("ffffffff-ffff-4fff-bfff-ffffffffffff"), 1, ids[3]);
	assert_prefix(f, TEXT("2"), 0, NULL);
	assert_prefix(f, TEXT(""), 0, NULL);
	snprintf(longer, sizeof(longer), "%s0", ids[0]);
	assert_prefix(f, text_of(longer), 0, NULL);
	memset(longer, '1', sizeof(longer));
	assert_prefix(f, (struct text) {longer, sizeof(longer)}, 0, NULL);
}

TEST(a_prefix_is_no_pattern)
{
	static const char *const prefixes[] = {"%", "_", "1%", "1_",   "[1]",  "*",     "1*",
					       "?", "'", "\\", "\x7f", "\xff", "1\xff", "\xc3\xa9"};
	struct fixture *f = *state;

	add_of(f, "12345678-0000-4000-8000-000000000000", NULL, NULL, 1);
	for (size_t i = 0; i < N_OF(prefixes); i++)
		assert_prefix(f, text_of(prefixes[i]), 0, NULL);
	assert_prefix(f, (struct text) {"\0", 1}, 0, NULL);
	assert_prefix(f, (struct text) {"1\0", 2}, 0, NULL);
}

TEST(update_changes_what_may_change)
{
	struct fixture *f = *state;
	struct memory row = plain_row(TEXT("one"), TEXT("before")), got;
	bool found = false;

	row.owner = text_of(ANN);
	add(f, &row);
	row.content = TEXT("after");
	row.category = TEXT("decision");
	row.importance = 1;
	row.expires_ms = 77;
	row.updated_ms = 2000;
	row.owner = text_of(BOB);
	row.created_ms = 3000;
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_memory_update(store_writer(f->store), &row, &found), 0);
	assert_true(found);
	row.id = TEXT("two");
	assert_int_equal(store_memory_update(store_writer(f->store), &row, &found), 0);
	assert_false(found);
	assert_int_equal(store_commit(f->store), 0);
	assert_int_equal(
		store_memory_find(reader(f), &EVERYTHING, TEXT("one"), &f->arena, &got, &found), 0);
	assert_text(got.content, "after");
	assert_text(got.category, "decision");
	assert_true(got.importance == 1);
	assert_int_equal(got.expires_ms, 77);
	assert_int_equal(got.updated_ms, 2000);
	assert_text(got.owner, ANN);
	assert_int_equal(got.created_ms, 1000);
	/* What it says now is what a repetition is compared with. */
	row.owner = text_of(ANN);
	row.created_ms = 0;
	row.stored_ms = 76; /* while it had not expired */
	assert_int_equal(store_memory_find_same(reader(f), &row, 0, &f->arena, &got, &found), 0);
	assert_true(found);
}

static void assert_same(struct fixture *f, const struct memory *like, int64_t since_ms,
			const char *id)
{
	struct memory got;
	bool found = !id;

	assert_int_equal(store_memory_find_same(reader(f), like, since_ms, &f->arena, &got, &found),
			 0);
	assert_int_equal(found, id != NULL);
	if (id)
		assert_text(got.id, id);
}

TEST(a_repetition_is_recognised)
{
	struct fixture *f = *state;
	struct memory row = plain_row(TEXT("one"), TEXT("said twice")), like;

	row.owner = text_of(ANN);
	row.created_ms = 5; /* an old one, told of now */
	row.stored_ms = 50000;
	add(f, &row);
	row.id = TEXT("two");
	row.stored_ms = 50001;
	add(f, &row);
	assert_same(f, &row, 50000, "one");
	assert_same(f, &row, 50001, "two");
	assert_same(f, &row, 50002, NULL);
	like = row;
	like.content = TEXT("said once");
	assert_same(f, &like, 0, NULL);
	like = row;
	like.owner = text_of(BOB);
	assert_same(f, &like, 0, NULL);
	like.owner = (struct text) {0};
	assert_same(f, &like, 0, NULL);
	like = row;
	like.chat = text_of(TEAM);
	assert_same(f, &like, 0, NULL);
	like = row;
	like.shared = true;
	assert_same(f, &like, 0, NULL);
	like = row;
	like.created_ms = 6;
	assert_same(f, &like, 0, NULL);
	like.created_ms = 0;
	assert_same(f, &like, 0, "one");
	like.subjects = TEXT("Ann");
	assert_same(f, &like, 0, NULL);
	like.subjects = row.subjects;
	assert_same(f, &like, 0, "one");
	like.source = TEXT("another");
	assert_same(f, &like, 0, NULL);
	like.source = row.source;
	like.expires_ms = 70000;
	assert_same(f, &like, 0, NULL);
}

/* By the same moment, or as long after each came. */
TEST(a_repetition_expires_like_the_first)
{
	struct fixture *f = *state;
	struct memory row = plain_row(TEXT("one"), TEXT("said twice")), like;

	row.stored_ms = 50000;
	row.expires_ms = 90000;
	add(f, &row);
	like = row;
	like.stored_ms = 50300;
	assert_same(f, &like, 0, "one");
	like.expires_ms = 90300;
	assert_same(f, &like, 0, "one");
	like.expires_ms = 90301;
	assert_same(f, &like, 0, NULL);
	like.expires_ms = MEMORY_NEVER;
	assert_same(f, &like, 0, NULL);
}

/* Each where it was learnt; `want` names those that ann sees of them. */
static void assert_learnt(struct fixture *f, enum store_learnt learnt, const char *chat,
			  const char *want)
{
	struct store_memory_list_opts opts = {
		.scope = {.user = text_of(ANN), .chat = text_of(chat), .learnt = learnt},
		.limit = 10,
	};
	char got[16] = "";
	struct memory *rows;
	unsigned n;

	assert_int_equal(store_memory_list(reader(f), &opts, &f->arena, &rows, &n), 0);
	for (unsigned i = 0; i < n; i++) {
		struct memory row;
		bool found;

		strncat(got, rows[i].id.data, 1);
		assert_int_equal(store_memory_find_seq(reader(f), &opts.scope, rows[i].seq,
						       &f->arena, &row, &found),
				 0);
		assert_true(found);
	}
	assert_string_equal(got, want);
}

TEST(where_it_was_learnt_decides_who_hears_of_it)
{
	static const struct {
		const char *id, *chat, *type;
	} learnt[] = {
		{"a", TEAM, "private"},
		{"b", "club", "group"},
		{"c", "old", NULL},
		{"d", NULL, NULL},
	};
	struct fixture *f = *state;

	for (int i = 0; i < 4; i++) {
		struct memory row = plain_row(text_of(learnt[i].id), TEXT("learnt"));

		row.owner = text_of(ANN);
		row.chat = text_of(learnt[i].chat);
		row.chat_type = text_of(learnt[i].type);
		row.created_ms = 100 - i;
		add(f, &row);
	}
	assert_learnt(f, LEARNT_ANYWHERE, "club", "abcd");
	assert_learnt(f, LEARNT_OPENLY, NULL, "b");
	assert_learnt(f, LEARNT_OPENLY, "club", "b");
	assert_learnt(f, LEARNT_OPENLY, TEAM, "ab");
	assert_learnt(f, LEARNT_OPENLY, "old", "bc");
	assert_learnt(f, LEARNT_HERE, "old", "c");
	assert_learnt(f, LEARNT_HERE, "nowhere", "");
}

static int stop_at_second(void *arg, const struct memory *row)
{
	int *n = arg;

	return ++*n == 2 ? 42 : 0;
}

TEST(a_walk_can_be_ended)
{
	struct fixture *f = *state;
	struct store_walk walk = {.limit = 100};
	int n = 0;

	add_scopes(f);
	assert_int_equal(store_memory_each(reader(f), &EVERYTHING, &walk, stop_at_second, &n), 42);
	assert_int_equal(n, 2);
	assert_walked(f, scope_of(BOB, NULL), "bob1 all1 ");
}

/* All of one moment, as an import may leave them. */
TEST(a_slice_does_not_look_at_those_before_it)
{
	struct fixture *f = *state;
	struct store_scope own = scope_of(ANN, NULL);
	struct store_walk walk = {.limit = 10};
	unsigned n = 0;
	int64_t first = 0;

	own.without_common = true;
	for (int i = 0; i < 500; i++) {
		char id[16];

		snprintf(id, sizeof(id), "m%d", i);
		add_of(f, id, ANN, NULL, 70);
	}
	for (; !walk.end; n++) {
		struct ids ids = {""};
		int64_t steps;

		assert_int_equal(store_memory_each(reader(f), &own, &walk, append_id, &ids), 0);
		steps = steps_taken(reader(f));
		if (n == 1)
			first = steps;
		if (n > 1)
			assert_true(steps <= first);
	}
	assert_int_equal(n, 51);
}

struct nested {
	struct fixture *fixture;
	int64_t n;
};

static int walk_again(void *arg, const struct memory *row)
{
	struct nested *nested = arg;

	/* The outer row must still be the same after the inner walk, and after a commit. */
	nested->n += count_all(reader(nested->fixture));
	assert_walked(nested->fixture, scope_of("eve", NULL), "all1 ");
	add_of(nested->fixture, nested->n == 6 ? "new1" : "new2", ANN, NULL, 70);
	assert_true(text_is(row->id, "ann1") || text_is(row->id, "ann2"));
	return 0;
}

TEST(a_walk_is_of_the_moment_it_began)
{
	struct fixture *f = *state;
	struct store_scope own = scope_of(ANN, NULL);
	struct store_walk walk = {.limit = 100};
	struct nested nested = {.fixture = f};

	only_in_a_file();
	add_scopes(f);
	own.without_common = true;
	assert_int_equal(store_memory_each(reader(f), &own, &walk, walk_again, &nested), 0);
	/* All that is read meanwhile on this connection is of that moment too. */
	assert_int_equal(nested.n, 12);
	assert_int_equal(count_all(reader(f)), 8);
}

TEST(sweeps_what_is_expired_in_portions)
{
	static const int64_t expiries[] = {30, 10, 20, 40, MEMORY_NEVER};
	struct fixture *f = *state;
	struct ids ids = {""};

	for (size_t i = 0; i < N_OF(expiries); i++) {
		struct memory row;
		char id[8];

		snprintf(id, sizeof(id), "m%" PRId64, expiries[i] % 1000);
		row = plain_row(text_of(id), TEXT("x"));
		row.expires_ms = expiries[i];
		add(f, &row);
	}
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_memory_sweep(store_writer(f->store), 30, 2, append_id, &ids), 0);
	assert_int_equal(store_commit(f->store), 0);
	assert_non_null(strstr(ids.text, "m10 "));
	assert_non_null(strstr(ids.text, "m20 "));
	assert_int_equal(strlen(ids.text), 8);
	ids = (struct ids) {""};
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_memory_sweep(store_writer(f->store), 30, 2, append_id, &ids), 0);
	assert_int_equal(store_commit(f->store), 0);
	assert_string_equal(ids.text, "m30 ");
	assert_int_equal(count_all(reader(f)), 2);
}

TEST(counts_by_kind)
{
	struct fixture *f = *state;
	struct store_scope ann = scope_of(ANN, TEAM);
	struct memory row = plain_row(TEXT("brief"), TEXT("x"));
	struct memory_totals stats;

	assert_int_equal(store_memory_count(reader(f), &EVERYTHING, 0, &stats), 0);
	assert_int_equal(stats.all, 0);
	add_scopes(f);
	row.expires_ms = 100;
	add(f, &row);
	assert_int_equal(store_memory_count(reader(f), &EVERYTHING, 100, &stats), 0);
	assert_int_equal(stats.all, 7);
	assert_int_equal(stats.expired, 1);
	assert_int_equal(stats.personal, 3);
	assert_int_equal(stats.group, 2);
	assert_int_equal(stats.common, 2);
	assert_int_equal(stats.owners, 2);
	assert_int_equal(store_memory_count(reader(f), &ann, 99, &stats), 0);
	assert_int_equal(stats.all, 5);
	assert_int_equal(stats.expired, 0);
	assert_int_equal(stats.owners, 1);
	assert_int_equal(stats.group, 1);
}
