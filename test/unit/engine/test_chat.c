/*
 * The chat service as the daemon runs it: a loop, the workers' threads, a real store, the
 * recall agent; and an agent that does what a test tells it, for what recall never does.
 */
#include "stage.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/recall/recall.h"
#include "io/workers.h"
#include "io/loop.h"
#include "engine/chat/chat.h"
#include "engine/chat/inner.h"
#include "store/db/query.h"

/* ---- an agent on strings ---- */

struct puppet {
	struct agent agent;
	struct loop *loop;
	struct agent_turn *turns[8]; /* open ones, by when they began */
	unsigned n_turns;
	unsigned n_started;
	unsigned n_messages; /* of the last ask */
	unsigned n_tools;
	char system[100];
	char first_text[100]; /* of its oldest message */
	char last_text[100];
	enum message_role last_role;
	char seen[1600]; /* of it, each message: "user text|" */
};

struct agent_turn {
	struct puppet *puppet;
	struct agent_sink sink;
	struct timer *timer;
};

static void note(char out[100], struct text t)
{
	snprintf(out, 100, "%.*s", TEXT_ARGS(t));
}

static void puppet_forget(struct agent_turn *t)
{
	struct puppet *p = t->puppet;

	for (unsigned i = 0; i < p->n_turns; i++) {
		if (p->turns[i] != t)
			continue;
		memmove(&p->turns[i], &p->turns[i + 1], (p->n_turns - i - 1) * sizeof(t));
		p->n_turns--;
		break;
	}
	timer_free(t->timer);
	free(t);
}

static void puppet_end(struct agent_turn *t, struct agent_end end)
{
	struct agent_sink sink = t->sink;

	puppet_forget(t);
	sink.on_end(sink.arg, &end);
}

static void puppet_cancelled(void *arg)
{
	puppet_end(arg, (struct agent_end) {.outcome = AGENT_CANCELLED, .usage = AGENT_NO_USAGE});
}

static void note_all(char out[1600], const struct agent_ask *ask)
{
	static const char *const who[] = {[MESSAGE_USER] = "user",
					  [MESSAGE_ASSISTANT] = "assistant",
					  [MESSAGE_TOOL] = "tool"};
	size_t n = 0;

	for (unsigned i = 0; i < ask->n_messages && n < 1600; i++)
		n += (size_t)snprintf(out + n, 1600 - n, "%s %.*s|", who[ask->messages[i].role],
				      TEXT_ARGS(ask->messages[i].text));
}

static int puppet_start(struct agent *a, const struct agent_ask *ask, const struct agent_sink *sink,
			struct agent_turn **ret_turn, struct error *error)
{
	struct puppet *p = (struct puppet *)a;
	struct agent_turn *t;

	if (text_is(ask->messages[ask->n_messages - 1].text, "refuse me"))
		return refuse(error, REFUSE_UNAVAILABLE, "not today");
	t = calloc(1, sizeof(*t));
	t->puppet = p;
	t->sink = *sink;
	assert_int_equal(timer_new(p->loop, puppet_cancelled, t, &t->timer), 0);
	p->turns[p->n_turns++] = t;
	p->n_started++;
	p->n_messages = ask->n_messages;
	p->n_tools = ask->n_tools;
	note(p->system, ask->system);
	note(p->first_text, ask->messages[0].text);
	note(p->last_text, ask->messages[ask->n_messages - 1].text);
	p->last_role = ask->messages[ask->n_messages - 1].role;
	note_all(p->seen, ask);
	*ret_turn = t;
	return 0;
}

static void puppet_cancel(struct agent_turn *t)
{
	timer_start(t->timer, 0);
}

static int puppet_probe(struct agent *a, agent_health_fn fn, void *arg)
{
	return -ENOSYS;
}

static void puppet_free(struct agent *a)
{
	struct puppet *p = (struct puppet *)a;

	while (p->n_turns > 0)
		puppet_forget(p->turns[0]);
	free(p);
}

static const struct agent_ops puppet_ops = {
	.kind = "puppet",
	.start = puppet_start,
	.cancel = puppet_cancel,
	.probe = puppet_probe,
	.free = puppet_free,
};

static void puppet_say(struct agent_turn *t, const char *text)
{
	t->sink.on_text(t->sink.arg, text_of(text));
}

static void puppet_finish(struct agent_turn *t)
{
	puppet_end(t, (struct agent_end) {.outcome = AGENT_DONE, .usage = AGENT_NO_USAGE});
}

/* ---- the world ---- */

struct world {
	int fail_reads; /* with this */
	struct fixture *f;
	struct loop *loop;
	struct timer *tick;
	struct workers *workers;
	struct fake_workers fake;
	struct puppet *puppet;
};

static int submit(void *arg, struct work *work, bool writes)
{
	struct world *w = arg;

	if (!writes && w->fail_reads != 0)
		return w->fail_reads;
	if (writes)
		workers_write(w->workers, work);
	else
		workers_read(w->workers, work);
	return 0;
}

static void on_tick(void *arg)
{
}

static struct agent *new_recall(struct world *w, const char *name, unsigned delay_ms)
{
	const struct recall_opts opts = {.name = name,
					 .word_delay_ms = delay_ms,
					 .budget = 8000,
					 .reserve = 2000,
					 .rank = chat_rank};
	struct agent *a;

	assert_int_equal(recall_new(w->loop, &opts, &a), 0);
	return a;
}

static struct agent *new_puppet(struct world *w)
{
	struct puppet *p = calloc(1, sizeof(*p));

	p->agent =
		(struct agent) {.ops = &puppet_ops, .name = "puppet", .budget = 100, .reserve = 40};
	p->loop = w->loop;
	w->puppet = p;
	return &p->agent;
}

static void world_open(struct world *w)
{
	const struct workers_opts workers = fixture_workers(w->f, N_READERS);
	struct agent *agents[3];
	const struct chat_opts opts = {
		.store = w->f->engine->store,
		.memories = w->f->engine->memories,
		.loop = w->loop,
		.workers = fake_workers(&w->fake),
		.agents = agents,
		.n_agents = 3,
		.agent = "recall",
		.system = "Be good.",
	};
	struct error error;

	agents[0] = new_recall(w, "recall", 0);
	agents[1] = new_recall(w, "slow", 30);
	agents[2] = new_puppet(w);
	w->fake = (struct fake_workers) {.submit = submit, .arg = w};
	w->f->workers = opts.workers;
	assert_int_equal(workers_new(w->loop, &workers, &w->workers), 0);
	assert_int_equal(chat_start(&opts, &w->f->engine->chat, &error), 0);
}

/* As a crash leaves it: turns that run are not told, nor ended in the store. */
static void world_reopen(struct world *w)
{
	workers_free(w->workers);
	fixture_reopen(w->f, 64 << 20);
	world_open(w);
}

static int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (setup((void **)&w->f) != 0)
		return -1;
	assert_int_equal(loop_new(&w->loop), 0);
	assert_int_equal(timer_new(w->loop, on_tick, w, &w->tick), 0);
	world_open(w);
	*state = w;
	return 0;
}

static int world_teardown(void **state)
{
	struct world *w = *state;

	workers_free(w->workers);
	teardown((void **)&w->f);
	timer_free(w->tick);
	loop_free(w->loop);
	free(w);
	return 0;
}

FIXTURE(world_setup, world_teardown);

/* Turns the loop until it is so; fails after a minute. */
#define until(w, condition)                                                                        \
	do {                                                                                       \
		uint64_t end_ = loop_now_ms((w)->loop) + 60000;                                    \
		timer_repeat((w)->tick, 5);                                                        \
		while (!(condition)) {                                                             \
			loop_step((w)->loop);                                                      \
			if (loop_now_ms((w)->loop) > end_)                                         \
				fail_msg("still not: %s", #condition);                             \
		}                                                                                  \
		timer_stop((w)->tick);                                                             \
	} while (0)

/* ---- asking ---- */

struct told {
	int n_done;
	int result;
	struct error error;
	char content[4096];
	char request_id[64];
	enum agent_outcome outcome;
	unsigned n_calls;
	char call_name[32];
	int64_t input;
	unsigned n_texts;
	size_t seen;
	struct chat_turn *turn;
};

static void on_text(void *arg, struct text whole, size_t from)
{
	struct told *t = arg;

	assert_int_equal(from, t->seen);
	assert_true(whole.len > from);
	t->seen = whole.len;
	t->n_texts++;
}

static void on_done(void *arg, const struct chat_answer *answer)
{
	struct told *t = arg;

	t->n_done++;
	t->result = answer->result;
	t->error = *answer->error;
	snprintf(t->content, sizeof(t->content), "%.*s", TEXT_ARGS(answer->content));
	snprintf(t->request_id, sizeof(t->request_id), "%.*s", TEXT_ARGS(answer->request_id));
	t->outcome = answer->outcome;
	t->n_calls = answer->n_calls;
	if (answer->n_calls > 0)
		snprintf(t->call_name, sizeof(t->call_name), "%.*s",
			 TEXT_ARGS(answer->calls[0].name));
	t->input = answer->usage.input;
}

static int ask_with(struct world *w, const struct chat_ask *ask, struct told *told)
{
	const struct chat_sink sink = {.on_text = on_text, .on_done = on_done, .arg = told};

	*told = (struct told) {0};
	return chat_send(w->f->engine->chat, ask, &sink, &told->turn, &told->error);
}

static void ask(struct world *w, const char *conversation, const char *agent, const char *content,
		struct told *told)
{
	const struct chat_ask in = {.conversation = text_of(conversation),
				    .agent = text_of(agent),
				    .content = text_of(content)};

	assert_int_equal(ask_with(w, &in, told), 0);
}

static void ask_and_wait(struct world *w, const char *conversation, const char *agent,
			 const char *content, struct told *told)
{
	ask(w, conversation, agent, content, told);
	until(w, told->n_done);
}

/* Asks the puppet, and has it begin. */
static struct agent_turn *ask_puppet(struct world *w, const char *conversation, const char *content,
				     struct told *told)
{
	unsigned before = w->puppet->n_started;

	ask(w, conversation, "puppet", content, told);
	until(w, w->puppet->n_started > before);
	return w->puppet->turns[w->puppet->n_turns - 1];
}

static void puppet_answers(struct world *w, const char *content, const char *answer)
{
	struct told told;
	struct agent_turn *t = ask_puppet(w, NULL, content, &told);

	puppet_say(t, answer);
	puppet_finish(t);
	until(w, told.n_done);
	assert_int_equal(told.result, 0);
}

struct counted {
	int n;
	int result;
	struct chat_counts counts;
};

static void on_counts(void *arg, int result, const struct chat_counts *counts,
		      const struct error *error)
{
	struct counted *c = arg;

	c->n++;
	c->result = result;
	if (counts)
		c->counts = *counts;
}

/* What chat_count has returned. */
static void note_count(struct counted *c, int result)
{
	if (result == -EAGAIN)
		return;
	c->n++;
	c->result = result;
}

static struct chat_counts count(struct world *w, const char *conversation)
{
	struct counted c = {0};

	note_count(&c, chat_count(w->f->engine->chat, text_of(conversation), false, &c.counts,
				  on_counts, &c, &w->f->error));
	until(w, c.n);
	assert_int_equal(c.result, 0);
	return c.counts;
}

static int count_existing(struct world *w, const char *conversation)
{
	struct counted c = {0};

	note_count(&c, chat_count(w->f->engine->chat, text_of(conversation), true, &c.counts,
				  on_counts, &c, &w->f->error));
	until(w, c.n);
	return c.result;
}

/* Lane 1 is asked from here as well: the readers of the test are at rest then. */
static unsigned messages(struct world *w, const char *conversation, struct message **ret)
{
	struct message_page page = {0};
	int r = chat_messages(w->f->engine->chat, 1, &w->f->arena, text_of(conversation), false,
			      &page, &w->f->error);

	assert_int_equal(r, 0);
	assert_int_equal(page.n, page.total);
	*ret = page.rows;
	return page.n;
}

/* ---- tests ---- */

TEST(remembers_what_was_said)
{
	struct world *w = *state;
	struct told told;

	ask_and_wait(w, NULL, NULL, "My name is Alice", &told);
	assert_int_equal(told.result, 0);
	assert_non_null(strstr(told.content, "offline"));
	assert_true(told.n_texts > 3);
	ask_and_wait(w, NULL, NULL, "What is my name?", &told);
	assert_non_null(strstr(told.content, "Alice"));
	assert_null(strstr(told.content, "offline responder"));
	assert_int_equal(strlen(told.request_id), CHAT_REQUEST_LEN);
	assert_int_equal(count(w, NULL).n_messages, 4);
}

/* However often it was said, and however alike all the rest is. */
TEST(finds_what_everybody_says)
{
	struct world *w = *state;
	struct told told;

	ask_and_wait(w, NULL, NULL, "My name is Alice", &told);
	ask_and_wait(w, NULL, NULL, "My name is Alice", &told);
	ask_and_wait(w, NULL, NULL, "Tell me about my name", &told);
	assert_non_null(strstr(told.content, "Alice"));
	ask_and_wait(w, NULL, NULL, "My dog's name is Rex", &told);
	ask_and_wait(w, NULL, NULL, "What is the name of my dog?", &told);
	assert_non_null(strstr(told.content, "Rex"));
	ask_and_wait(w, NULL, NULL, "xqwzvk?", &told);
	assert_int_equal(told.result, 0);
}

TEST(quotes_memory_too)
{
	struct world *w = *state;
	struct told told;

	add(w->f, "Bob's boat is called Seagull", NULL);
	ask_and_wait(w, NULL, NULL, "What is Bob's boat called?", &told);
	assert_non_null(strstr(told.content, "Seagull"));
}

TEST(second_question_waits_its_turn)
{
	struct world *w = *state;
	struct told first;
	struct told second;
	struct agent_turn *t = ask_puppet(w, NULL, "one", &first);

	ask(w, NULL, "puppet", "two", &second);
	puppet_say(t, "I.");
	assert_int_equal(w->puppet->n_started, 1);
	puppet_finish(t);
	until(w, w->puppet->n_started == 2);
	assert_int_equal(first.n_done, 1);
	assert_int_equal(w->puppet->n_messages, 3);
	assert_string_equal(w->puppet->last_text, "two");
	puppet_say(w->puppet->turns[0], "II.");
	puppet_finish(w->puppet->turns[0]);
	until(w, second.n_done);
	assert_string_equal(second.content, "II.");
}

TEST(conversations_run_side_by_side)
{
	struct world *w = *state;
	struct told a;
	struct told b;
	struct agent_turn *first = ask_puppet(w, "a", "hello", &a);
	struct agent_turn *second = ask_puppet(w, "b", "hello", &b);

	puppet_say(second, "b's");
	puppet_finish(second);
	until(w, b.n_done);
	assert_int_equal(a.n_done, 0);
	puppet_say(first, "a's");
	puppet_finish(first);
	until(w, a.n_done);
	assert_string_equal(a.content, "a's");
	assert_string_equal(b.content, "b's");
}

TEST(request_id_in_progress_is_refused)
{
	struct world *w = *state;
	const struct chat_ask in = {
		.content = TEXT("hi"), .agent = TEXT("puppet"), .request_id = TEXT("\"same\"")};
	struct told first;
	struct told second;

	assert_int_equal(ask_with(w, &in, &first), 0);
	assert_int_equal(ask_with(w, &in, &second), REFUSE_PARAMS);
	assert_string_equal(second.error.field, "request_id");
	until(w, w->puppet->n_started == 1);
	assert_int_equal(ask_with(w, &in, &second), REFUSE_PARAMS);
	puppet_finish(w->puppet->turns[0]);
	until(w, first.n_done);
	/* It is free again. */
	assert_int_equal(ask_with(w, &in, &second), 0);
	until(w, w->puppet->n_started == 2);
	puppet_finish(w->puppet->turns[0]);
	until(w, second.n_done);
}

TEST(cancelled_turn_keeps_its_text)
{
	struct world *w = *state;
	struct message *rows;
	struct told told;
	struct agent_turn *t = ask_puppet(w, NULL, "an essay", &told);

	puppet_say(t, "Once upon ");
	assert_false(chat_cancel(w->f->engine->chat, (struct text) {0}, TEXT("\"other\"")));
	assert_true(
		chat_cancel(w->f->engine->chat, (struct text) {0}, chat_turn_request(told.turn)));
	/* Once more is as good, as long as it is not over. */
	assert_true(
		chat_cancel(w->f->engine->chat, TEXT(CHAT_DEFAULT), chat_turn_request(told.turn)));
	until(w, told.n_done);
	assert_int_equal(told.result, 0);
	assert_int_equal(told.outcome, AGENT_CANCELLED);
	assert_string_equal(told.content, "Once upon ");
	assert_int_equal(messages(w, NULL, &rows), 2);
	assert_int_equal(rows[1].turn_state, TURN_CANCELLED);
	assert_true(text_is(rows[1].text, "Once upon "));
	assert_int_equal(count(w, NULL).n_messages, 2);
	assert_false(chat_cancel(w->f->engine->chat, (struct text) {0}, text_of(told.request_id)));
}

TEST(text_of_one_loop_turn_is_told_at_once)
{
	struct world *w = *state;
	struct told told;
	struct agent_turn *t = ask_puppet(w, NULL, "an essay", &told);

	puppet_say(t, "Once ");
	puppet_say(t, "upon ");
	assert_int_equal(told.n_texts, 0);
	until(w, told.n_texts > 0);
	assert_int_equal(told.n_texts, 1);
	assert_int_equal(told.seen, strlen("Once upon "));
	/* What nobody was told before the end comes before the answer. */
	puppet_say(t, "a time");
	puppet_finish(t);
	assert_int_equal(told.n_texts, 2);
	assert_int_equal(told.n_done, 0);
	until(w, told.n_done);
	assert_int_equal(told.n_texts, 2);
	assert_string_equal(told.content, "Once upon a time");
}

TEST(recall_can_be_cancelled)
{
	struct world *w = *state;
	struct told told;

	ask(w, NULL, "slow", "Write a long essay about the history of computing", &told);
	until(w, told.n_texts >= 2);
	chat_turn_cancel(told.turn);
	until(w, told.n_done);
	assert_int_equal(told.outcome, AGENT_CANCELLED);
	assert_true(strlen(told.content) > 0);
	assert_int_equal(count(w, NULL).n_messages, 2);
}

TEST(cancelled_before_it_began_leaves_nothing)
{
	struct world *w = *state;
	struct told first;
	struct told second;
	struct agent_turn *t = ask_puppet(w, NULL, "one", &first);

	ask(w, NULL, "puppet", "two", &second);
	chat_turn_cancel(second.turn);
	/* Never inside the call. */
	assert_int_equal(second.n_done, 0);
	until(w, second.n_done);
	assert_int_equal(first.n_done, 0);
	assert_int_equal(second.outcome, AGENT_CANCELLED);
	assert_string_equal(second.content, "");
	puppet_finish(t);
	until(w, first.n_done);
	assert_int_equal(count(w, NULL).n_messages, 1);
}

TEST(cancelled_while_it_begins)
{
	struct world *w = *state;
	struct told told;

	count(w, NULL); /* at hand: what follows goes to the writer at once */
	ask(w, NULL, "puppet", "quick", &told);
	chat_turn_cancel(told.turn);
	until(w, told.n_done);
	assert_int_equal(told.outcome, AGENT_CANCELLED);
	assert_int_equal(w->puppet->n_started, 0);
	assert_int_equal(count(w, NULL).n_messages, 1);
}

TEST(failed_agent_is_told_with_its_words)
{
	struct world *w = *state;
	struct message *rows;
	struct told told;
	struct agent_turn *t = ask_puppet(w, NULL, "go on", &told);

	puppet_say(t, "half");
	puppet_end(t, (struct agent_end) {.outcome = AGENT_FAILED,
					  .usage = AGENT_NO_USAGE,
					  .type = "ProviderError",
					  .text = "it broke"});
	until(w, told.n_done);
	assert_int_equal(told.result, REFUSE_INTERNAL);
	assert_string_equal(told.error.text, "ProviderError: it broke");
	assert_string_equal(told.content, "half");
	assert_int_equal(messages(w, NULL, &rows), 2);
	assert_int_equal(rows[1].turn_state, TURN_FAILED);
	ask_and_wait(w, NULL, "puppet", "refuse me", &told);
	assert_int_equal(told.result, REFUSE_INTERNAL);
	assert_non_null(strstr(told.error.text, "not today"));
	ask_and_wait(w, NULL, NULL, "hello", &told);
	assert_int_equal(told.result, 0);
}

TEST(survives_a_crash)
{
	struct world *w = *state;
	struct message *rows = NULL;
	struct told told;
	struct told after;
	struct agent_turn *t;
	unsigned n;

	ask_and_wait(w, NULL, NULL, "My name is Alice", &told);
	t = ask_puppet(w, NULL, "an essay", &told);
	puppet_say(t, "Once upon");
	until(w, (n = messages(w, NULL, &rows)) == 4);
	assert_int_equal(rows[3].turn_state, TURN_RUNNING);
	world_reopen(w);
	assert_int_equal(told.n_done, 0);
	assert_int_equal(messages(w, NULL, &rows), 4);
	assert_int_equal(rows[3].turn_state, TURN_INTERRUPTED);
	assert_true(text_is(rows[3].text, "Once upon"));
	assert_int_equal(rows[1].turn_state, TURN_DONE);
	assert_int_equal(count(w, NULL).n_messages, 4);
	assert_false(count(w, NULL).running);
	ask_and_wait(w, NULL, NULL, "What is my name?", &after);
	assert_non_null(strstr(after.content, "Alice"));
}

static void change_store(struct world *w, const struct query *sql)
{
	struct store *store = w->f->engine->store;
	struct statement *q;

	assert_int_equal(store_begin(store), 0);
	q = query_open(store_writer(store), sql);
	assert_int_equal(query_run(q), 0);
	query_done(q);
	assert_int_equal(store_commit(store), 0);
}

/* As a store that was moved from a server has it: the lost host's row says that it is alive. */
TEST(conversation_of_a_lost_host_continues_without_other_hosts)
{
	QUERY host = {
		"INSERT INTO host (name, epoch, state, boot, labels, version, since_ms, seen_ms,"
		" lease_ms, running, parallel) VALUES ('old', 7, 0, '', '', '', 0, 0, 0, 0, 0)"};
	QUERY taken = {"UPDATE conversation SET epoch = 7, host = 'old'"};
	struct world *w = *state;
	struct told told;

	ask_and_wait(w, "work", NULL, "My name is Alice", &told);
	change_store(w, &host);
	change_store(w, &taken);
	world_reopen(w);
	ask_and_wait(w, "work", NULL, "What is my name?", &told);
	assert_int_equal(told.result, 0);
	assert_non_null(strstr(told.content, "Alice"));
}

TEST(text_goes_to_the_store_while_it_comes)
{
	struct world *w = *state;
	struct message *rows = NULL;
	struct told told;
	struct agent_turn *t = ask_puppet(w, NULL, "an essay", &told);

	puppet_say(t, "one ");
	until(w, messages(w, NULL, &rows) == 2 && text_is(rows[1].text, "one "));
	puppet_say(t, "two ");
	puppet_say(t, "three");
	until(w, messages(w, NULL, &rows) == 2 && text_is(rows[1].text, "one two three"));
	puppet_say(t, ".");
	puppet_finish(t);
	until(w, told.n_done);
	assert_int_equal(messages(w, NULL, &rows), 2);
	assert_true(text_is(rows[1].text, "one two three."));
	assert_int_equal(rows[1].turn_state, TURN_DONE);
}

/* The puppet has room for 60 tokens; the system prompt is 6 of them. */
TEST(oldest_turns_leave_what_is_sent)
{
	static const char long_text[] = "0123456789012345678901234567890123456789"; /* 10 tokens */
	struct world *w = *state;
	struct chat_new in = {.id = TEXT("default"), .agent = TEXT("puppet")};
	struct message *rows;
	struct chat_counts counts;
	struct text id;

	begin(w->f);
	assert_int_equal(chat_create(w->f->engine->chat, &w->f->arena, &in, &id, &w->f->error), 0);
	end(w->f);
	puppet_answers(w, "first", long_text);
	puppet_answers(w, long_text, long_text);
	assert_string_equal(w->puppet->first_text, "first");
	puppet_answers(w, long_text, long_text);
	assert_string_equal(w->puppet->first_text, long_text);
	assert_string_equal(w->puppet->system, "Be good.");
	counts = count(w, NULL);
	assert_int_equal(counts.n_messages, 6);
	assert_int_equal(counts.budget, 100);
	assert_int_equal(counts.available, 60);
	assert_int_equal(counts.system, 6);
	assert_int_equal(counts.total, counts.system + counts.tools + counts.messages);
	assert_true(counts.total <= counts.available);
	assert_int_equal(messages(w, NULL, &rows), 6);
	/* The same after it was loaded again. */
	world_reopen(w);
	assert_int_equal(count(w, NULL).total, counts.total);
	assert_int_equal(count(w, NULL).n_messages, 6);
}

TEST(provider_counts_win)
{
	struct world *w = *state;
	struct chat_counts counts;
	struct told told;
	struct agent_turn *t = ask_puppet(w, NULL, "how many?", &told);

	puppet_say(t, "many");
	puppet_end(t, (struct agent_end) {.outcome = AGENT_DONE,
					  .usage = {.input = 31,
						    .output = 12,
						    .cache_read = 5,
						    .cache_written = -1}});
	until(w, told.n_done);
	assert_int_equal(told.input, 31);
	counts = count(w, NULL);
	assert_int_equal(counts.total, 31 + 12);
	world_reopen(w);
	assert_int_equal(count(w, NULL).total, 31 + 12);
}

TEST(tools_and_their_results)
{
	struct world *w = *state;
	const struct agent_tool tool = {.name = TEXT("clock"), .schema = TEXT("{}")};
	const struct tool_call call = {
		.id = TEXT("c1"), .name = TEXT("clock"), .arguments = TEXT("{\"zone\":\"UTC\"}")};
	const struct chat_result result = {.call_id = TEXT("c1"), .text = TEXT("noon")};
	struct chat_ask in = {.content = TEXT("what time is it?"),
			      .agent = TEXT("puppet"),
			      .tools = &tool,
			      .n_tools = 1};
	struct message *rows;
	struct agent_turn *t;
	struct told told;

	assert_int_equal(ask_with(w, &in, &told), 0);
	until(w, w->puppet->n_started == 1);
	assert_int_equal(w->puppet->n_tools, 1);
	t = w->puppet->turns[0];
	t->sink.on_call(t->sink.arg, &call);
	puppet_end(t, (struct agent_end) {.outcome = AGENT_CALLS, .usage = AGENT_NO_USAGE});
	until(w, told.n_done);
	assert_int_equal(told.outcome, AGENT_CALLS);
	assert_string_equal(told.call_name, "clock");
	assert_true(count(w, NULL).tools > 0);
	in.content = (struct text) {0};
	in.results = &result;
	in.n_results = 1;
	assert_int_equal(ask_with(w, &in, &told), 0);
	until(w, w->puppet->n_started == 2);
	assert_int_equal(w->puppet->n_messages, 3);
	assert_int_equal(w->puppet->last_role, MESSAGE_TOOL);
	puppet_say(w->puppet->turns[0], "It is noon.");
	puppet_finish(w->puppet->turns[0]);
	until(w, told.n_done);
	assert_int_equal(messages(w, NULL, &rows), 4);
	assert_int_equal(rows[1].n_calls, 1);
	assert_true(text_is(rows[1].calls[0].arguments, "{\"zone\":\"UTC\"}"));
	assert_int_equal(rows[2].role, MESSAGE_TOOL);
	assert_true(text_is(rows[2].call_id, "c1"));
}

/* The puppet is told of each call and what came of it. */
TEST(calls_and_results_stay_in_pairs)
{
	struct world *w = *state;
	const struct tool_call call = {
		.id = TEXT("c1"), .name = TEXT("clock"), .arguments = TEXT("{}")};
	const struct chat_result stray = {.call_id = TEXT("c9"), .text = TEXT("half past")};
	const struct chat_ask in = {.agent = TEXT("puppet"), .results = &stray, .n_results = 1};
	struct told told;
	struct agent_turn *t = ask_puppet(w, NULL, "what time is it?", &told);

	t->sink.on_call(t->sink.arg, &call);
	puppet_end(t, (struct agent_end) {.outcome = AGENT_CALLS, .usage = AGENT_NO_USAGE});
	until(w, told.n_done);
	/* Nobody brings a result: question, call, "no result", question. */
	t = ask_puppet(w, NULL, "never mind", &told);
	assert_int_equal(w->puppet->n_messages, 4);
	puppet_say(t, "ok");
	puppet_finish(t);
	until(w, told.n_done);
	/* A result of nothing is something said. */
	assert_int_equal(ask_with(w, &in, &told), 0);
	until(w, w->puppet->n_started == 3);
	assert_int_equal(w->puppet->n_messages, 6);
	assert_int_equal(w->puppet->last_role, MESSAGE_USER);
	assert_string_equal(w->puppet->last_text, "half past");
	chat_turn_cancel(told.turn);
	until(w, told.n_done);
}

/* 400 characters, where the puppet has room for 60 tokens. */
#define TEN(x) x x x x x x x x x x
#define LONG   TEN(TEN("LONG"))

static const char cut_short[] = "\n[shortened: the first ";

TEST(a_question_goes_with_the_results_of_its_calls)
{
	struct world *w = *state;
	const struct tool_call call = {
		.id = TEXT("c1"), .name = TEXT("clock"), .arguments = TEXT("{}")};
	const struct tool_call second = {
		.id = TEXT("c2"), .name = TEXT("clock"), .arguments = TEXT("{}")};
	const struct message history[] = {
		{.role = MESSAGE_USER, .text = TEXT("before")},
		{.role = MESSAGE_ASSISTANT, .text = TEXT("and after")},
		{.role = MESSAGE_USER, .text = TEXT("use the file")},
		{.role = MESSAGE_ASSISTANT, .text = TEXT("I do"), .calls = &call, .n_calls = 1},
		{.role = MESSAGE_TOOL, .text = TEXT(LONG), .call_id = TEXT("c1")},
		{.role = MESSAGE_ASSISTANT, .text = TEXT("more"), .calls = &second, .n_calls = 1},
	};
	const struct chat_result result = {.call_id = TEXT("c2"), .text = TEXT(LONG)};
	struct chat_ask in = {.agent = TEXT("puppet"),
			      .own_history = true,
			      .history = history,
			      .n_history = 6,
			      .results = &result,
			      .n_results = 1};
	struct told told;

	assert_int_equal(ask_with(w, &in, &told), 0);
	until(w, w->puppet->n_started == 1);
	assert_string_equal(
		w->puppet->seen,
		"user use the file|assistant I do|tool " TEN(
			"LONGLONGLONGLONGLONG") "\n[shortened: the first 200 of 400 "
						"bytes]|assistant more|tool " TEN("LONGLONGLONGLONG"
										  "LONG") "\n["
											  "shortene"
											  "d: the "
											  "first "
											  "200 of "
											  "400 "
											  "bytes]"
											  "|");
	chat_turn_cancel(told.turn);
	until(w, told.n_done);
}

TEST(who_adds_nothing_sends_what_was_said)
{
	struct world *w = *state;
	const struct message history[] = {
		{.role = MESSAGE_USER, .text = TEXT("one")},
		{.role = MESSAGE_ASSISTANT, .text = TEXT("two")},
	};
	struct chat_ask in = {.agent = TEXT("puppet"),
			      .content = TEXT(""),
			      .own_history = true,
			      .history = history};
	struct told told;

	for (unsigned n = 0; n < 2; n++) {
		in.n_history = 2 * n;
		assert_int_equal(ask_with(w, &in, &told), 0);
		until(w, w->puppet->n_started == n + 1);
		assert_string_equal(w->puppet->seen, n == 0 ? "user |" : "user one|assistant two|");
		chat_turn_cancel(told.turn);
		until(w, told.n_done);
	}
	/* Nor is the responder at a loss. */
	in.agent = TEXT("recall");
	assert_int_equal(ask_with(w, &in, &told), 0);
	until(w, told.n_done);
	assert_int_equal(told.result, 0);
}

/* A round of the puppet's tool, in the conversation that there is. */
static void puppet_calls(struct world *w, struct agent_turn *t, struct told *told)
{
	const struct tool_call call = {
		.id = TEXT("c1"), .name = TEXT("clock"), .arguments = TEXT("{}")};

	t->sink.on_call(t->sink.arg, &call);
	puppet_end(t, (struct agent_end) {.outcome = AGENT_CALLS, .usage = AGENT_NO_USAGE});
	until(w, told->n_done);
}

TEST(what_is_kept_of_a_question_goes_with_its_results)
{
	struct world *w = *state;
	const struct chat_result result = {.call_id = TEXT("c1"), .text = TEXT(LONG)};
	const struct chat_ask in = {.agent = TEXT("puppet"), .results = &result, .n_results = 1};
	struct told told;

	puppet_answers(w, "before", "and after");
	puppet_calls(w, ask_puppet(w, NULL, "use the file", &told), &told);
	for (unsigned n = 3; n < 5; n++) {
		assert_int_equal(ask_with(w, &in, &told), 0);
		until(w, w->puppet->n_started == n);
		assert_memory_equal(w->puppet->seen, "user use the file|assistant |tool LONG", 38);
		assert_non_null(strstr(w->puppet->seen, cut_short));
		assert_int_equal(w->puppet->last_role, MESSAGE_TOOL);
		puppet_calls(w, w->puppet->turns[0], &told);
		/* What the store has says the same. */
		world_reopen(w);
		w->puppet->n_started = n;
	}
	ask_puppet(w, NULL, "next", &told);
	assert_string_equal(w->puppet->seen, "user next|");
	chat_turn_cancel(told.turn);
	until(w, told.n_done);
}

static void on_destroyed(void *arg, int result, const struct error *error)
{
	*(int *)arg = result;
}

static int destroy(struct world *w, const char *id)
{
	int result = -1;
	int r = chat_destroy(w->f->engine->chat, text_of(id), on_destroyed, &result, &w->f->error);

	until(w, r != 0 || result != -1);
	return r ?: result;
}

TEST(one_that_is_destroyed_begins_anew)
{
	struct world *w = *state;
	const struct chat_ask strict = {
		.conversation = TEXT("work"), .must_exist = true, .content = TEXT("hi")};
	struct told told;
	struct told waiting;
	int result = -1;

	assert_int_equal(destroy(w, "work"), REFUSE_NOT_FOUND);
	assert_int_equal(ask_with(w, &strict, &told), 0);
	until(w, told.n_done);
	assert_int_equal(told.result, REFUSE_NOT_FOUND);
	ask_puppet(w, "work", "hello", &told);
	ask(w, "work", NULL, "waits", &waiting);
	puppet_say(w->puppet->turns[0], "par");
	assert_int_equal(
		chat_destroy(w->f->engine->chat, TEXT("work"), on_destroyed, &result, &w->f->error),
		0);
	assert_int_equal(chat_send(w->f->engine->chat, &strict, &(struct chat_sink) {0}, &told.turn,
				   &told.error),
			 REFUSE_CONFLICT);
	until(w, result != -1);
	assert_int_equal(result, 0);
	assert_int_equal(told.outcome, AGENT_CANCELLED);
	assert_string_equal(told.content, "par");
	assert_int_equal(waiting.outcome, AGENT_CANCELLED);
	assert_int_equal(count_existing(w, "work"), REFUSE_NOT_FOUND);
	ask_and_wait(w, "work", NULL, "hello again", &told);
	assert_int_equal(count(w, "work").n_messages, 2);
}

struct compacted {
	int n;
	int result;
	struct chat_compacted done;
};

static void on_compacted(void *arg, int result, const struct chat_compacted *done,
			 const struct error *error)
{
	struct compacted *c = arg;

	c->n++;
	c->result = result;
	if (done)
		c->done = *done;
}

struct insister {
	struct world *world;
	struct counted counted[2];
	int n;
};

/* As the next requests of a connection do, when one is answered. */
static void on_destroyed_ask_again(void *arg, int result, const struct error *error)
{
	struct insister *i = arg;

	i->n++;
	for (int k = 0; k < 2; k++)
		note_count(&i->counted[k], chat_count(i->world->f->engine->chat, TEXT("work"), true,
						      &i->counted[k].counts, on_counts,
						      &i->counted[k], &i->world->f->error));
}

TEST(whoever_is_told_may_ask_at_once)
{
	struct world *w = *state;
	struct insister again = {.world = w};
	struct told told;

	ask_and_wait(w, "work", NULL, "hello", &told);
	assert_int_equal(chat_destroy(w->f->engine->chat, TEXT("work"), on_destroyed_ask_again,
				      &again, &w->f->error),
			 0);
	until(w, again.n && again.counted[0].n && again.counted[1].n);
	assert_int_equal(again.counted[0].result, REFUSE_NOT_FOUND);
	assert_int_equal(again.counted[1].result, REFUSE_NOT_FOUND);
}

TEST(a_store_that_cannot_be_read_is_told)
{
	struct world *w = *state;
	struct counted counted = {0};
	struct compacted compacted = {0};
	struct told first;
	struct told second;

	w->fail_reads = -EIO;
	ask(w, "work", NULL, "one", &first);
	/* Never inside the call. */
	assert_int_equal(first.n_done, 0);
	until(w, first.n_done);
	assert_int_equal(first.result, -EIO);
	assert_int_equal(chat_count(w->f->engine->chat, TEXT("work"), false, &counted.counts,
				    on_counts, &counted, &w->f->error),
			 -EIO);
	assert_int_equal(chat_compact(w->f->engine->chat, TEXT("work"), false, on_compacted,
				      &compacted, &w->f->error),
			 0);
	assert_int_equal(compacted.n, 0);
	until(w, compacted.n);
	assert_int_equal(compacted.result, -EIO);
	assert_int_equal(destroy(w, "work"), -EIO);
	w->fail_reads = 0;
	ask(w, "work", NULL, "one", &first);
	ask(w, "work", NULL, "two", &second);
	until(w, first.n_done && second.n_done);
	assert_int_equal(second.result, 0);
}

TEST(one_made_elsewhere_is_seen)
{
	struct world *w = *state;
	static char system[CHAT_TEXT_MAX + 1];
	struct chat_new in = {.id = TEXT("new"), .system = TEXT("Speak like a sailor.")};
	struct conversation_page page = {0};
	struct text id;

	assert_int_equal(count_existing(w, "new"), REFUSE_NOT_FOUND);
	begin(w->f);
	assert_int_equal(chat_create(w->f->engine->chat, &w->f->arena, &in, &id, &w->f->error), 0);
	assert_int_equal(chat_create(w->f->engine->chat, &w->f->arena, &in, &id, &w->f->error),
			 REFUSE_PARAMS);
	memset(system, 's', sizeof(system));
	in.id = TEXT("huge");
	in.system = (struct text) {system, CHAT_TEXT_MAX + 1};
	assert_int_equal(chat_create(w->f->engine->chat, &w->f->arena, &in, &id, &w->f->error),
			 REFUSE_TOO_LARGE);
	in.system = TEXT("a\0b");
	assert_int_equal(chat_create(w->f->engine->chat, &w->f->arena, &in, &id, &w->f->error),
			 REFUSE_PARAMS);
	in.system = (struct text) {system, CHAT_TEXT_MAX};
	assert_int_equal(chat_create(w->f->engine->chat, &w->f->arena, &in, &id, &w->f->error), 0);
	end(w->f);
	assert_int_equal(count_existing(w, "new"), 0);
	assert_int_equal(chat_list(w->f->engine->chat, 1, &w->f->arena, &page), 0);
	assert_int_equal(page.n, 3);
	assert_int_equal(page.total, 3);
	assert_true(text_is(page.rows[1].id, "new"));
	assert_non_null(page.rows[1].system.data);
	assert_true(text_is(page.rows[1].agent, "recall"));
	assert_true(text_is(page.rows[2].id, CHAT_DEFAULT));
}

TEST(compacting_keeps_what_the_user_said)
{
	struct world *w = *state;
	struct compacted c = {0};
	struct message *rows;
	struct told told;

	ask_and_wait(w, NULL, NULL, "My name is Alice", &told);
	assert_int_equal(chat_compact(w->f->engine->chat, (struct text) {0}, false, on_compacted,
				      &c, &w->f->error),
			 0);
	until(w, c.n);
	assert_false(c.done.compacted);
	for (int i = 0; i < 4; i++)
		ask_and_wait(w, NULL, NULL, "Tell me about the weather on the moon", &told);
	assert_int_equal(chat_compact(w->f->engine->chat, (struct text) {0}, false, on_compacted,
				      &c, &w->f->error),
			 0);
	until(w, c.n == 2);
	assert_int_equal(c.result, 0);
	assert_true(c.done.compacted);
	assert_true(c.done.tokens_after < c.done.tokens_before);
	assert_int_equal(count(w, NULL).total, c.done.tokens_after);
	assert_int_equal(count(w, NULL).n_messages, 10);
	assert_int_equal(messages(w, NULL, &rows), 10);
	ask_and_wait(w, NULL, NULL, "What is my name?", &told);
	assert_non_null(strstr(told.content, "Alice"));
	world_reopen(w);
	ask_and_wait(w, NULL, NULL, "So what is my name?", &told);
	assert_non_null(strstr(told.content, "Alice"));
}

TEST(an_agent_writes_the_summary)
{
	struct world *w = *state;
	const struct chat_new in = {.id = TEXT("default"), .agent = TEXT("puppet")};
	struct compacted c = {0};
	struct told told;
	struct text id;

	begin(w->f);
	assert_int_equal(chat_create(w->f->engine->chat, &w->f->arena, &in, &id, &w->f->error), 0);
	end(w->f);
	for (int i = 0; i < 4; i++)
		puppet_answers(w, "some words of mine", "k");
	assert_int_equal(chat_compact(w->f->engine->chat, (struct text) {0}, false, on_compacted,
				      &c, &w->f->error),
			 0);
	until(w, w->puppet->n_started == 5);
	assert_int_equal(w->puppet->n_messages, 1);
	assert_non_null(strstr(w->puppet->first_text, "Summarize"));
	puppet_say(w->puppet->turns[0], "words");
	puppet_finish(w->puppet->turns[0]);
	until(w, c.n);
	assert_true(c.done.compacted);
	ask_puppet(w, NULL, "next", &told);
	assert_string_equal(w->puppet->first_text, "Summary of the conversation so far:\nwords");
	assert_int_equal(w->puppet->n_messages, 6);
	chat_turn_cancel(told.turn);
	until(w, told.n_done);
}

TEST(nobody_needs_to_listen)
{
	struct world *w = *state;
	struct told told;
	struct agent_turn *t = ask_puppet(w, NULL, "hello", &told);

	chat_turn_forget(told.turn);
	puppet_say(t, "anybody?");
	puppet_finish(t);
	until(w, count(w, NULL).n_messages == 2);
	assert_int_equal(told.n_done, 0);
}

TEST(stopping_ends_what_runs)
{
	struct world *w = *state;
	struct told running;
	struct told waiting;
	struct told late;
	struct agent_turn *t = ask_puppet(w, NULL, "one", &running);
	const struct chat_ask in = {.content = TEXT("late")};

	ask(w, NULL, NULL, "two", &waiting);
	puppet_say(t, "some");
	chat_stop(w->f->engine->chat);
	until(w, running.n_done && waiting.n_done);
	assert_int_equal(running.outcome, AGENT_CANCELLED);
	assert_string_equal(running.content, "some");
	assert_int_equal(waiting.outcome, AGENT_CANCELLED);
	assert_int_equal(ask_with(w, &in, &late), REFUSE_STOPPING);
}

TEST(bad_asks_are_refused)
{
	static const struct tool_call calls[AGENT_CALLS_MAX + 1];
	const struct message crowded = {
		.role = MESSAGE_ASSISTANT, .calls = calls, .n_calls = AGENT_CALLS_MAX + 1};
	struct world *w = *state;
	struct chat_ask in = {.content = TEXT("hi"), .agent = TEXT("nobody")};
	struct told told;

	assert_int_equal(ask_with(w, &in, &told), REFUSE_PARAMS);
	assert_string_equal(told.error.text, "agent not found: 'nobody'");
	in = (struct chat_ask) {.content = TEXT("hi"), .conversation = TEXT("../etc")};
	assert_int_equal(ask_with(w, &in, &told), REFUSE_PARAMS);
	in.conversation = TEXT("..");
	assert_int_equal(ask_with(w, &in, &told), REFUSE_PARAMS);
	in.conversation = TEXT("");
	assert_int_equal(ask_with(w, &in, &told), REFUSE_PARAMS);
	in = (struct chat_ask) {0};
	assert_int_equal(ask_with(w, &in, &told), REFUSE_PARAMS);
	assert_string_equal(told.error.field, "content");
	in = (struct chat_ask) {.content = TEXT("and?"), .own_history = true};
	in.history = &crowded;
	in.n_history = 1;
	assert_int_equal(ask_with(w, &in, &told), REFUSE_PARAMS);
	assert_string_equal(told.error.field, "history");
}

/* The field that an ask is refused for; "" if it is taken, or refused for another reason. */
static const char *refused_field(struct world *w, const struct chat_ask *ask)
{
	static struct told told[8];
	static unsigned n;
	struct told *t = &told[n++ % 8];

	return ask_with(w, ask, t) == REFUSE_PARAMS ? t->error.field : "";
}

TEST(ask_limits_are_exact_and_a_refusal_names_the_field)
{
	static struct tool_call calls[AGENT_CALLS_MAX + 1];
	static struct chat_result results[AGENT_CALLS_MAX + 1];
	static struct agent_tool tools[AGENT_TOOLS_MAX + 1];
	static char ids[AGENT_CALLS_MAX + 1][4];
	static char id[CHAT_ID_MAX + 1];
	struct world *w = *state;

	memset(id, 'x', sizeof(id));
	for (int i = 0; i <= AGENT_CALLS_MAX; i++) {
		snprintf(ids[i], sizeof(ids[i]), "%d", i);
		results[i].call_id = text_of(ids[i]);
		results[i].text = TEXT("r");
	}
	for (unsigned more = 0; more < 2; more++) {
		const struct message crowded = {.role = MESSAGE_ASSISTANT,
						.text = TEXT("a"),
						.calls = calls,
						.n_calls = AGENT_CALLS_MAX + more};
		const struct chat_ask rows[] = {
			{.request_id = {id, CHAT_ID_MAX + more}, .content = TEXT("hi")},
			{.results = results, .n_results = AGENT_CALLS_MAX + more},
			{.content = TEXT("hi"),
			 .own_history = true,
			 .history = &crowded,
			 .n_history = 1},
			{.content = TEXT("hi"), .tools = tools, .n_tools = AGENT_TOOLS_MAX + more},
		};
		static const char *const fields[] = {"request_id", "tool_results", "history",
						     "tools"};

		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct chat_ask in = rows[i];

			in.agent = TEXT("puppet");
			assert_string_equal(refused_field(w, &in), more ? fields[i] : "");
		}
	}
	results[1].call_id = results[0].call_id;
	assert_string_equal(
		refused_field(w, &(struct chat_ask) {.results = results, .n_results = 2}),
		"tool_results");
}

/* ---- what a conversation may do ---- */

/* What a wish is resolved to, and what is wrong with it; "": nothing. */
static const char *resolve(struct world *w, struct chat_wish wish, struct bounds *ret)
{
	static struct error error;

	error = (struct error) {0};
	wish.agent = TEXT("puppet");
	if (chat_resolve(w->f->engine->chat, N_READERS - 1, &w->f->arena, &wish, ret, &error) == 0)
		return "";
	assert_true(error.field[0]);
	return error.text;
}

static void make_bounded(struct world *w, const char *name, struct chat_wish wish)
{
	struct chat_new in = {.id = text_of(name), .agent = TEXT("puppet")};
	struct bounds bounds;
	struct text id;

	assert_string_equal(resolve(w, wish, &bounds), "");
	in.bounds = &bounds;
	begin(w->f);
	assert_int_equal(chat_create(w->f->engine->chat, &w->f->arena, &in, &id, &w->f->error), 0);
	end(w->f);
}

static struct text below(struct world *w, const char *name)
{
	char path[PATH_MAX];
	struct text out;

	snprintf(path, sizeof(path), "%s%s", w->f->dir, name);
	assert_int_equal(arena_copy_text(&w->f->arena, text_of(path), &out), 0);
	return out;
}

#define WISH(...) ((struct chat_wish) {__VA_ARGS__})
#define PATHS(...)                                                                                 \
	.has_write_paths = true, .write_paths = (struct text[]) {__VA_ARGS__}, .n_write_paths

TEST(wish_is_refused_for_its_first_fault)
{
	struct world *w = *state;
	const char *const folders[] = {"/a", "/a/b", "/ab", "/x\ny"};
	char long_path[PATH_MAX + 2];
	struct text list[CHAT_PATHS_MAX + 1];
	struct bounds b;
	struct text file;
	size_t n;

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(mkdir(below(w, folders[i]).data, 0700), 0);
	file = below(w, "/koine.db");
	assert_int_equal(symlink("round", below(w, "/round").data), 0);
	assert_int_equal(symlink("x\ny", below(w, "/link").data), 0);
	n = (size_t)snprintf(long_path, sizeof(long_path), "%s/a", w->f->dir);
	while (n < sizeof(long_path) - 1)
		long_path[n++] = '/';
	for (unsigned i = 0; i <= CHAT_PATHS_MAX; i++)
		list[i] = below(w, "/a");
	make_bounded(w, "trusted", WISH(.cwd = below(w, "/a")));
	make_bounded(w, "box", WISH(.cwd = below(w, "/a"), .preset = TEXT("sandboxed")));
	make_bounded(w, "none", WISH(PATHS({0}) = 0));
	make_bounded(w, "inner", WISH(PATHS(below(w, "/a/b")) = 1));
	make_bounded(w, "root", WISH(PATHS(TEXT("/")) = 1));
	const struct {
		const char *fault; /* the beginning; "": none */
		struct chat_wish wish;
	} rows[] = {
		{"Parent agent not found: nobody", {.parent = TEXT("nobody")}},
		{"Parent agent not found: ../x", {.parent = TEXT("../x")}},
		{"", {.parent = TEXT(CHAT_DEFAULT)}},
		{"Invalid preset: odd.", {.preset = TEXT("odd")}},
		{"", {.preset = TEXT("trusted"), .parent = TEXT("trusted")}},
		{"Requested preset 'trusted' exceeds",
		 {.preset = TEXT("trusted"), .parent = TEXT("box")}},
		{"cwd must be an absolute path: a", {.cwd = TEXT("a")}},
		{"cwd must be an absolute path: ", {.cwd = TEXT("")}},
		{"cwd does not exist: ", {.cwd = below(w, "/none")}},
		{"cwd does not exist: ", {.cwd = below(w, "/koine.db/x")}},
		{"cwd is not a directory: ", {.cwd = file}},
		{"cwd: /", {.cwd = below(w, "/round")}},
		{"cwd has a character", {.cwd = TEXT("/a\0b")}},
		{"cwd has a character", {.cwd = below(w, "/x\ny")}},
		{"cwd has a character", {.cwd = below(w, "/link")}},
		{"", {.cwd = {long_path, PATH_MAX - 1}}},
		{"cwd is longer than 4095 bytes", {.cwd = {long_path, PATH_MAX}}},
		{"", {.parent = TEXT("box"), .cwd = TEXT("b")}},
		{"", {.parent = TEXT("box"), .cwd = TEXT("")}},
		{"", {.parent = TEXT("box"), .cwd = below(w, "/a")}},
		{"cwd '", {.parent = TEXT("box"), .cwd = below(w, "/ab")}},
		{"cwd '", {.parent = TEXT("box"), .cwd = TEXT("..")}},
		{"", {.parent = TEXT("trusted"), .cwd = TEXT("..")}},
		{"allowed_write_paths[0] must be", {PATHS(TEXT("a")) = 1}},
		{"allowed_write_paths[1] must be", {PATHS(TEXT("/"), TEXT("")) = 2}},
		{"allowed_write_paths[0] does not", {PATHS(below(w, "/none")) = 1}},
		{"", {.cwd = below(w, "/a"), PATHS(TEXT("b"), TEXT(""), below(w, "/ab")) = 3}},
		{"allowed_write_path '",
		 {.cwd = below(w, "/a"), .preset = TEXT("sandboxed"), PATHS(below(w, "/ab")) = 1}},
		{"allowed_write_path '", {.preset = TEXT("sandboxed"), PATHS(below(w, "/ab")) = 1}},
		{"",
		 {.has_write_paths = true, .write_paths = list, .n_write_paths = CHAT_PATHS_MAX}},
		{"more than 32 paths",
		 {.has_write_paths = true,
		  .write_paths = list,
		  .n_write_paths = CHAT_PATHS_MAX + 1}},
		{"allowed_write_path '", {.parent = TEXT("none"), PATHS(below(w, "/a")) = 1}},
		{"", {.parent = TEXT("none"), PATHS({0}) = 0}},
		{"", {.parent = TEXT("inner"), PATHS(below(w, "/a/b")) = 1}},
		{"allowed_write_path '", {.parent = TEXT("inner"), PATHS(below(w, "/a")) = 1}},
		{"", {.parent = TEXT("root"), PATHS(below(w, "/ab")) = 1}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *fault = resolve(w, rows[i].wish, &b);

		if (strncmp(fault, rows[i].fault, strlen(rows[i].fault)) != 0 ||
		    !rows[i].fault[0] != !fault[0])
			fail_msg("%zu: %s: %s", i, rows[i].fault, fault);
	}
}

TEST(child_writes_where_its_parent_may_and_its_folder_is)
{
	struct world *w = *state;
	const struct text a = below(w, "/a"), inner = below(w, "/a/b"), other = below(w, "/ab");
	struct bounds b;
	char both[600];

	assert_int_equal(mkdir(a.data, 0700), 0);
	assert_int_equal(mkdir(inner.data, 0700), 0);
	assert_int_equal(mkdir(other.data, 0700), 0);
	make_bounded(w, "two", WISH(PATHS(inner, other) = 2));
	make_bounded(w, "wide", WISH(PATHS(text_of(w->f->dir)) = 1));
	assert_string_equal(resolve(w, WISH(.cwd = a), &b), "");
	assert_null(b.write_paths.data);
	assert_string_equal(resolve(w, WISH(.cwd = a, .preset = TEXT("sandboxed")), &b), "");
	assert_true(text_equal(b.write_paths, a));
	assert_string_equal(resolve(w, WISH(.preset = TEXT("sandboxed")), &b), "");
	assert_true(b.write_paths.data && b.write_paths.len == 0);
	assert_string_equal(resolve(w, WISH(.parent = TEXT("two")), &b), "");
	snprintf(both, sizeof(both), "%s\n%s", inner.data, other.data);
	assert_true(text_is(b.write_paths, both));
	assert_string_equal(
		resolve(w, WISH(.parent = TEXT("two"), .preset = TEXT("sandboxed"), .cwd = a), &b),
		"");
	assert_true(text_equal(b.write_paths, inner));
	assert_string_equal(
		resolve(w, WISH(.parent = TEXT("wide"), .preset = TEXT("sandboxed"), .cwd = a), &b),
		"");
	assert_true(text_equal(b.write_paths, a));
}

TEST(disabled_tools_are_those_of_the_parent_and_the_child)
{
	static char name[66];
	struct world *w = *state;
	struct text tools[CHAT_TOOLS_MAX + 1];
	const struct text bad[] = {TEXT(""),     TEXT("-x"),  TEXT("a b"),
				   TEXT("a\0b"), TEXT("a,b"), {name, 65}};
	const struct text good[] = {TEXT("y"), TEXT("mcp__a-b.c:d/e"), {name, 64}};
	struct bounds b;

	memset(name, 'x', sizeof(name));
	for (unsigned i = 0; i <= CHAT_TOOLS_MAX; i++)
		tools[i] = TEXT("y");
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_non_null(strstr(
			resolve(w, WISH(.disabled_tools = &bad[i], .n_disabled_tools = 1), &b),
			"disable_tools[0] is not the name of a tool"));
	assert_string_equal(
		resolve(w, WISH(.disabled_tools = tools, .n_disabled_tools = CHAT_TOOLS_MAX + 1),
			&b),
		"disable_tools has more than 128 names");
	make_bounded(w, "quiet", WISH(.disabled_tools = tools, .n_disabled_tools = CHAT_TOOLS_MAX));
	assert_string_equal(resolve(w, WISH(.parent = TEXT("quiet")), &b), "");
	assert_true(text_is(b.disabled_tools, "y"));
	assert_string_equal(resolve(w,
				    WISH(.parent = TEXT("quiet"), .disabled_tools = good,
					 .n_disabled_tools = 3),
				    &b),
			    "");
	assert_int_equal(b.disabled_tools.len, 1 + 1 + 14 + 1 + 64);
	assert_string_equal(resolve(w, WISH(.agent = TEXT("puppet")), &b), "");
	assert_null(b.disabled_tools.data);
}

TEST(children_of_children_have_a_limit)
{
	struct world *w = *state;
	struct bounds b;
	char name[8] = "c1", parent[8];

	make_bounded(w, name, WISH(.preset = TEXT("trusted")));
	for (int i = 2; i <= CHAT_CHILD_DEPTH + 1; i++) {
		memcpy(parent, name, sizeof(name));
		snprintf(name, sizeof(name), "c%d", i);
		make_bounded(w, name, WISH(.parent = text_of(parent)));
	}
	assert_string_equal(resolve(w, WISH(.parent = text_of(name)), &b),
			    "Cannot create agent: max nesting depth (5) exceeded");
}

TEST(too_many_that_wait_are_refused)
{
	struct world *w = *state;
	const struct chat_ask in = {.content = TEXT("more"), .agent = TEXT("puppet")};
	static struct told told[CHAT_WAITING_MAX + 2];
	struct agent_turn *t = ask_puppet(w, NULL, "one", &told[0]);
	int r = 0;
	int n = 1;

	while (r == 0 && n < CHAT_WAITING_MAX + 2)
		r = ask_with(w, &in, &told[n++]);
	assert_int_equal(r, REFUSE_LIMIT);
	assert_int_equal(n, CHAT_WAITING_MAX + 2);
	for (int i = 1; i <= CHAT_WAITING_MAX; i++)
		chat_turn_cancel(told[i].turn);
	puppet_finish(t);
	until(w, told[0].n_done);
}

TEST(a_turn_beyond_the_memory_limit_is_refused_with_the_limit)
{
	struct world *w = *state;
	const struct chat_ask in = {.content = TEXT("more"), .agent = TEXT("puppet")};
	struct told told;

	w->f->engine->chat->bytes += CHAT_BYTES_MAX + 1;
	assert_int_equal(ask_with(w, &in, &told), REFUSE_LIMIT);
	w->f->engine->chat->bytes--;
	assert_int_equal(ask_with(w, &in, &told), REFUSE_LIMIT);
	w->f->engine->chat->bytes -= CHAT_BYTES_MAX;
	assert_non_null(strstr(told.error.text, "(limit 268435456 bytes)"));
}

TEST(many_conversations_come_and_go)
{
	struct world *w = *state;
	static struct told told[300];
	char id[16];

	for (int i = 0; i < 300; i++) {
		snprintf(id, sizeof(id), "c%d", i);
		ask(w, id, NULL, "My name is Alice", &told[i]);
	}
	for (int i = 0; i < 300; i++)
		until(w, told[i].n_done);
	assert_int_equal(count(w, "c0").n_messages, 2);
	assert_int_equal(count(w, "c299").n_messages, 2);
}

struct probed {
	int n;
	unsigned n_ok;
};

static void on_agents(void *arg, const struct chat_agent_info *agents, unsigned n)
{
	struct probed *p = arg;

	p->n++;
	assert_int_equal(n, 3);
	for (unsigned i = 0; i < n; i++)
		p->n_ok += agents[i].ok;
	assert_true(agents[0].is_default);
}

TEST(tells_which_agents_answer)
{
	struct world *w = *state;
	struct probed p = {0};

	assert_int_equal(chat_probe(w->f->engine->chat, on_agents, &p), 0);
	until(w, p.n);
	assert_int_equal(p.n_ok, 2);
}

TEST(only_new_agents_count_against_the_limit)
{
	enum { MOST = 1024, OLD = 3 };
	struct world *w = *state;
	struct chat *chat = w->f->engine->chat;
	struct agent *agents[MOST + 1];
	struct puppet *first = w->puppet;
	struct error error;

	for (unsigned i = 0; i < OLD; i++)
		agents[i] = chat_agent_at(chat, i);
	for (unsigned i = OLD; i < MOST; i++)
		agents[i] = new_puppet(w);
	assert_int_equal(chat_set_agents(chat, agents, MOST, "recall", &error), 0);
	assert_int_equal(chat_set_agents(chat, agents, MOST, "recall", &error), 0);
	assert_int_equal(chat_set_agents(chat, agents, OLD, "slow", &error), 0);
	agents[MOST] = new_puppet(w);
	assert_int_equal(chat_set_agents(chat, agents, MOST + 1, "recall", &error), REFUSE_LIMIT);
	assert_string_equal(chat_agent(chat, (struct text) {0})->name, "slow");
	w->puppet = first;
}
