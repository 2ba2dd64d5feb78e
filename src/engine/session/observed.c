#include "engine/session/observed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "model/project.h"
#include "engine/approval/approval.h"
#include "engine/event/event.h"
#include "engine/session/inner.h"
#include "engine/session/note.h"
#include "io/process/lineage.h"
#include "io/process/tree.h"
#include "store/observed.h"
#include "store/store.h"

enum {
	WATCHED_MAX = 256, /* of the newest sessions, whose process is watched */
	HOLDERS_MAX = 16,
	AGENT_BYTES = 64,
	QUERY_BYTES = 400,
	SILENT_AT_ONCE = 20,
	ARENA_MAX = 64 << 20,
};

static const char gone[] = "the agent's process has exited";
static const char silent[] = "silent";

/* ---- the processes that are watched ---- */

struct watched {
	struct list link; /* in sessions->watched */
	struct sessions *sessions;
	struct process_watch *watch;
	int64_t pid;
	int64_t started;
	char id[OBSERVED_ID_MAX + 1];

	/* Its process is gone: it is in no list any more, and its session is to end. */
	struct work ending;
	struct arena arena;
	struct observed row;
	bool done;
};

static void stop_watching(struct watched *w)
{
	list_remove(&w->link);
	w->sessions->n_watched--;
	process_watch_free(w->watch);
}

static void unwatch(struct watched *w)
{
	stop_watching(w);
	free(w);
}

void observed_unwatch_all(struct sessions *s)
{
	struct list *first;

	while ((first = list_first(&s->watched)))
		unwatch(list_entry(first, struct watched, link));
}

static struct watched *find_watched(struct sessions *s, struct text id)
{
	list_for_each (at, following, &s->watched) {
		struct watched *w = list_entry(at, struct watched, link);

		if (text_equal(text_of(w->id), id))
			return w;
	}
	return NULL;
}

/* ---- its end ---- */

static int end_one(struct sessions *s, struct observed *row, const char *reason, int64_t active_ms,
		   bool *ret_done)
{
	const struct hook_note note = {
		.what = TEXT("ended"),
		.agent = row->agent,
		.session = row->id,
		.folder = row->folder,
		.text = text_of(reason),
	};
	struct error error;
	int r;

	row->ended_ms = clock_utc_ms();
	row->reason = text_of(reason);
	r = store_observed_end(store_writer(s->opts.store), row, active_ms, ret_done);
	return r == 0 && *ret_done ? agent_note_add(s->opts.events, &note, &error) : r;
}

static int ending_run(struct work *work, int lane)
{
	struct watched *w = list_entry(work, struct watched, ending);
	struct connection *db = store_writer(w->sessions->opts.store);
	bool found = false;
	int r;

	w->done = false;
	r = store_observed_find(db, text_of(w->id), &w->arena, &w->row, &found);
	if (r != 0 || !found || w->row.pid != w->pid || w->row.started != w->started)
		return r;
	return end_one(w->sessions, &w->row, gone, INT64_MAX, &w->done);
}

/* What could not be stored ends when it has been silent. */
static void ending_finished(struct work *work, int result)
{
	struct watched *w = list_entry(work, struct watched, ending);

	if (result == 0 && w->done)
		approval_session_ended(w->sessions->opts.approvals, text_of(w->id));
	else if (result != 0 && result != -ECANCELED)
		log_warn("could not store the end of an observed session", "session=%s error=%s",
			 w->id, fault_words(result));
	arena_done(&w->arena);
	free(w);
}

static void on_gone(void *watched)
{
	struct watched *w = watched;

	stop_watching(w);
	arena_init(&w->arena, ARENA_MAX);
	w->ending =
		(struct work) {.run = ending_run, .finished = ending_finished, .arena = &w->arena};
	workers_start(w->sessions->opts.workers, &w->ending, true);
}

int observed_end_silent(struct sessions *s, unsigned *ret_n)
{
	struct connection *db = store_writer(s->opts.store);
	int64_t before = clock_utc_ms() - s->opts.silence_ms;
	struct observed *rows;
	struct arena a;
	unsigned n = 0;
	bool done;
	int r = 0;

	arena_init(&a, ARENA_MAX);
	if (s->opts.silence_ms > 0)
		r = store_observed_silent(db, before, SILENT_AT_ONCE, &a, &rows, &n);
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = end_one(s, &rows[i], silent, before, &done);
	arena_done(&a);
	*ret_n = n == SILENT_AT_ONCE;
	return r;
}

/* ---- a note, on a reader's thread ---- */

static bool is_id(struct text id)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._:-";

	if (id.len == 0 || id.len > OBSERVED_ID_MAX)
		return false;
	for (size_t i = 0; i < id.len; i++) {
		if (!memchr(allowed, id.data[i], sizeof(allowed) - 1))
			return false;
	}
	return true;
}

static int is_ours(struct connection *db, struct text id, struct arena *a, bool *ret_is)
{
	struct session row;
	int r = store_session_find(db, id, a, &row, ret_is);

	return r != 0 || *ret_is ? r : store_session_find_agent(db, id, a, &row, ret_is);
}

/* Whether koined has started the process, directly or not. */
static bool koined_runs(const struct sessions *s, pid_t pid)
{
	const char *owner = store_owner(s->opts.store);
	struct process_seen lineage[LINEAGE_MAX];
	unsigned n;

	/* Of an incomplete one, too, what is visible counts. */
	(void)lineage_read(pid, lineage, &n);
	for (unsigned i = 0; i < n; i++) {
		if (lineage[i].pid == getpid() || (owner && tree_is_marked(lineage[i].pid, owner)))
			return true;
	}
	return false;
}

/* A program on a Unix socket that speaks for itself is a hook that ends with its note. */
static void find_process(const struct peer *peer, pid_t pid, struct session_seen *seen)
{
	struct process_seen agent;
	bool found = peer->local ? lineage_speaker(pid, &agent) && agent.pid != pid
				 : process_see(pid, &agent);

	if (!found || seen->pid != 0)
		return;
	seen->pid = agent.pid;
	seen->started = agent.started;
}

/* Each tool call is a note, so it is looked only when the agent may be another process. */
static bool needs_look(const struct hook_note *note, const struct observed *row)
{
	return !row || row->ended_ms > 0 || text_is(note->what, "started") ||
	       (row->pid == 0 && text_is(note->what, "asked"));
}

int session_look(struct sessions *s, int lane, struct arena *a, const struct hook_note *note,
		 const struct peer *peer, struct session_seen *ret_seen)
{
	char name[PROJECT_NAME_MAX + 1];
	struct connection *db;
	struct observed row;
	pid_t pids[HOLDERS_MAX];
	bool ours = false, found = false;
	unsigned n;
	int r;

	*ret_seen = (struct session_seen) {.ended = text_is(note->what, "ended")};
	if (!s || !is_id(note->session) || note->agent.len == 0 || text_is(note->what, "unread"))
		return 0;
	db = store_lane(s->opts.store, lane);
	r = is_ours(db, note->session, a, &ours)
		    ?: store_observed_find(db, note->session, a, &row, &found);
	if (r != 0 || ours || (!found && ret_seen->ended))
		return r;
	ret_seen->id = note->session;
	if (ret_seen->ended || !needs_look(note, found ? &row : NULL))
		return 0;
	ret_seen->looked = true;
	n = peer_pids(peer, pids, HOLDERS_MAX);
	for (unsigned i = 0; i < n; i++) {
		if (koined_runs(s, pids[i])) {
			*ret_seen = (struct session_seen) {.id = {NULL, 0}};
			return 0;
		}
		find_process(peer, pids[i], ret_seen);
	}
	return project_of_reported(note->folder, name)
		       ? arena_copy_text(a, text_of(name), &ret_seen->project)
		       : 0;
}

/* ---- on the writer's thread ---- */

static void take_look(const struct sessions *s, const struct session_seen *seen,
		      struct observed *row)
{
	if (!seen->looked)
		return;
	row->pid = seen->pid;
	row->started = seen->started;
	row->host = events_host(s->opts.events);
	if (seen->project.data)
		row->project = seen->project;
}

static int session_observed_add(struct sessions *s, const struct hook_note *note,
				const struct session_seen *seen)
{
	struct connection *db = store_writer(s->opts.store);
	int64_t now = clock_utc_ms();
	struct observed row = {
		.id = note->session,
		.agent = text_cut(note->agent, AGENT_BYTES),
		.folder = note->folder,
		.query =
			text_is(note->what, "asked") ? text_cut(note->text, QUERY_BYTES) : TEXT(""),
		.created_ms = now,
		.active_ms = now,
	};
	int r = store_observed_make_room(db, OBSERVED_MAX - 1);

	take_look(s, seen, &row);
	return r == 0 ? store_observed_add(db, &row) : r;
}

int session_observe(struct sessions *s, struct arena *a, const struct hook_note *note,
		    struct session_seen *seen)
{
	struct connection *db;
	struct observed row;
	bool found = false;
	int r;

	if (!s || !seen->id.data)
		return 0;
	db = store_writer(s->opts.store);
	r = store_observed_find(db, seen->id, a, &row, &found);
	if (r != 0)
		return r;
	if (!found)
		return seen->ended ? 0 : session_observed_add(s, note, seen);
	/* The id of another agent's session stays that one's. */
	if (!text_equal(row.agent, text_cut(note->agent, AGENT_BYTES))) {
		seen->id = (struct text) {0};
		return 0;
	}
	row.active_ms = clock_utc_ms();
	row.ended_ms = seen->ended ? row.active_ms : 0;
	row.reason = (struct text) {0};
	if (note->folder.len > 0)
		row.folder = note->folder;
	if (row.query.len == 0 && text_is(note->what, "asked"))
		row.query = text_cut(note->text, QUERY_BYTES);
	take_look(s, seen, &row);
	return store_observed_update(db, &row);
}

/* ---- on the loop ---- */

static void watch(struct sessions *s, struct text id, int64_t pid, int64_t started)
{
	struct watched *w = pid > 0 ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return;
	/* One process may leave behind many sessions that are only silent. */
	if (s->n_watched >= WATCHED_MAX)
		unwatch(list_entry(list_first(&s->watched), struct watched, link));
	w->sessions = s;
	w->pid = pid;
	w->started = started;
	memcpy(w->id, id.data, id.len);
	if (process_watch_new(s->opts.loop, (pid_t)pid, started, on_gone, w, &w->watch) != 0) {
		free(w);
		return;
	}
	list_append(&s->watched, &w->link);
	s->n_watched++;
}

void session_observed(struct sessions *s, const struct session_seen *seen)
{
	struct watched *w;

	if (!s || !seen->id.data || s->records.stopping || (!seen->looked && !seen->ended))
		return;
	w = find_watched(s, seen->id);
	if (w)
		unwatch(w);
	if (seen->ended)
		approval_session_ended(s->opts.approvals, seen->id);
	else
		watch(s, seen->id, seen->pid, seen->started);
}

/* Before anybody is served: their agents may have ended meanwhile. */
int observed_load(struct sessions *s)
{
	struct text host = events_host(s->opts.events);
	struct observed *rows;
	struct arena a;
	unsigned n = 0;
	int r;

	arena_init(&a, ARENA_MAX);
	r = store_observed_silent(store_writer(s->opts.store), INT64_MAX, OBSERVED_MAX, &a, &rows,
				  &n);
	for (unsigned i = 0; r == 0 && i < n; i++) {
		if (!rows[i].host.data || text_equal(rows[i].host, host))
			watch(s, rows[i].id, rows[i].pid, rows[i].started);
	}
	arena_done(&a);
	return r;
}

/* ---- as clients see them ---- */

static enum session_status status_of(const struct observed *row)
{
	if (row->ended_ms == 0)
		return row->waiting > 0 ? SESSION_WAITING : SESSION_RUNNING;
	return text_is(row->reason, gone) ? SESSION_INTERRUPTED : SESSION_COMPLETED;
}

static struct session session_of(const struct observed *row)
{
	return (struct session) {
		.id = row->id,
		.agent_session = row->id,
		.query = row->query,
		.summary = row->query,
		.working_dir = row->folder,
		.runner = row->agent,
		.host = row->host,
		.status = status_of(row),
		.created_ms = row->created_ms,
		.active_ms = row->active_ms,
		.ended_ms = row->ended_ms,
		.error = row->reason,
		.cost_usd = -1,
		.input_tokens = -1,
		.output_tokens = -1,
		.duration_ms = row->ended_ms > 0 ? row->ended_ms - row->created_ms : -1,
		.turns = -1,
		.kind = SESSION_OBSERVED,
		.project = row->project,
		.waiting = row->waiting,
	};
}

int session_get_observed(struct sessions *s, int lane, struct arena *a, struct text id,
			 struct session *ret_row, bool *ret_found, struct error *error)
{
	struct connection *db = store_lane(s->opts.store, lane);
	struct observed row;
	struct text ids[2];
	unsigned n = 0;
	int r = store_observed_find(db, id, a, &row, ret_found);

	/* Agents draw these ids, so a whole one may be the beginning of another. */
	if (r == 0 && !*ret_found)
		r = store_observed_find_short(db, id, a, ids, &n);
	if (r == 0 && n > 1)
		return session_refuse_prefix(id, ids, error);
	if (r == 0 && n == 1)
		r = store_observed_find(db, ids[0], a, &row, ret_found);
	if (r == 0 && *ret_found)
		*ret_row = session_of(&row);
	return r;
}

static bool session_observed_is_wanted(const struct session_filter *f, const struct session *row)
{
	return f->status < 0 || (int)row->status == f->status;
}

/* Both are sorted by their last activity, and so is the result. */
int observed_merge(struct sessions *s, int lane, struct arena *a, const struct session_filter *f,
		   struct session **rows, unsigned *n)
{
	unsigned limit =
		f->limit > 0 && f->limit < SESSION_LIST_MAX ? (unsigned)f->limit : SESSION_LIST_MAX;
	struct observed *seen;
	struct session *all;
	unsigned n_seen = 0, i = 0, k = 0, n_all = 0;
	int r = store_observed_list(store_lane(s->opts.store, lane), OBSERVED_MAX, a, &seen,
				    &n_seen);

	if (r != 0 || n_seen == 0)
		return r;
	all = arena_alloc(a, limit * sizeof(*all));
	if (!all)
		return -ENOMEM;
	while (n_all < limit && (i < *n || k < n_seen)) {
		bool ours = k == n_seen || (i < *n && (*rows)[i].active_ms >= seen[k].active_ms);

		all[n_all] = ours ? (*rows)[i] : session_of(&seen[k]);
		i += ours;
		k += !ours;
		n_all += ours || session_observed_is_wanted(f, &all[n_all]);
	}
	*rows = all;
	*n = n_all;
	return 0;
}

int session_must_be_ours(const struct session *row, const char *what, struct error *error)
{
	if (row->kind != SESSION_OBSERVED)
		return 0;
	return refuse(error, REFUSE_CONFLICT,
		      "session %.*s is only observed and cannot be %s here: koined did not start "
		      "it. Use %.*s directly",
		      TEXT_ARGS(text_cut(row->id, 36)), what, TEXT_ARGS(row->runner));
}
