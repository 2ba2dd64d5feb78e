/* What memories said before, and what was said that nobody has drawn facts from. */
#include "store_rows.h"

#include "store/chat.h"
#include "store/history/extract.h"
#include "store/history/memory_version.h"

static struct memory add(struct fixture *f, const char *id, const char *owner, const char *project)
{
	struct memory row = plain_row(text_of(id), text_of(id));

	row.owner = text_of(owner);
	row.project = text_of(project);
	row.created_ms = 100;
	begin(f);
	assert_int_equal(store_memory_add(writer(f), &row, &row.seq), 0);
	commit(f);
	return row;
}

static void say_until(struct fixture *f, struct memory *m, const char *content, int64_t until_ms)
{
	m->content = text_of(content);
	begin(f);
	assert_int_equal(store_memory_version_add(writer(f), m, until_ms, 3), 0);
	commit(f);
	m->valid_from_ms = until_ms;
}

/* The contents, each followed by a space. */
static void assert_contents(const struct memory *rows, unsigned n, const char *want)
{
	char got[400] = "";

	for (unsigned i = 0; i < n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%.*s ",
			 TEXT_ARGS(rows[i].content));
	assert_string_equal(got, want);
}

FIXTURE(setup, teardown);

TEST(versions_are_kept_in_order_and_bounded)
{
	struct fixture *f = *state;
	struct memory m = add(f, "m", "ann", NULL), row;
	struct memory *rows;
	unsigned n;
	bool found;

	say_until(f, &m, "one", 200);
	say_until(f, &m, "two", 300);
	say_until(f, &m, "three", 400);
	assert_int_equal(store_memory_version_list(reader(f), m.seq, 0, &f->arena, &rows, &n), 0);
	assert_contents(rows, n, "three two one ");
	assert_int_equal(rows[2].valid_from_ms, 100);
	assert_int_equal(rows[2].valid_until_ms, 200);
	assert_text(rows[2].owner, "ann");
	static const struct {
		int64_t at;
		const char *content;
	} times[] = {{99, NULL},   {100, "one"},   {199, "one"},
		     {200, "two"}, {399, "three"}, {400, NULL}};

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		assert_int_equal(store_memory_version_at(reader(f), m.seq, times[i].at, &f->arena,
							 &row, &found),
				 0);
		assert_int_equal(found, times[i].content != NULL);
		if (found)
			assert_text(row.content, times[i].content);
	}
	say_until(f, &m, "four", 500);
	assert_int_equal(store_memory_version_list(reader(f), m.seq, 0, &f->arena, &rows, &n), 0);
	assert_contents(rows, n, "four three two ");
	/* They go with their memory. */
	begin(f);
	assert_int_equal(store_memory_delete(writer(f), &EVERYTHING, m.id, &found), 0);
	commit(f);
	assert_int_equal(number(f, "SELECT count(*) FROM memory_version"), 0);
}

TEST(a_scope_finds_its_former_texts)
{
	struct fixture *f = *state;
	struct memory ann = add(f, "a", "ann", NULL), bob = add(f, "b", "bob", NULL),
		      boat = add(f, "p", NULL, "boat"), all = add(f, "c", NULL, NULL);
	struct store_former_opts opts = {.limit = 10, .look_at = 10};
	struct memory *rows;
	unsigned n;

	say_until(f, &ann, "ann1", 200);
	say_until(f, &bob, "bob1", 210);
	say_until(f, &boat, "boat1", 220);
	say_until(f, &all, "all1", 230);
	say_until(f, &ann, "ann2", 300);
	static const struct {
		const char *user, *project;
		bool without_common;
		int64_t at;
		const char *seen;
	} cases[] = {
		{"ann", NULL, true, 0, "ann2 ann1 "},    {"ann", NULL, true, 150, "ann1 "},
		{"ann", NULL, true, 250, "ann2 "},       {"ann", NULL, true, 300, ""},
		{"ann", NULL, false, 150, "ann1 all1 "}, {NULL, "boat", true, 0, "boat1 "},
		{NULL, NULL, false, 0, "all1 "},         {"eve", "car", true, 0, ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		opts.scope = (struct store_scope) {.user = text_of(cases[i].user),
						   .project = text_of(cases[i].project),
						   .without_common = cases[i].without_common};
		opts.at_ms = cases[i].at;
		assert_int_equal(store_memory_version_find(reader(f), &opts, &f->arena, &rows, &n),
				 0);
		assert_contents(rows, n, cases[i].seen);
	}
	opts.scope = EVERYTHING;
	opts.at_ms = 150;
	assert_int_equal(store_memory_version_find(reader(f), &opts, &f->arena, &rows, &n), 0);
	assert_contents(rows, n, "ann1 bob1 boat1 all1 ");
	opts.limit = 2;
	assert_int_equal(store_memory_version_find(reader(f), &opts, &f->arena, &rows, &n), 0);
	assert_contents(rows, n, "ann1 bob1 ");
	assert_true(assert_no_walks(f, reader(f), "memory_version", NULL) >= 3);
}

/* ---- what was said ---- */

static int64_t converse(struct fixture *f, const char *id, int64_t now_ms)
{
	struct conversation row = {.id = text_of(id), .created_ms = now_ms, .updated_ms = now_ms};
	int64_t seq;

	begin(f);
	assert_int_equal(store_conversation_add(writer(f), &row, &seq), 0);
	commit(f);
	return seq;
}

static int64_t say(struct fixture *f, int64_t conversation, int64_t now_ms, const char *user,
		   const char *text)
{
	struct turn turn = {.conversation = conversation,
			    .state = TURN_DONE,
			    .started_ms = now_ms,
			    .asker_user = text_of(user)};
	struct message message = {
		.role = MESSAGE_USER, .text = text_of(text), .created_ms = now_ms};
	int64_t seq;

	begin(f);
	assert_int_equal(store_turn_add(writer(f), &turn, &turn.seq), 0);
	message.turn = turn.seq;
	assert_int_equal(store_message_add(writer(f), &message, &seq), 0);
	commit(f);
	return turn.seq;
}

static struct store_extract_source next(struct fixture *f, enum extract_kind kind, int64_t idle_ms,
					const char *want)
{
	struct store_extract_source s = {0};
	bool found;

	assert_int_equal(store_extract_next(reader(f), kind, idle_ms, &f->arena, &s, &found), 0);
	assert_int_equal(found, want != NULL);
	if (found)
		assert_text(s.id, want);
	return s;
}

static void mark(struct fixture *f, const struct store_extract_source *s, int64_t place, bool done)
{
	begin(f);
	assert_int_equal(store_extract_mark(writer(f), s, place, done), 0);
	commit(f);
}

TEST(what_was_said_is_read_once_and_in_order)
{
	struct fixture *f = *state;
	struct store_extract_source s;
	struct store_said *said;
	int64_t old, talk, first;
	bool found;
	unsigned n;

	old = converse(f, "old", 500);
	say(f, old, 500, NULL, "before");
	assert_int_equal(store_extract_begin(writer(f), 1000), 0);
	assert_int_equal(store_extract_begin(writer(f), 9000), 0); /* only the first counts */
	talk = converse(f, "talk", 1100);
	first = say(f, talk, 1100, "ann", "one");
	say(f, talk, 1200, "ann", "two");
	next(f, EXTRACT_OPEN, 1199, NULL); /* it is not idle yet */
	s = next(f, EXTRACT_OPEN, 1200, "talk");
	assert_int_equal(store_extract_read(reader(f), &s, 100, 0, &f->arena, &said, &n), 0);
	assert_int_equal(n, 2);
	assert_text(said[0].text, "one");
	assert_text(said[0].user, "ann");
	assert_true(said[0].by_user && !said[0].open);
	mark(f, &s, first, false);
	s = next(f, EXTRACT_OPEN, 1200, "talk");
	assert_int_equal(store_extract_read(reader(f), &s, 2, 0, &f->arena, &said, &n), 0);
	assert_int_equal(n, 1);
	assert_text(said[0].text, "tw");
	mark(f, &s, said[0].mark, true);
	next(f, EXTRACT_OPEN, 99999, NULL);
	/* Of the old one, only what is said from now on. */
	say(f, old, 1300, NULL, "after");
	s = next(f, EXTRACT_OPEN, 1300, "old");
	assert_int_equal(store_extract_read(reader(f), &s, 100, 0, &f->arena, &said, &n), 0);
	assert_int_equal(n, 1);
	assert_text(said[0].text, "after");
	mark(f, &s, said[0].mark, true);
	/* What is ended is looked at once more, and then forgotten. */
	begin(f);
	assert_int_equal(store_conversation_end(writer(f), TEXT("talk"), 1400, &found), 0);
	commit(f);
	s = next(f, EXTRACT_ENDED, 1400, "talk");
	assert_int_equal(store_extract_read(reader(f), &s, 100, 0, &f->arena, &said, &n), 0);
	assert_int_equal(n, 0);
	mark(f, &s, s.mark, true);
	next(f, EXTRACT_ENDED, 99999, NULL);
	assert_int_equal(number(f, "SELECT count(*) FROM extract_mark"), 1);
	assert_no_walks(f, reader(f), "message", NULL);
}

/* ---- an older store ---- */

TEST(memories_of_an_older_store_have_no_past)
{
	const int before_history = 12;
	struct fixture *f = *state;
	struct memory row;
	bool found;

	become_version(f, before_history);
	fixture_open(f);
	assert_int_equal(number(f, "PRAGMA user_version"), sqlite_n_steps);
	assert_int_equal(
		store_memory_find(reader(f), &EVERYTHING, TEXT("one"), &f->arena, &row, &found), 0);
	assert_true(found);
	assert_null(row.project.data);
	assert_int_equal(row.valid_from_ms, 0);
	assert_int_equal(row.valid_until_ms, 0);
	assert_int_equal(row.review, REVIEW_NONE);
}
