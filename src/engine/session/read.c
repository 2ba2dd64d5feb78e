/* Reads sessions and what they said from the store. Runs on a reader's thread. */
#include <errno.h>
#include <string.h>

#include "engine/session/inner.h"
#include "store/store.h"

enum { BRIEF = 200, LIST_BYTES = 64 << 20 };

int session_list(struct sessions *s, int lane, struct arena *a, const struct session_filter *f,
		 struct session **ret_rows, unsigned *ret_n)
{
	const struct store_session_query q = {
		.archived = f->archived,
		.status = f->status,
		.leaves = f->leaves,
		.limit = f->limit > 0 && f->limit < SESSION_LIST_MAX ? (unsigned)f->limit
								     : SESSION_LIST_MAX,
		.cut = f->brief ? BRIEF : 0,
		.max_bytes = LIST_BYTES,
	};

	int r = store_session_list(store_lane(s->opts.store, lane), &q, a, ret_rows, ret_n);

	if (r == 0 && f->observed && f->archived != ARCHIVED_ONLY)
		r = observed_merge(s, lane, a, f, ret_rows, ret_n);
	return r;
}

int session_refuse_unknown(struct text id, struct error *error)
{
	return refuse(error, REFUSE_NOT_FOUND, "session not found: %.*s", TEXT_ARGS(id));
}

int session_refuse_prefix(struct text id, const struct text found[2], struct error *error)
{
	return refuse_field(error, "id", "ambiguous session id '%.*s': matches %.*s and %.*s",
			    TEXT_ARGS(text_cut(id, 36)), TEXT_ARGS(found[0]), TEXT_ARGS(found[1]));
}

int session_get(struct sessions *s, int lane, struct arena *a, struct text id, bool short_id,
		struct session *ret_row, struct error *error)
{
	struct connection *c = store_lane(s->opts.store, lane);
	struct text ids[2];
	unsigned n = 0;
	bool found = false;
	int r = 0;

	if (short_id)
		r = store_session_find_short(c, id, a, ids, &n);
	if (r == 0 && n > 1)
		return session_refuse_prefix(id, ids, error);
	if (r == 0)
		r = store_session_find(c, n == 1 ? ids[0] : id, a, ret_row, &found);
	return r == 0 && !found ? session_refuse_unknown(id, error) : r;
}

/* ---- what was said ---- */

struct session_read_reading {
	struct connection *connection;
	struct arena *arena;
	const struct session_events_query *query;
	struct session_chain chain;
	struct session_page page;
	unsigned room;
	size_t bytes;
};

static size_t size_of(const struct session_event *row)
{
	return row->content.len + row->tool_input.bytes.len;
}

static int session_read_take(struct session_read_reading *t, const struct session_event *row)
{
	struct session_page *p = &t->page;

	if (p->n == t->room) {
		unsigned room = t->room ? 2 * t->room : 64;
		struct session_event *grown = arena_alloc(t->arena, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		if (p->n > 0)
			memcpy(grown, p->events, p->n * sizeof(*grown));
		p->events = grown;
		t->room = room;
	}
	p->events[p->n++] = *row;
	t->bytes += size_of(row);
	return 0;
}

static bool is_full(const struct session_read_reading *t)
{
	return t->page.n >= t->query->limit || t->bytes >= t->query->max_bytes;
}

/* What still fits, and one more, which tells whether there is more. */
static int read_some(struct session_read_reading *t, struct store_session_events_query *q,
		     struct session_event **ret_rows, unsigned *ret_n)
{
	q->limit = t->query->limit - t->page.n + 1;
	q->max_bytes = is_full(t) ? 1 : t->query->max_bytes - t->bytes;
	return store_session_events(t->connection, q, t->arena, ret_rows, ret_n);
}

/* The events of one session, by our id or by the agent's own. */
static int read_events(struct session_read_reading *t, struct text session,
		       struct text agent_session)
{
	struct store_session_events_query q = {
		.session = session,
		.agent_session = agent_session,
		.after_id = t->query->after_id,
		.before_id = t->query->before_id,
		.newest = t->query->newest,
		.raw = t->query->raw,
	};
	struct session_event *rows;
	unsigned n;
	int r;

	do {
		r = read_some(t, &q, &rows, &n);
		for (unsigned i = 0; r == 0 && i < n; i++) {
			t->page.more = is_full(t);
			if (t->page.more)
				return 0;
			*(q.newest ? &q.before_id : &q.after_id) = rows[i].id;
			r = session_read_take(t, &rows[i]);
		}
	} while (r == 0 && n > 0);
	return r;
}

/* ---- chains ---- */

/* Goes to the session that the last one continues. *ret_found is false at the end. */
static int go_back(struct session_read_reading *t, bool *ret_found)
{
	int r = store_session_chain_next(t->connection, &t->chain, t->arena, ret_found);

	if (r != 0 || !*ret_found || t->chain.n <= SESSION_CHAIN_MAX)
		return r;
	t->chain.n--;
	t->page.cut = true;
	*ret_found = false;
	return 0;
}

/* Whether the session began before that event. Those that it continues have nothing after it. */
static int began_before(struct session_read_reading *t, struct text session, int64_t id,
			bool *ret_began)
{
	const struct store_session_events_query q = {.session = session,
						     .before_id = id < INT64_MAX ? id + 1 : 0,
						     .raw = true,
						     .limit = 1};
	struct session_event *rows;
	unsigned n;
	int r = store_session_events(t->connection, &q, t->arena, &rows, &n);

	if (r == 0)
		*ret_began = n > 0;
	return r;
}

static int read_chain_back(struct session_read_reading *t)
{
	bool found = true;
	int r = 0;

	while (r == 0 && found && !t->page.more) {
		r = go_back(t, &found);
		if (r == 0 && found)
			r = read_events(t, t->chain.links[t->chain.n - 1].id, (struct text) {0});
	}
	return r;
}

static int read_chain_on(struct session_read_reading *t)
{
	int64_t after = t->query->after_id;
	bool found = true, began = false;
	int r = 0;

	while (r == 0 && found && !began) {
		r = go_back(t, &found);
		if (r == 0 && found && after > 0)
			r = began_before(t, t->chain.links[t->chain.n - 1].id, after, &began);
	}
	for (unsigned i = t->chain.n; r == 0 && i-- > 0 && !t->page.more;)
		r = read_events(t, t->chain.links[i].id, (struct text) {0});
	return r;
}

static void turn_round(struct session_page *p)
{
	for (unsigned i = 0, j = p->n; i + 1 < j; i++) {
		struct session_event first = p->events[i];

		p->events[i] = p->events[--j];
		p->events[j] = first;
	}
}

int session_events(struct sessions *s, int lane, struct arena *a,
		   const struct session_events_query *q, struct session_page *ret_page)
{
	struct session_read_reading t = {
		.connection = store_lane(s->opts.store, lane),
		.arena = a,
		.query = q,
		.chain = {.id = q->session},
	};
	int r;

	if (q->agent_session.data)
		r = read_events(&t, (struct text) {0}, q->agent_session);
	else if (!q->chain)
		r = read_events(&t, q->session, (struct text) {0});
	else
		r = q->newest ? read_chain_back(&t) : read_chain_on(&t);
	if (r != 0)
		return r;
	if (q->newest)
		turn_round(&t.page);
	*ret_page = t.page;
	return 0;
}

/* ---- folders ---- */

int session_paths(struct sessions *s, int lane, struct arena *a, int64_t limit,
		  struct session_path **ret_paths, unsigned *ret_n)
{
	if (limit < 1)
		limit = SESSION_PATHS_DEFAULT;
	if (limit > SESSION_LIST_MAX)
		limit = SESSION_LIST_MAX;
	return store_session_paths(store_lane(s->opts.store, lane), (unsigned)limit, a, ret_paths,
				   ret_n);
}
