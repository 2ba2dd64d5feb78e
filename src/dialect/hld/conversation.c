/*
 * getConversation: what was said in a session, as far as an answer holds it.
 *
 * Most conversations fit, and are written as they are read. Of a longer one, texts are cut first,
 * and if that is not enough the oldest events are left out. How much fits is found on a walk
 * from the newest event backwards, which weighs each one as it would be shown; then what fits is
 * read again and written. No walk holds more than a page, however long the session is.
 */
#include <errno.h>

#include "dialect/hld/hld.h"
#include "dialect/engine.h"

enum {
	PAGE_EVENTS = 2000,
	PAGE_BYTES = 4 << 20,
	WALK_BYTES = 64 << 20,     /* of text: further back nothing is looked for */
	INPUT_TEXT_MAX = 16 << 20, /* bytes of a tool's input, as text */
	SPARE = 256,               /* the part of an answer that is left free */
};

/* ---- an event ---- */

/* A string that holds JSON, as Go made it. It is left out rather than cut, since a part would
 * not be JSON. */
static void write_input(struct json *j, struct text input, size_t cut, bool *ret_cut)
{
	struct buf text;
	struct json inner;

	if (!input.data)
		return;
	buf_init(&text, INPUT_TEXT_MAX);
	inner = json_writer(&text);
	hld_write_sorted(&inner, input);
	json_escape_html(&text);
	if (text.len > cut || (text.err == -EMSGSIZE && cut < INPUT_TEXT_MAX))
		*ret_cut = true;
	else if (text.err == 0)
		json_member_text(j, "tool_input_json",
				 (struct text) {.data = text.data, .len = text.len});
	else
		j->out->err = text.err;
	buf_done(&text);
}

/* Returns true if any of it was cut. */
static bool write_event(struct json *j, const struct session_event *row, size_t cut)
{
	const bool is_call = row->type == SESSION_TOOL_CALL;
	const bool is_result = row->type == SESSION_TOOL_RESULT;
	const uint32_t not_of =
		(is_call ? HLD_NOT_OF_CALL : 0) | (is_result ? HLD_NOT_OF_RESULT : HLD_OF_RESULT);
	const struct selection first = {.without = HLD_BEHIND | HLD_LAST | not_of};
	const struct selection behind = {.with = HLD_BEHIND, .without = not_of};
	const struct selection last = {.with = HLD_LAST};
	const struct hld_fit fit = {.cut = cut};
	struct session_event shown = *row;
	bool is_cut = false;

	shown.completed = is_call && row->completed;
	json_begin_object(j);
	hld_members(j, &hld_session_event, first, &shown, &fit, &is_cut);
	write_input(j, row->tool_input.bytes, cut, &is_cut);
	hld_members(j, &hld_session_event, behind, &shown, &fit, &is_cut);
	if (is_cut)
		json_member_bool(j, "truncated", true);
	hld_members(j, &hld_session_event, last, &shown, &fit, &is_cut);
	json_end_object(j);
	return is_cut;
}

/* ---- the way on ---- */

/* Writes what q finds, page by page, as far as there is room. `is_cut`: there are events before. */
static int write_events(struct call *c, struct session_events_query q, struct json *j, size_t cut,
			bool is_cut)
{
	struct session_page page = {.more = true};
	int r = 0;

	json_begin_object(j);
	json_member_array(j, "events");
	while (r == 0 && page.more && j->out->err == 0) {
		struct arena_mark mark = arena_mark(&c->arena);

		r = session_events(call_sessions(c), c->lane, &c->arena, &q, &page);
		for (unsigned i = 0; r == 0 && i < page.n; i++) {
			write_event(j, &page.events[i], cut);
			q.after_id = page.events[i].id;
		}
		is_cut = is_cut || page.cut;
		arena_rewind(&c->arena, &mark);
	}
	json_end_array(j);
	if (is_cut)
		json_member_bool(j, "truncated", true);
	json_end_object(j);
	return r;
}

/* ---- the walk back ---- */

/* The events that fit when texts are cut so: from the newest back to `first`. */
struct showing {
	size_t bytes;
	int64_t first;
	bool is_full; /* the next one did not fit */
};

struct hld_conversation_walk {
	struct call *call;
	struct session_events_query query;
	size_t max;         /* bytes of all events */
	struct buf scratch; /* one event as it would be shown */
	struct showing showings[HLD_N_CUTS];
	size_t read;  /* bytes of text */
	int64_t last; /* the newest event */
	bool cut;     /* there is more than was looked at */
};

static int weigh(struct hld_conversation_walk *w, const struct session_event *e, size_t cut,
		 size_t *ret_bytes, bool *ret_cut)
{
	struct json j = json_writer(&w->scratch);

	buf_clear(&w->scratch);
	*ret_cut = write_event(&j, e, cut);
	*ret_bytes = w->scratch.err == 0 ? hld_size(w->scratch.data, w->scratch.len) + 1 : SIZE_MAX;
	return w->scratch.err == -EMSGSIZE ? 0 : w->scratch.err;
}

/* What does not fit in this showing does not fit in those that cut less. */
static void hld_conversation_fill(struct hld_conversation_walk *w, unsigned i)
{
	do {
		w->showings[i].is_full = true;
	} while (i-- > 0);
}

/* An event of which nothing was cut looks the same in all showings that cut less. */
static int hld_conversation_add(struct hld_conversation_walk *w, const struct session_event *e)
{
	bool is_cut = true;
	size_t bytes = 0;
	int r = 0;

	for (unsigned i = HLD_N_CUTS; i-- > 0 && !w->showings[i].is_full;) {
		struct showing *s = &w->showings[i];

		if (is_cut)
			r = weigh(w, e, hld_cuts[i], &bytes, &is_cut);
		if (r != 0)
			return r;
		if (bytes > w->max - s->bytes) {
			hld_conversation_fill(w, i);
			break;
		}
		s->bytes += bytes;
		s->first = e->id;
	}
	w->read += e->content.len + e->tool_input.bytes.len;
	return 0;
}

static bool hld_conversation_is_over(const struct hld_conversation_walk *w)
{
	return w->showings[HLD_N_CUTS - 1].is_full || w->read >= WALK_BYTES;
}

static int walk_page(struct hld_conversation_walk *w, struct session_page *page)
{
	struct session_events_query *q = &w->query;
	int r = session_events(call_sessions(w->call), w->call->lane, &w->call->arena, q, page);

	if (r != 0 || page->n == 0)
		return r;
	if (w->last == 0)
		w->last = page->events[page->n - 1].id;
	q->before_id = page->events[0].id;
	for (unsigned i = page->n; r == 0 && i-- > 0 && !hld_conversation_is_over(w);) {
		r = hld_conversation_add(w, &page->events[i]);
		w->cut = i > 0 || page->more || page->cut;
	}
	return r;
}

static int walk_back(struct hld_conversation_walk *w)
{
	struct session_page page = {.more = true};
	int r = 0;

	while (r == 0 && page.more && !hld_conversation_is_over(w)) {
		struct arena_mark mark = arena_mark(&w->call->arena);

		r = walk_page(w, &page);
		arena_rewind(&w->call->arena, &mark);
	}
	return r;
}

/* ---- the answer ---- */

/* Texts are cut as little as shows all events; if none shows all, as much as shows the most. */
static int write_what_fits(struct hld_conversation_walk *w, struct json *j)
{
	struct session_events_query q = w->query;
	const struct showing *s;
	unsigned i = 0;
	int r = walk_back(w);

	if (r != 0)
		return r;
	while (i + 1 < HLD_N_CUTS && w->showings[i].is_full)
		i++;
	s = &w->showings[i];
	/* If not even the newest one fits, nothing is shown. */
	q.newest = false;
	q.after_id = s->first > 0 ? s->first - 1 : w->last;
	q.before_id = w->last + 1;
	return write_events(w->call, q, j, hld_cuts[i], w->cut || s->is_full);
}

static int write_conversation(struct call *c, const struct session_events_query *q)
{
	struct hld_fit fit = hld_fit_begin(c, true);
	size_t max = hld_fit_max(&fit);
	/* Between the walk and the writing, calls may get their approvals. */
	struct hld_conversation_walk w = {.call = c, .query = *q, .max = max - max / SPARE};
	int r;

	r = write_events(c, *q, fit.json, hld_cuts[0], false);
	if (r != 0 || !hld_fit_again(&fit))
		return r;
	buf_init(&w.scratch, w.max);
	w.query.newest = true;
	r = write_what_fits(&w, fit.json);
	buf_done(&w.scratch);
	return r;
}

struct done hld_conversation(struct call *c)
{
	const struct hld_session_in *in = c->in;
	const struct session_events_query q = {
		.session = hld_some(in->session_id),
		.agent_session = hld_some(in->claude_session_id),
		.chain = true,
		.limit = PAGE_EVENTS,
		.max_bytes = PAGE_BYTES,
	};
	int r;

	if (!q.session.data && !q.agent_session.data)
		r = refuse_field(&c->error, "session_id",
				 "either session_id or claude_session_id is required");
	else
		r = write_conversation(c, &q);
	return r != 0 ? call_fail(c, r) : call_reply(c);
}
