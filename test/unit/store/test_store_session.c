/* Sessions in the store: rows, names, lists, chains, folders, what they said, and sweeps. */
#include "store_rows.h"

#include <errno.h>
#include <inttypes.h>

#include "store/db/schema.h"
#include "store/db/query.h"
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

/* ---- one session ---- */

static const struct session full = {
	.id = TEXT("0a1b-full"),
	.run = TEXT("run-full"),
	.parent = TEXT("nobody"),
	.agent_session = TEXT("agent-1"),
	.query = {"do\0it \xff\xc3\xa9", 9},
	.summary = TEXT("do it"),
	.title = TEXT("a title"),
	.model = TEXT("opus"),
	.working_dir = TEXT("/work"),
	.runner = TEXT("claude"),
	.config.bytes = {"{\0\xfe", 3},
	.mark = TEXT("mark"),
	.status = SESSION_WAITING,
	.archived = true,
	.created_ms = 1,
	.active_ms = 2,
	.ended_ms = 3,
	.result = {"out\0\xff", 5},
	.error = {"\0bad", 4},
	.cost_usd = 0.25,
	.input_tokens = INT64_MAX,
	.output_tokens = 5,
	.duration_ms = 6,
	.turns = 7,
};

static int64_t add_row(struct fixture *f, const struct session *row)
{
	int64_t seq = 0;

	assert_int_equal(store_session_add(writer(f), row, &seq), 0);
	assert_true(seq > 0);
	return seq;
}

/* Its run is its id; the query is too. */
static struct session plain(const char *id, const char *parent, int64_t active_ms)
{
	return (struct session) {
		.id = text_of(id),
		.run = text_of(id),
		.parent = text_of(parent),
		.query = text_of(id),
		.status = SESSION_COMPLETED,
		.created_ms = active_ms,
		.active_ms = active_ms,
		.cost_usd = -1,
		.input_tokens = -1,
		.output_tokens = -1,
		.duration_ms = -1,
		.turns = -1,
	};
}

static int64_t add(struct fixture *f, const char *id, const char *parent, int64_t active_ms)
{
	const struct session row = plain(id, parent, active_ms);

	return add_row(f, &row);
}

static struct session find(struct fixture *f, const char *id)
{
	struct session row = {0};
	bool found = false;

	assert_int_equal(store_session_find(reader(f), text_of(id), &f->arena, &row, &found), 0);
	assert_true(found);
	return row;
}

static void assert_given(const struct session *got, const struct session *want)
{
	assert_bytes(got->id, want->id);
	assert_bytes(got->run, want->run);
	assert_bytes(got->parent, want->parent);
	assert_bytes(got->query, want->query);
	assert_bytes(got->summary, want->summary);
	assert_bytes(got->working_dir, want->working_dir);
	assert_bytes(got->config.bytes, want->config.bytes);
	assert_bytes(got->title, want->title);
	assert_int_equal(got->archived, want->archived);
	assert_int_equal(got->created_ms, want->created_ms);
}

static void assert_progress(const struct session *got, const struct session *want)
{
	assert_bytes(got->agent_session, want->agent_session);
	assert_bytes(got->model, want->model);
	assert_bytes(got->runner, want->runner);
	assert_bytes(got->mark, want->mark);
	assert_int_equal(got->status, want->status);
	assert_int_equal(got->active_ms, want->active_ms);
	assert_int_equal(got->ended_ms, want->ended_ms);
	assert_bytes(got->result, want->result);
	assert_bytes(got->error, want->error);
	assert_true(got->cost_usd == want->cost_usd);
	assert_int_equal(got->input_tokens, want->input_tokens);
	assert_int_equal(got->output_tokens, want->output_tokens);
	assert_int_equal(got->duration_ms, want->duration_ms);
	assert_int_equal(got->turns, want->turns);
}

FIXTURE(setup, teardown);

TEST(a_session_comes_back_as_it_was_added)
{
	struct fixture *f = *state;
	struct session row;
	int64_t seq;

	begin(f);
	seq = add_row(f, &full);
	commit(f);
	row = find(f, "0a1b-full");
	assert_int_equal(row.seq, seq);
	assert_given(&row, &full);
	assert_progress(&row, &full);
}

TEST(what_is_none_stays_none)
{
	struct fixture *f = *state;
	struct session row;

	begin(f);
	add(f, "a", NULL, 5);
	commit(f);
	row = find(f, "a");
	assert_text(row.parent, NULL);
	assert_text(row.agent_session, NULL);
	assert_text(row.title, NULL);
	assert_text(row.model, NULL);
	assert_text(row.config.bytes, NULL);
	assert_text(row.mark, NULL);
	assert_text(row.result, NULL);
	assert_text(row.error, NULL);
	/* These always have a text. */
	assert_text(row.summary, "");
	assert_text(row.working_dir, "");
	assert_text(row.runner, "");
	assert_true(row.cost_usd < 0);
	assert_int_equal(row.turns, -1);
	assert_int_equal(row.ended_ms, 0);
}

TEST(an_update_rewrites_what_its_run_changes)
{
	struct fixture *f = *state;
	struct session row, changed = {
				    .id = TEXT("other"),
				    .run = TEXT("other"),
				    .parent = TEXT("other"),
				    .query = TEXT("other"),
				    .summary = TEXT("other"),
				    .working_dir = TEXT("other"),
				    .config.bytes = TEXT("other"),
				    .title = TEXT("other"),
				    .created_ms = 99,
				    .agent_session = TEXT("agent-2"),
				    .runner = TEXT("recall"),
				    .status = SESSION_FAILED,
				    .active_ms = 102,
				    .ended_ms = 103,
				    .error = TEXT(""),
				    .cost_usd = 1.5,
				    .input_tokens = 105,
				    .output_tokens = 106,
				    .duration_ms = 107,
				    .turns = 108,
			    };

	begin(f);
	changed.seq = add_row(f, &full);
	assert_int_equal(store_session_update(writer(f), &changed), 0);
	commit(f);
	row = find(f, "0a1b-full");
	assert_given(&row, &full);
	assert_progress(&row, &changed);
	changed.seq += 1;
	begin(f);
	assert_int_equal(store_session_update(writer(f), &changed), -ENOENT);
	commit(f);
}

TEST(an_id_or_run_that_is_taken_is_told)
{
	struct fixture *f = *state;
	struct session row = plain("a", NULL, 1);
	int64_t seq = 77;

	begin(f);
	add(f, "a", NULL, 1);
	row.run = TEXT("another");
	assert_int_equal(store_session_add(writer(f), &row, &seq), -EEXIST);
	row.id = TEXT("b");
	row.run = TEXT("a");
	assert_int_equal(store_session_add(writer(f), &row, &seq), -EEXIST);
	assert_int_equal(seq, 77);
	commit(f);
	assert_int_equal(number(f, "SELECT count(*) FROM session"), 1);
	assert_int_equal(number(f, "SELECT count(*) FROM session_text"), 1);
}

TEST(title_and_archived_are_set_alone)
{
	struct fixture *f = *state;
	bool found;

	begin(f);
	add(f, "a", NULL, 1);
	assert_int_equal(store_session_set_archived(writer(f), TEXT("a"), true, &found), 0);
	assert_true(found);
	assert_int_equal(store_session_set_title(writer(f), TEXT("a"), TEXT("t"), &found), 0);
	assert_true(found);
	assert_int_equal(store_session_set_archived(writer(f), TEXT("b"), true, &found), 0);
	assert_false(found);
	assert_int_equal(store_session_set_title(writer(f), TEXT("b"), TEXT("t"), &found), 0);
	assert_false(found);
	commit(f);
	assert_true(find(f, "a").archived);
	assert_text(find(f, "a").title, "t");
	assert_int_equal(find(f, "a").active_ms, 1);
	begin(f);
	assert_int_equal(store_session_set_archived(writer(f), TEXT("a"), false, &found), 0);
	assert_int_equal(store_session_set_title(writer(f), TEXT("a"), NONE, &found), 0);
	commit(f);
	assert_false(find(f, "a").archived);
	assert_text(find(f, "a").title, NULL);
}

/* ---- names ---- */

TEST(a_session_has_three_names)
{
	struct fixture *f = *state;
	struct session row = plain("b", NULL, 1);
	bool found;

	begin(f);
	add_row(f, &full);
	row.agent_session = full.agent_session;
	add_row(f, &row);
	commit(f);
	assert_int_equal(store_session_find_run(reader(f), full.run, &f->arena, &row, &found), 0);
	assert_true(found);
	assert_text(row.id, "0a1b-full");
	/* The newest of them. */
	assert_int_equal(
		store_session_find_agent(reader(f), full.agent_session, &f->arena, &row, &found),
		0);
	assert_true(found);
	assert_text(row.id, "b");

	row.seq = 77;
	assert_int_equal(store_session_find(reader(f), TEXT("x"), &f->arena, &row, &found), 0);
	assert_false(found);
	assert_int_equal(store_session_find_run(reader(f), TEXT("x"), &f->arena, &row, &found), 0);
	assert_false(found);
	assert_int_equal(store_session_find_agent(reader(f), TEXT("x"), &f->arena, &row, &found),
			 0);
	assert_false(found);
	assert_int_equal(row.seq, 77);
}

static void assert_short(struct fixture *f, struct text prefix, unsigned want_n, const char *want)
{
	struct text ids[2] = {TEXT("untouched")};
	unsigned n = 9;

	assert_int_equal(store_session_find_short(reader(f), prefix, &f->arena, ids, &n), 0);
	assert_int_equal(n, want_n);
	assert_text(ids[0], want ? want : "untouched");
}

TEST(the_beginning_of_an_id_will_do)
{
	struct fixture *f = *state;

	begin(f);
	add(f, "abc1", NULL, 1);
	add(f, "abc12", NULL, 1);
	add(f, "abd", NULL, 1);
	add(f, "b\xff", NULL, 1);
	commit(f);
	assert_short(f, TEXT("abd"), 1, "abd");
	assert_short(f, TEXT("ab"), 2, "abc1");
	assert_short(f, TEXT("abc"), 2, "abc1");
	assert_short(f, TEXT("abc1"), 2, "abc1");
	assert_short(f, TEXT("abc12"), 1, "abc12");
	assert_short(f, TEXT("abc123"), 0, NULL);
	assert_short(f, TEXT("b"), 1, "b\xff");
	assert_short(f, TEXT("b\xff"), 1, "b\xff");
	assert_short(f, TEXT("\xff\xff"), 0, NULL);
	assert_short(f, TEXT("ab%"), 0, NULL);
	assert_short(f, (struct text) {"ab\0", 3}, 0, NULL);
	assert_short(f, TEXT(""), 0, NULL);
	assert_short(f, NONE, 0, NULL);
}

/* ---- lists ---- */

/* By the first letters of their ids. */
static void assert_list(struct fixture *f, const struct store_session_query *q, const char *want)
{
	struct session *rows;
	char got[64] = "";
	unsigned n;

	assert_int_equal(store_session_list(reader(f), q, &f->arena, &rows, &n), 0);
	assert_true(n < sizeof(got));
	for (unsigned i = 0; i < n; i++)
		got[i] = rows[i].id.data[0];
	assert_string_equal(got, want);
}

#define LIST(f, want, ...) assert_list(f, &(struct store_session_query) {__VA_ARGS__}, want)

/* a, with the children b and c; c with d; e alone. Archived: c, e. Failed: b, e. */
static void add_family(struct fixture *f)
{
	static const struct {
		const char *id, *parent;
		int64_t active_ms;
		bool archived;
		enum session_status status;
	} all[] = {
		{"a", NULL, 50, false, SESSION_COMPLETED}, {"b", "a", 20, false, SESSION_FAILED},
		{"c", "a", 30, true, SESSION_COMPLETED},   {"d", "c", 40, false, SESSION_RUNNING},
		{"e", NULL, 30, true, SESSION_FAILED},
	};

	begin(f);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct session row = plain(all[i].id, all[i].parent, all[i].active_ms);

		row.archived = all[i].archived;
		row.status = all[i].status;
		add_row(f, &row);
	}
	commit(f);
}

TEST(lists_have_the_last_active_first)
{
	struct fixture *f = *state;

	LIST(f, "", .status = -1);
	add_family(f);
	LIST(f, "adecb", .status = -1);
	LIST(f, "ade", .status = -1, .limit = 3);
	LIST(f, "adb", .status = -1, .archived = ARCHIVED_NO);
	LIST(f, "ec", .status = -1, .archived = ARCHIVED_ONLY);
	LIST(f, "eb", .status = SESSION_FAILED);
	LIST(f, "b", .status = SESSION_FAILED, .archived = ARCHIVED_NO);
	LIST(f, "", .status = SESSION_STARTING);
	LIST(f, "deb", .status = -1, .leaves = true);
	LIST(f, "db", .status = -1, .leaves = true, .archived = ARCHIVED_NO);
	LIST(f, "cb", .status = -1, .parent = TEXT("a"));
	LIST(f, "b", .status = -1, .parent = TEXT("a"), .leaves = true);
	LIST(f, "b", .status = SESSION_FAILED, .parent = TEXT("a"));
	LIST(f, "", .status = -1, .parent = TEXT("zz"));
}

static void assert_cut(struct fixture *f, unsigned cut, struct text want)
{
	struct store_session_query q = {.status = -1, .cut = cut};
	struct session *rows;
	unsigned n;

	assert_int_equal(store_session_list(reader(f), &q, &f->arena, &rows, &n), 0);
	assert_int_equal(n, 1);
	assert_bytes(rows[0].query, want);
	assert_bytes(rows[0].result, want);
	assert_bytes(rows[0].error, want);
	assert_text(rows[0].config.bytes, NULL);
	assert_text(rows[0].summary, "not cut");
}

/* Of one to four bytes, a NUL, and what is no character. */
TEST(texts_are_cut_between_characters)
{
	const struct text t = {"a\0\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x80\xc3z", 14};
	static const size_t ends[] = {0, 1, 2, 4, 7, 11, 12, 13, 14};
	struct session row = plain("a", NULL, 1);
	struct fixture *f = *state;

	row.query = row.result = row.error = t;
	row.summary = TEXT("not cut");
	row.config.bytes = TEXT("c");
	begin(f);
	add_row(f, &row);
	commit(f);
	for (unsigned cut = 1; cut <= 8; cut++)
		assert_cut(f, cut, (struct text) {t.data, ends[cut]});
	assert_cut(f, 100, t);
	assert_cut(f, UINT32_MAX, t);
	assert_cut(f, 0, t);
}

TEST(a_list_ends_at_its_bytes)
{
	static char text[1000];
	struct fixture *f = *state;

	memset(text, 'x', sizeof(text));
	begin(f);
	for (unsigned i = 0; i < 5; i++) {
		char id[] = {(char)('a' + i), '\0'};
		struct session row = plain(id, NULL, 100 - i);

		row.query = (struct text) {text, sizeof(text)};
		add_row(f, &row);
	}
	commit(f);
	LIST(f, "a", .status = -1, .max_bytes = 1);
	LIST(f, "ab", .status = -1, .max_bytes = 2500);
	LIST(f, "abcde", .status = -1, .max_bytes = 2500, .cut = 10);
	LIST(f, "abcde", .status = -1);
}

TEST(only_the_life_that_runs_it_writes_about_it)
{
	struct fixture *f = *state;
	struct session row = plain("a", NULL, 1);
	bool done;

	begin(f);
	row.status = SESSION_RUNNING;
	row.epoch = 7;
	row.host = TEXT("alpha");
	row.seq = add_row(f, &row);
	row.epoch = 8;
	assert_int_equal(store_session_update(writer(f), &row), -ENOENT);
	row.epoch = 7;
	assert_int_equal(store_session_update(writer(f), &row), 0);
	assert_int_equal(store_session_wish(writer(f), row.seq, &done), 0);
	assert_true(done);
	row.status = SESSION_FAILED;
	assert_int_equal(store_session_settle(writer(f), &row, &done), 0);
	assert_true(done);
	/* It was too late, and so is everybody else. */
	assert_int_equal(store_session_update(writer(f), &row), -ENOENT);
	assert_int_equal(store_session_settle(writer(f), &row, &done), 0);
	assert_false(done);
	assert_int_equal(store_session_wish(writer(f), row.seq, &done), 0);
	assert_false(done);
	commit(f);
	assert_text(find(f, "a").host, "alpha");
}

TEST(what_a_living_host_runs_is_not_left)
{
	static const struct {
		const char *id;
		int64_t epoch;
	} all[] = {{"a", 7}, {"b", 8}, {"c", 9}, {"d", 0}};
	struct fixture *f = *state;
	struct session *rows;
	unsigned n;

	begin(f);
	add_host(f, "alpha", 7, 0);
	add_host(f, "beta", 8, 2);
	for (unsigned i = 0; i < 4; i++) {
		struct session row = plain(all[i].id, NULL, 1);

		row.status = SESSION_RUNNING;
		row.epoch = all[i].epoch;
		add_row(f, &row);
	}
	commit(f);
	assert_int_equal(store_session_open(reader(f), &f->arena, &rows, &n), 0);
	assert_int_equal(n, 3);
	assert_text(rows[0].id, "b");
	assert_text(rows[2].id, "d");
}

TEST(what_is_open_comes_oldest_first)
{
	static char text[20000];
	struct fixture *f = *state;
	struct session *rows;
	struct session row = plain("x", NULL, 100);
	unsigned n;

	memset(text, 'x', sizeof(text));
	begin(f);
	row.status = SESSION_COMPLETING;
	row.query = (struct text) {text, sizeof(text)};
	row.error = row.query;
	row.mark = TEXT("mark");
	add_row(f, &row);
	for (int s = SESSION_STARTING; s < N_SESSION_STATUSES; s++) {
		char id[] = {(char)('a' + s), '\0'};

		row = plain(id, NULL, 50 - s);
		row.status = (enum session_status)s;
		add_row(f, &row);
	}
	commit(f);
	assert_int_equal(store_session_open(reader(f), &f->arena, &rows, &n), 0);
	assert_int_equal(n, 5);
	assert_text(rows[0].id, "x");
	assert_text(rows[0].mark, "mark");
	assert_int_equal(rows[0].query.len, 8192);
	assert_int_equal(rows[0].error.len, sizeof(text));
	assert_text(rows[1].id, "a");
	assert_text(rows[4].id, "d");
	assert_int_equal(rows[4].status, SESSION_COMPLETING);
}

/* ---- chains and folders ---- */

static void assert_chain(struct fixture *f, const char *id, const char *want)
{
	struct session_chain chain = {.id = text_of(id)};
	char got[64] = "";
	bool found = true;

	while (found && chain.n < sizeof(got))
		assert_int_equal(store_session_chain_next(reader(f), &chain, &f->arena, &found), 0);
	for (unsigned i = 0; i < chain.n; i++)
		got[i] = chain.links[i].id.data[0];
	assert_string_equal(got, want);
}

TEST(a_chain_goes_from_parent_to_parent)
{
	struct fixture *f = *state;

	add_family(f);
	assert_chain(f, "d", "dca");
	assert_chain(f, "e", "e");
	assert_chain(f, "nobody", "");
	begin(f);
	add(f, "g", "swept away", 1);
	commit(f);
	assert_chain(f, "g", "g");
}

TEST(a_chain_that_bites_its_tail_ends)
{
	struct fixture *f = *state;

	begin(f);
	add(f, "a", "c", 1);
	add(f, "b", "a", 1);
	add(f, "c", "b", 1);
	add(f, "d", "b", 1);
	add(f, "s", "s", 1);
	commit(f);
	assert_chain(f, "c", "cba");
	assert_chain(f, "a", "acb");
	assert_chain(f, "d", "dbac");
	assert_chain(f, "s", "s");
}

static void add_in(struct fixture *f, const char *id, const char *dir, int64_t active_ms)
{
	struct session row = plain(id, NULL, active_ms);

	row.working_dir = text_of(dir);
	add_row(f, &row);
}

TEST(folders_come_the_last_used_first)
{
	struct fixture *f = *state;
	struct session_path *paths;
	unsigned n;

	assert_int_equal(store_session_paths(reader(f), 5, &f->arena, &paths, &n), 0);
	assert_int_equal(n, 0);
	begin(f);
	add_in(f, "1", "/a", 10);
	add_in(f, "2", "/b", 30);
	add_in(f, "3", "/a", 20);
	add_in(f, "4", "", 90);
	add_in(f, "5", "/c", 5);
	add_in(f, "6", "/a", 15);
	commit(f);
	assert_int_equal(store_session_paths(reader(f), 2, &f->arena, &paths, &n), 0);
	assert_int_equal(n, 2);
	assert_text(paths[0].path, "/b");
	assert_int_equal(paths[0].used_ms, 30);
	assert_int_equal(paths[0].n, 1);
	assert_text(paths[1].path, "/a");
	assert_int_equal(paths[1].used_ms, 20);
	assert_int_equal(paths[1].n, 3);
	assert_int_equal(store_session_paths(reader(f), 0, &f->arena, &paths, &n), 0);
	assert_int_equal(n, 3);
	assert_text(paths[2].path, "/c");
}

/* ---- events ---- */

struct added {
	int64_t id;
	int64_t sequence;
};

static struct added say(struct fixture *f, const struct session_event *row)
{
	struct added a = {0};

	assert_int_equal(store_session_event_add(writer(f), row, &a.id, &a.sequence), 0);
	return a;
}

static struct added message(struct fixture *f, const char *session, const char *agent,
			    const char *content)
{
	return say(f, &(struct session_event) {.session = text_of(session),
					       .agent_session = text_of(agent),
					       .type = SESSION_MESSAGE,
					       .content = text_of(content)});
}

static struct session_event *events(struct fixture *f, const struct store_session_events_query *q,
				    unsigned want_n)
{
	struct session_event *rows = NULL;
	unsigned n = 99;

	assert_int_equal(store_session_events(reader(f), q, &f->arena, &rows, &n), 0);
	assert_int_equal(n, want_n);
	return rows;
}

#define EVENTS(f, n, ...) events(f, &(struct store_session_events_query) {__VA_ARGS__}, n)

static void assert_event(const struct session_event *got, const struct session_event *want)
{
	assert_bytes(got->session, want->session);
	assert_bytes(got->agent_session, want->agent_session);
	assert_int_equal(got->type, want->type);
	assert_int_equal(got->created_ms, want->created_ms);
	assert_bytes(got->role, want->role);
	assert_bytes(got->content, want->content);
	assert_bytes(got->tool_id, want->tool_id);
	assert_bytes(got->tool_name, want->tool_name);
	assert_bytes(got->tool_input.bytes, want->tool_input.bytes);
	assert_int_equal(got->completed, want->completed);
	assert_int_equal(got->approval, want->approval);
	assert_bytes(got->approval_id, want->approval_id);
}

TEST(an_event_comes_back_as_it_was_added)
{
	const struct session_event all = {
		.session = TEXT("a"),
		.agent_session = TEXT("agent"),
		.type = SESSION_TOOL_CALL,
		.created_ms = 12,
		.role = TEXT("assistant"),
		.content = {"x\0\xff\xfe", 4},
		.tool_id = {"id\0\xff", 4},
		.tool_name = TEXT("Bash"),
		.tool_input.bytes = {"\0{}\xff", 4},
		.completed = true,
		.approval = SESSION_APPROVAL_DENIED,
		.approval_id = TEXT("local-1"),
	};
	const struct session_event none = {.session = TEXT("a"), .type = SESSION_RAW};
	const struct session_event empty = {.session = TEXT("a"), .content = TEXT("")};
	struct session_event *rows;
	struct fixture *f = *state;
	struct added first, second;

	begin(f);
	add(f, "a", NULL, 1);
	first = say(f, &all);
	second = say(f, &none);
	say(f, &empty);
	commit(f);
	EVENTS(f, 2, .session = TEXT("a"));
	rows = EVENTS(f, 3, .session = TEXT("a"), .raw = true);
	assert_event(&rows[0], &all);
	assert_event(&rows[1], &none);
	assert_event(&rows[2], &empty);
	assert_int_equal(rows[0].id, first.id);
	assert_int_equal(rows[0].sequence, 1);
	assert_int_equal(rows[1].id, second.id);
}

TEST(an_event_needs_its_session)
{
	struct fixture *f = *state;
	struct session_event row = {.session = TEXT("nobody"), .agent_session = TEXT("x")};
	int64_t id = 7, sequence = 8;

	begin(f);
	assert_int_equal(store_session_event_add(writer(f), &row, &id, &sequence), -ENOENT);
	row.agent_session = NONE;
	assert_int_equal(store_session_event_add(writer(f), &row, &id, &sequence), -ENOENT);
	commit(f);
	assert_int_equal(id, 7);
	assert_int_equal(sequence, 8);
	EVENTS(f, 0, .session = TEXT("nobody"));
	EVENTS(f, 0, .agent_session = TEXT("x"));
}

TEST(sequences_count_within_an_agents_session)
{
	struct fixture *f = *state;
	struct session_event *rows;
	struct added first, last;

	begin(f);
	add(f, "a", NULL, 1);
	add(f, "b", "a", 1);
	first = message(f, "a", "x", "1");
	assert_int_equal(first.sequence, 1);
	assert_int_equal(message(f, "a", "x", "2").sequence, 2);
	assert_int_equal(message(f, "b", "y", "3").sequence, 1);
	/* It went on with the same one. */
	assert_int_equal(message(f, "b", "x", "4").sequence, 3);
	assert_int_equal(message(f, "a", "x", "5").sequence, 4);
	/* Before the agent has told a name. */
	add(f, "c", NULL, 1);
	assert_int_equal(message(f, "c", NULL, "6").sequence, 1);
	last = message(f, "c", NULL, "7");
	assert_int_equal(last.sequence, 2);
	assert_true(last.id > first.id);
	commit(f);

	rows = EVENTS(f, 4, .agent_session = TEXT("x"));
	assert_text(rows[2].content, "4");
	assert_text(rows[2].session, "b");
	assert_text(rows[3].session, "a");
	assert_int_equal(rows[3].sequence, 4);
	/* A name of an agent's wins over a session. */
	rows = EVENTS(f, 1, .agent_session = TEXT("y"), .session = TEXT("a"));
	assert_text(rows[0].content, "3");
	EVENTS(f, 2, .session = TEXT("c"));
}

TEST(ids_of_events_never_come_again)
{
	struct session row = plain("a", NULL, 1);
	struct fixture *f = *state;
	int64_t last;
	unsigned n;

	begin(f);
	row.ended_ms = 5;
	add_row(f, &row);
	message(f, "a", "x", "1");
	last = message(f, "a", "x", "2").id;
	assert_int_equal(store_session_sweep(writer(f), 9, 9, &n), 0);
	assert_int_equal(n, 1);
	commit(f);
	fixture_close(f);
	fixture_open(f);
	begin(f);
	add_row(f, &row);
	assert_true(message(f, "a", "x", "3").id > last);
	commit(f);
}

TEST(pages_of_events_go_on_behind_an_id)
{
	struct session_event *rows;
	struct fixture *f = *state;
	struct added third = {0};

	begin(f);
	add(f, "a", NULL, 1);
	add(f, "b", NULL, 1);
	for (unsigned i = 0; i < 6; i++) {
		char content[101];

		memset(content, (int)('a' + i), 100);
		content[100] = '\0';
		if (i == 2)
			third = message(f, "a", "x", content);
		else
			message(f, "a", "x", content);
		message(f, "b", "y", "between");
	}
	commit(f);
	rows = EVENTS(f, 3, .session = TEXT("a"), .after_id = third.id);
	assert_int_equal(rows[0].content.data[0], 'd');
	rows = EVENTS(f, 2, .agent_session = TEXT("x"), .after_id = third.id, .limit = 2);
	assert_int_equal(rows[1].content.data[0], 'e');
	EVENTS(f, 1, .session = TEXT("a"), .max_bytes = 1);
	EVENTS(f, 2, .session = TEXT("a"), .max_bytes = 250);
	EVENTS(f, 6, .session = TEXT("a"), .max_bytes = 2500);
	EVENTS(f, 0, .session = TEXT("a"), .after_id = INT64_MAX);
}

TEST(events_are_read_from_either_end)
{
	struct session_event *rows;
	struct fixture *f = *state;
	int64_t first;

	begin(f);
	add(f, "a", NULL, 1);
	first = message(f, "a", "x", "1").id;
	say(f, &(struct session_event) {.session = TEXT("a"), .type = SESSION_RAW});
	message(f, "a", "x", "3");
	message(f, "a", "x", "4");
	commit(f);
	rows = EVENTS(f, 2, .session = TEXT("a"), .newest = true, .limit = 2);
	assert_text(rows[0].content, "4");
	assert_text(rows[1].content, "3");
	rows = EVENTS(f, 2, .agent_session = TEXT("x"), .newest = true, .before_id = first + 3);
	assert_text(rows[0].content, "3");
	assert_text(rows[1].content, "1");
	EVENTS(f, 3, .session = TEXT("a"), .newest = true, .before_id = first + 3, .raw = true);
	EVENTS(f, 1, .session = TEXT("a"), .after_id = first, .before_id = first + 3);
	EVENTS(f, 1, .session = TEXT("a"), .newest = true, .max_bytes = 1);
}

/* A small session, and a large one with many lines that were not understood. */
static void add_small_and_large(struct fixture *f)
{
	begin(f);
	add(f, "s", NULL, 1);
	add(f, "l", NULL, 1);
	for (unsigned i = 0; i < 4000; i++) {
		if (i < 20)
			message(f, "s", "small", "text");
		message(f, "l", "large", "text");
		say(f, &(struct session_event) {.session = TEXT("l"),
						.agent_session = TEXT("large"),
						.type = SESSION_RAW});
	}
	for (unsigned i = 0; i < 4000; i++)
		say(f, &(struct session_event) {.session = TEXT("l"),
						.agent_session = TEXT("large"),
						.type = SESSION_RAW});
	commit(f);
}

TEST(a_page_costs_the_same_in_a_long_session)
{
	struct store_session_events_query q = {.limit = 10};
	struct fixture *f = *state;
	int64_t small, large;

	only_in_a_file();
	add_small_and_large(f);
	for (unsigned i = 0; i < 8; i++) {
		q.newest = i & 1;
		q.raw = i & 2;
		q.session = i & 4 ? NONE : TEXT("s");
		q.agent_session = i & 4 ? TEXT("small") : NONE;
		events(f, &q, 10);
		(void)steps_taken(reader(f));
		events(f, &q, 10);
		small = steps_taken(reader(f));
		q.session = i & 4 ? NONE : TEXT("l");
		q.agent_session = i & 4 ? TEXT("large") : NONE;
		events(f, &q, 10);
		large = steps_taken(reader(f));
		assert_true(small > 0);
		if (large > small + 20)
			fail_msg("%u: %" PRId64 " steps, then %" PRId64, i, small, large);
	}
}

/* ---- calls ---- */

static int64_t call(struct fixture *f, const char *session, const char *tool, const char *tool_id,
		    int64_t created_ms)
{
	return say(f, &(struct session_event) {.session = text_of(session),
					       .agent_session = TEXT("x"),
					       .type = SESSION_TOOL_CALL,
					       .tool_name = text_of(tool),
					       .tool_id = text_of(tool_id),
					       .created_ms = created_ms})
		.id;
}

static void result(struct fixture *f, const char *session, const char *tool_id)
{
	say(f, &(struct session_event) {.session = text_of(session),
					.agent_session = TEXT("x"),
					.type = SESSION_TOOL_RESULT,
					.tool_id = text_of(tool_id)});
}

static bool completed(struct fixture *f, int64_t id)
{
	struct session_event *rows =
		EVENTS(f, 1, .agent_session = TEXT("x"), .after_id = id - 1, .limit = 1);

	assert_int_equal(rows[0].id, id);
	return rows[0].completed;
}

TEST(a_result_completes_the_newest_call_of_its_id)
{
	struct fixture *f = *state;
	int64_t first, second, other, elsewhere;

	begin(f);
	add(f, "a", NULL, 1);
	add(f, "b", NULL, 1);
	first = call(f, "a", "Bash", "t1", 1);
	second = call(f, "a", "Bash", "t1", 2);
	other = call(f, "a", "Bash", "t2", 3);
	elsewhere = call(f, "b", "Bash", "t1", 4);
	result(f, "a", "t1");
	result(f, "a", "nobody's");
	result(f, "a", NULL);
	commit(f);
	assert_false(completed(f, first));
	assert_true(completed(f, second));
	assert_false(completed(f, other));
	assert_false(completed(f, elsewhere));
}

/* 0: none. */
static int64_t open_call(struct fixture *f, const char *tool, const char *tool_id, int64_t since_ms)
{
	int64_t id = 0;
	bool found;

	assert_int_equal(store_session_open_call(reader(f), TEXT("a"), text_of(tool),
						 text_of(tool_id), since_ms, &id, &found),
			 0);
	assert_int_equal(found, id != 0);
	return id;
}

TEST(the_newest_open_call_is_found)
{
	struct fixture *f = *state;
	int64_t first, second;

	begin(f);
	add(f, "a", NULL, 1);
	add(f, "b", NULL, 1);
	first = call(f, "a", "Bash", "t1", 10);
	second = call(f, "a", "Bash", "t2", 20);
	call(f, "a", "Edit", "t3", 30);
	call(f, "b", "Bash", "t4", 40);
	message(f, "a", "x", "Bash");
	commit(f);
	assert_int_equal(open_call(f, "Bash", NULL, 0), second);
	assert_int_equal(open_call(f, "Bash", NULL, 20), second);
	assert_int_equal(open_call(f, "Bash", NULL, 21), 0);
	assert_int_equal(open_call(f, "Read", NULL, 0), 0);
	assert_int_equal(open_call(f, "Bash", "t1", 10), first);
	assert_int_equal(open_call(f, "Bash", "t1", 11), 0);
	assert_int_equal(open_call(f, "Bash", "t4", 0), 0);
	begin(f);
	assert_int_equal(store_session_event_approval(writer(f), second, SESSION_APPROVAL_PENDING,
						      TEXT("local-1")),
			 0);
	commit(f);
	assert_int_equal(open_call(f, "Bash", NULL, 0), first);
	assert_int_equal(open_call(f, "Bash", "t2", 0), 0);
	begin(f);
	result(f, "a", "t1");
	commit(f);
	assert_int_equal(open_call(f, "Bash", NULL, 0), 0);
}

TEST(an_event_knows_its_approval)
{
	struct session_event *rows;
	struct fixture *f = *state;
	int64_t id;

	begin(f);
	add(f, "a", NULL, 1);
	id = call(f, "a", "Bash", "t1", 10);
	assert_int_equal(store_session_event_approval(writer(f), id, SESSION_APPROVAL_PENDING,
						      TEXT("local-1")),
			 0);
	assert_int_equal(
		store_session_event_approval(writer(f), id, SESSION_APPROVAL_APPROVED, NONE), 0);
	/* One that was swept. */
	assert_int_equal(store_session_event_approval(writer(f), 12345, SESSION_APPROVAL_APPROVED,
						      TEXT("local-2")),
			 0);
	commit(f);
	rows = EVENTS(f, 1, .session = TEXT("a"));
	assert_int_equal(rows[0].approval, SESSION_APPROVAL_APPROVED);
	assert_text(rows[0].approval_id, "local-1");
}

/* ---- sweeps ---- */

static unsigned sweep(struct fixture *f, int64_t before_ms, unsigned limit)
{
	unsigned n = 99;

	begin(f);
	assert_int_equal(store_session_sweep(writer(f), before_ms, limit, &n), 0);
	commit(f);
	return n;
}

static void add_ended(struct fixture *f, const char *id, int64_t ended_ms)
{
	struct session row = plain(id, NULL, 1);

	row.ended_ms = ended_ms;
	row.config.bytes = TEXT("config");
	add_row(f, &row);
	message(f, id, id, "1");
	message(f, id, id, "2");
}

TEST(a_sweep_takes_what_ended_before)
{
	struct fixture *f = *state;

	begin(f);
	add_ended(f, "a", 200);
	add_ended(f, "b", 100);
	add_ended(f, "c", 0);
	add_ended(f, "d", 300);
	commit(f);
	assert_int_equal(sweep(f, 100, 9), 0);
	assert_int_equal(sweep(f, 999, 0), 0);
	assert_int_equal(sweep(f, 999, 1), 1);
	LIST(f, "dca", .status = -1);
	assert_int_equal(sweep(f, 300, 9), 1);
	LIST(f, "dc", .status = -1);
	EVENTS(f, 0, .session = TEXT("a"));
	EVENTS(f, 0, .agent_session = TEXT("a"));
	EVENTS(f, 2, .session = TEXT("d"));
	assert_int_equal(number(f, "SELECT count(*) FROM session_event"), 4);
	assert_int_equal(number(f, "SELECT count(*) FROM session_text"), 2);
	assert_int_equal(sweep(f, INT64_MAX, 9), 1);
	assert_int_equal(sweep(f, INT64_MAX, 9), 0);
	LIST(f, "c", .status = -1);
}

TEST(a_long_session_is_swept_in_steps)
{
	enum { LONG = 7000 };
	struct fixture *f = *state;

	begin(f);
	add_ended(f, "a", 1);
	add_ended(f, "b", 2);
	for (unsigned i = 2; i < LONG; i++)
		message(f, "a", "a", "more");
	commit(f);
	assert_int_equal(sweep(f, 9, 3), 3);
	assert_in_range(number(f, "SELECT count(*) FROM session_event"), 1, LONG - 1);
	LIST(f, "ba", .status = -1);
	assert_int_equal(sweep(f, 9, 3), 2);
	assert_int_equal(number(f, "SELECT count(*) FROM session_event"), 0);
	LIST(f, "", .status = -1);
}

TEST(what_is_rolled_back_leaves_nothing)
{
	struct fixture *f = *state;
	unsigned n;

	begin(f);
	add_ended(f, "a", 1);
	assert_int_equal(store_savepoint(f->store), 0);
	add_ended(f, "b", 1);
	assert_int_equal(store_session_sweep(writer(f), 9, 9, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(store_rollback_to(f->store), 0);
	assert_int_equal(message(f, "a", "a", "3").sequence, 3);
	commit(f);
	LIST(f, "a", .status = -1);
	EVENTS(f, 3, .session = TEXT("a"));
}

TEST(a_small_arena_is_told)
{
	struct store_session_events_query events_query = {.session = TEXT("a")};
	struct store_session_query list_query = {.status = -1};
	struct session_chain chain = {.id = TEXT("a")};
	struct session_event *event_rows = NULL;
	struct session *rows = NULL;
	struct session_path *paths = NULL;
	struct fixture *f = *state;
	struct text *ids = NULL;
	struct arena small;
	unsigned n = 7;
	bool found;

	begin(f);
	add_ended(f, "a", 0);
	commit(f);
	arena_init(&small, 1);
	assert_int_equal(store_session_list(reader(f), &list_query, &small, &rows, &n), -ENOMEM);
	assert_int_equal(store_session_events(reader(f), &events_query, &small, &event_rows, &n),
			 -ENOMEM);
	assert_int_equal(store_session_chain_next(reader(f), &chain, &small, &found), -ENOMEM);
	assert_int_equal(store_session_find_short(reader(f), TEXT("a"), &small, ids, &n), -ENOMEM);
	arena_done(&small);
	assert_null(rows);
	assert_null(event_rows);
	assert_null(paths);
	assert_null(ids);
	assert_int_equal(n, 7);
	/* And the connection is as good as before. */
	LIST(f, "a", .status = -1);
}

/* ---- the file ---- */

static void ask_everything(struct fixture *f, struct connection *c)
{
	static const struct store_session_query lists[] = {
		{.status = -1},
		{.status = 1},
		{.status = -1, .archived = ARCHIVED_NO},
		{.status = -1, .parent = TEXT("a")},
	};
	struct session_event *event_rows;
	struct session row, *rows;
	struct session_path *paths;
	struct session_chain chain = {.id = TEXT("a")};
	struct text found_ids[2];
	bool found;
	int64_t at;
	unsigned n;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		assert_int_equal(store_session_list(c, &lists[i], &f->arena, &rows, &n), 0);
	assert_int_equal(store_session_open(c, &f->arena, &rows, &n), 0);
	assert_int_equal(store_session_find(c, TEXT("a"), &f->arena, &row, &found), 0);
	assert_int_equal(store_session_find_run(c, TEXT("a"), &f->arena, &row, &found), 0);
	assert_int_equal(store_session_find_agent(c, TEXT("a"), &f->arena, &row, &found), 0);
	assert_int_equal(store_session_find_short(c, TEXT("a"), &f->arena, found_ids, &n), 0);
	assert_int_equal(store_session_chain_next(c, &chain, &f->arena, &found), 0);
	assert_int_equal(store_session_paths(c, 9, &f->arena, &paths, &n), 0);
	for (unsigned i = 0; i < 8; i++) {
		const struct store_session_events_query q = {
			.session = i & 1 ? TEXT("a") : NONE,
			.agent_session = i & 1 ? NONE : TEXT("a"),
			.newest = i & 2,
			.raw = i & 4,
		};

		assert_int_equal(store_session_events(c, &q, &f->arena, &event_rows, &n), 0);
	}
	assert_int_equal(store_session_open_call(c, TEXT("a"), TEXT("t"), NONE, 0, &at, &found), 0);
	assert_int_equal(
		store_session_open_call(c, TEXT("a"), TEXT("t"), TEXT("i"), 0, &at, &found), 0);
}

TEST(no_query_walks_a_whole_table)
{
	struct fixture *f = *state;
	struct session row = plain("a", NULL, 1);
	unsigned n;

	begin(f);
	row.seq = add_row(f, &row);
	assert_int_equal(store_session_update(writer(f), &row), 0);
	message(f, "a", NULL, "x");
	call(f, "a", "t", "i", 1);
	result(f, "a", "i");
	ask_everything(f, writer(f));
	assert_int_equal(store_session_event_approval(writer(f), 1, SESSION_APPROVAL_NONE, NONE),
			 0);
	row.ended_ms = 1;
	assert_int_equal(store_session_update(writer(f), &row), 0);
	assert_int_equal(store_session_sweep(writer(f), 9, 9, &n), 0);
	commit(f);
	assert_true(assert_no_walks(f, writer(f), "session", NULL) > 20);
}

TEST(events_of_an_older_file_are_found_along_the_new_indexes)
{
	struct fixture *f = *state;
	struct session_event *rows;

	become_version(f, 11);
	change_file(f,
		    "INSERT INTO session (id, run, status, archived, created_ms, active_ms,"
		    " ended_ms, cost_usd, input_tokens, output_tokens, duration_ms, turns,"
		    " runner, working_dir, summary) VALUES ('a', 'a', 4, 0, 1, 1, 1, 0, 0, 0, 0,"
		    " 0, 'claude', '/', '');"
		    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9)"
		    " INSERT INTO session_event (session, sequence, type, created_ms, completed,"
		    " approval, agent_session, content)"
		    " SELECT 1, i, CASE WHEN i % 2 <> 0 THEN 0 ELSE 4 END, 1, 0, 0, 'x',"
		    " CAST(i AS BLOB) FROM n;");
	fixture_open(f);
	rows = EVENTS(f, 2, .session = TEXT("a"), .newest = true, .limit = 2);
	assert_text(rows[0].content, "9");
	assert_text(rows[1].content, "7");
	EVENTS(f, 5, .agent_session = TEXT("x"));
	EVENTS(f, 9, .agent_session = TEXT("x"), .raw = true);
}

TEST(a_file_of_version_4_gets_the_tables)
{
	struct fixture *f = *state;

	become_version(f, 4);
	fixture_open(f);
	assert_int_equal(number(f, "PRAGMA user_version"), sqlite_n_steps);
	assert_true(has_id(f, reader(f), "one"));
	LIST(f, "", .status = -1);
	begin(f);
	add_row(f, &full);
	message(f, "0a1b-full", "x", "1");
	commit(f);
	fixture_close(f);
	fixture_open(f);
	LIST(f, "0", .status = -1);
	EVENTS(f, 1, .agent_session = TEXT("x"));
	assert_int_equal(store_quick_check(f->store, 0, &f->error), 0);
}
