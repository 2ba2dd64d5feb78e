/* Conversations in the store: ids, turns, messages in order, and what a crash leaves. */
#include "store_rows.h"

#include <errno.h>
#include <sqlite3.h>

#include "store/chat.h"
#include "store/db/schema.h"

#define NONE ((struct text) {0})

static int64_t add_conversation(struct fixture *f, const char *id, int64_t now_ms)
{
	const struct conversation row = {
		.id = text_of(id), .created_ms = now_ms, .updated_ms = now_ms};
	int64_t seq = 0;

	assert_int_equal(store_conversation_add(writer(f), &row, &seq), 0);
	assert_true(seq > 0);
	return seq;
}

static int64_t add_turn(struct fixture *f, int64_t conversation, int64_t now_ms)
{
	const struct turn row = {
		.conversation = conversation,
		.request_id = TEXT("\"q\""),
		.agent = TEXT("recall"),
		.started_ms = now_ms,
		.input_tokens = -1,
		.output_tokens = -1,
		.cache_read_tokens = -1,
		.cache_written_tokens = -1,
	};
	int64_t seq = 0;

	assert_int_equal(store_turn_add(writer(f), &row, &seq), 0);
	return seq;
}

static int64_t say(struct fixture *f, int64_t turn, enum message_role role, const char *text,
		   int64_t tokens)
{
	const struct message row = {
		.turn = turn,
		.role = role,
		.text = text_of(text),
		.tokens = tokens,
		.created_ms = 7,
	};
	int64_t seq = 0;

	assert_int_equal(store_message_add(writer(f), &row, &seq), 0);
	return seq;
}

static int end_turn(struct fixture *f, int64_t turn, enum turn_state state)
{
	const struct turn row = {.seq = turn, .state = state, .ended_ms = 99};

	return store_turn_end(writer(f), &row);
}

static struct conversation find(struct fixture *f, const char *id)
{
	struct conversation row = {0};
	bool found = false;

	assert_int_equal(store_conversation_find(reader(f), text_of(id), &f->arena, &row, &found),
			 0);
	assert_true(found);
	return row;
}

static bool exists(struct fixture *f, const char *id)
{
	struct conversation row = {0};
	bool found = true;

	assert_int_equal(store_conversation_find(reader(f), text_of(id), &f->arena, &row, &found),
			 0);
	return found;
}

struct page {
	struct message *rows;
	unsigned n;
	int64_t total; /* of a list */
};

static struct page list(struct fixture *f, int64_t conversation, int64_t offset, unsigned limit,
			size_t max_bytes)
{
	struct page p = {0};

	assert_int_equal(store_message_list(reader(f), conversation, offset, limit, max_bytes,
					    &f->arena, &p.rows, &p.n, &p.total),
			 0);
	return p;
}

static struct page all(struct fixture *f, int64_t conversation)
{
	struct page p = list(f, conversation, 0, 1000, 0);

	assert_int_equal(p.total, p.n);
	return p;
}

static struct page window(struct fixture *f, int64_t conversation, int64_t from, int64_t to)
{
	struct page p = {0};

	assert_int_equal(
		store_message_window(reader(f), conversation, from, to, &f->arena, &p.rows, &p.n),
		0);
	return p;
}

FIXTURE(setup, teardown);

/* ---- conversations ---- */

TEST(a_conversation_comes_back_as_it_was_made)
{
	struct fixture *f = *state;
	const struct conversation made = {
		.id = TEXT("work"),
		.agent = TEXT("local"),
		.system = TEXT("Be brief.\0Really."),
		.created_ms = 10,
		.updated_ms = 20,
		.summary = TEXT("so far"),
		.summary_tokens = 5,
		.summary_turn = 3,
	};
	struct conversation row;
	int64_t seq;

	begin(f);
	assert_int_equal(store_conversation_add(writer(f), &made, &seq), 0);
	commit(f);
	fixture_close(f);
	fixture_open(f);
	row = find(f, "work");
	assert_int_equal(row.seq, seq);
	assert_text(row.id, "work");
	assert_text(row.agent, "local");
	assert_int_equal(row.system.len, made.system.len);
	assert_memory_equal(row.system.data, made.system.data, made.system.len);
	assert_int_equal(row.created_ms, 10);
	assert_int_equal(row.updated_ms, 20);
	assert_text(row.summary, "so far");
	assert_int_equal(row.summary_tokens, 5);
	assert_int_equal(row.summary_turn, 3);
	assert_int_equal(row.n_messages, 0);
	assert_false(row.running);
}

TEST(no_text_is_not_the_empty_text)
{
	struct fixture *f = *state;
	struct conversation row = {.id = TEXT("a")};
	int64_t seq;

	begin(f);
	assert_int_equal(store_conversation_add(writer(f), &row, &seq), 0);
	commit(f);
	row = find(f, "a");
	assert_text(row.agent, NULL);
	assert_text(row.system, NULL);
	assert_text(row.summary, NULL);
	row = (struct conversation) {.id = TEXT("b"), .system = TEXT(""), .agent = TEXT("")};
	begin(f);
	assert_int_equal(store_conversation_add(writer(f), &row, &seq), 0);
	assert_int_equal(store_conversation_set_summary(writer(f), seq, TEXT(""), 0, 0), 0);
	commit(f);
	row = find(f, "b");
	assert_text(row.agent, "");
	assert_text(row.system, "");
	assert_text(row.summary, "");
}

TEST(an_id_names_one_conversation_at_a_time)
{
	struct fixture *f = *state;
	const struct conversation again = {.id = TEXT("a")};
	int64_t first, second, seq = -1;
	bool found;

	begin(f);
	first = add_conversation(f, "a", 1);
	say(f, add_turn(f, first, 1), MESSAGE_USER, "old", 1);
	assert_int_equal(store_conversation_add(writer(f), &again, &seq), -EEXIST);
	assert_int_equal(seq, -1);
	assert_int_equal(store_conversation_end(writer(f), TEXT("a"), 5, &found), 0);
	assert_true(found);
	assert_int_equal(store_conversation_end(writer(f), TEXT("a"), 6, &found), 0);
	assert_false(found);
	commit(f);
	assert_false(exists(f, "a"));

	begin(f);
	second = add_conversation(f, "a", 7);
	assert_true(second > first);
	assert_int_equal(store_conversation_end(writer(f), TEXT("b"), 8, &found), 0);
	assert_false(found);
	commit(f);
	assert_int_equal(find(f, "a").seq, second);
	assert_int_equal(find(f, "a").n_messages, 0);
	assert_int_equal(all(f, second).n, 0);
	/* What was said before is kept. */
	assert_int_equal(all(f, first).n, 1);
	assert_int_equal(number(f, "SELECT ended_ms FROM conversation ORDER BY seq LIMIT 1"), 5);

	begin(f);
	assert_int_equal(store_conversation_end(writer(f), TEXT("a"), 9, &found), 0);
	assert_true(found);
	commit(f);
	assert_int_equal(number(f, "SELECT count(*) FROM conversation"), 2);
}

TEST(a_summary_rewrites_its_columns_only)
{
	struct fixture *f = *state;
	struct conversation row = {.id = TEXT("a"),
				   .agent = TEXT("b"),
				   .system = TEXT("s"),
				   .created_ms = 1,
				   .updated_ms = 50};

	begin(f);
	assert_int_equal(store_conversation_add(writer(f), &row, &row.seq), 0);
	add_conversation(f, "other", 1);
	assert_int_equal(store_conversation_set_summary(writer(f), row.seq, TEXT("sum"), 9, 4), 0);
	commit(f);
	row = find(f, "a");
	assert_text(row.agent, "b");
	assert_text(row.system, "s");
	assert_int_equal(row.created_ms, 1);
	assert_int_equal(row.updated_ms, 50);
	assert_text(row.summary, "sum");
	assert_int_equal(row.summary_tokens, 9);
	assert_int_equal(row.summary_turn, 4);
	assert_text(find(f, "other").summary, NULL);
	assert_text(find(f, "other").system, NULL);

	begin(f);
	assert_int_equal(store_conversation_set_summary(writer(f), row.seq, NONE, 0, 0), 0);
	commit(f);
	assert_text(find(f, "a").summary, NULL);
	assert_int_equal(find(f, "a").summary_turn, 0);
}

static void assert_list(struct fixture *f, unsigned offset, unsigned limit, const char *want)
{
	struct conversation *rows;
	int64_t total = -1;
	char ids[64] = "";
	unsigned n;

	assert_int_equal(
		store_conversation_list(reader(f), offset, limit, &f->arena, &rows, &n, &total), 0);
	for (unsigned i = 0; i < n; i++)
		strncat(ids, rows[i].id.data, 8);
	assert_string_equal(ids, want);
	assert_int_equal(total, 4);
}

TEST(the_list_has_the_one_changed_last_first)
{
	struct fixture *f = *state;
	int64_t a;
	bool found;

	begin(f);
	a = add_conversation(f, "a", 10);
	add_conversation(f, "b", 40);
	add_conversation(f, "c", 30);
	add_conversation(f, "d", 30);
	add_conversation(f, "e", 50);
	assert_int_equal(store_conversation_end(writer(f), TEXT("e"), 60, &found), 0);
	commit(f);
	assert_list(f, 0, 10, "bdca");
	assert_list(f, 1, 2, "dc");
	assert_list(f, 4, 2, "");
	assert_list(f, 0, 0, "");
	begin(f);
	add_turn(f, a, 45);
	commit(f);
	assert_list(f, 0, 10, "abdc");
}

TEST(the_list_says_what_there_is_but_not_long_texts)
{
	struct fixture *f = *state;
	const struct conversation with = {
		.id = TEXT("with"), .system = TEXT("long"), .summary = TEXT("longer")};
	struct conversation *rows;
	int64_t seq, total;
	unsigned n;

	begin(f);
	assert_int_equal(store_conversation_add(writer(f), &with, &seq), 0);
	say(f, add_turn(f, seq, 5), MESSAGE_USER, "hello", 1);
	add_conversation(f, "without", 1);
	commit(f);
	assert_int_equal(store_conversation_list(reader(f), 0, 10, &f->arena, &rows, &n, &total),
			 0);
	assert_int_equal(n, 2);
	assert_text(rows[0].id, "with");
	assert_text(rows[0].system, "");
	assert_text(rows[0].summary, "");
	assert_int_equal(rows[0].n_messages, 1);
	assert_true(rows[0].running);
	assert_text(rows[1].system, NULL);
	assert_text(rows[1].summary, NULL);
	assert_false(rows[1].running);
}

/* ---- turns ---- */

TEST(a_turn_runs_until_it_is_ended)
{
	struct fixture *f = *state;
	const struct turn done = {
		.state = TURN_FAILED,
		.ended_ms = 30,
		.input_tokens = 0,
		.output_tokens = 12,
		.cache_read_tokens = -1,
		.cache_written_tokens = 4,
		.error = TEXT("cut"),
	};
	struct turn row = done;
	int64_t a;

	begin(f);
	a = add_conversation(f, "a", 1);
	add_conversation(f, "b", 1);
	row.seq = add_turn(f, a, 20);
	commit(f);
	assert_true(find(f, "a").running);
	assert_false(find(f, "b").running);
	assert_int_equal(find(f, "a").updated_ms, 20);
	assert_int_equal(find(f, "b").updated_ms, 1);
	assert_int_equal(number(f, "SELECT count(*) FROM turn WHERE ended_ms IS NULL AND"
				   " input_tokens IS NULL AND error IS NULL AND state = 0 AND"
				   " request_id = '\"q\"' AND agent = 'recall'"),
			 1);
	begin(f);
	assert_int_equal(store_turn_end(writer(f), &row), 0);
	commit(f);
	assert_false(find(f, "a").running);
	assert_int_equal(number(f, "SELECT count(*) FROM turn WHERE ended_ms = 30 AND state = 3"
				   " AND input_tokens = 0 AND output_tokens = 12 AND error = 'cut'"
				   " AND cache_read_tokens IS NULL AND cache_written_tokens = 4"
				   " AND started_ms = 20"),
			 1);
}

TEST(what_a_crash_left_running_is_interrupted)
{
	struct fixture *f = *state;
	int64_t a, b, done, n = -1;

	begin(f);
	a = add_conversation(f, "a", 1);
	b = add_conversation(f, "b", 1);
	done = add_turn(f, a, 2);
	say(f, done, MESSAGE_USER, "one", 1);
	assert_int_equal(end_turn(f, done, TURN_DONE), 0);
	say(f, add_turn(f, a, 3), MESSAGE_ASSISTANT, "two, par", 1);
	say(f, add_turn(f, b, 3), MESSAGE_ASSISTANT, "", 1);
	commit(f);
	fixture_close(f);
	fixture_open(f);
	assert_true(find(f, "a").running);
	assert_int_equal(all(f, a).rows[1].turn_state, TURN_RUNNING);

	begin(f);
	assert_int_equal(store_turn_interrupt(writer(f), 0, 77, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(store_turn_interrupt(writer(f), 0, 78, &n), 0);
	assert_int_equal(n, 0);
	commit(f);
	assert_false(find(f, "a").running);
	assert_false(find(f, "b").running);
	assert_int_equal(all(f, a).rows[0].turn_state, TURN_DONE);
	assert_int_equal(all(f, a).rows[1].turn_state, TURN_INTERRUPTED);
	assert_text(all(f, a).rows[1].text, "two, par");
	assert_int_equal(number(f, "SELECT count(*) FROM turn WHERE ended_ms = 77"), 2);
}

static bool take(struct fixture *f, int64_t conversation, int64_t epoch)
{
	bool taken = false;

	assert_int_equal(store_conversation_take(writer(f), conversation, epoch, TEXT("x"), &taken),
			 0);
	return taken;
}

TEST(one_host_at_a_time_has_a_conversation)
{
	struct fixture *f = *state;
	int64_t a, n = -1;
	bool is;

	begin(f);
	add_host(f, "alpha", 7, 0);
	add_host(f, "beta", 8, 0);
	add_host(f, "gamma", 9, 2);
	a = add_conversation(f, "a", 1);
	assert_true(take(f, a, 7));
	assert_true(take(f, a, 7));
	assert_false(take(f, a, 8));
	add_turn(f, a, 2);
	assert_int_equal(store_turn_interrupt(writer(f), 0, 3, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(store_conversation_is_taken(writer(f), a, 8, &is), 0);
	assert_true(is);
	assert_int_equal(store_conversation_release(writer(f), a, 8, &is), 0);
	assert_false(is);
	assert_int_equal(store_conversation_release(writer(f), a, 7, &is), 0);
	assert_true(is);
	/* One that was lost has nothing. */
	assert_true(take(f, a, 9));
	assert_int_equal(store_conversation_is_taken(writer(f), a, 8, &is), 0);
	assert_false(is);
	assert_int_equal(store_turn_interrupt(writer(f), 0, 4, &n), 0);
	assert_int_equal(n, 1);
	assert_true(take(f, a, 8));
	assert_int_equal(store_conversation_end(writer(f), TEXT("a"), 5, &is), 0);
	assert_false(take(f, a, 8));
	commit(f);
}

/* Also when nothing of the newest is left. */
TEST(a_seq_never_comes_again)
{
	struct fixture *f = *state;
	int64_t a, turn, message;

	begin(f);
	a = add_conversation(f, "a", 1);
	turn = add_turn(f, a, 1);
	message = say(f, turn, MESSAGE_USER, "x", 1);
	commit(f);
	fixture_close(f);
	change_file(f, "DELETE FROM message; DELETE FROM turn");
	fixture_open(f);
	begin(f);
	assert_true(add_turn(f, a, 1) > turn);
	assert_true(say(f, turn + 1, MESSAGE_USER, "x", 1) > message);
	commit(f);
}

/* ---- messages ---- */

TEST(messages_come_back_in_order_with_their_calls)
{
	struct fixture *f = *state;
	const struct tool_call calls[] = {
		{TEXT("c2"), TEXT("read"), TEXT("{\"z\":1}")},
		{TEXT("c1"), TEXT("list"), TEXT("")},
	};
	struct message row = {.role = MESSAGE_ASSISTANT, .calls = calls, .n_calls = 2};
	int64_t a, b, turn, other, seq;
	struct page p;

	begin(f);
	a = add_conversation(f, "a", 1);
	b = add_conversation(f, "b", 1);
	turn = row.turn = add_turn(f, a, 1);
	other = add_turn(f, b, 1);
	say(f, turn, MESSAGE_USER, "look", 3);
	say(f, other, MESSAGE_USER, "not this", 3);
	assert_int_equal(store_message_add(writer(f), &row, &seq), 0);
	row = (struct message) {
		.turn = turn,
		.role = MESSAGE_TOOL,
		.text = TEXT("no such file"),
		.call_id = TEXT("c2"),
		.failed = true,
		.tokens = 4,
		.created_ms = 8,
	};
	assert_int_equal(store_message_add(writer(f), &row, &seq), 0);
	commit(f);

	p = all(f, a);
	assert_int_equal(p.n, 3);
	assert_text(p.rows[0].text, "look");
	assert_text(p.rows[0].call_id, NULL);
	assert_int_equal(p.rows[0].role, MESSAGE_USER);
	assert_int_equal(p.rows[0].tokens, 3);
	assert_int_equal(p.rows[0].created_ms, 7);
	assert_int_equal(p.rows[0].turn, turn);
	assert_int_equal(p.rows[0].n_calls, 0);
	assert_text(p.rows[1].text, "");
	assert_int_equal(p.rows[1].role, MESSAGE_ASSISTANT);
	assert_int_equal(p.rows[1].n_calls, 2);
	assert_text(p.rows[1].calls[0].id, "c2");
	assert_text(p.rows[1].calls[0].name, "read");
	assert_text(p.rows[1].calls[0].arguments, "{\"z\":1}");
	assert_text(p.rows[1].calls[1].id, "c1");
	assert_text(p.rows[1].calls[1].arguments, "");
	assert_int_equal(p.rows[2].seq, seq);
	assert_int_equal(p.rows[2].role, MESSAGE_TOOL);
	assert_text(p.rows[2].call_id, "c2");
	assert_true(p.rows[2].failed);
	assert_int_equal(find(f, "a").n_messages, 3);
}

TEST(text_grows_at_its_end)
{
	struct fixture *f = *state;
	const struct tool_call calls[] = {{TEXT("1"), TEXT("x"), TEXT("{}")},
					  {TEXT("2"), TEXT("y"), TEXT("{}")}};
	struct message row = {.tokens = 20, .calls = calls, .n_calls = 1};
	int64_t a, turn;
	struct page p;

	begin(f);
	a = add_conversation(f, "a", 1);
	turn = add_turn(f, a, 1);
	row.seq = say(f, turn, MESSAGE_ASSISTANT, NULL, 4);
	say(f, turn, MESSAGE_ASSISTANT, "beside", 4);
	assert_int_equal(store_message_append(writer(f), row.seq, TEXT("a\0b"), 5), 0);
	commit(f);
	assert_int_equal(all(f, a).rows[0].tokens, 5);
	begin(f);
	assert_int_equal(store_message_append(writer(f), row.seq, TEXT("\xc3\xa4!"), 6), 0);
	assert_int_equal(store_message_append(writer(f), row.seq, NONE, 7), 0);
	assert_int_equal(store_message_finish(writer(f), &row), 0);
	row.calls = &calls[1];
	assert_int_equal(store_message_finish(writer(f), &row), 0);
	commit(f);
	p = all(f, a);
	assert_int_equal(p.rows[0].text.len, 6);
	assert_memory_equal(p.rows[0].text.data, "a\0b\xc3\xa4!", 6);
	assert_int_equal(p.rows[0].tokens, 20);
	assert_int_equal(p.rows[0].n_calls, 2);
	assert_text(p.rows[0].calls[0].id, "1");
	assert_text(p.rows[0].calls[1].name, "y");
	assert_text(p.rows[1].text, "beside");
	assert_int_equal(p.rows[1].n_calls, 0);

	begin(f);
	assert_int_equal(store_message_set_tokens(writer(f), row.seq, 1000), 0);
	commit(f);
	p = all(f, a);
	assert_int_equal(p.rows[0].tokens, 1000);
	assert_int_equal(p.rows[0].n_calls, 2);
	assert_int_equal(p.rows[1].tokens, 4);
}

static void assert_count(struct fixture *f, int64_t conversation, int64_t want, bool answered)
{
	bool got_answer = !answered;
	int64_t n = -1;

	assert_int_equal(store_message_count(reader(f), conversation, &n, &got_answer), 0);
	assert_int_equal(n, want);
	assert_int_equal(got_answer, answered);
}

TEST(the_count_knows_whether_anybody_answered)
{
	struct fixture *f = *state;
	int64_t a, b, turn;

	begin(f);
	a = add_conversation(f, "a", 1);
	b = add_conversation(f, "b", 1);
	turn = add_turn(f, a, 1);
	say(f, turn, MESSAGE_USER, "x", 1);
	say(f, turn, MESSAGE_TOOL, "x", 1);
	commit(f);
	assert_count(f, a, 2, false);
	begin(f);
	say(f, turn, MESSAGE_ASSISTANT, "x", 1);
	say(f, turn, MESSAGE_USER, "x", 1);
	commit(f);
	assert_count(f, a, 4, true);
	assert_count(f, b, 0, false);
	assert_count(f, 12345, 0, false);
}

TEST(a_page_ends_at_its_limit_or_its_bytes)
{
	struct fixture *f = *state;
	const struct tool_call call = {TEXT("i"), TEXT("n"), TEXT("1234567890")};
	struct message row = {
		.role = MESSAGE_ASSISTANT, .text = TEXT("5555"), .calls = &call, .n_calls = 1};
	int64_t a, b, turn, seq;
	struct page p;

	begin(f);
	a = add_conversation(f, "a", 1);
	b = add_conversation(f, "b", 1);
	for (int i = 0; i < 4; i++) {
		char text[8];

		snprintf(text, sizeof(text), "%d%d%d%d", i, i, i, i);
		turn = row.turn = add_turn(f, a, 1);
		say(f, turn, MESSAGE_USER, text, 1);
		say(f, add_turn(f, b, 1), MESSAGE_USER, "other", 1);
	}
	assert_int_equal(store_message_add(writer(f), &row, &seq), 0);
	say(f, turn, MESSAGE_USER, "6", 1);
	commit(f);
	p = list(f, a, 1, 2, 0);
	assert_int_equal(p.n, 2);
	assert_text(p.rows[0].text, "1111");
	assert_text(p.rows[1].text, "2222");
	assert_int_equal(list(f, a, 0, 10, 8).n, 2);
	assert_int_equal(list(f, a, 0, 10, 7).n, 1);
	assert_int_equal(list(f, a, 0, 10, 1).n, 1);
	/* The calls count. */
	assert_int_equal(list(f, a, 4, 10, 16).n, 1);
	assert_int_equal(list(f, a, 4, 10, 17).n, 2);
	p = list(f, a, 5, 10, 0);
	assert_int_equal(p.n, 1);
	assert_text(p.rows[0].text, "6");
	assert_int_equal(list(f, a, 6, 10, 0).n, 0);
	assert_int_equal(list(f, a, INT64_MAX, 10, 0).n, 0);
	assert_int_equal(list(f, a, 0, 0, 0).n, 0);
	assert_int_equal(list(f, 12345, 0, 10, 0).n, 0);
}

TEST(messages_stand_in_the_order_of_their_turns)
{
	struct fixture *f = *state;
	int64_t a, first, second;
	struct page p;

	begin(f);
	a = add_conversation(f, "a", 1);
	first = add_turn(f, a, 1);
	second = add_turn(f, a, 1);
	say(f, first, MESSAGE_USER, "1", 1);
	say(f, second, MESSAGE_USER, "3", 1);
	say(f, first, MESSAGE_ASSISTANT, "2", 1);
	say(f, second, MESSAGE_ASSISTANT, "4", 1);
	commit(f);
	p = all(f, a);
	assert_int_equal(p.n, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(p.rows[i].text.data[0], '1' + (int)i);
	p = list(f, a, 2, 10, 0);
	assert_int_equal(p.n, 2);
	assert_text(p.rows[0].text, "3");
	p = window(f, a, first, second);
	assert_int_equal(p.n, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(p.rows[i].text.data[0], '1' + (int)i);
}

/* ---- what is sent ---- */

enum { TURNS = 40 };

/* Each of 10 tokens in two messages; another conversation's lie between them. */
static int64_t talk(struct fixture *f, int64_t turns[TURNS])
{
	int64_t a, b;

	begin(f);
	a = add_conversation(f, "a", 1);
	b = add_conversation(f, "b", 1);
	for (int i = 0; i < TURNS; i++) {
		turns[i] = add_turn(f, a, 1);
		say(f, turns[i], MESSAGE_USER, "q", 4);
		say(f, add_turn(f, b, 1), MESSAGE_USER, "other", 100);
		say(f, turns[i], MESSAGE_ASSISTANT, "a", 6);
	}
	commit(f);
	return a;
}

static unsigned weigh(struct fixture *f, int64_t conversation, int64_t after, int64_t max_tokens,
		      struct turn_weight **ret)
{
	unsigned n = 0;

	assert_int_equal(
		store_turn_weights(reader(f), conversation, after, max_tokens, &f->arena, ret, &n),
		0);
	return n;
}

TEST(the_newest_turns_that_fit_are_weighed)
{
	struct fixture *f = *state;
	struct turn_weight *w;
	int64_t turns[TURNS], a = talk(f, turns);

	assert_int_equal(weigh(f, a, 0, 30, &w), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(w[i].turn, turns[TURNS - 3 + i]);
		assert_int_equal(w[i].tokens, 10);
		assert_int_equal(w[i].n_messages, 2);
	}
	assert_int_equal(weigh(f, a, 0, 29, &w), 2);
	assert_int_equal(w[1].turn, turns[TURNS - 1]);
	assert_int_equal(weigh(f, a, 0, INT64_MAX, &w), TURNS);
	assert_int_equal(w[0].turn, turns[0]);
	/* Always the newest, but nothing beside one that is too much. */
	assert_int_equal(weigh(f, a, 0, 3, &w), 1);
	assert_int_equal(weigh(f, a, 0, 0, &w), 1);
	assert_int_equal(w[0].turn, turns[TURNS - 1]);
	assert_int_equal(weigh(f, a, turns[TURNS - 3], INT64_MAX, &w), 2);
	assert_int_equal(w[0].turn, turns[TURNS - 2]);
	assert_int_equal(weigh(f, a, turns[TURNS - 1], INT64_MAX, &w), 0);
	assert_int_equal(weigh(f, 12345, 0, INT64_MAX, &w), 0);
}

TEST(no_turn_is_skipped_for_an_older_one_that_fits)
{
	struct fixture *f = *state;
	struct turn_weight *w;
	int64_t a, newest, heavy;

	begin(f);
	a = add_conversation(f, "a", 1);
	say(f, add_turn(f, a, 1), MESSAGE_USER, "light", 1);
	heavy = say(f, add_turn(f, a, 1), MESSAGE_USER, "heavy", 50);
	newest = add_turn(f, a, 1);
	say(f, newest, MESSAGE_USER, "newest", 1);
	add_turn(f, a, 1); /* nothing was said in it */
	commit(f);
	assert_int_equal(weigh(f, a, 0, 10, &w), 1);
	assert_int_equal(w[0].turn, newest);
	begin(f);
	assert_int_equal(store_message_append(writer(f), heavy, TEXT("?"), 5), 0);
	commit(f);
	assert_int_equal(weigh(f, a, 0, 10, &w), 3);
	assert_int_equal(w[1].tokens, 5);
}

/* However heavy: the question is nothing without what came of its calls, nor the other way. */
TEST(turns_of_one_question_are_weighed_together)
{
	struct fixture *f = *state;
	struct turn_weight *w;
	int64_t a, question, turn;

	begin(f);
	a = add_conversation(f, "a", 1);
	say(f, add_turn(f, a, 1), MESSAGE_USER, "before", 1);
	question = add_turn(f, a, 1);
	say(f, question, MESSAGE_USER, "question", 5);
	for (int i = 0; i < 2; i++) {
		turn = add_turn(f, a, 1);
		say(f, turn, MESSAGE_TOOL, "result", 50);
		say(f, turn, MESSAGE_ASSISTANT, "more", 1);
	}
	commit(f);
	assert_int_equal(weigh(f, a, 0, 10, &w), 3);
	assert_int_equal(w[0].turn, question);
	assert_false(w[0].continues);
	assert_true(w[1].continues && w[2].continues);
	/* ... up to a limit */
	begin(f);
	turn = add_turn(f, a, 1);
	say(f, turn, MESSAGE_TOOL, "huge", TURN_CHAIN_TOKENS);
	commit(f);
	assert_int_equal(weigh(f, a, 0, 10, &w), 1);
}

TEST(a_window_has_the_turns_it_names)
{
	struct fixture *f = *state;
	int64_t turns[TURNS], a = talk(f, turns);
	struct page p;

	p = window(f, a, turns[1], turns[2]);
	assert_int_equal(p.n, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(p.rows[i].turn, turns[1 + i / 2]);
		assert_text(p.rows[i].text, i % 2 ? "a" : "q");
	}
	assert_int_equal(window(f, a, 0, INT64_MAX).n, TURNS * 2);
	assert_int_equal(window(f, a, turns[2], turns[1]).n, 0);
	assert_int_equal(window(f, 12345, 0, INT64_MAX).n, 0);
}

/* ---- what goes wrong ---- */

TEST(a_seq_that_is_not_there_is_told)
{
	struct fixture *f = *state;
	const struct tool_call call = {TEXT("1"), TEXT("x"), TEXT("{}")};
	const struct turn turn = {.conversation = 404};
	const struct message message = {.seq = 404, .turn = 404, .calls = &call, .n_calls = 1};
	struct connection *c = writer(f);
	int64_t seq = -1;

	begin(f);
	assert_int_equal(store_conversation_set_summary(c, 404, TEXT("x"), 1, 1), -ENOENT);
	assert_int_equal(store_turn_add(c, &turn, &seq), -EINVAL);
	assert_int_equal(end_turn(f, 404, TURN_DONE), -ENOENT);
	assert_int_equal(store_message_add(c, &message, &seq), -EINVAL);
	assert_int_equal(store_message_append(c, 404, TEXT("x"), 1), -ENOENT);
	assert_int_equal(store_message_finish(c, &message), -ENOENT);
	assert_int_equal(store_message_set_tokens(c, 404, 1), -ENOENT);
	assert_int_equal(seq, -1);
	commit(f);
	assert_int_equal(number(f, "SELECT (SELECT count(*) FROM turn) + (SELECT count(*) FROM"
				   " message) + (SELECT count(*) FROM message_call)"),
			 0);
}

TEST(what_is_rolled_back_leaves_nothing)
{
	struct fixture *f = *state;
	const struct tool_call call = {TEXT("1"), TEXT("x"), TEXT("{}")};
	struct message row = {.role = MESSAGE_ASSISTANT, .calls = &call, .n_calls = 1};
	int64_t a, kept, seq;

	begin(f);
	a = add_conversation(f, "a", 1);
	row.turn = add_turn(f, a, 2);
	kept = say(f, row.turn, MESSAGE_USER, "kept", 3);
	assert_int_equal(end_turn(f, row.turn, TURN_DONE), 0);
	assert_int_equal(store_savepoint(f->store), 0);
	add_turn(f, a, 50);
	assert_int_equal(store_message_add(writer(f), &row, &seq), 0);
	assert_int_equal(store_message_append(writer(f), kept, TEXT(" not"), 9), 0);
	assert_int_equal(store_rollback_to(f->store), 0);
	commit(f);
	begin(f);
	add_conversation(f, "b", 1);
	row.seq = kept;
	assert_int_equal(store_message_finish(writer(f), &row), 0);
	store_rollback(f->store);

	assert_false(exists(f, "b"));
	assert_false(find(f, "a").running);
	assert_int_equal(find(f, "a").updated_ms, 2);
	assert_count(f, a, 1, false);
	assert_int_equal(all(f, a).n, 1);
	assert_text(all(f, a).rows[0].text, "kept");
	assert_int_equal(all(f, a).rows[0].tokens, 3);
	assert_int_equal(all(f, a).rows[0].n_calls, 0);
	assert_int_equal(number(f, "SELECT count(*) FROM message_call"), 0);
}

TEST(a_small_arena_is_told)
{
	struct fixture *f = *state;
	int64_t turns[TURNS], a = talk(f, turns), total;
	struct conversation *rows;
	struct message *messages;
	struct turn_weight *weights;
	struct arena small;
	unsigned n;

	arena_init(&small, 1);
	assert_int_equal(store_message_list(reader(f), a, 0, 10, 0, &small, &messages, &n, &total),
			 -ENOMEM);
	assert_int_equal(store_message_window(reader(f), a, 0, turns[3], &small, &messages, &n),
			 -ENOMEM);
	assert_int_equal(store_turn_weights(reader(f), a, 0, 1000, &small, &weights, &n), -ENOMEM);
	assert_int_equal(store_conversation_list(reader(f), 0, 10, &small, &rows, &n, &total),
			 -ENOMEM);
	arena_done(&small);
	/* And the connection is as good as before. */
	assert_int_equal(all(f, a).n, TURNS * 2);
}

TEST(a_file_without_conversations_gets_their_tables)
{
	struct fixture *f = *state;
	int64_t a;

	become_version(f, 2);
	fixture_open(f);
	assert_int_equal(number(f, "PRAGMA user_version"), sqlite_n_steps);
	assert_true(has_id(f, reader(f), "one"));
	begin(f);
	a = add_conversation(f, "a", 1);
	say(f, add_turn(f, a, 1), MESSAGE_USER, "x", 1);
	commit(f);
	fixture_close(f);
	fixture_open(f);
	assert_count(f, a, 1, false);
	assert_int_equal(store_quick_check(f->store, 0, &f->error), 0);
}

TEST(what_it_was_made_with_comes_back)
{
	struct fixture *f = *state;
	const struct conversation made = {
		.id = TEXT("child"),
		.bounds.parent = TEXT("a"),
		.bounds.cwd = TEXT("/srv/work"),
		.bounds.preset = PRESET_SANDBOXED,
		.bounds.write_paths = TEXT("/srv/work/out\n/srv/work/log"),
		.bounds.disabled_tools = TEXT("Bash,Edit"),
	};
	struct conversation row;
	bool found;
	int64_t seq;

	begin(f);
	add_conversation(f, "a", 1);
	assert_int_equal(store_conversation_add(writer(f), &made, &seq), 0);
	assert_int_equal(store_conversation_want_end(writer(f), TEXT("child"), &found), 0);
	assert_true(found);
	assert_int_equal(store_conversation_want_end(writer(f), TEXT("nobody"), &found), 0);
	assert_false(found);
	commit(f);
	row = find(f, "child");
	assert_true(text_equal(row.bounds.parent, made.bounds.parent));
	assert_true(text_equal(row.bounds.cwd, made.bounds.cwd));
	assert_int_equal(row.bounds.preset, PRESET_SANDBOXED);
	assert_true(text_equal(row.bounds.write_paths, made.bounds.write_paths));
	assert_true(text_equal(row.bounds.disabled_tools, made.bounds.disabled_tools));
	assert_true(row.wants_end);
	assert_int_equal(row.n_children, 0);
	row = find(f, "a");
	assert_int_equal(row.n_children, 1);
	assert_null(row.bounds.parent.data);
	assert_null(row.bounds.write_paths.data);
	assert_false(row.wants_end);
	begin(f);
	assert_int_equal(store_conversation_end(writer(f), TEXT("child"), 9, &found), 0);
	commit(f);
	assert_int_equal(find(f, "a").n_children, 0);
}

static unsigned ended(struct fixture *f, struct text id, struct conversation **ret_rows)
{
	int64_t total;
	unsigned n;

	assert_int_equal(store_conversation_list_ended(reader(f), id, 0, 10, &f->arena, ret_rows,
						       &n, &total),
			 0);
	assert_int_equal(total, n);
	return n;
}

static void end_conversation(struct fixture *f, const char *id, int64_t now_ms)
{
	bool found = false;

	assert_int_equal(store_conversation_end(writer(f), text_of(id), now_ms, &found), 0);
	assert_true(found);
}

TEST(those_that_were_ended_are_told_apart)
{
	struct fixture *f = *state;
	struct conversation *rows, row;
	int64_t first, second, oldest;
	bool found;

	begin(f);
	first = add_conversation(f, "a", 1);
	say(f, add_turn(f, first, 2), MESSAGE_USER, "of the first", 3);
	end_conversation(f, "a", 10);
	second = add_conversation(f, "a", 11);
	end_conversation(f, "a", 20);
	add_conversation(f, "a", 21);
	add_conversation(f, "b", 22);
	end_conversation(f, "b", 15);
	commit(f);
	assert_int_equal(ended(f, NONE, &rows), 3);
	assert_int_equal(rows[0].seq, second);
	assert_true(text_is(rows[1].id, "b"));
	assert_int_equal(rows[2].seq, first);
	assert_int_equal(rows[2].ended_ms, 10);
	assert_int_equal(rows[2].n_messages, 1);
	assert_int_equal(ended(f, TEXT("a"), &rows), 2);
	assert_int_equal(store_conversation_find_ended(reader(f), first, &f->arena, &row, &found),
			 0);
	assert_true(found);
	assert_int_equal(list(f, row.seq, 0, 10, 0).n, 1);
	assert_int_equal(
		store_conversation_find_ended(reader(f), find(f, "a").seq, &f->arena, &row, &found),
		0);
	assert_false(found);
	assert_int_equal(store_conversation_oldest_ended(reader(f), 15, &oldest), 0);
	assert_int_equal(oldest, first);
	assert_int_equal(store_conversation_oldest_ended(reader(f), 10, &oldest), 0);
	assert_int_equal(oldest, 0);
}

static unsigned rows_of(struct fixture *f, const char *table)
{
	char sql[80];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
	return (unsigned)number(f, sql);
}

TEST(what_is_purged_goes_in_steps_and_leaves_nothing)
{
	struct fixture *f = *state;
	const struct tool_call call = {TEXT("c"), TEXT("t"), TEXT("{}")};
	struct conversation *rows;
	unsigned steps = 0, n;
	int64_t gone, kept;
	bool more = true;

	begin(f);
	gone = add_conversation(f, "a", 1);
	for (int i = 0; i < 5; i++) {
		int64_t turn = add_turn(f, gone, 2);
		const struct message row = {
			.turn = turn, .role = MESSAGE_ASSISTANT, .calls = &call, .n_calls = 1};
		int64_t seq;

		say(f, turn, MESSAGE_USER, "hello", 1);
		assert_int_equal(store_message_add(writer(f), &row, &seq), 0);
	}
	end_conversation(f, "a", 10);
	kept = add_conversation(f, "a", 11);
	say(f, add_turn(f, kept, 12), MESSAGE_USER, "stays", 1);
	commit(f);
	while (more) {
		begin(f);
		assert_int_equal(store_conversation_purge(writer(f), gone, 3, &n, &more), 0);
		commit(f);
		assert_int_equal(n, more ? 3 : 0);
		steps++;
	}
	/* 10 messages, 5 turns, and itself. */
	assert_int_equal(steps, 6);
	assert_int_equal(ended(f, NONE, &rows), 0);
	assert_int_equal(rows_of(f, "conversation"), 1);
	assert_int_equal(rows_of(f, "turn"), 1);
	assert_int_equal(rows_of(f, "message"), 1);
	assert_int_equal(rows_of(f, "message_call"), 0);
	assert_int_equal(all(f, kept).n, 1);
	assert_no_walks(f, writer(f), "message", NULL);
	assert_no_walks(f, writer(f), "turn", NULL);
}
