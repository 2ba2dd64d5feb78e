/* What an agent is to see of a conversation, read from the store on a reader's thread. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/chat/inner.h"
#include "engine/memory/memory.h"
#include "store/store.h"

enum {
	NOTES_MAX = 8,
	LEAST_TOKENS = 50,  /* of a result that is shortened */
	NOTICE_TOKENS = 15, /* that it is */
};

static const char summary_words[] = "Summary of the conversation so far:\n";

static enum agent_role agent_role(enum message_role role)
{
	switch (role) {
	case MESSAGE_USER:
		return AGENT_USER;
	case MESSAGE_ASSISTANT:
		return AGENT_ASSISTANT;
	case MESSAGE_TOOL:
		return AGENT_TOOL;
	}
	return AGENT_USER;
}

int chat_copy_calls(struct arena *a, const struct message_row *row,
		    const struct agent_call **ret_calls)
{
	struct agent_call *calls;

	*ret_calls = NULL;
	if (row->n_calls == 0)
		return 0;
	calls = arena_alloc(a, row->n_calls * sizeof(calls[0]));
	if (!calls)
		return -ENOMEM;
	for (unsigned i = 0; i < row->n_calls; i++)
		calls[i] = (struct agent_call) {.id = row->calls[i].id,
						.name = row->calls[i].name,
						.arguments = row->calls[i].arguments};
	*ret_calls = calls;
	return 0;
}

static int copy_message(struct arena *a, const struct message_row *row, struct agent_message *to)
{
	*to = (struct agent_message) {
		.role = agent_role(row->role),
		.text = row->text,
		.n_calls = row->n_calls,
		.call_id = row->call_id,
		.failed = row->failed,
	};
	return chat_copy_calls(a, row, &to->calls);
}

/* Stands for the turns that are not sent any more. */
static int read_summary(struct connection *db, struct chat_turn *t, struct agent_message *to,
			bool *ret_found)
{
	struct arena *a = &t->job.context;
	size_t words = sizeof(summary_words) - 1;
	struct conversation_row row;
	char *text;
	int r = store_conversation_find(db, t->name, a, &row, ret_found);

	*ret_found = r == 0 && *ret_found && row.summary.len > 0;
	if (!*ret_found)
		return r;
	text = arena_alloc(a, words + row.summary.len);
	if (!text)
		return -ENOMEM;
	memcpy(text, summary_words, words);
	memcpy(text + words, row.summary.data, row.summary.len);
	*to = (struct agent_message) {.role = AGENT_USER,
				      .text = {.data = text, .len = words + row.summary.len}};
	return 0;
}

static bool has_call(const struct agent_message *m, struct text id)
{
	for (unsigned i = 0; i < m->n_calls; i++) {
		if (text_equal(m->calls[i].id, id))
			return true;
	}
	return false;
}

static bool has_result(const struct agent_message *m, unsigned n, struct text id)
{
	for (unsigned i = 0; i < n && m[i].role == AGENT_TOOL; i++) {
		if (text_equal(m[i].call_id, id))
			return true;
	}
	return false;
}

static unsigned count_calls(const struct agent_message *messages, unsigned n)
{
	unsigned n_calls = 0;

	for (unsigned i = 0; i < n; i++)
		n_calls += messages[i].n_calls;
	return n_calls;
}

/*
 * Providers refuse a call without its result, and a result without its call. The asker may never
 * have brought the one, and the other may be too old to be sent: a call gets a result that says so,
 * and such a result is just something that was said.
 */
static int pair_calls(struct arena *a, struct agent_message **messages, unsigned *n)
{
	const struct agent_message *from = *messages;
	const struct agent_message *caller = NULL; /* whose results follow */
	unsigned n_calls = count_calls(from, *n);
	struct agent_message *to = arena_alloc(a, (*n + n_calls + 1) * sizeof(to[0]));
	unsigned k = 0;

	if (!to)
		return -ENOMEM;
	for (unsigned i = 0; i < *n; i++) {
		to[k] = from[i];
		if (from[i].role != AGENT_TOOL)
			caller = from[i].role == AGENT_ASSISTANT ? &from[i] : NULL;
		if (from[i].role == AGENT_TOOL && (!caller || !has_call(caller, from[i].call_id)))
			to[k] = (struct agent_message) {.role = AGENT_USER, .text = from[i].text};
		k++;
		for (unsigned c = 0; c < from[i].n_calls; c++) {
			struct text id = from[i].calls[c].id;

			if (!has_result(&from[i + 1], *n - i - 1, id))
				to[k++] =
					(struct agent_message) {.role = AGENT_TOOL,
								.text = TEXT("no result was given"),
								.call_id = id,
								.failed = true};
		}
	}
	*messages = to;
	*n = k;
	return 0;
}

static size_t bytes_of_tokens(struct text t, int64_t tokens)
{
	int64_t characters = 0;
	size_t i = 0;

	while (i < t.len) {
		characters += ((unsigned char)t.data[i] & 0xc0) != 0x80;
		if (characters > 4 * tokens)
			break;
		i++;
	}
	return i;
}

/* By as much as there is too much, if that gains anything. */
static int shorten(struct arena *a, struct text *t, int64_t *excess)
{
	int64_t tokens = chat_estimate(*t);
	int64_t keep = tokens - *excess - NOTICE_TOKENS;
	char notice[80];
	size_t n, kept;
	char *text;

	if (keep < LEAST_TOKENS)
		keep = LEAST_TOKENS;
	if (keep + NOTICE_TOKENS >= tokens)
		return 0;
	kept = bytes_of_tokens(*t, keep);
	n = (size_t)snprintf(notice, sizeof(notice), "\n[shortened: the first %zu of %zu bytes]",
			     kept, t->len);
	text = arena_alloc(a, kept + n);
	if (!text)
		return -ENOMEM;
	memcpy(text, t->data, kept);
	memcpy(text + kept, notice, n);
	*t = (struct text) {.data = text, .len = kept + n};
	*excess -= tokens - chat_estimate(*t);
	return 0;
}

/* A question and its calls are sent whatever the budget says; room is made by what the calls
 * gave, the oldest first. */
static int shorten_results(struct arena *a, struct agent_message *messages, unsigned n,
			   int64_t excess)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < n && excess > 0; i++) {
		if (messages[i].role == AGENT_TOOL)
			r = shorten(a, &messages[i].text, &excess);
	}
	return r;
}

/* What came with the question, as far as there is room, and the question. */
static int read_given(struct chat_turn *t, struct agent_message **ret_messages, unsigned *ret_n)
{
	unsigned n = t->n_history - t->history_from;
	struct agent_message *messages =
		arena_zalloc(&t->job.context, (n + t->n_results + 1) * sizeof(messages[0]));

	if (!messages)
		return -ENOMEM;
	if (n > 0)
		memcpy(messages, t->history + t->history_from, n * sizeof(messages[0]));
	for (unsigned i = 0; i < t->n_results; i++)
		messages[n++] = (struct agent_message) {
			.role = AGENT_TOOL,
			.text = t->results[i].text,
			.call_id = t->results[i].call_id,
			.failed = t->results[i].failed,
		};
	/* Who says nothing adds nothing; but something has to be sent. */
	if (t->content.len > 0 || n == 0)
		messages[n++] = (struct agent_message) {.role = AGENT_USER, .text = t->content};
	*ret_messages = messages;
	*ret_n = n;
	return 0;
}

static int read_stored(struct chat_turn *t, int lane, int64_t to_turn,
		       struct agent_message **ret_messages, unsigned *ret_n)
{
	struct connection *db = turn_store(t, lane);
	struct arena *a = &t->job.context;
	struct agent_message *messages;
	struct message_row *rows;
	bool summary = false;
	unsigned n;
	int r;

	r = store_message_window(db, t->job.conversation, t->job.from_turn, to_turn, a, &rows, &n);
	if (r != 0)
		return r;
	messages = arena_zalloc(a, (n + 1) * sizeof(messages[0]));
	if (!messages)
		return -ENOMEM;
	if (t->job.has_summary)
		r = read_summary(db, t, &messages[0], &summary);
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = copy_message(a, &rows[i], &messages[i + summary]);
	*ret_messages = messages;
	*ret_n = n + summary;
	return r;
}

int context_read(struct chat_turn *t, int lane, int64_t to_turn)
{
	struct agent_message *messages = NULL;
	unsigned n = 0;
	int r;

	r = t->own_history ? read_given(t, &messages, &n)
			   : read_stored(t, lane, to_turn, &messages, &n);
	if (r == 0)
		r = shorten_results(&t->job.context, messages, n, t->job.excess);
	if (r == 0)
		r = pair_calls(&t->job.context, &messages, &n);
	t->job.ask = (struct agent_ask) {
		.conversation = t->name,
		.system = t->job.system,
		.messages = messages,
		.n_messages = n,
		.tools = t->tools,
		.n_tools = t->n_tools,
		.first = t->job.first,
	};
	return r;
}

/* A memory that cannot be searched is no reason not to answer. */
static int add_notes(struct chat_turn *t, int lane)
{
	const struct memory_query q = {.text = t->content, .by = t->by, .limit = NOTES_MAX};
	struct arena *a = &t->job.context;
	struct agent_note *notes;
	struct memory *hits;
	struct why why = {0};
	unsigned n;

	if (!t->content.data || memory_search(t->chat->services, lane, a, &q, &hits, &n, &why) != 0)
		return 0;
	notes = arena_alloc(a, (n + 1) * sizeof(notes[0]));
	if (!notes)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		notes[i] = (struct agent_note) {.text = hits[i].content,
						.source = hits[i].source,
						.created_ms = hits[i].created_ms};
	t->job.ask.notes = notes;
	t->job.ask.n_notes = n;
	return 0;
}

int context_prepare(struct chat_turn *t, int lane)
{
	const struct agent_ops *ops = t->agent->ops;
	struct agent_ask *ask = &t->job.ask;
	int r = ops->wants_notes ? add_notes(t, lane) : 0;

	if (r == 0 && ops->prepare)
		r = ops->prepare(t->agent, &t->job.context, ask, &ask->prepared);
	return r;
}
