/*
 * Continuing a session: a new one that starts where another ended, with the parent's
 * configuration unless something else is said. A parent that is running is interrupted first and
 * waited for, also on another host; what continues it runs here.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/session/inner.h"
#include "store/store.h"

struct continuation {
	struct work work;
	struct session_ender ender;
	struct sessions *sessions;
	struct arena arena;
	struct session_new in; /* its texts are in the arena */
	struct text parent;
	struct session row;
	bool found;
	bool again;  /* it has been looked up a second time */
	bool wished; /* another host runs it, and was asked to interrupt it */
	int result;
	session_launched_fn fn;
	void *arg;
};

static void continuation_free(struct continuation *c)
{
	arena_done(&c->arena);
	free(c);
}

static void refuse_continuation(struct continuation *c, int result, const struct error *error)
{
	session_launched_fn fn = c->fn;
	void *arg = c->arg;

	continuation_free(c);
	fn(arg, result, NULL, error);
}

static bool has_ended(enum session_status status)
{
	return status >= SESSION_COMPLETED;
}

static int check_parent(const struct session_wording *wording, const struct session *row,
			bool is_open, struct error *error)
{
	bool good = has_ended(row->status) || (is_open && row->status != SESSION_STARTING);

	if (!good)
		return refuse(
			error, REFUSE_CONFLICT,
			"cannot continue session with status %s (must be completed or running)",
			session_status_name(row->status));
	if (!row->agent_session.data)
		return wording->no_agent_session(error);
	if (!row->working_dir.data)
		return refuse(error, REFUSE_CONFLICT,
			      "parent session missing working_dir (cannot resume session without "
			      "working directory)");
	return 0;
}

/* The parent has ended. */
static void session_continue_go_on(struct continuation *c)
{
	struct session *row = &c->row;
	struct error error = {0};
	int r = session_config_inherit(&c->arena, row, &c->in)
			?: session_launch_from(c->sessions, &c->in, row->id, row->agent_session,
					       c->fn, c->arg, &error);

	if (r != 0)
		refuse_continuation(c, r, &error);
	else
		continuation_free(c);
}

static void on_parent_ended(struct session_ender *e, const struct session *row)
{
	struct continuation *c = list_entry(e, struct continuation, ender);

	if (row)
		session_continue_go_on(c);
	else
		continuation_free(c);
}

static void look_for_parent(struct continuation *c)
{
	struct workers *workers = c->sessions->opts.workers;
	/* The second time it may be interrupted. */
	int r = workers_submit(workers, &c->work, c->again);

	if (r != 0)
		refuse_continuation(c, r, NULL);
}

/* Something has happened to the parent, on another host. */
static void look_once_more(struct session_ender *e)
{
	struct continuation *c = list_entry(e, struct continuation, ender);

	c->again = false;
	look_for_parent(c);
}

static void parent_found(struct continuation *c)
{
	struct live_session *l = session_live(c->sessions, c->row.id);
	bool is_open = l && !l->exited;
	struct error error = {0};
	int r;

	c->ender.fn = on_parent_ended;
	c->ender.look = look_once_more;
	c->ender.session = c->row.id;
	if (c->wished) {
		list_append(&c->sessions->elsewhere, &c->ender.link);
		return;
	}
	/* It ended after it was read: the store has newer data. */
	if (!l && !has_ended(c->row.status) && !c->again) {
		c->again = true;
		look_for_parent(c);
		return;
	}
	/* The state in memory is newer. */
	if (l) {
		c->row.status = l->row.status;
		r = arena_copy_text(&c->arena, l->row.agent_session, &c->row.agent_session);
		if (r != 0) {
			refuse_continuation(c, r, NULL);
			return;
		}
	}
	r = check_parent(c->sessions->opts.wording, &c->row, is_open, &error);
	if (r != 0) {
		refuse_continuation(c, r, &error);
		return;
	}
	if (!is_open) {
		session_continue_go_on(c);
		return;
	}
	list_append(&l->enders, &c->ender.link);
	session_cancel(l);
}

static int continuation_run(struct work *w, int lane)
{
	struct continuation *c = list_entry(w, struct continuation, work);
	int r = store_session_find(store_lane(c->sessions->opts.store, lane), c->parent, &c->arena,
				   &c->row, &c->found);
	struct error error;

	c->wished = false;
	if (r == 0 && c->found && c->again && !has_ended(c->row.status) &&
	    check_parent(c->sessions->opts.wording, &c->row, true, &error) == 0)
		r = session_wish(c->sessions, &c->arena, &c->row, &c->wished);
	return r;
}

static void continuation_finished(struct work *w, int result)
{
	struct continuation *c = list_entry(w, struct continuation, work);
	struct error error = {0};

	if (result == 0 && !c->found)
		result = session_refuse_unknown(c->parent, &error);
	if (result == 0 && c->sessions->records.stopping)
		result = refuse(&error, REFUSE_STOPPING, "koined is stopping");
	if (result != 0)
		refuse_continuation(c, result, &error);
	else
		parent_found(c);
}

/* A copy that lives as long as the continuation. */
static int copy_new(struct continuation *c, const struct session_new *from)
{
	struct session_new *in = &c->in;
	struct text *const texts[] = {&in->query, &in->title, &in->model, &in->working_dir,
				      &in->agent};
	struct text packed;
	int r = session_config_make(&c->arena, from, in, &packed);

	in->query = from->query;
	in->title = from->title;
	in->model = from->model;
	in->working_dir = from->working_dir;
	in->agent = from->agent;
	for (unsigned i = 0; r == 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
		r = arena_copy_text(&c->arena, *texts[i], texts[i]);
	return r;
}

int session_continue(struct sessions *s, struct text parent, const struct session_new *in,
		     session_launched_fn fn, void *arg, struct error *error)
{
	struct continuation *c;
	int r = session_check_new(in, error);

	if (r != 0)
		return r;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	arena_init(&c->arena, SESSION_ARENA_MAX);
	list_init(&c->ender.link);
	c->sessions = s;
	c->fn = fn;
	c->arg = arg;
	c->work = (struct work) {
		.run = continuation_run, .finished = continuation_finished, .arena = &c->arena};
	r = arena_copy_text(&c->arena, parent, &c->parent)
		    ?: copy_new(c, in) ?: workers_submit(s->opts.workers, &c->work, false);
	if (r != 0)
		continuation_free(c);
	return r;
}
