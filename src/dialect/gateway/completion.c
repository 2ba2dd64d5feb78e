/*
 * The life of a completion: a turn of the agent; if it wants tools of ours, these run one
 * after another, and another turn gets their results; then the end.
 *
 * The timer first starts the completion, and later ends an agent's silence.
 */
#include "dialect/gateway/completion.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "dialect/gateway/completion_inner.h"
#include "dialect/gateway/tool_json.h"
#include "engine/engine.h"
#include "wire/json.h"

enum { ARENA_MAX = 64 << 20, RESULT_MAX = 1 << 20 };

static const char prefix[] = "gateway-";

struct completion {
	struct chat *chat;
	struct tools *our_tools;
	struct gateway_known *known;
	struct memory_asker by;
	struct peer peer;
	unsigned tools;
	unsigned timeout_ms;
	struct completion_sink sink;
	struct arena arena;
	struct timer *timer;
	struct agent *agent;
	struct completion_in in;
	size_t bytes; /* its share of known->bytes */
	int64_t number;
	bool is_new; /* nothing is kept under its number yet */
	char name[CHAT_ID_MAX + 1];

	struct chat_turn *turn;
	struct buf text; /* of all turns */
	size_t told;     /* bytes of this turn that are in it already */
	unsigned n_rounds;
	int64_t prompt_tokens;
	int64_t completion_tokens;

	/* Calls of our own tools. */
	struct tool_run *run;
	const struct tool_call *calls;
	unsigned n_calls;
	unsigned at;
	struct chat_result *results;

	bool begun;
	bool late;
	bool cancelled;
};

const char *completion_agent(const struct completion *c)
{
	return c->agent->name;
}

/* ---- which conversation ---- */

int gateway_count(struct chat *chat, struct gateway_known *known)
{
	return chat_highest(chat, prefix, &known->last_number);
}

static void on_ended(void *arg, int result, const struct error *error)
{
}

/* The first turn was accepted, so there is one more conversation, and the oldest is ended. */
static void count_in(struct completion *c)
{
	char old[CHAT_ID_MAX + 1];
	struct error error;

	if (!c->is_new)
		return;
	c->is_new = false;
	if (c->number <= COMPLETION_KEPT)
		return;
	snprintf(old, sizeof(old), "%s%lld", prefix, (long long)(c->number - COMPLETION_KEPT));
	(void)chat_destroy(c->chat, text_of(old), on_ended, NULL, &error);
}

static void know(struct gateway_known *k, uint64_t said, int64_t number)
{
	k->list[k->next].said = said;
	k->list[k->next].number = number;
	k->next = (k->next + 1) % GATEWAY_KNOWN_MAX;
}

/* The turn was refused before anything was kept: undo the choice of a conversation. */
static void count_out(struct completion *c)
{
	if (c->n_rounds > 0)
		return;
	if (!c->is_new)
		know(c->known, c->in.before, c->number);
	else if (c->number == c->known->last_number)
		c->known->last_number--;
}

/* The entry is taken out of the list: if two completions go on from the same answer, the second
 * becomes a conversation of its own. */
static void choose_conversation(struct completion *c)
{
	for (unsigned i = 0; c->in.before != 0 && i < GATEWAY_KNOWN_MAX; i++) {
		if (c->known->list[i].said != c->in.before)
			continue;
		c->known->list[i].said = 0;
		c->number = c->known->list[i].number;
		break;
	}
	/* A conversation that was ended meanwhile does not come back. */
	if (c->number <= c->known->last_number - COMPLETION_KEPT)
		c->number = 0;
	c->is_new = c->number == 0;
	if (c->is_new)
		c->number = ++c->known->last_number;
	snprintf(c->name, sizeof(c->name), "%s%lld", prefix, (long long)c->number);
}

static struct text text_so_far(const struct completion *c)
{
	return (struct text) {.data = c->text.data ? c->text.data : "", .len = c->text.len};
}

/* Remembers the conversation by what the client will send back. */
static void remember(struct completion *c, const struct completion_answer *a)
{
	const struct message last = {.role = MESSAGE_ASSISTANT,
				     .text = a->content,
				     .calls = a->calls,
				     .n_calls = a->n_calls};

	know(c->known, completion_hash(c->in.said, &last), c->number);
}

/* ---- the end ---- */

static void completion_free(struct completion *c)
{
	c->known->bytes -= c->bytes;
	tool_leave(c->run);
	timer_free(c->timer);
	buf_done(&c->text);
	arena_done(&c->arena);
	free(c);
}

static void gateway_completion_finish(struct completion *c, struct completion_answer *a)
{
	a->content = text_so_far(c);
	a->prompt_tokens = c->prompt_tokens;
	a->completion_tokens = c->completion_tokens;
	if (a->result == 0)
		remember(c, a);
	c->sink.on_done(c->sink.arg, a);
	completion_free(c);
}

static void finish_with(struct completion *c, int result, const struct error *error)
{
	struct completion_answer a = {.result = result, .refused = error};

	gateway_completion_finish(c, &a);
}

static void finish_well(struct completion *c, const char *how, const struct chat_answer *answer)
{
	struct completion_answer a = {.finish = how};

	if (answer->outcome == AGENT_CALLS && c->in.own_tools) {
		a.calls = answer->calls;
		a.n_calls = answer->n_calls;
	}
	gateway_completion_finish(c, &a);
}

static void finish_cancelled(struct completion *c)
{
	struct error error = {0};

	finish_with(c,
		    c->late ? refuse(&error, REFUSE_TIMEOUT, "timeout waiting for agent")
			    : refuse(&error, REFUSE_CANCELLED, "cancelled"),
		    &error);
}

/* ---- a turn ---- */

static void send_turn(struct completion *c);
static void run_next(struct completion *c);

static void take_text(struct completion *c, struct text whole)
{
	if (whole.len <= c->told)
		return;
	/* Text after tools becomes a paragraph of its own. */
	if (c->told == 0 && c->text.len > 0)
		buf_add_str(&c->text, "\n\n");
	buf_add(&c->text, whole.data + c->told, whole.len - c->told);
	c->told = whole.len;
}

static void gateway_completion_on_text(void *arg, struct text whole, size_t from)
{
	struct completion *c = arg;

	take_text(c, whole);
	timer_start(c->timer, c->timeout_ms);
	if (c->sink.on_text && !c->cancelled)
		c->sink.on_text(c->sink.arg, text_so_far(c));
}

static int64_t estimate(const struct completion *c)
{
	int64_t n = c->in.system.len > 0 ? chat_estimate(c->in.system) : 0;

	for (unsigned i = 0; i < c->in.n_messages; i++)
		n += chat_estimate(c->in.messages[i].text);
	return n;
}

static void gateway_completion_count(struct completion *c, const struct chat_answer *a)
{
	const struct agent_usage *u = &a->usage;

	c->prompt_tokens += u->input >= 0 ? u->input : estimate(c);
	c->completion_tokens += u->output >= 0       ? u->output
				: a->content.len > 0 ? chat_estimate(a->content)
						     : 0;
}

/* The results of earlier tools are history now, as is the question. */
static int gateway_completion_make_room(struct completion *c)
{
	unsigned n = c->in.n_messages;
	struct message *messages =
		arena_zalloc(&c->arena, (n + c->n_calls + 1) * sizeof(messages[0]));

	if (!messages)
		return -ENOMEM;
	memcpy(messages, c->in.messages, n * sizeof(messages[0]));
	for (unsigned i = 0; i < c->n_calls; i++)
		messages[n++] = (struct message) {.role = MESSAGE_TOOL,
						  .text = c->results[i].text,
						  .call_id = c->results[i].call_id,
						  .failed = c->results[i].failed};
	c->in.messages = messages;
	c->in.n_messages = n;
	return 0;
}

static int copy_calls(struct completion *c, const struct chat_answer *a)
{
	struct tool_call *calls = arena_zalloc(&c->arena, a->n_calls * sizeof(calls[0]));

	c->results = arena_zalloc(&c->arena, a->n_calls * sizeof(c->results[0]));
	if (!calls || !c->results)
		return -ENOMEM;
	for (unsigned i = 0; i < a->n_calls; i++) {
		const struct tool_call *from = &a->calls[i];

		calls[i] = *from;
		calls[i].id.data = arena_copy(&c->arena, from->id.data, from->id.len);
		calls[i].name.data = arena_copy(&c->arena, from->name.data, from->name.len);
		calls[i].arguments.data =
			arena_copy(&c->arena, from->arguments.data, from->arguments.len);
		if (!calls[i].id.data || !calls[i].name.data || !calls[i].arguments.data)
			return -ENOMEM;
	}
	c->calls = calls;
	c->n_calls = a->n_calls;
	c->at = 0;
	return 0;
}

static int add_answer(struct completion *c, struct text content)
{
	char *text = arena_copy(&c->arena, content.data ? content.data : "", content.len);

	if (!text)
		return -ENOMEM;
	c->in.messages[c->in.n_messages++] =
		(struct message) {.role = MESSAGE_ASSISTANT,
				  .text = {.data = text, .len = content.len},
				  .calls = c->calls,
				  .n_calls = c->n_calls};
	c->in.n_history = c->in.n_messages;
	return 0;
}

static void start_tools(struct completion *c, const struct chat_answer *a)
{
	int r;

	if (c->n_rounds++ == COMPLETION_ROUNDS) {
		finish_well(c, "length", a);
		return;
	}
	r = gateway_completion_make_room(c) ?: copy_calls(c, a) ?: add_answer(c, a->content);
	if (r != 0)
		finish_with(c, r, NULL);
	else
		run_next(c);
}

static void fail_turn(struct completion *c, const struct chat_answer *a)
{
	struct completion_answer answer = {.result = a->result, .refused = a->error};

	/* To OpenAI's clients, what came before the filter is an answer. */
	if (a->result > 0 && a->cause == AGENT_CAUSE_FILTER) {
		finish_well(c, "content_filter", a);
		return;
	}
	if (a->outcome == AGENT_FAILED && a->error_text) {
		answer.error = text_of(a->error_text);
		answer.cause = a->cause;
	}
	gateway_completion_finish(c, &answer);
}

static void gateway_completion_on_done(void *arg, const struct chat_answer *a)
{
	struct completion *c = arg;

	c->turn = NULL;
	timer_stop(c->timer);
	take_text(c, a->content);
	gateway_completion_count(c, a);
	if (c->cancelled || a->outcome == AGENT_CANCELLED) {
		finish_cancelled(c);
	} else if (a->result != 0) {
		fail_turn(c, a);
	} else if (c->text.err != 0) {
		finish_with(c, c->text.err, NULL);
	} else if (a->outcome == AGENT_CALLS) {
		if (c->in.own_tools)
			finish_well(c, "tool_calls", a);
		else
			start_tools(c, a);
	} else {
		finish_well(c, a->outcome == AGENT_DONE ? "stop" : "length", a);
	}
}

/* Takes the results that end the messages, or those of our own tools. */
static int fill_results(struct completion *c, struct chat_ask *ask)
{
	unsigned n = c->in.n_messages - c->in.n_history;
	struct chat_result *results;

	if (c->n_calls > 0) {
		ask->results = c->results;
		ask->n_results = c->n_calls;
		return 0;
	}
	results = arena_zalloc(&c->arena, n * sizeof(results[0]));
	if (!results)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		const struct message *m = &c->in.messages[c->in.n_history + i];

		results[i] = (struct chat_result) {
			.call_id = m->call_id, .text = m->text, .failed = m->failed};
	}
	ask->results = results;
	ask->n_results = n;
	return 0;
}

static int gateway_completion_fill(struct completion *c, struct chat_ask *ask)
{
	const struct message *question = &c->in.messages[c->in.n_history];

	*ask = (struct chat_ask) {
		.conversation = text_of(c->name),
		.agent = text_of(c->agent->name),
		.tools = c->in.tools,
		.n_tools = c->in.n_tools,
		.shape = c->in.shape,
		.by = c->by,
		.own_history = true,
		.history = c->in.messages,
		.n_history = c->in.n_history,
		.system = c->in.system,
	};
	if (c->n_calls == 0 && question->role == MESSAGE_USER) {
		ask->content = question->text;
		return 0;
	}
	return fill_results(c, ask);
}

static void send_turn(struct completion *c)
{
	const struct chat_sink sink = {.on_text = gateway_completion_on_text,
				       .on_done = gateway_completion_on_done,
				       .arg = c};
	struct error error = {0};
	struct chat_ask ask;
	int r = gateway_completion_fill(c, &ask);

	c->told = 0;
	timer_start(c->timer, c->timeout_ms);
	if (r == 0)
		r = chat_send(c->chat, &ask, &sink, &c->turn, &error);
	if (r == 0) {
		count_in(c);
	} else {
		count_out(c);
		finish_with(c, r, &error);
	}
}

/* ---- tools ---- */

static void keep_result(struct completion *c, const char *error, const struct tool_result *got)
{
	const struct tool_call *call = &c->calls[c->at];
	struct chat_result *to = &c->results[c->at];
	struct buf out;

	buf_init(&out, RESULT_MAX);
	if (!error && got)
		tool_json_result(&out, call->name, got);
	if (out.err != 0) {
		buf_clear(&out);
		error = "the result is too large";
	}
	if (error)
		tool_json_error(&out, call->name, error);
	to->call_id = call->id;
	to->failed = error != NULL;
	to->text.data = out.err == 0 ? arena_copy(&c->arena, out.data, out.len) : NULL;
	to->text.len = to->text.data ? out.len : 0;
	if (!to->text.data)
		to->text = TEXT("");
	buf_done(&out);
	c->at++;
}

static void on_tool(void *arg, int result, const struct tool_result *got, const struct error *error)
{
	struct completion *c = arg;
	const char *reason = NULL;

	c->run = NULL;
	if (result == REFUSE_STOPPING) {
		finish_with(c, result, error);
		return;
	}
	if (result != 0)
		reason = result > 0 && error ? error->text : fault_words(result);
	keep_result(c, reason, got);
	run_next(c);
}

static int start_tool(struct completion *c, const struct tool_call *call, struct error *error)
{
	const struct json_limits limits = {.depth = 64, .values = 10000};
	struct tool_ask ask = {.agent = TEXT("gateway"),
			       .session = text_of(c->name),
			       .call_id = call->id,
			       .by = c->by,
			       .peer = c->peer};
	struct text input = call->arguments.len > 0 ? call->arguments : TEXT("{}");
	struct value *v;
	int r;

	if (!tool_find(c->our_tools, call->name, &ask.id) || !(c->tools & 1U << ask.id))
		return refuse(error, REFUSE_NOT_FOUND, "tool not found: %.*s",
			      TEXT_ARGS(text_cut(call->name, 100)));
	r = json_read(&c->arena, input.data, input.len, &limits, &v, error);
	if (r != 0)
		return r;
	ask.input = v;
	return tool_run(c->our_tools, &ask, on_tool, c, &c->run, error);
}

static void run_next(struct completion *c)
{
	while (c->at < c->n_calls && !c->cancelled) {
		struct error error = {0};
		int r = start_tool(c, &c->calls[c->at], &error);

		if (r == 0)
			return;
		keep_result(c, error_words(r, &error), NULL);
	}
	if (c->cancelled)
		finish_cancelled(c);
	else
		send_turn(c);
}

/* ---- start and cancel ---- */

void completion_cancel(struct completion *c)
{
	if (c->cancelled)
		return;
	c->cancelled = true;
	if (c->turn) {
		chat_turn_cancel(c->turn);
	} else {
		tool_leave(c->run);
		c->run = NULL;
		finish_cancelled(c);
	}
}

/* The messages may end with calls of our own tools, which still have to run. */
static void gateway_completion_begin(struct completion *c)
{
	const struct message *last = &c->in.messages[c->in.n_messages - 1];

	c->begun = true;
	if (c->in.n_history < c->in.n_messages) {
		send_turn(c);
		return;
	}
	c->calls = last->calls;
	c->n_calls = last->n_calls;
	c->results = arena_zalloc(&c->arena, c->n_calls * sizeof(c->results[0]));
	if (c->results)
		run_next(c);
	else
		finish_with(c, -ENOMEM, NULL);
}

static void gateway_completion_on_timer(void *arg)
{
	struct completion *c = arg;

	if (!c->begun) {
		gateway_completion_begin(c);
		return;
	}
	c->late = true;
	completion_cancel(c);
}

static int gateway_completion_set_up(struct completion *c, const struct completion_ask *ask,
				     struct error *error)
{
	int r = completion_read(&c->arena, ask, &c->in, error);

	/* Twice, because the call holds as much again. */
	c->bytes = 2 * c->arena.used;
	c->known->bytes += c->bytes;
	if (r == 0 && !c->in.own_tools) {
		c->in.tools = arena_zalloc(&c->arena, N_TOOLS * sizeof(c->in.tools[0]));
		if (!c->in.tools)
			return -ENOMEM;
		c->in.n_tools = tool_json_offer(c->tools, c->in.tools);
	}
	return r;
}

int completion_start(struct engine *s, struct loop *loop, const struct gateway_settings *settings,
		     const struct completion_ask *ask, const struct completion_sink *sink,
		     struct completion **ret_completion, struct error *error)
{
	struct agent *agent = ask->model.len > 0 ? chat_agent(s->chat, ask->model) : NULL;
	struct completion *c;
	int r;

	if (settings->known->bytes > COMPLETION_BYTES_MAX)
		return refuse(error, REFUSE_LIMIT,
			      "running requests use too much memory (limit %d bytes)",
			      COMPLETION_BYTES_MAX);
	if (!agent)
		agent = chat_agent(s->chat, (struct text) {NULL, 0});
	if (!agent)
		return refuse(error, REFUSE_UNAVAILABLE, "agent not initialized");
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->chat = s->chat;
	c->our_tools = s->tools;
	c->known = settings->known;
	c->by.user = settings->user;
	c->peer = ask->peer;
	c->timeout_ms = settings->timeout_ms;
	c->tools = settings->tools;
	c->sink = *sink;
	c->agent = agent;
	arena_init(&c->arena, ARENA_MAX);
	buf_init(&c->text, CHAT_TEXT_MAX);
	r = gateway_completion_set_up(c, ask, error)
		    ?: timer_new(loop, gateway_completion_on_timer, c, &c->timer);
	if (r != 0) {
		completion_free(c);
		return r;
	}
	choose_conversation(c);
	timer_start(c->timer, 0);
	*ret_completion = c;
	return 0;
}
