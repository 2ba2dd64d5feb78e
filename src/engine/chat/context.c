/* What an agent is sent of a conversation, read from the store on a reader's thread. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/chat/inner.h"
#include "engine/memory/memory.h"
#include "store/chat.h"
#include "store/store.h"

enum {
	NOTES_MAX = 8,
	LEAST_TOKENS = 50,  /* of a result that is shortened */
	NOTICE_TOKENS = 15, /* says that it was shortened */
};

static const char summary_intro[] = "Summary of the conversation so far:\n";

/* Stands for the turns that are no longer sent. */
static int read_summary(struct connection *db, struct errand *e, struct message *to,
			bool *ret_found)
{
	struct arena *a = &e->context.arena;
	size_t n_intro = sizeof(summary_intro) - 1;
	struct conversation row;
	char *text;
	int r = store_conversation_find(db, e->context.ask.conversation, a, &row, ret_found);

	*ret_found = r == 0 && *ret_found && row.summary.len > 0;
	if (!*ret_found)
		return r;
	text = arena_alloc(a, n_intro + row.summary.len);
	if (!text)
		return -ENOMEM;
	memcpy(text, summary_intro, n_intro);
	memcpy(text + n_intro, row.summary.data, row.summary.len);
	*to = (struct message) {.role = MESSAGE_USER,
				.text = {.data = text, .len = n_intro + row.summary.len}};
	return 0;
}

static bool has_call(const struct message *m, struct text id)
{
	for (unsigned i = 0; i < m->n_calls; i++) {
		if (text_equal(m->calls[i].id, id))
			return true;
	}
	return false;
}

static bool has_result(const struct message *m, unsigned n, struct text id)
{
	for (unsigned i = 0; i < n && m[i].role == MESSAGE_TOOL; i++) {
		if (text_equal(m[i].call_id, id))
			return true;
	}
	return false;
}

static unsigned count_calls(const struct message *messages, unsigned n)
{
	unsigned n_calls = 0;

	for (unsigned i = 0; i < n; i++)
		n_calls += messages[i].n_calls;
	return n_calls;
}

/*
 * Providers refuse a call without its result, and a result without its call. The asker may
 * never have sent the result, and the call may be too old to be sent. A call without a result
 * gets one that says so; a result without its call is sent as ordinary text.
 */
static int pair_calls(struct arena *a, struct message **messages, unsigned *n)
{
	const struct message *from = *messages;
	const struct message *caller = NULL; /* whose results follow */
	unsigned n_calls = count_calls(from, *n);
	struct message *to = arena_alloc(a, (*n + n_calls) * sizeof(to[0]));
	unsigned k = 0;

	if (!to)
		return -ENOMEM;
	for (unsigned i = 0; i < *n; i++) {
		to[k] = from[i];
		if (from[i].role != MESSAGE_TOOL)
			caller = from[i].role == MESSAGE_ASSISTANT ? &from[i] : NULL;
		if (from[i].role == MESSAGE_TOOL && (!caller || !has_call(caller, from[i].call_id)))
			to[k] = (struct message) {.role = MESSAGE_USER, .text = from[i].text};
		k++;
		for (unsigned c = 0; c < from[i].n_calls; c++) {
			struct text id = from[i].calls[c].id;

			if (!has_result(&from[i + 1], *n - i - 1, id))
				to[k++] = (struct message) {
					.role = MESSAGE_TOOL,
					.text = TEXT("the tool returned no result"),
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

/* Shortens it by the excess, if that gains anything. */
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

/* A question and its calls are sent whatever the budget is; to make room, the results of the
 * calls are shortened, oldest first. */
static int shorten_results(struct arena *a, struct message *messages, unsigned n, int64_t excess)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < n && excess > 0; i++) {
		if (messages[i].role == MESSAGE_TOOL)
			r = shorten(a, &messages[i].text, &excess);
	}
	return r;
}

/* In the form that providers accept, with room for the answer. */
static int send_messages(struct errand *e, struct message *messages, unsigned n)
{
	struct arena *a = &e->context.arena;
	int r;

	/* Agents rely on a message. The conversation was purged meanwhile. */
	if (n == 0)
		return -ENOENT;
	r = shorten_results(a, messages, n, e->context.excess) ?: pair_calls(a, &messages, &n);
	e->context.ask.messages = messages;
	e->context.ask.n_messages = n;
	return r;
}

int context_read(struct errand *e, struct connection *db, int64_t conversation, int64_t to_turn)
{
	struct arena *a = &e->context.arena;
	struct message *messages;
	struct message *rows;
	bool summary = false;
	unsigned n;
	int r;

	r = store_message_window(db, conversation, e->context.from_turn, to_turn, a, &rows, &n);
	if (r != 0)
		return r;
	messages = arena_alloc(a, (n + 1) * sizeof(messages[0]));
	if (!messages)
		return -ENOMEM;
	if (e->context.has_summary)
		r = read_summary(db, e, &messages[0], &summary);
	if (n > 0)
		memcpy(messages + summary, rows, n * sizeof(rows[0]));
	return r != 0 ? r : send_messages(e, messages, n + summary);
}

/* The history that came with the question, and the question. */
static int take_given(struct errand *e, const struct chat_ask *ask)
{
	unsigned n = ask->n_history;
	struct message *messages =
		arena_zalloc(&e->context.arena, (n + ask->n_results + 1) * sizeof(messages[0]));

	if (!messages)
		return -ENOMEM;
	if (n > 0)
		memcpy(messages, ask->history, n * sizeof(messages[0]));
	for (unsigned i = 0; i < ask->n_results; i++)
		messages[n++] = (struct message) {
			.role = MESSAGE_TOOL,
			.text = ask->results[i].text,
			.call_id = ask->results[i].call_id,
			.failed = ask->results[i].failed,
		};
	/* An empty message adds nothing; but something has to be sent. */
	if (ask->content.len > 0 || n == 0)
		messages[n++] = (struct message) {.role = MESSAGE_USER, .text = ask->content};
	return send_messages(e, messages, n);
}

/* If the memory cannot be searched, answer all the same. */
static int add_notes(struct errand *e, int lane, const struct chat_ask *ask)
{
	const struct memory_query q = {
		.text = ask->content, .by = ask->by, .limit = NOTES_MAX, .wait = &e->wait};
	struct arena *a = &e->context.arena;
	struct agent_note *notes;
	struct memory *hits;
	struct error error = {0};
	unsigned n;
	int r;

	if (!ask->content.data)
		return 0;
	r = memory_search(e->chat->opts.memories, lane, a, &q, &hits, &n, &error);
	if (r != 0)
		return r == WORK_WAITS ? r : 0;
	notes = arena_alloc(a, n * sizeof(notes[0]));
	if (!notes)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		notes[i] = (struct agent_note) {.text = hits[i].content,
						.source = hits[i].source,
						.created_ms = hits[i].created_ms};
	e->context.ask.notes = notes;
	e->context.ask.n_notes = n;
	return 0;
}

int context_prepare(struct chat_turn *t, int lane)
{
	struct errand *e = &t->errand;
	const struct agent_ops *ops = e->agent->ops;
	struct agent_ask *ask = &e->context.ask;
	/* First, because it may have to wait, and all of this begins again then. */
	int r = ops->wants_notes ? add_notes(e, lane, &t->ask) : 0;

	if (r != 0)
		return r;
	if (t->ask.own_history)
		r = take_given(e, &t->ask);
	else
		r = context_read(e, store_lane(e->chat->opts.store, lane),
				 t->record.lease.conversation, t->record.seq);
	if (r == 0 && ops->prepare)
		r = ops->prepare(e->agent, &e->context.arena, ask, &ask->prepared);
	return r;
}
