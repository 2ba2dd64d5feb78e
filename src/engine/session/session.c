/* The running sessions: start and stop, recovery after a crash, and what can be done to one of
 * them. */
#include "engine/session/session.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/approval/approval.h"
#include "engine/event/event.h"
#include "engine/session/inner.h"
#include "store/observed.h"
#include "store/store.h"

enum {
	PARALLEL = 64,
	INTERRUPT_MS = 5000,
	TERMINATE_MS = 5000,
	SWEEP_AT_ONCE = 10,
};

static const int64_t keep_bytes = 256LL << 20;

/* ---- sessions in memory ---- */

struct live_session *session_live(struct sessions *s, struct text id)
{
	list_for_each (at, following, &s->live) {
		struct live_session *l = list_entry(at, struct live_session, link);

		if (text_equal(l->row.id, id))
			return l;
	}
	return NULL;
}

void session_drop_enders(struct list *enders)
{
	struct list *first;

	while ((first = list_first(enders))) {
		struct session_ender *e = list_entry(first, struct session_ender, link);

		list_remove(first);
		e->fn(e, NULL);
	}
}

void session_drop(struct live_session *l)
{
	struct sessions *s = l->sessions;

	list_remove(&l->link);
	s->n_live--;
	session_drop_enders(&l->enders);
	session_run_free(l);
	record_drop(&l->record);
	buf_done(&l->result);
	buf_done(&l->error);
	arena_done(&l->arena);
	free(l);
	sessions_check_stopped(s);
}

void session_wait(struct sessions *s, struct text id, int change)
{
	struct live_session *l = s ? session_live(s, id) : NULL;

	if (!l || l->exited)
		return;
	if (change > 0)
		l->n_waiting++;
	else if (l->n_waiting > 0)
		l->n_waiting--;
	if (l->n_waiting > 0 && l->row.status == SESSION_RUNNING)
		session_set_status(l, SESSION_WAITING);
	else if (l->n_waiting == 0 && l->row.status == SESSION_WAITING)
		session_set_status(l, SESSION_RUNNING);
}

/* ---- interrupting ---- */

struct interruption {
	struct work work;
	struct record_waiter waiter;
	struct sessions *sessions;
	struct arena arena;
	struct text id;
	struct session row;
	bool found;
	bool wished; /* of the host that runs it */
	int result;
	session_done_fn fn;
	void *arg;
};

static void interruption_free(struct interruption *i)
{
	arena_done(&i->arena);
	free(i);
}

static void interruption_end(struct interruption *i, int result, const struct error *error)
{
	session_done_fn fn = i->fn;
	void *arg = i->arg;

	interruption_free(i);
	fn(arg, result, error);
}

static int refuse_status(struct error *error, enum session_status status)
{
	return refuse(error, REFUSE_CONFLICT,
		      "cannot interrupt session with status %s (must be running)",
		      session_status_name(status));
}

static void on_interrupt_kept(struct record_waiter *w, int result)
{
	struct interruption *i = list_entry(w, struct interruption, waiter);

	if (result == -ECANCELED)
		interruption_free(i);
	else
		interruption_end(i, result, NULL);
}

static bool can_interrupt(enum session_status status)
{
	return status == SESSION_RUNNING || status == SESSION_WAITING;
}

void session_cancel(struct live_session *l)
{
	if (l->exited || l->attempt.intent != INTENT_NONE)
		return;
	session_set_status(l, SESSION_COMPLETING);
	session_end_with(l, INTENT_CANCEL);
}

static int interrupt_live(struct live_session *l, struct interruption *i, struct error *error)
{
	if (!can_interrupt(l->row.status))
		return refuse_status(error, l->row.status);
	session_cancel(l);
	i->waiter.fn = on_interrupt_kept;
	return session_when_kept(l, &i->waiter);
}

static int interruption_run(struct work *w, int lane)
{
	struct interruption *i = list_entry(w, struct interruption, work);
	int r = store_session_find(store_lane(i->sessions->opts.store, lane), i->id, &i->arena,
				   &i->row, &i->found);

	i->wished = false;
	if (r == 0 && i->found && can_interrupt(i->row.status))
		r = session_wish(i->sessions, &i->arena, &i->row, &i->wished);
	return r;
}

/* It is not running here: its host was told, or say why not. */
static void interruption_finished(struct work *w, int result)
{
	struct interruption *i = list_entry(w, struct interruption, work);
	struct error error = {0};

	if (result == 0 && !i->found)
		result = session_refuse_unknown(i->id, &error);
	else if (result == 0 && !i->wished)
		result = refuse_status(&error, i->row.status);
	interruption_end(i, result, &error);
}

int session_interrupt(struct sessions *s, struct text id, session_done_fn fn, void *arg,
		      struct error *error)
{
	struct live_session *l = session_live(s, id);
	struct interruption *i = calloc(1, sizeof(*i));
	int r;

	if (!i)
		return -ENOMEM;
	arena_init(&i->arena, SESSION_ARENA_MAX);
	i->sessions = s;
	i->fn = fn;
	i->arg = arg;
	i->work = (struct work) {
		.run = interruption_run, .finished = interruption_finished, .arena = &i->arena};
	r = l ? interrupt_live(l, i, error)
	      : arena_copy_text(&i->arena, id, &i->id)
			  ?: workers_submit(s->opts.workers, &i->work, true);
	if (r != 0)
		interruption_free(i);
	return r;
}

/* ---- archiving and renaming ---- */

int session_set_archived(struct sessions *s, struct text id, bool archived, struct error *error)
{
	bool found;
	int r = store_session_set_archived(store_writer(s->opts.store), id, archived, &found);

	if (r == 0 && !found)
		return session_refuse_unknown(id, error);
	return r == 0 ? session_tell_changed(s->opts.events, id, NULL, &archived) : r;
}

int session_set_title(struct sessions *s, struct text id, struct text title, struct error *error)
{
	bool found;
	int r;

	if (title.len > SESSION_TITLE_MAX)
		return refuse_field(error, "title", "title is longer than %d bytes",
				    SESSION_TITLE_MAX);
	r = store_session_set_title(store_writer(s->opts.store), id, title, &found);
	if (r == 0 && !found)
		return session_refuse_unknown(id, error);
	return r == 0 ? session_tell_changed(s->opts.events, id, &title, NULL) : r;
}

int session_sweep(struct sessions *s, bool *ret_more)
{
	int64_t keep = s ? s->opts.keep_ms : 0;
	unsigned n = 0, n_seen = 0, n_silent = 0;
	int r = s ? observed_end_silent(s, &n_silent) : 0;

	if (r == 0 && keep > 0)
		r = store_session_sweep(store_writer(s->opts.store), clock_utc_ms() - keep,
					SWEEP_AT_ONCE, &n)
			    ?: store_observed_sweep(store_writer(s->opts.store),
						    clock_utc_ms() - keep, SWEEP_AT_ONCE, &n_seen);
	*ret_more = n == SWEEP_AT_ONCE || n_seen == SWEEP_AT_ONCE || n_silent > 0;
	return r;
}

/* ---- start ---- */

/* Sessions run in folders of their own: resolve a relative path of the program here, once. */
static char *program_words(const char *words)
{
	size_t first = strcspn(words, " \t\"'");
	char cwd[PATH_MAX];
	char *out;

	if (words[0] == '/' || !memchr(words, '/', first) || !getcwd(cwd, sizeof(cwd)) ||
	    strchr(cwd, '\''))
		return strdup(words);
	return asprintf(&out, "'%s/'%s", cwd, words) < 0 ? NULL : out;
}

static void set_limits(struct sessions *s)
{
	struct sessions_opts *o = &s->opts;

	o->parallel = o->parallel ? o->parallel : PARALLEL;
	o->interrupt_ms = o->interrupt_ms ? o->interrupt_ms : INTERRUPT_MS;
	o->terminate_ms = o->terminate_ms ? o->terminate_ms : TERMINATE_MS;
	o->keep_bytes = o->keep_bytes ? o->keep_bytes : keep_bytes;
}

static int set_up(struct sessions *s)
{
	int r = (s->folder && s->program ? 0 : -ENOMEM) ?: sessions_join(s);

	if (r != 0)
		return r;
	session_config_sweep(s->folder);
	return sessions_recover(s) ?: observed_load(s);
}

int sessions_start(const struct sessions_opts *opts, struct sessions **ret_sessions)
{
	struct sessions *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	set_limits(s);
	list_init(&s->watched);
	list_init(&s->live);
	list_init(&s->elsewhere);
	s->folder = strdup(opts->folder);
	snprintf(s->runner, sizeof(s->runner), "%s", opts->runner ? opts->runner : "");
	s->program = program_words(opts->program && *opts->program ? opts->program : CODING_AGENT);
	r = set_up(s);
	if (r == 0)
		*ret_sessions = s;
	else
		sessions_free(s);
	return r;
}

/* ---- stop ---- */

void sessions_check_stopped(struct sessions *s)
{
	void (*fn)(void *arg) = s->stopped;
	bool busy = false;

	if (!s->records.stopping || !fn || s->n_coming > 0)
		return;
	list_for_each (at, following, &s->live) {
		const struct live_session *l = list_entry(at, struct live_session, link);

		busy = busy || !l->exited || !s->records.failing;
	}
	if (busy)
		return;
	if (s->stop_timer)
		timer_stop(s->stop_timer);
	s->stopped = NULL;
	fn(s->stopped_arg);
}

static void stop_all(void *arg)
{
	struct sessions *s = arg;

	list_for_each (at, following, &s->live)
		session_end_with(list_entry(at, struct live_session, link), INTENT_STOP);
}

static void kill_all(struct sessions *s)
{
	list_for_each (at, following, &s->live)
		session_kill(list_entry(at, struct live_session, link));
}

void sessions_stop(struct sessions *s, unsigned grace_ms, void (*fn)(void *arg), void *arg)
{
	s->records.stopping = true;
	s->stopped = fn;
	s->stopped_arg = arg;
	session_look_elsewhere(s, (struct text) {0});
	if (grace_ms == 0)
		kill_all(s);
	else if (s->n_live > 0 && !s->stop_timer &&
		 timer_new(s->opts.loop, stop_all, s, &s->stop_timer) == 0)
		timer_start(s->stop_timer, grace_ms);
	else
		stop_all(s);
	sessions_check_stopped(s);
}

void sessions_free(struct sessions *s)
{
	struct list *first;

	if (!s)
		return;
	s->stopped = NULL;
	session_drop_enders(&s->elsewhere);
	observed_unwatch_all(s);
	while ((first = list_first(&s->live)))
		session_drop(list_entry(first, struct live_session, link));
	records_done(&s->records);
	timer_free(s->stop_timer);
	if (s->folder)
		(void)rmdir(s->folder); /* nothing in it belongs to us any more */
	free(s->folder);
	free(s->program);
	spend_done(&s->spend);
	free(s);
}
