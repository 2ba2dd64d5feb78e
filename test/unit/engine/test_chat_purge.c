/* Conversations that are deleted for good: by whom they are named, by their age, in steps. */
#include "stage.h"

#include "base/clock.h"
#include "engine/chat/chat.h"
#include "store/chat.h"
#include "store/store.h"

enum { DAY_MS = 24 * 3600 * 1000, STEP_ROWS = 500, STEP_CONVERSATIONS = 100 };

struct world {
	struct stage stage;
	struct chat *chat;
	struct connection *db;
};

static void make(struct world *w, void **state, int64_t keep_ms)
{
	struct chat_opts opts = {.system = "", .keep_ms = keep_ms};
	struct fixture *f = *state;

	*w = (struct world) {0};
	stage_make(&w->stage, f);
	opts.store = f->engine->store;
	opts.loop = w->stage.loop;
	opts.workers = stage_workers(&w->stage);
	assert_int_equal(chat_start(&opts, &f->engine->chat, &f->error), 0);
	w->chat = f->engine->chat;
	w->db = store_writer(f->engine->store);
}

static void unmake(struct world *w)
{
	engine_close(w->stage.f->engine);
	w->stage.f->engine = NULL;
	timer_free(w->stage.tick);
	loop_free(w->stage.loop);
}

/* A conversation with one turn of this many messages. */
static int64_t add_one(struct world *w, const char *id, unsigned n_messages, int64_t ended_ms)
{
	const struct conversation row = {.id = text_of(id)};
	struct turn turn = {.request_id = TEXT("r"), .agent = TEXT("a"), .state = TURN_DONE};
	struct message message = {.text = TEXT("hello")};
	int64_t seq;
	bool found;

	assert_int_equal(store_conversation_add(w->db, &row, &turn.conversation), 0);
	assert_int_equal(store_turn_add(w->db, &turn, &message.turn), 0);
	for (unsigned i = 0; i < n_messages; i++)
		assert_int_equal(store_message_add(w->db, &message, &seq), 0);
	if (ended_ms > 0)
		assert_int_equal(store_conversation_end(w->db, text_of(id), ended_ms, &found), 0);
	return turn.conversation;
}

static int64_t n_ended(struct world *w)
{
	struct conversation_page page = {.limit = 1};
	struct fixture *f = w->stage.f;

	assert_int_equal(chat_list_ended(w->chat, 0, &f->arena, (struct text) {0}, &page), 0);
	return page.total;
}

static bool sweep(struct world *w)
{
	bool more = true;

	begin(w->stage.f);
	assert_int_equal(chat_sweep(w->chat, &more), 0);
	end(w->stage.f);
	return more;
}

FIXTURE(setup, teardown);

TEST(those_that_were_ended_long_ago_go)
{
	int64_t now = clock_utc_ms();
	struct conversation row;
	struct world w;
	bool found;

	make(&w, state, 2 * (int64_t)DAY_MS);
	assert_true(chat_sweeps(w.chat));
	begin(w.stage.f);
	add_one(&w, "old", 3, now - 3 * (int64_t)DAY_MS);
	add_one(&w, "young", 3, now - DAY_MS);
	add_one(&w, "open", 3, 0);
	end(w.stage.f);
	assert_false(sweep(&w));
	assert_int_equal(n_ended(&w), 1);
	assert_int_equal(
		store_conversation_find(w.db, TEXT("open"), &w.stage.f->arena, &row, &found), 0);
	assert_true(found);
	unmake(&w);
}

TEST(without_an_age_all_are_kept)
{
	struct world w;

	make(&w, state, 0);
	assert_false(chat_sweeps(w.chat));
	assert_false(chat_sweeps(NULL));
	unmake(&w);
}

/* Many short ones, and a long one behind them. */
TEST(many_go_in_steps)
{
	enum { N = 1000, LONG = 1200 };
	struct chat_purge p = {.before_ms = INT64_MAX, .more = true};
	unsigned steps = 0;
	struct world w;
	char id[16];

	make(&w, state, DAY_MS);
	begin(w.stage.f);
	for (unsigned i = 0; i < N; i++) {
		snprintf(id, sizeof(id), "c%u", i);
		add_one(&w, id, 2, 1 + i);
	}
	add_one(&w, "long", LONG, N + 1);
	end(w.stage.f);
	/* A short one is three rows. */
	while (n_ended(&w) > N / 2) {
		int64_t before = n_ended(&w);

		assert_true(sweep(&w));
		assert_in_range(before - n_ended(&w), 1, STEP_CONVERSATIONS);
		steps++;
	}
	while (p.more) {
		begin(w.stage.f);
		assert_int_equal(chat_purge(w.chat, &p, &w.stage.f->error), 0);
		end(w.stage.f);
		steps++;
	}
	assert_int_equal(n_ended(&w), 0);
	assert_in_range(p.n_purged, 1, N / 2 + 1);
	assert_in_range(steps, (3 * N + LONG) / STEP_ROWS, 20);
	assert_false(sweep(&w));
	unmake(&w);
}

TEST(one_that_is_not_there_is_refused)
{
	struct chat_purge p = {0};
	struct world w;

	make(&w, state, 0);
	begin(w.stage.f);
	p.number = add_one(&w, "open", 1, 0);
	end(w.stage.f);
	begin(w.stage.f);
	assert_int_equal(chat_purge(w.chat, &p, &w.stage.f->error), REFUSE_NOT_FOUND);
	end(w.stage.f);
	unmake(&w);
}
