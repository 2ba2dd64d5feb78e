/* Approvals and the sessions that ask: the open requests of a session that ends are ended, and a
 * tool call is tied to the approval that was requested for it. */
#include <stdlib.h>
#include <string.h>

#include "engine/approval/inner.h"
#include "store/session.h"
#include "store/store.h"

enum { ENDED_MAX = 256 };

/* ---- its end, while requests are on their way ---- */

struct ended {
	struct list link;
	uint64_t serial; /* of the last request before it */
	size_t len;
	char session[];
};

static void drop_ended(struct approvals *a)
{
	struct ended *e = list_entry(list_first(&a->ended), struct ended, link);

	list_remove(&e->link);
	a->n_ended--;
	free(e);
}

void approval_ended_clear(struct approvals *a)
{
	while (a->n_ended > 0)
		drop_ended(a);
}

static void note_end(struct approvals *a, struct text session)
{
	struct ended *e;

	if (a->n_coming == 0)
		return;
	e = calloc(1, sizeof(*e) + session.len);
	if (!e)
		return;
	e->serial = a->n_asked;
	e->len = session.len;
	memcpy(e->session, session.data, session.len);
	list_append(&a->ended, &e->link);
	if (++a->n_ended > ENDED_MAX)
		drop_ended(a);
}

bool approval_ended_after(const struct approvals *a, uint64_t serial, struct text session)
{
	list_for_each (at, following, &a->ended) {
		const struct ended *e = list_entry(at, struct ended, link);
		const struct text at_end = {.data = e->session, .len = e->len};

		if (serial <= e->serial && text_equal(at_end, session))
			return true;
	}
	return false;
}

void approval_session_ended(struct approvals *a, struct text session)
{
	if (!a)
		return;
	list_for_each (at, following, &a->pending) {
		struct pending *p = list_entry(at, struct pending, link);

		if (p->row.session.data && text_equal(p->row.session, session) && !p->ending)
			pending_end_as(a, p, END_SESSION);
	}
	note_end(a, session);
}

/* ---- its calls ---- */

int approval_tie(struct approvals *approvals, struct arena *a, const struct session_event *event,
		 struct text run, struct text *ret_id)
{
	struct connection *db = store_writer(approvals->opts.store);
	struct approval row;
	bool found = false;
	int r = store_approval_untied(db, run, event->tool_name, event->tool_id,
				      event->created_ms - APPROVAL_TIE_MS, a, &row, &found);

	if (r == 0 && found)
		r = store_approval_tie(db, row.seq, event->session, event->id);
	if (r == 0 && found)
		r = store_session_event_approval(db, event->id, approval_event_word(row.status),
						 row.id);
	if (r == 0)
		*ret_id = found ? row.id : (struct text) {0};
	return r;
}
