/* Approvals and grants in the store: rows, decisions, ties, lists, uses, and sweeps. */
#include "store_rows.h"

#include <errno.h>

#include "store/approval.h"
#include "store/db/schema.h"
#include "store/session.h"

#define NONE ((struct text) {0})

static void assert_bytes(struct text got, struct text want)
{
	assert_int_equal(got.len, want.len);
	if (!want.data)
		assert_null(got.data);
	else
		assert_memory_equal(got.data, want.data, want.len);
}

/* ---- one approval ---- */

static const struct approval full = {
	.id = TEXT("local-full"),
	.session = TEXT("s"),
	.run = TEXT("r"),
	.agent = TEXT("claude"),
	.origin = {"/a\0\xff", 4},
	.tool_use_id = TEXT("toolu_1"),
	.kind = APPROVAL_CONTACT,
	.tool = TEXT("Bash"),
	.input.bytes = {"\0{}\xfe", 4},
	.event_id = 17,
	.status = APPROVAL_DENIED,
	.comment = {"no\0\xff", 4},
	.decided_by = TEXT("human"),
	.created_ms = 1,
	.deadline_ms = INT64_MAX,
	.decided_ms = 3,
};

static int64_t add_row(struct fixture *f, const struct approval *row)
{
	int64_t seq = 0;

	assert_int_equal(store_approval_add(writer(f), row, &seq), 0);
	assert_true(seq > 0);
	return seq;
}

/* Pending. */
static struct approval plain(const char *id, const char *session, const char *run)
{
	return (struct approval) {.id = text_of(id),
				  .session = text_of(session),
				  .run = text_of(run),
				  .tool = TEXT("Bash")};
}

static int64_t add(struct fixture *f, const char *id, const char *session, const char *run)
{
	const struct approval row = plain(id, session, run);

	return add_row(f, &row);
}

static struct approval find(struct fixture *f, const char *id)
{
	struct approval row = {0};
	bool found = false;

	assert_int_equal(store_approval_find(reader(f), text_of(id), &f->arena, &row, &found), 0);
	assert_true(found);
	return row;
}

static void assert_row(const struct approval *got, const struct approval *want)
{
	assert_bytes(got->id, want->id);
	assert_bytes(got->session, want->session);
	assert_bytes(got->run, want->run);
	assert_bytes(got->agent, want->agent);
	assert_bytes(got->origin, want->origin);
	assert_bytes(got->tool_use_id, want->tool_use_id);
	assert_int_equal(got->kind, want->kind);
	assert_bytes(got->tool, want->tool);
	assert_bytes(got->input.bytes, want->input.bytes);
	assert_int_equal(got->event_id, want->event_id);
	assert_int_equal(got->status, want->status);
	assert_bytes(got->comment, want->comment);
	assert_bytes(got->decided_by, want->decided_by);
	assert_int_equal(got->created_ms, want->created_ms);
	assert_int_equal(got->deadline_ms, want->deadline_ms);
	assert_int_equal(got->decided_ms, want->decided_ms);
}

FIXTURE(setup, teardown);

TEST(an_approval_comes_back_as_it_was_added)
{
	const struct approval none = {.id = TEXT("none"), .tool = TEXT("")};
	struct fixture *f = *state;
	struct approval row;
	int64_t seq;
	bool found;

	begin(f);
	seq = add_row(f, &full);
	add_row(f, &none);
	commit(f);
	row = find(f, "local-full");
	assert_int_equal(row.seq, seq);
	assert_row(&row, &full);
	row = find(f, "none");
	assert_row(&row, &none);
	assert_int_equal(store_approval_find(reader(f), TEXT("x"), &f->arena, &row, &found), 0);
	assert_false(found);
}

TEST(approvals_are_found_by_many_ids)
{
	static const struct text ids[] = {TEXT("b\"\\,{}"), TEXT("x"), TEXT("a")};
	struct fixture *f = *state;
	struct approval *rows;
	struct text *pending;
	unsigned n;

	begin(f);
	add(f, "a", NULL, NULL);
	add(f, "b\"\\,{}", NULL, NULL);
	add(f, "c", NULL, NULL);
	commit(f);
	assert_int_equal(store_approval_find_named(reader(f), ids, 3, &f->arena, &rows, &n), 0);
	assert_int_equal(n, 2);
	assert_true(text_equal(rows[0].id, ids[0]) != text_equal(rows[1].id, ids[0]));
	assert_int_equal(store_approval_find_named(reader(f), ids, 0, &f->arena, &rows, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(store_approval_pending(reader(f), &f->arena, &pending, &n), 0);
	assert_int_equal(n, 3);
}

TEST(an_id_that_is_taken_is_told)
{
	const struct approval again = plain("a", "other", NULL);
	struct fixture *f = *state;
	int64_t seq = 77;

	begin(f);
	add(f, "a", NULL, NULL);
	assert_int_equal(store_approval_add(writer(f), &again, &seq), -EEXIST);
	commit(f);
	assert_int_equal(seq, 77);
	assert_text(find(f, "a").session, NULL);
}

static bool decide(struct fixture *f, const char *id, enum approval_status status,
		   struct text comment, const char *by)
{
	const struct approval row = {.id = text_of(id),
				     .status = status,
				     .comment = comment,
				     .decided_by = text_of(by),
				     .decided_ms = 50};
	bool done = false;

	begin(f);
	assert_int_equal(store_approval_decide(writer(f), &row, &done), 0);
	commit(f);
	return done;
}

static bool has_asked(struct fixture *f, int64_t pid, int64_t started)
{
	bool has = false;

	assert_int_equal(store_approval_has_asked(reader(f), TEXT("here"), pid, started, &has), 0);
	return has;
}

TEST(who_asked_and_who_decided_is_kept)
{
	struct fixture *f = *state;
	struct approval row = plain("a", NULL, NULL);
	bool done = false;

	begin(f);
	row.asker_pid = 4211;
	row.asker_started = 1LL << 40;
	add_row(f, &row);
	row.status = APPROVAL_APPROVED;
	row.decider_known = true;
	row.decider_uid = 0;
	row.decider_pid = 17;
	row.decider_program = (struct text) {"/bin/\xff", 6};
	row.decider_terminal = TEXT("pts/3");
	add(f, "b", NULL, NULL);
	assert_int_equal(store_approval_decide(writer(f), &row, &done), 0);
	commit(f);
	row = find(f, "a");
	assert_int_equal(row.asker_pid, 4211);
	assert_int_equal(row.asker_started, 1LL << 40);
	assert_true(row.decider_known);
	assert_int_equal(row.decider_pid, 17);
	assert_bytes(row.decider_program, (struct text) {"/bin/\xff", 6});
	assert_text(row.decider_terminal, "pts/3");
	assert_false(find(f, "b").decider_known);
	assert_true(has_asked(f, 4211, 1LL << 40));
	/* Its number was given to another; and nobody is nobody. */
	assert_false(has_asked(f, 4211, 1));
	assert_false(has_asked(f, 0, 0));
}

TEST(a_process_that_asked_is_one_of_its_host)
{
	struct fixture *f = *state;
	struct approval row = plain("there", NULL, NULL);

	begin(f);
	row.asker_pid = 4211;
	row.asker_started = 7;
	row.host = TEXT("there");
	add_row(f, &row);
	row.id = TEXT("here");
	row.asker_pid = 4212;
	row.host = TEXT("here");
	add_row(f, &row);
	commit(f);
	assert_text(find(f, "there").host, "there");
	assert_false(has_asked(f, 4211, 7));
	assert_true(has_asked(f, 4212, 7));
}

TEST(the_first_decision_wins)
{
	struct fixture *f = *state;

	begin(f);
	add(f, "a", "s", "r");
	add(f, "b", "s", "r");
	commit(f);
	assert_true(decide(f, "a", APPROVAL_DENIED, (struct text) {"no\0\xff", 4}, "human"));
	assert_false(decide(f, "a", APPROVAL_APPROVED, NONE, "policy:all"));
	assert_false(decide(f, "a", APPROVAL_DENIED, TEXT("again"), "human"));
	assert_false(decide(f, "nobody", APPROVAL_APPROVED, NONE, "human"));
	assert_int_equal(find(f, "a").status, APPROVAL_DENIED);
	assert_bytes(find(f, "a").comment, (struct text) {"no\0\xff", 4});
	assert_text(find(f, "a").decided_by, "human");
	assert_int_equal(find(f, "a").decided_ms, 50);
	assert_text(find(f, "a").session, "s");
	assert_int_equal(find(f, "b").status, APPROVAL_PENDING);
	assert_true(decide(f, "b", APPROVAL_EXPIRED, NONE, NULL));
	assert_int_equal(find(f, "b").status, APPROVAL_EXPIRED);
	assert_text(find(f, "b").comment, NULL);
	assert_text(find(f, "b").decided_by, NULL);
}

static void assert_short(struct fixture *f, struct text prefix, bool waiting, unsigned want_n,
			 const char *want)
{
	struct text ids[2] = {TEXT("untouched")};
	unsigned n = 9;

	assert_int_equal(store_approval_find_short(reader(f), prefix, waiting, &f->arena, ids, &n),
			 0);
	assert_int_equal(n, want_n);
	assert_text(ids[0], want ? want : "untouched");
}

TEST(the_beginning_of_an_id_will_do)
{
	struct fixture *f = *state;

	begin(f);
	add(f, "local-1", NULL, NULL);
	add(f, "local-12", NULL, NULL);
	add(f, "other", NULL, NULL);
	commit(f);
	assert_short(f, TEXT("o"), false, 1, "other");
	assert_short(f, TEXT("local-"), false, 2, "local-1");
	/* A whole id does not win by that. */
	assert_short(f, TEXT("local-1"), false, 2, "local-1");
	assert_short(f, TEXT("local-2"), false, 0, NULL);
	assert_short(f, TEXT("zz"), false, 0, NULL);
	assert_short(f, TEXT(""), false, 0, NULL);
	assert_short(f, TEXT("local-"), true, 2, "local-1");
	assert_true(decide(f, "local-1", APPROVAL_APPROVED, NONE, NULL));
	assert_short(f, TEXT("local-"), false, 2, "local-1");
	assert_short(f, TEXT("local-"), true, 1, "local-12");
	assert_short(f, TEXT("local-1"), true, 1, "local-12");
	assert_short(f, TEXT("local-2"), true, 0, NULL);
}

/* ---- ties ---- */

static int64_t ask(struct fixture *f, const char *id, const char *run, const char *tool_use_id,
		   int64_t created_ms)
{
	struct approval row = plain(id, NULL, run);

	row.tool_use_id = text_of(tool_use_id);
	row.created_ms = created_ms;
	return add_row(f, &row);
}

/* Its id; NULL: none. */
static const char *untied(struct fixture *f, const char *run, const char *tool,
			  const char *tool_use_id, int64_t since_ms)
{
	struct approval row;
	bool found;

	assert_int_equal(store_approval_untied(reader(f), text_of(run), text_of(tool),
					       text_of(tool_use_id), since_ms, &f->arena, &row,
					       &found),
			 0);
	return found ? row.id.data : NULL;
}

TEST(the_newest_untied_one_is_found)
{
	struct fixture *f = *state;
	struct approval row;

	begin(f);
	ask(f, "a", "r", NULL, 10);
	ask(f, "b", "r", NULL, 20);
	ask(f, "c", "other", NULL, 30);
	row = plain("d", "of session", NULL);
	row.created_ms = 40;
	add_row(f, &row);
	commit(f);
	assert_string_equal(untied(f, "r", "Bash", NULL, 0), "b");
	assert_string_equal(untied(f, "r", "Bash", "t1", 20), "b");
	assert_null(untied(f, "r", "Bash", NULL, 21));
	assert_null(untied(f, "r", "Edit", NULL, 0));
	assert_string_equal(untied(f, "of session", "Bash", NULL, 0), "d");
	decide(f, "b", APPROVAL_APPROVED, NONE, "human");
	assert_string_equal(untied(f, "r", "Bash", NULL, 0), "b");
	begin(f);
	assert_int_equal(store_approval_tie(writer(f), find(f, "b").seq, TEXT("s"), 4), 0);
	commit(f);
	assert_string_equal(untied(f, "r", "Bash", NULL, 0), "a");
	begin(f);
	assert_int_equal(store_approval_tie(writer(f), find(f, "a").seq, TEXT("s"), 5), 0);
	commit(f);
	assert_null(untied(f, "r", "Bash", NULL, 0));
	assert_text(find(f, "a").session, "s");
	assert_int_equal(find(f, "a").event_id, 5);
}

TEST(ids_of_calls_must_not_differ)
{
	struct fixture *f = *state;

	begin(f);
	ask(f, "a", "r", "t1", 10);
	ask(f, "b", "r", NULL, 20);
	ask(f, "c", "r", "t2", 30);
	commit(f);
	assert_string_equal(untied(f, "r", "Bash", NULL, 0), "c");
	assert_string_equal(untied(f, "r", "Bash", "t1", 0), "a");
	assert_string_equal(untied(f, "r", "Bash", "t2", 0), "c");
	assert_string_equal(untied(f, "r", "Bash", "t3", 0), "b");
}

TEST(a_tie_may_leave_the_session)
{
	struct fixture *f = *state;
	int64_t seq;

	begin(f);
	seq = add(f, "a", "s", NULL);
	assert_int_equal(store_approval_tie(writer(f), seq, NONE, 7), 0);
	assert_int_equal(store_approval_tie(writer(f), seq + 1, TEXT("x"), 8), 0);
	commit(f);
	assert_text(find(f, "a").session, "s");
	assert_int_equal(find(f, "a").event_id, 7);
}

/* ---- lists ---- */

/* By the first letters of their ids. */
static void assert_list(struct fixture *f, const struct store_approval_query *q, const char *want)
{
	struct approval *rows;
	char got[64] = "";
	unsigned n;

	assert_int_equal(store_approval_list(reader(f), q, &f->arena, &rows, &n), 0);
	assert_true(n < sizeof(got));
	for (unsigned i = 0; i < n; i++)
		got[i] = rows[i].id.data[0];
	assert_string_equal(got, want);
}

#define LIST(f, want, ...) assert_list(f, &(struct store_approval_query) {__VA_ARGS__}, want)

/* Of two sessions, s and t, and a run each; b and e are decided. */
static void add_some(struct fixture *f)
{
	begin(f);
	add(f, "a", "s", "1");
	add(f, "b", "s", "1");
	add(f, "c", "t", "2");
	add(f, "d", NULL, "1");
	add(f, "e", "t", "2");
	commit(f);
	decide(f, "b", APPROVAL_DENIED, NONE, "human");
	decide(f, "e", APPROVAL_DENIED, NONE, "human");
}

TEST(lists_go_either_way)
{
	struct fixture *f = *state;

	LIST(f, "", .status = -1);
	add_some(f);
	LIST(f, "edcba", .status = -1);
	LIST(f, "abcde", .status = -1, .oldest_first = true);
	LIST(f, "ed", .status = -1, .limit = 2);
	LIST(f, "cba", .status = -1, .after_seq = find(f, "d").seq);
	LIST(f, "e", .status = -1, .after_seq = find(f, "d").seq, .oldest_first = true);
	LIST(f, "dca", .status = APPROVAL_PENDING);
	LIST(f, "acd", .status = APPROVAL_PENDING, .oldest_first = true);
	LIST(f, "eb", .status = APPROVAL_DENIED);
	LIST(f, "", .status = APPROVAL_EXPIRED);
}

TEST(a_list_may_want_one_session_or_run)
{
	struct fixture *f = *state;

	add_some(f);
	LIST(f, "ba", .status = -1, .session = TEXT("s"));
	LIST(f, "a", .status = APPROVAL_PENDING, .session = TEXT("s"));
	LIST(f, "b", .status = APPROVAL_DENIED, .session = TEXT("s"));
	LIST(f, "dba", .status = -1, .run = TEXT("1"));
	LIST(f, "da", .status = APPROVAL_PENDING, .run = TEXT("1"));
	LIST(f, "abd", .status = -1, .run = TEXT("1"), .oldest_first = true);
	LIST(f, "b", .status = APPROVAL_DENIED, .run = TEXT("1"));
	LIST(f, "", .status = -1, .run = TEXT("1"), .session = TEXT("t"));
	LIST(f, "", .status = -1, .session = TEXT("x"));
}

TEST(a_list_ends_at_its_bytes)
{
	static char input[1000];
	struct fixture *f = *state;

	begin(f);
	for (unsigned i = 0; i < 5; i++) {
		char id[] = {(char)('a' + i), '\0'};
		struct approval row = plain(id, NULL, NULL);

		row.input.bytes = (struct text) {input, sizeof(input)};
		add_row(f, &row);
	}
	commit(f);
	LIST(f, "e", .status = -1, .max_bytes = 1);
	LIST(f, "ed", .status = -1, .max_bytes = 2500);
	LIST(f, "edcba", .status = -1, .max_bytes = 9000);
}

/* ---- sweeps ---- */

static unsigned sweep(struct fixture *f, int64_t before_ms, unsigned limit)
{
	unsigned n = 99;

	begin(f);
	assert_int_equal(store_approval_sweep(writer(f), before_ms, limit, &n), 0);
	commit(f);
	return n;
}

TEST(a_sweep_takes_what_was_decided_before)
{
	struct approval row = plain("x", NULL, NULL);
	struct fixture *f = *state;

	add_some(f);
	begin(f);
	row.status = APPROVAL_RESPONDED;
	row.decided_ms = 10;
	add_row(f, &row);
	commit(f);
	assert_int_equal(sweep(f, 10, 9), 0);
	assert_int_equal(sweep(f, INT64_MAX, 0), 0);
	assert_int_equal(sweep(f, INT64_MAX, 1), 1);
	LIST(f, "edcba", .status = -1);
	assert_int_equal(sweep(f, INT64_MAX, 9), 2);
	LIST(f, "dca", .status = -1);
}

/* It names a session and an event that are gone, and is listed all the same. */
TEST(an_approval_outlives_its_session)
{
	const struct session session = {
		.id = TEXT("s"), .run = TEXT("r"), .status = SESSION_COMPLETED, .ended_ms = 1};
	const struct session_event event = {.session = TEXT("s"), .type = SESSION_TOOL_CALL};
	struct fixture *f = *state;
	int64_t id, seq;
	unsigned n;

	begin(f);
	assert_int_equal(store_session_add(writer(f), &session, &seq), 0);
	assert_int_equal(store_session_event_add(writer(f), &event, &id, &seq), 0);
	assert_int_equal(store_approval_tie(writer(f), add(f, "a", "s", "r"), TEXT("s"), id), 0);
	assert_int_equal(store_session_sweep(writer(f), 9, 9, &n), 0);
	assert_int_equal(n, 1);
	commit(f);
	LIST(f, "a", .status = -1);
	LIST(f, "a", .status = APPROVAL_PENDING, .session = TEXT("s"));
	assert_true(decide(f, "a", APPROVAL_SUPERSEDED, NONE, NULL));
	begin(f);
	assert_int_equal(
		store_session_event_approval(writer(f), id, SESSION_APPROVAL_RESOLVED, NONE), 0);
	commit(f);
	LIST(f, "a", .status = APPROVAL_SUPERSEDED, .run = TEXT("r"));
}

TEST(a_small_arena_is_told)
{
	struct store_approval_query q = {.status = -1};
	struct approval *rows = NULL;
	struct grant *grants = NULL;
	struct fixture *f = *state;
	struct arena small;
	unsigned n = 7;

	add_some(f);
	begin(f);
	assert_int_equal(store_grant_add(writer(f), &(struct grant) {.id = TEXT("g")}), 0);
	commit(f);
	arena_init(&small, 1);
	assert_int_equal(store_approval_list(reader(f), &q, &small, &rows, &n), -ENOMEM);
	assert_int_equal(store_grant_list(reader(f), 0, &small, &grants, &n), -ENOMEM);
	arena_done(&small);
	assert_null(rows);
	assert_null(grants);
	assert_int_equal(n, 7);
	LIST(f, "edcba", .status = -1);
}

/* ---- grants ---- */

static void grant(struct fixture *f, const char *id, int64_t expires_ms, int64_t uses)
{
	const struct grant row = {.id = text_of(id), .expires_ms = expires_ms, .uses = uses};

	assert_int_equal(store_grant_add(writer(f), &row), 0);
}

static struct grant *grants(struct fixture *f, int64_t now_ms, unsigned want_n)
{
	struct grant *rows = NULL;
	unsigned n = 99;

	assert_int_equal(store_grant_list(reader(f), now_ms, &f->arena, &rows, &n), 0);
	assert_int_equal(n, want_n);
	return rows;
}

static bool use(struct fixture *f, const char *id)
{
	bool found;

	begin(f);
	assert_int_equal(store_grant_use(writer(f), text_of(id), &found), 0);
	commit(f);
	return found;
}

TEST(a_grant_comes_back_as_it_was_added)
{
	const struct grant all = {
		.id = TEXT("g1"),
		.session = TEXT("s"),
		.agent = TEXT("claude"),
		.tool = TEXT("mcp__*"),
		.pattern = {"*\0\xff?", 4},
		.verdict = GRANT_DENIES,
		.comment = {"c\0\xff", 3},
		.created_ms = 1,
		.expires_ms = 100,
		.uses = 3,
	};
	struct fixture *f = *state;
	struct grant *rows;

	begin(f);
	assert_int_equal(store_grant_add(writer(f), &all), 0);
	grant(f, "a", 0, -1);
	assert_int_equal(store_grant_add(writer(f), &all), -EEXIST);
	commit(f);
	rows = grants(f, 99, 2);
	assert_bytes(rows[0].id, all.id);
	assert_bytes(rows[0].session, all.session);
	assert_bytes(rows[0].agent, all.agent);
	assert_bytes(rows[0].tool, all.tool);
	assert_bytes(rows[0].pattern, all.pattern);
	assert_true(rows[0].verdict);
	assert_bytes(rows[0].comment, all.comment);
	assert_int_equal(rows[0].created_ms, 1);
	assert_int_equal(rows[0].expires_ms, 100);
	assert_int_equal(rows[0].uses, 3);
	assert_text(rows[1].id, "a");
	assert_text(rows[1].session, NULL);
	assert_text(rows[1].agent, NULL);
	assert_text(rows[1].tool, NULL);
	assert_text(rows[1].pattern, NULL);
	assert_text(rows[1].comment, NULL);
	assert_false(rows[1].verdict);
	assert_int_equal(rows[1].uses, -1);
}

TEST(the_last_use_of_a_grant_deletes_it)
{
	struct fixture *f = *state;

	begin(f);
	grant(f, "two", 0, 2);
	grant(f, "any", 0, -1);
	commit(f);
	assert_true(use(f, "two"));
	assert_int_equal(grants(f, 0, 2)[0].uses, 1);
	assert_true(use(f, "two"));
	assert_text(grants(f, 0, 1)[0].id, "any");
	assert_false(use(f, "two"));
	assert_false(use(f, "nobody"));
	for (unsigned i = 0; i < 5; i++)
		assert_true(use(f, "any"));
	assert_int_equal(grants(f, 0, 1)[0].uses, -1);
}

TEST(grants_are_removed_and_expire)
{
	struct fixture *f = *state;
	bool found;

	begin(f);
	grant(f, "a", 100, -1);
	grant(f, "b", 0, -1);
	grant(f, "c", 200, -1);
	commit(f);
	assert_text(grants(f, 99, 3)[0].id, "a");
	assert_text(grants(f, 100, 2)[0].id, "b");
	grants(f, 200, 1);
	assert_int_equal(number(f, "SELECT count(*) FROM approval_grant"), 3);
	begin(f);
	assert_int_equal(store_grant_sweep(writer(f), 99), 0);
	commit(f);
	assert_int_equal(number(f, "SELECT count(*) FROM approval_grant"), 3);
	begin(f);
	assert_int_equal(store_grant_sweep(writer(f), 150), 0);
	commit(f);
	assert_int_equal(number(f, "SELECT count(*) FROM approval_grant"), 2);
	begin(f);
	assert_int_equal(store_grant_remove(writer(f), TEXT("b"), &found), 0);
	assert_true(found);
	assert_int_equal(store_grant_remove(writer(f), TEXT("b"), &found), 0);
	assert_false(found);
	commit(f);
	assert_text(grants(f, 0, 1)[0].id, "c");
}

/* ---- the file ---- */

static void ask_everything(struct fixture *f, struct connection *c)
{
	struct approval row, *rows;
	struct grant *grant_rows;
	struct text ids[2];
	bool found;
	int64_t waiting;
	unsigned n;

	for (unsigned i = 0; i < 16; i++) {
		struct store_approval_query q = {
			.status = i & 8 ? APPROVAL_DENIED : -1,
			.session = i & 4 ? TEXT("s") : NONE,
			.run = i & 2 ? TEXT("r") : NONE,
			.oldest_first = i & 1,
		};

		assert_int_equal(store_approval_list(c, &q, &f->arena, &rows, &n), 0);
	}
	assert_int_equal(store_approval_find(c, TEXT("a"), &f->arena, &row, &found), 0);
	assert_int_equal(store_approval_find_short(c, TEXT("a"), false, &f->arena, ids, &n), 0);
	assert_int_equal(store_approval_find_short(c, TEXT("a"), true, &f->arena, ids, &n), 0);
	assert_int_equal(store_approval_untied(c, TEXT("r"), TEXT("t"), TEXT("i"), 0, &f->arena,
					       &row, &found),
			 0);
	assert_int_equal(store_approval_has_asked(c, TEXT("here"), 1, 1, &found), 0);
	assert_int_equal(store_approval_waiting(c, &waiting), 0);
	assert_int_equal(store_grant_list(c, 0, &f->arena, &grant_rows, &n), 0);
}

TEST(no_query_walks_a_whole_table)
{
	struct fixture *f = *state;
	bool found;

	add_some(f);
	begin(f);
	grant(f, "a", 1, 1);
	assert_int_equal(store_grant_use(writer(f), TEXT("a"), &found), 0);
	assert_int_equal(store_grant_sweep(writer(f), 1), 0);
	assert_int_equal(store_approval_tie(writer(f), 1, NONE, 1), 0);
	ask_everything(f, writer(f));
	commit(f);
	sweep(f, 9, 9);
	/* All grants are asked for at once. */
	assert_true(assert_no_walks(f, writer(f), "approval",
				    "FROM approval_grant WHERE expires_ms = 0") > 15);
}

TEST(a_file_of_version_4_gets_the_tables)
{
	struct fixture *f = *state;
	struct approval row;

	become_version(f, 4);
	fixture_open(f);
	assert_int_equal(number(f, "PRAGMA user_version"), sqlite_n_steps);
	begin(f);
	add_row(f, &full);
	grant(f, "g", 0, -1);
	commit(f);
	fixture_close(f);
	fixture_open(f);
	row = find(f, "local-full");
	assert_row(&row, &full);
	grants(f, 0, 1);
	assert_int_equal(store_quick_check(f->store, 0, &f->error), 0);
}
