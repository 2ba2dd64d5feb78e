/* The recall agent: what it quotes, how it streams, how it ends. */
#include "check.h"

#include "agent/recall/recall.h"
#include "base/buf.h"
#include "engine/chat/chat.h"

enum { MESSAGES_MAX = 600 };

struct fixture {
	struct loop *loop;
	struct agent *agent;
	struct agent_turn *turn;
	struct message messages[MESSAGES_MAX];
	struct agent_note notes[8];
	struct agent_ask ask;
	struct buf out;
	unsigned n_pieces;
	unsigned n_ends;
	unsigned n_turns; /* of the loop, as another handle sees them */
	struct agent_end end;
	unsigned cancel_at; /* the piece that cancels; 0: none */
	bool free_on_text;
	bool started;
	struct agent_health health;
	char health_text[64];
	unsigned n_healths;
};

static void on_text(void *arg, struct text piece)
{
	struct fixture *f = arg;

	assert_true(f->started);
	assert_int_equal(f->n_ends, 0);
	assert_true(piece.len > 0);
	buf_add(&f->out, piece.data, piece.len);
	f->n_pieces++;
	if (f->n_pieces == f->cancel_at) {
		f->agent->ops->cancel(f->turn);
		f->agent->ops->cancel(f->turn);
		assert_int_equal(f->n_ends, 0);
	}
	if (f->free_on_text) {
		agent_free(f->agent);
		f->agent = NULL;
	}
}

static void on_end(void *arg, const struct agent_end *end)
{
	struct fixture *f = arg;

	assert_true(f->started);
	f->n_ends++;
	f->end = *end;
	f->turn = NULL;
}

static void new_agent(struct fixture *f, unsigned word_delay_ms)
{
	const struct recall_opts opts = {
		.name = "recall",
		.word_delay_ms = word_delay_ms,
		.budget = 8000,
		.reserve = 1000,
		.rank = chat_rank,
	};

	agent_free(f->agent);
	assert_int_equal(recall_new(f->loop, &opts, &f->agent), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(loop_new(&f->loop), 0);
	buf_init(&f->out, 1 << 20);
	f->ask.conversation = TEXT("default");
	f->ask.messages = f->messages;
	f->ask.notes = f->notes;
	new_agent(f, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	agent_free(f->agent);
	loop_free(f->loop);
	buf_done(&f->out);
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

static void say(struct fixture *f, enum message_role role, const char *text)
{
	assert_true(f->ask.n_messages < MESSAGES_MAX);
	f->messages[f->ask.n_messages++] = (struct message) {.role = role, .text = text_of(text)};
}

static void note(struct fixture *f, const char *text)
{
	f->notes[f->ask.n_notes++] = (struct agent_note) {
		.text = text_of(text),
		.source = TEXT("ash"),
		.created_ms = 1772366400000, /* 2026-03-01 */
	};
}

static void start(struct fixture *f)
{
	const struct agent_sink sink = {.on_text = on_text, .on_end = on_end, .arg = f};
	struct error error;

	f->started = false;
	buf_clear(&f->out);
	f->n_pieces = 0;
	f->n_ends = 0;
	assert_int_equal(f->agent->ops->start(f->agent, &f->ask, &sink, &f->turn, &error), 0);
	f->started = true;
}

static const char *answer(struct fixture *f)
{
	start(f);
	loop_run(f->loop);
	assert_int_equal(f->n_ends, 1);
	assert_int_equal(f->end.outcome, AGENT_DONE);
	assert_int_equal(f->end.usage.output, -1);
	buf_add_char(&f->out, '\0');
	assert_int_equal(f->out.err, 0);
	return f->out.data;
}

static const char *ask(struct fixture *f, const char *question)
{
	say(f, MESSAGE_USER, question);
	return answer(f);
}

#define HAS(text, part)   assert_non_null(strstr(text, part))
#define LACKS(text, part) assert_null(strstr(text, part))

/* ---- what it quotes ---- */

TEST(the_name_comes_back)
{
	struct fixture *f = *state;

	say(f, MESSAGE_USER, "My name is Alice");
	say(f, MESSAGE_ASSISTANT, "Noted.");
	assert_string_equal(ask(f, "What is my name?"),
			    "You said (message 1): \"My name is Alice\"");
}

TEST(the_name_comes_back_after_much_else)
{
	struct fixture *f = *state;
	const char *text;

	note(f, "The build server is called kestrel.");
	note(f, "Deployments happen on Fridays.");
	say(f, MESSAGE_USER, "Hello there. My name is Alice. I live in Lisbon, near the river.");
	for (int i = 0; i < 250; i++) {
		say(f, MESSAGE_ASSISTANT, "You said (message 1): \"My name is Mallory.\"");
		say(f, MESSAGE_USER,
		    "The cat is on the roof again, and it is raining in my street.");
	}
	text = ask(f, "What is my name?");
	HAS(text, "You said (message 1): \"My name is Alice.\"");
	LACKS(text, "Mallory");
	LACKS(text, "Lisbon");
	LACKS(text, "kestrel");
}

TEST(questions_asked_before_are_not_quoted)
{
	struct fixture *f = *state;
	const char *text;

	say(f, MESSAGE_USER, "What is my name?");
	say(f, MESSAGE_USER, "what's my name");
	say(f, MESSAGE_USER, "Do you know my name?");
	text = ask(f, "What is my name?");
	HAS(text, "I found nothing about your message in this conversation (4 messages)");
	say(f, MESSAGE_USER, "My name is Alice.");
	text = ask(f, "Tell me my name.");
	assert_string_equal(text, "You said (message 5): \"My name is Alice.\"");
	text = ask(f, "What is my name?");
	assert_string_equal(text, "You said (message 5): \"My name is Alice.\"");
}

TEST(memory_is_quoted_with_its_origin)
{
	struct fixture *f = *state;

	note(f, "Alice prefers oolong. She has a dog.");
	note(f, "Ports below 1024 need root.");
	assert_string_equal(ask(f, "What does Alice prefer?"),
			    "From memory, learnt 2026-03-01 (ash): \"Alice prefers oolong.\"");
}

TEST(tool_results_are_quoted_as_such)
{
	struct fixture *f = *state;

	say(f, MESSAGE_USER, "Look at the weather");
	say(f, MESSAGE_TOOL, "Temperature: 21 degrees in Porto");
	assert_string_equal(ask(f, "Which temperature is it?"),
			    "A tool returned (message 2): \"Temperature: 21 degrees in Porto\"");
}

TEST(what_precedes_a_question_in_its_message_counts)
{
	struct fixture *f = *state;

	assert_string_equal(ask(f, "The code is 1234. It is late. What is the code?"),
			    "You said (message 1): \"The code is 1234.\"");
}

TEST(a_sentence_said_twice_is_quoted_once)
{
	struct fixture *f = *state;

	say(f, MESSAGE_USER, "My name is Alice.");
	say(f, MESSAGE_USER, "my name is Alice");
	assert_string_equal(ask(f, "What is my name?"),
			    "You said (message 2): \"my name is Alice\"");
}

TEST(at_most_three_are_quoted)
{
	struct fixture *f = *state;
	const char *text;
	unsigned n = 0;

	for (int i = 0; i < 3; i++) {
		say(f, MESSAGE_USER, "Apples are red. Apples are green. Apples are yellow.");
		say(f, MESSAGE_USER, "Apples are sweet. Apples are sour.");
	}
	text = ask(f, "What are apples?");
	for (const char *at = text; (at = strstr(at, "You said")); at++)
		n++;
	assert_int_equal(n, 3);
}

TEST(a_statement_is_acknowledged)
{
	struct fixture *f = *state;
	const char *text = ask(f, "My name is Alice");

	assert_memory_equal(text, "Noted.", 6);
	LACKS(text, "Alice");
	text = ask(f, "My name is Bob");
	HAS(text, "Noted.");
	HAS(text, "You said (message 1): \"My name is Alice\"");
	text = ask(f, "Hello!");
	assert_memory_equal(text, "Hello.", 6);
}

TEST(the_first_answer_says_what_it_is)
{
	struct fixture *f = *state;
	const char *text;

	f->ask.first = true;
	text = ask(f, "My name is Alice");
	HAS(text, "koine's offline responder, not a language model");
	HAS(text, "[agent NAME]");
	HAS(text, "kind = openai");
	HAS(text, "url = http://127.0.0.1:11434");
	HAS(text, "koined --agent NAME");
	HAS(text, "koine.conf(5)");
	HAS(text, "\n\nNoted.");
	f->ask.first = false;
	LACKS(ask(f, "What is my name?"), "responder");
}

TEST(finding_nothing_it_says_so_and_what_it_is)
{
	struct fixture *f = *state;
	const char *text = ask(f, "Write a long essay about the history of computing");

	HAS(text, "I found nothing about your message in this conversation (1 message) or in "
		  "stored memories.");
	HAS(text, "not a language model");
	HAS(text, "koine.conf(5)");
	assert_true(f->n_pieces > 50);
}

TEST(the_same_conversation_gets_the_same_answer)
{
	struct fixture *f = *state;
	char *before;

	note(f, "Tea is hot.");
	say(f, MESSAGE_USER, "Tea is green. Tea is black. Tea is cold. Tea is dear.");
	before = strdup(ask(f, "What is tea?"));
	assert_string_equal(answer(f), before);
	free(before);
}

TEST(odd_messages_do_no_harm)
{
	struct fixture *f = *state;
	char *stops = malloc(300000);

	memset(stops, '.', 299999);
	stops[299999] = '\0';
	say(f, MESSAGE_USER, "");
	answer(f);
	say(f, MESSAGE_USER, " \n\t\r ");
	answer(f);
	ask(f, stops);
	memset(stops, 0xe3, 299999);
	ask(f, stops);
	ask(f, "\xff\xfe broken \xc3");
	memset(stops, 'a', 299999);
	stops[299998] = '?';
	ask(f, stops);
	f->messages[0].text = (struct text) {NULL, 0};
	HAS(ask(f, "Who?"), "nothing");
	free(stops);
}

/* ---- how it comes ---- */

static void count_turns(void *arg)
{
	((struct fixture *)arg)->n_turns++;
}

struct other {
	struct fixture *f;
	struct wake *wake;
};

static void on_other(void *arg)
{
	struct other *o = arg;

	count_turns(o->f);
	if (o->f->n_ends == 0)
		wake_send(o->wake);
	else
		wake_free(o->wake);
}

TEST(words_come_one_by_one_and_others_have_their_turn)
{
	struct fixture *f = *state;
	struct other o = {.f = f};

	say(f, MESSAGE_USER, "Write an essay");
	assert_int_equal(wake_new(f->loop, on_other, &o, &o.wake), 0);
	start(f);
	assert_int_equal(f->n_pieces, 0);
	wake_send(o.wake);
	loop_run(f->loop);
	assert_int_equal(f->n_ends, 1);
	assert_true(f->n_pieces > 50);
	assert_true(f->n_turns >= f->n_pieces);
}

TEST(a_delay_streams_all_the_same)
{
	struct fixture *f = *state;
	char *quick;

	say(f, MESSAGE_USER, "My name is Alice");
	quick = strdup(ask(f, "What is my name?"));
	new_agent(f, 1);
	assert_string_equal(answer(f), quick);
	assert_int_equal(f->n_pieces, 8);
	free(quick);
}

TEST(a_cancel_ends_the_words)
{
	struct fixture *f = *state;

	say(f, MESSAGE_USER, "Write an essay");
	for (unsigned delay = 0; delay < 2; delay++) {
		new_agent(f, delay * 2);
		f->cancel_at = 5;
		start(f);
		loop_run(f->loop);
		assert_int_equal(f->n_pieces, 5);
		assert_int_equal(f->n_ends, 1);
		assert_int_equal(f->end.outcome, AGENT_CANCELLED);

		start(f);
		f->agent->ops->cancel(f->turn);
		assert_int_equal(f->n_ends, 0);
		loop_run(f->loop);
		assert_int_equal(f->n_pieces, 0);
		assert_int_equal(f->end.outcome, AGENT_CANCELLED);
	}
}

TEST(a_cancel_does_not_wait_for_the_delay)
{
	struct fixture *f = *state;

	say(f, MESSAGE_USER, "Write an essay");
	new_agent(f, 3600000);
	f->cancel_at = 1;
	start(f);
	loop_run(f->loop);
	assert_int_equal(f->end.outcome, AGENT_CANCELLED);
}

TEST(freeing_the_agent_ends_turns_silently)
{
	struct fixture *f = *state;

	say(f, MESSAGE_USER, "Write an essay");
	f->free_on_text = true;
	start(f);
	loop_run(f->loop);
	assert_int_equal(f->n_pieces, 1);
	assert_int_equal(f->n_ends, 0);
}

TEST(what_was_prepared_is_streamed)
{
	struct fixture *f = *state;
	struct arena arena;
	char *direct;

	arena_init(&arena, 1 << 20);
	say(f, MESSAGE_USER, "My name is Alice");
	direct = strdup(ask(f, "What is my name?"));
	assert_int_equal(f->agent->ops->prepare(f->agent, &arena, &f->ask, &f->ask.prepared), 0);
	assert_int_equal(f->ask.prepared.len, strlen(direct));
	start(f);
	arena_done(&arena);
	loop_run(f->loop);
	assert_memory_equal(f->out.data, direct, strlen(direct));
	free(direct);
}

static void on_health(void *arg, const struct agent_health *health)
{
	struct fixture *f = arg;

	f->n_healths++;
	f->health = *health;
	snprintf(f->health_text, sizeof(f->health_text), "%s", health->text);
}

TEST(a_probe_is_answered_later)
{
	struct fixture *f = *state;

	assert_int_equal(f->agent->ops->probe(f->agent, on_health, f), 0);
	assert_int_equal(f->n_healths, 0);
	loop_run(f->loop);
	assert_int_equal(f->n_healths, 1);
	assert_true(f->health.ok);
	assert_int_equal(f->agent->ops->probe(f->agent, on_health, f), 0);
	agent_free(f->agent);
	f->agent = NULL;
	assert_int_equal(f->n_healths, 2);
	assert_false(f->health.ok);
}

/* ---- sentences ---- */

static void expect_sentences(const char *text, const char *const *want)
{
	struct text rest = text_of(text);
	struct text s;

	while (sentence_next(&rest, &s)) {
		assert_non_null(*want);
		assert_int_equal(s.len, strlen(*want));
		assert_memory_equal(s.data, *want, s.len);
		want++;
	}
	assert_null(*want);
}

#define SENTENCES(text, ...) expect_sentences(text, (const char *const[]) {__VA_ARGS__, NULL})

TEST_WITH(sentences_end_where_people_end_them, NULL, NULL)
{
	SENTENCES("One. Two! Three? Four", "One.", "Two!", "Three?", "Four");
	SENTENCES("First line\nsecond line\r\n\n  third ", "First line", "second line", "third");
	SENTENCES("He said \"no.\" Then he left.", "He said \"no.\"", "Then he left.");
	SENTENCES("What?! Really...  Yes.", "What?!", "Really...", "Yes.");
	SENTENCES("猫です。犬です！", "猫です。", "犬です！");
}

TEST_WITH(stops_inside_sentences_are_none, NULL, NULL)
{
	SENTENCES("Pi is 3.14159, roughly. Yes.", "Pi is 3.14159, roughly.", "Yes.");
	SENTENCES("See http://a.example/b.html?c=d. Then go.", "See http://a.example/b.html?c=d.",
		  "Then go.");
	SENTENCES("Dr. Smith and J. Doe, e.g. at noon, met Mr. X. They ate.",
		  "Dr. Smith and J. Doe, e.g. at noon, met Mr. X. They ate.");
	SENTENCES("1. Wash\n2. Dry", "1. Wash", "2. Dry");
	SENTENCES("It is I. You know.", "It is I.", "You know.");
}

TEST_WITH(long_sentences_are_cut_between_words, NULL, NULL)
{
	char text[2001];
	struct text rest = {text, 2000};
	struct text s;
	size_t total = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < 2000; i++)
		text[i] = i % 10 == 9 ? ' ' : 'x';
	while (sentence_next(&rest, &s)) {
		assert_true(s.len <= SENTENCE_MAX);
		assert_int_equal(s.len % 10, 9);
		total += s.len + 1;
		n++;
	}
	assert_int_equal(total, 2000);
	assert_true(n >= 5);
	for (unsigned i = 0; i < 1998; i += 3)
		memcpy(text + i, "猫", 3);
	rest = (struct text) {text, 1998};
	while (sentence_next(&rest, &s))
		assert_int_equal(s.len % 3, 0);
}

TEST_WITH(what_a_sentence_does, NULL, NULL)
{
	static const struct {
		const char *text;
		enum sentence_kind kind;
	} rows[] = {
		{"What is my name?", SENTENCE_ASKS},
		{"what's my name", SENTENCE_ASKS},
		{"And where do I live", SENTENCE_ASKS},
		{"You know my name?\"", SENTENCE_ASKS},
		{"¿Cómo me llamo?", SENTENCE_ASKS},
		{"我叫什么？", SENTENCE_ASKS},
		{"Will Smith is my neighbour.", SENTENCE_SAYS},
		{"My name is Alice", SENTENCE_SAYS},
		{"Remember that I like tea", SENTENCE_SAYS},
		{"Hi, I'm Alice", SENTENCE_SAYS},
		{"Please tell me my name.", SENTENCE_WANTS},
		{"Write a long essay", SENTENCE_WANTS},
		{"Hello!", SENTENCE_GREETS},
		{"Hi there", SENTENCE_GREETS},
		{"...", SENTENCE_SAYS},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (sentence_kind(text_of(rows[i].text)) != rows[i].kind)
			fail_msg("%s", rows[i].text);
	}
}
