/* Reads sessions and what they said from the store. Runs on a reader's thread. */
#include <errno.h>
#include <string.h>

#include "engine/session/inner.h"
#include "store/store.h"

enum { BRIEF = 200, EVENTS_DEFAULT_BYTES = 64 << 20, LIST_BYTES = 64 << 20 };

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

	return store_session_list(store_lane(s->opts.store, lane), &q, a, ret_rows, ret_n);
}

static int not_found(struct text id, struct why *why)
{
	return refuse(why, REFUSE_NOT_FOUND, "session not found: %.*s", TEXT_ARGS(id));
}

int session_get(struct sessions *s, int lane, struct arena *a, struct text id, bool short_id,
		struct session *ret_row, struct why *why)
{
	struct connection *c = store_lane(s->opts.store, lane);
	struct text ids[2];
	unsigned n = 0;
	bool found = false;
	int r = 0;

	if (short_id)
		r = store_session_find_short(c, id, a, ids, &n);
	if (r == 0 && n > 1)
		return refuse_field(
			why, "id", "'%.*s' begins more than one session's id: %.*s and %.*s",
			TEXT_ARGS(text_cut(id, 36)), TEXT_ARGS(ids[0]), TEXT_ARGS(ids[1]));
	if (r == 0)
		r = store_session_find(c, n == 1 ? ids[0] : id, a, ret_row, &found);
	return r == 0 && !found ? not_found(id, why) : r;
}

struct page {
	struct connection *connection;
	struct arena *arena;
	const struct session_events_query *query;
	struct session_event *events;
	unsigned n, room;
	size_t bytes, max_bytes;
	bool more;
};

static size_t size_of(const struct session_event *row)
{
	return row->content.len + row->tool_input.bytes.len;
}

static int take(struct page *p, const struct session_event *row)
{
	if (p->n == p->room) {
		unsigned room = p->room ? 2 * p->room : 64;
		struct session_event *grown = arena_alloc(p->arena, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		if (p->n > 0)
			memcpy(grown, p->events, p->n * sizeof(*grown));
		p->events = grown;
		p->room = room;
	}
	p->events[p->n++] = *row;
	p->bytes += size_of(row);
	return 0;
}

static bool is_full(const struct page *p)
{
	return (p->query->limit > 0 && p->n >= (unsigned)p->query->limit) ||
	       p->bytes >= p->max_bytes;
}

/* The events of one session, by our id or by the agent's own. */
static int read_events(struct page *p, struct text session, struct text agent_session)
{
	struct store_session_events_query q = {
		.session = session,
		.agent_session = agent_session,
		.after_id = p->query->after_id,
		.limit = SESSION_EVENTS_MAX,
		.max_bytes = 4 << 20,
	};
	struct session_event *rows;
	unsigned n;
	int r = 0;

	do {
		r = store_session_events(p->connection, &q, p->arena, &rows, &n);
		for (unsigned i = 0; r == 0 && i < n; i++) {
			if (is_full(p)) {
				p->more = true;
				return 0;
			}
			q.after_id = rows[i].id;
			if (rows[i].type != SESSION_RAW || p->query->raw)
				r = take(p, &rows[i]);
		}
	} while (r == 0 && n > 0);
	return r;
}

static int read_chain(struct page *p)
{
	struct text *ids;
	unsigned n;
	int r = store_session_chain(p->connection, p->query->session, SESSION_CHAIN_MAX, p->arena,
				    &ids, &n);

	for (unsigned i = 0; r == 0 && i < n && !p->more; i++)
		r = read_events(p, ids[i], (struct text) {0});
	return r;
}

int session_events(struct sessions *s, int lane, struct arena *a,
		   const struct session_events_query *q, struct session_event **ret_events,
		   unsigned *ret_n, bool *ret_more)
{
	struct page p = {
		.connection = store_lane(s->opts.store, lane),
		.arena = a,
		.query = q,
		.max_bytes = q->max_bytes ? q->max_bytes : EVENTS_DEFAULT_BYTES,
	};
	int r;

	if (q->agent_session.data)
		r = read_events(&p, (struct text) {0}, q->agent_session);
	else if (q->chain)
		r = read_chain(&p);
	else
		r = read_events(&p, q->session, (struct text) {0});
	*ret_events = p.events;
	*ret_n = p.n;
	*ret_more = p.more;
	return r;
}

int session_paths(struct sessions *s, int lane, struct arena *a, int64_t limit,
		  struct session_path **ret_paths, unsigned *ret_n)
{
	unsigned n = limit > 0 && limit < SESSION_LIST_MAX ? (unsigned)limit : 20;

	return store_session_paths(store_lane(s->opts.store, lane), n, a, ret_paths, ret_n);
}
