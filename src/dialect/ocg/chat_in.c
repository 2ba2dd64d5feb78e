/*
 * From Go's messages to a question.
 *
 * One of Go's messages may become several of ours: what it says, and each tool result that it
 * brings. The agent's last message divides them: whatever follows it is new. Where results
 * came without it, the last answer on the connection takes its place.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dialect/chat_wire.h"
#include "dialect/ocg/ocg.h"
#include "wire/json.h"

enum { RESULT_BYTES_MAX = 10 << 20 };

_Static_assert(AGENT_CALLS_MAX <= 64, "a bit for each");

struct history {
	struct arena *arena;
	struct message *list;
	unsigned n;
	const struct message *caller; /* whose calls the following results answer */
	uint64_t answered;            /* a bit for each of its calls that has a result */
	unsigned n_numbered;          /* calls and results that came without an id */
};

static struct text ocg_chat_in_text_in(const struct value *v, const char *key)
{
	struct text t = value_text(value_find(v, key));

	return t.data ? t : TEXT("");
}

static unsigned count_of(const struct value *v)
{
	return v && v->kind == VALUE_ARRAY ? v->len : 0;
}

/* The most messages that these can become. */
static size_t count_messages(const struct value *messages)
{
	size_t n = 0;

	if (count_of(messages) == 0)
		return 0;
	value_each (m, messages)
		n += 1 + (size_t)count_of(value_find(m, "ToolExecutionResults"));
	return n;
}

/* A string is taken as it is, anything else as JSON. */
static int result_text(struct arena *a, const struct value *v, struct text *ret)
{
	struct buf out;
	struct json j = json_writer(&out);
	int r;

	if (v && v->kind == VALUE_STRING) {
		*ret = value_text(v);
		return 0;
	}
	buf_init(&out, RESULT_BYTES_MAX);
	json_value(&j, v);
	r = out.err;
	ret->data = r == 0 ? arena_copy(a, out.data, out.len) : NULL;
	ret->len = out.len;
	if (r == 0 && !ret->data)
		r = -ENOMEM;
	buf_done(&out);
	return r;
}

/* Judged as the original's tools report a failure. */
static bool is_failure(const struct value *result)
{
	const struct value *success = value_find(result, "success");

	return (success && success->kind == VALUE_FALSE) ||
	       (!success && value_text(value_find(result, "error")).len > 0);
}

/* Providers require an id, and a different one for each call. */
static int make_id(struct history *h, struct text *id)
{
	char text[32];
	int n;

	if (id->len > 0)
		return 0;
	n = snprintf(text, sizeof(text), "ocg_call_%u", h->n_numbered++);
	id->data = arena_copy(h->arena, text, (size_t)n);
	id->len = (size_t)n;
	return id->data ? 0 : -ENOMEM;
}

static bool has_calls(const struct history *h)
{
	return h->caller && h->caller->n_calls > 0;
}

/* Returns the first call without a result, or {NULL, 0}. */
static struct text open_call(const struct history *h)
{
	for (unsigned i = 0; has_calls(h) && i < h->caller->n_calls && i < AGENT_CALLS_MAX; i++) {
		if (!(h->answered >> i & 1))
			return h->caller->calls[i].id;
	}
	return (struct text) {0};
}

static void note_answered(struct history *h, struct text id)
{
	for (unsigned i = 0; has_calls(h) && i < h->caller->n_calls && i < AGENT_CALLS_MAX; i++) {
		if (text_equal(h->caller->calls[i].id, id))
			h->answered |= UINT64_C(1) << i;
	}
}

/* A result that does not name its call belongs to the next open one. */
static struct text call_of(const struct history *h, struct text given)
{
	struct text next = open_call(h);

	return given.len == 0 && next.data ? next : given;
}

/* Returns the message with the result of that call if there is one, else a new message. The
 * search is bounded, since no answer has more calls. */
static struct message *ocg_chat_in_place_of(struct history *h, struct text id)
{
	for (unsigned i = h->n; i > 0 && h->n - i < AGENT_CALLS_MAX; i--) {
		struct message *m = &h->list[i - 1];

		if (m->role == MESSAGE_ASSISTANT || (m->role == MESSAGE_USER && !has_calls(h)))
			break;
		if (m->role == MESSAGE_TOOL && id.len > 0 && text_equal(m->call_id, id))
			return m;
	}
	return &h->list[h->n++];
}

static void add_result(struct history *h, struct text id, struct text text, bool failed)
{
	struct text call = call_of(h, id);

	*ocg_chat_in_place_of(h, call) = (struct message) {
		.role = MESSAGE_TOOL,
		.call_id = call,
		.text = text,
		.failed = failed,
	};
	note_answered(h, call);
}

static int add_results(struct history *h, const struct value *results)
{
	if (count_of(results) == 0)
		return 0;
	value_each (item, results) {
		const struct value *v = value_find(item, "Result");
		struct text text;
		int r = result_text(h->arena, v, &text);

		if (r != 0)
			return r;
		add_result(h, ocg_chat_in_text_in(item, "ID"), text, is_failure(v));
	}
	return 0;
}

static int read_calls(struct history *h, const struct value *list, struct message *m)
{
	struct tool_call *calls;

	if (count_of(list) == 0)
		return 0;
	calls = arena_zalloc(h->arena, list->len * sizeof(calls[0]));
	if (!calls)
		return -ENOMEM;
	value_each (item, list) {
		const struct value *function = value_find(item, "Function");
		struct tool_call *call = &calls[m->n_calls++];

		*call = (struct tool_call) {
			.id = ocg_chat_in_text_in(item, "ID"),
			.name = ocg_chat_in_text_in(function, "Name"),
			.arguments = ocg_chat_in_text_in(function, "Arguments"),
		};
		if (make_id(h, &call->id) != 0)
			return -ENOMEM;
	}
	m->calls = calls;
	return 0;
}

static int add_answer(struct history *h, const struct value *m)
{
	struct message *at = &h->list[h->n++];
	int r;

	*at = (struct message) {.role = MESSAGE_ASSISTANT,
				.text = ocg_chat_in_text_in(m, "Content")};
	r = read_calls(h, value_find(m, "ToolCalls"), at);
	h->caller = at;
	h->answered = 0;
	return r != 0 ? r : add_results(h, value_find(m, "ToolExecutionResults"));
}

/* A message with the role "tool" is a result, even if it has only content. */
static int add_message(struct history *h, const struct value *m)
{
	const struct value *results = value_find(m, "ToolExecutionResults");
	struct text role = ocg_chat_in_text_in(m, "Role");
	struct text content = ocg_chat_in_text_in(m, "Content");
	bool is_tool = text_is(role, "tool");
	bool results_first = has_calls(h) || is_tool;
	int r;

	if (text_is(role, "assistant"))
		return add_answer(h, m);
	if (count_of(results) > 0 && content.len == 0)
		return add_results(h, results);
	/* Text that comes with results is placed after them. If nobody wanted results, the text
	 * is the question. */
	r = results_first ? add_results(h, results) : 0;
	if (r != 0)
		return r;
	if (is_tool && count_of(results) == 0 && open_call(h).data)
		add_result(h, TEXT(""), content, false);
	else
		h->list[h->n++] = (struct message) {.role = MESSAGE_USER, .text = content};
	return results_first ? 0 : add_results(h, results);
}

static int read_messages(struct history *h, const struct value *messages, struct text *ret_system)
{
	size_t n = count_messages(messages);
	size_t room = 0;
	int r = 0;

	h->list = arena_alloc(h->arena, (n + 1) * sizeof(h->list[0]));
	if (!h->list)
		return -ENOMEM;
	for (const struct value *m = n > 0 ? messages->first : NULL; m && r == 0; m = m->next) {
		if (text_is(ocg_chat_in_text_in(m, "Role"), "system"))
			r = chat_wire_join(h->arena, ret_system, &room,
					   ocg_chat_in_text_in(m, "Content"));
		else
			r = add_message(h, m);
	}
	return r;
}

/* ---- results without the answer that asked for them ---- */

/* Returns where the last such results begin, or h->n if there are none. */
static unsigned orphans_at(const struct history *h)
{
	unsigned i = h->n;

	if (has_calls(h))
		return h->n;
	while (i > 0 && h->list[i - 1].role == MESSAGE_USER)
		i--;
	if (i == 0 || h->list[i - 1].role != MESSAGE_TOOL)
		return h->n;
	while (i > 0 && h->list[i - 1].role == MESSAGE_TOOL)
		i--;
	return i;
}

static bool has_call(const struct message *caller, struct text id)
{
	for (unsigned i = 0; i < caller->n_calls; i++) {
		if (text_equal(caller->calls[i].id, id))
			return true;
	}
	return false;
}

static bool had_result(const struct ocg_chain *chain, struct text id)
{
	for (unsigned i = 0; i < chain->n_said; i++) {
		if (chain->said[i].role == MESSAGE_TOOL && text_equal(chain->said[i].call_id, id))
			return true;
	}
	return false;
}

/* Whether the results can belong to the chain's last calls. Results of its earlier calls may
 * come with them. */
static bool ocg_chat_in_fits(const struct ocg_chain *chain, const struct history *h, unsigned at)
{
	const struct message *caller = &chain->said[chain->n_said - 1];
	unsigned n = 0;

	for (unsigned i = at; i < h->n && h->list[i].role == MESSAGE_TOOL; i++) {
		struct text id = h->list[i].call_id;

		if (id.len == 0 || has_call(caller, id))
			n++;
		else if (!had_result(chain, id))
			return false;
		/* A bound, so that repeated results cannot keep us busy. */
		if (i - at > chain->n_said + caller->n_calls)
			return false;
	}
	return n > 0 && n <= caller->n_calls;
}

static bool follows_question(const struct history *h, unsigned at)
{
	return at > 0 && h->list[at - 1].role == MESSAGE_USER;
}

/* Returns the newest chain that fits. Several people may ask over one connection, so if a
 * question came with the results, it must be the chain's. */
static const struct ocg_chain *find_chain(const struct list *chains, const struct history *h,
					  unsigned at)
{
	list_for_each (link, following, chains) {
		const struct ocg_chain *chain = list_entry(link, struct ocg_chain, link);

		if (follows_question(h, at) &&
		    !text_equal(chain->said[0].text, h->list[at - 1].text))
			continue;
		if (ocg_chat_in_fits(chain, h, at))
			return chain;
	}
	return NULL;
}

/* Inserts the chain before the results at *at. Its question is left out if it came with the
 * results. */
static int put_chain(struct history *h, const struct ocg_chain *chain, unsigned *at)
{
	unsigned skip = follows_question(h, *at) && chain->said[0].role == MESSAGE_USER;
	unsigned n = chain->n_said - skip;
	const struct message *given = h->list;
	unsigned n_given = h->n;
	unsigned i = *at;

	h->list = arena_alloc(h->arena, (n_given + n) * sizeof(h->list[0]));
	if (!h->list || ocg_copy_messages(h->arena, chain->said + skip, n, h->list + *at) != 0)
		return -ENOMEM;
	memcpy(h->list, given, *at * sizeof(given[0]));
	*at += n;
	h->n = *at;
	h->caller = &h->list[*at - 1];
	h->answered = 0;
	for (; i < n_given && given[i].role == MESSAGE_TOOL; i++) {
		if (given[i].call_id.len == 0 || has_call(h->caller, given[i].call_id))
			add_result(h, given[i].call_id, given[i].text, given[i].failed);
	}
	while (i < n_given)
		h->list[h->n++] = given[i++];
	return 0;
}

/* Gives ids to results that belong to no call. */
static int number_results(struct history *h)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < h->n; i++) {
		if (h->list[i].role == MESSAGE_TOOL)
			r = make_id(h, &h->list[i].call_id);
	}
	return r;
}

static unsigned after_last_answer(const struct history *h)
{
	unsigned i = h->n;

	while (i > 0 && h->list[i - 1].role != MESSAGE_ASSISTANT)
		i--;
	return i;
}

static int read_question(const struct history *h, unsigned from, struct chat_ask *ask)
{
	struct chat_result *results =
		arena_zalloc(h->arena, (h->n - from + 1) * sizeof(results[0]));
	size_t room = 0;
	int r = 0;

	if (!results)
		return -ENOMEM;
	for (unsigned i = from; r == 0 && i < h->n; i++) {
		const struct message *m = &h->list[i];

		if (m->role == MESSAGE_TOOL)
			results[ask->n_results++] = (struct chat_result) {
				.call_id = m->call_id, .text = m->text, .failed = m->failed};
		else
			r = chat_wire_join(h->arena, &ask->content, &room, m->text);
	}
	ask->results = results;
	/* A client that says nothing is answered all the same. */
	if (ask->n_results == 0 && !ask->content.data)
		ask->content = TEXT("");
	return r;
}

static int read_tools(struct arena *a, const struct value *list, struct chat_ask *ask)
{
	struct agent_tool *tools;
	int r = 0;

	if (count_of(list) == 0)
		return 0;
	tools = arena_zalloc(a, list->len * sizeof(tools[0]));
	if (!tools)
		return -ENOMEM;
	for (const struct value *item = list->first; item && r == 0; item = item->next) {
		const struct value *function = value_find(item, "Function");
		const struct value *schema = value_find(function, "Parameters");
		struct agent_tool *tool = &tools[ask->n_tools++];

		tool->name = ocg_chat_in_text_in(function, "Name");
		tool->description = value_text(value_find(function, "Description"));
		if (schema && schema->kind == VALUE_OBJECT && schema->len > 0)
			r = result_text(a, schema, &tool->schema);
	}
	ask->tools = tools;
	return r;
}

static int read_history(struct history *h, const struct ocg_chat_in *in, const struct list *chains,
			struct chat_ask *ask)
{
	const struct ocg_chain *chain;
	unsigned at;
	int r = read_messages(h, in->messages, &ask->system);

	if (r != 0)
		return r;
	at = orphans_at(h);
	chain = at < h->n ? find_chain(chains, h, at) : NULL;
	if (chain) {
		ask->conversation = chain->conversation;
		r = put_chain(h, chain, &at);
	}
	if (r == 0)
		r = number_results(h);
	if (r != 0)
		return r;
	ask->history = h->list;
	/* Messages before the results are not new, even if the answer between is unknown. */
	ask->n_history = at < h->n ? at : after_last_answer(h);
	return 0;
}

int ocg_chat_read(struct arena *a, const struct ocg_chat_in *in, const struct list *chains,
		  struct chat_ask *ret_ask)
{
	struct history h = {.arena = a};
	struct chat_ask ask = {.own_history = true};
	int r = read_history(&h, in, chains, &ask) ?: read_question(&h, ask.n_history, &ask) ?:
		read_tools(a, in->tools, &ask);

	if (r == 0)
		*ret_ask = ask;
	return r;
}
