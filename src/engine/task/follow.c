/*
 * Keeps the tasks in memory in step with what other hosts do: a task is made like its row. Rows have
 * versions, so it does not matter how often or how late that happens.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/pack.h"
#include "engine/event/event.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"
#include "io/process/output_file.h"
#include "store/store.h"
#include "store/task.h"

/* ---- memory ---- */

static void forget(struct tasks *t, struct live *l)
{
	struct project *p = l->project;

	project_count(p, l->task.state, -1);
	live_free(l);
}

static void run_elsewhere(struct tasks *t, struct live *l)
{
	list_append(&t->elsewhere, &l->link);
	assert(task_is_legal(l));
	/* Those who follow its output have to look for it; who waits for its end alone waits on. */
	if (l->n_listening > 0)
		task_report(t, l, &l->task);
}

/* Our start of it is stored, although the store reported a fault, and so nothing has begun. */
static void give_back(struct tasks *t, struct live *l)
{
	live_stored(l, &l->task);
	l->task.attempts--;
	l->task.started_ms = 0;
	task_put_back(t, l, 0, "task.retrying");
}

/* Puts it where its state belongs. The rest follows in the next turn of the loop. */
static void place(struct tasks *t, struct live *l, const struct task_named *f)
{
	if (l->task.state == TASK_QUEUED)
		queue_enter(t, l, f->after_states, node_shares(t->node));
	else if (l->task.state == TASK_RUNNING && l->task.epoch == node_epoch(t->node))
		give_back(t, l);
	else if (l->task.state == TASK_RUNNING)
		run_elsewhere(t, l);
	else
		task_report(t, l, &f->row);
	wake_send(t->more);
}

static void take_new(struct tasks *t, const struct task_named *f)
{
	struct project *p = project_find(t, f->project, true);
	bool known = p && f->row.seq < p->whole_from;
	struct live *l;

	/* It was counted when it ended for the first time; how it did is forgotten. */
	if (known)
		t->recount.wanted = true;
	if (known && f->row.state > TASK_RUNNING)
		return;
	l = p ? live_new(t, p, &f->row) : NULL;
	if (!l) {
		log_err("could not load task from another host, restart koined to retry",
			"task=%.*s error=%s", TEXT_ARGS(f->id), strerror(ENOMEM));
		return;
	}
	project_count(p, f->row.state, 1);
	place(t, l, f);
}

/* All of the row but its state and what it comes after: one that waits may come after others than those
 * that the row names, until it is settled. */
static int take_row(struct live *l, const struct task *row)
{
	struct task next = *row;
	int r;

	next.state = l->task.state;
	r = live_set_row(l, &next, row->state == TASK_QUEUED ? &row->after : NULL);
	live_stored(l, row);
	return r;
}

static void task_follow_take(struct tasks *t, struct live *l, const struct task_named *f)
{
	queue_remove(l);
	list_remove(&l->link);
	if (take_row(l, &f->row) != 0) {
		record_stale(&l->record);
		return;
	}
	record_fresh(&l->record);
	if (l->task.state != f->row.state)
		live_step(l, STEP_SYNC, f->row.state);
	place(t, l, f);
}

static bool is_our_run(const struct live *l, const struct task *row)
{
	return l->run && row->state == TASK_RUNNING && row->epoch == l->task.epoch &&
	       row->attempts == l->task.attempts;
}

void task_sync(struct tasks *t, const struct task_named *f)
{
	unsigned n;
	struct live *l = live_find(t, f->project, f->id, &n);

	if (!f->found) {
		if (l && !l->run && !record_pending(&l->record))
			forget(t, l);
	} else if (!l) {
		take_new(t, f);
	} else if (is_our_run(l, &f->row)) {
		if (!record_pending(&l->record)) {
			l->task.version = f->row.version;
			record_fresh(&l->record);
		}
		task_cancel_requested(t, l, &f->row, f->row.cancel);
	} else if (record_pending(&l->record)) {
		/* They are newer, or will be lost: then it is read again. */
	} else if (f->row.version > l->task.version || l->record.stale) {
		if (l->run)
			run_lose(l->run);
		task_follow_take(t, l, f);
	}
}

/* ---- events ---- */

/* What is paused, and the number of the newest task, as they were read. */
struct pauses {
	struct text *groups;
	unsigned n;
	int64_t last_seq;
};

static int task_follow_read_rows(void *tasks, int lane, struct arena *a, struct record_found *found,
				 unsigned n)
{
	const struct tasks *t = tasks;
	struct connection *db = store_lane(t->store, lane);
	struct task_named *named = arena_zalloc(a, (n + 1) * sizeof(named[0]));
	struct pauses *p = arena_zalloc(a, sizeof(*p));
	unsigned n_named = 0;
	int r = named && p ? 0 : -ENOMEM;

	for (unsigned i = 0; i < n && r == 0; i++) {
		struct task_named *one = &named[n_named];

		found[i].row = found[i].id.data ? (void *)one : p;
		if (!found[i].id.data)
			r = store_task_pauses(db, a, &p->groups, &p->n)
				    ?: store_task_last(db, &p->last_seq);
		else
			named[n_named++] = (struct task_named) {.project = found[i].project,
								.id = found[i].id};
	}
	return r != 0 || n_named == 0 ? r : store_task_find_named(db, a, named, n_named);
}

/* Tasks that began and ended while events were missing are in the store only: lists have to ask it. */
static void raise_whole(struct tasks *t, int64_t last_seq)
{
	t->missed_events = false;
	t->whole_from = last_seq + 1;
	list_for_each (at, following, &t->projects)
		list_entry(at, struct project, link)->whole_from = t->whole_from;
}

static void sync_found(void *tasks, const struct record_found *found)
{
	const struct pauses *p = found->row;
	struct tasks *t = tasks;

	if (found->id.data) {
		task_sync(t, found->row);
		return;
	}
	if (t->missed_events)
		raise_whole(t, p->last_seq);
	if (task_pauses_set(t, p->groups, p->n) != 0)
		log_err("could not load paused groups from another host, restart koined to retry",
			"error=%s", strerror(ENOMEM));
}

static void forget_number(struct tasks *t, int64_t seq)
{
	char path[4096];

	task_path(t->output_folder, seq, path, sizeof(path));
	output_file_remove(path);
	list_for_each (at, following, &t->projects) {
		struct sorted_link *ended = list_entry(at, struct project, link)->ended.first;

		for (; ended; ended = ended->next) {
			struct live *l = list_entry(ended, struct live, order);

			if (l->task.seq != seq)
				continue;
			if (!record_pending(&l->record))
				forget(t, l);
			return;
		}
	}
	t->recount.wanted = true;
}

/* They have been deleted; the event names them. */
static void forget_cleaned(struct tasks *t, const struct event *e)
{
	struct value *data = NULL;
	const struct value *seqs = NULL;
	struct text rest = {0}, word;
	struct arena a;

	arena_init(&a, 1 << 20);
	if (value_unpack(&a, e->data, &data) == 0)
		seqs = value_find(data, "seqs");
	if (seqs && seqs->kind == VALUE_STRING)
		rest = value_text(seqs);
	while (text_next(&rest, ' ', &word)) {
		if (word.len > 0)
			forget_number(t, strtoll(word.data, NULL, 10));
	}
	arena_done(&a);
}

static bool task_follow_heard(void *tasks, const struct event *e, struct text *ret_project,
			      struct text *ret_id)
{
	struct tasks *t = tasks;

	if (text_is(e->type, "task.cleaned")) {
		forget_cleaned(t, e);
		records_touch(&t->records);
		return false;
	}
	if (!text_is(e->type, "task.paused") && !text_is(e->type, "task.resumed")) {
		*ret_project = e->project.data ? e->project : TEXT("");
		*ret_id = e->run;
	}
	return true;
}

/* The key without an id stands for what is paused. */
static struct record *task_follow_find(void *tasks, struct text project, struct text id)
{
	unsigned n;
	struct live *l = id.data ? live_find(tasks, project, id, &n) : NULL;

	return l ? &l->record : NULL;
}

static void key_of(const struct record *r, struct text *ret_project, struct text *ret_id)
{
	const struct live *l = list_entry(r, struct live, record);

	*ret_project = l->project->name;
	*ret_id = l->task.id;
}

static int task_follow_reload(void *tasks)
{
	struct tasks *t = tasks;
	int r = records_want(&t->records, (struct text) {0}, (struct text) {0});

	list_for_each (at, following, &t->projects) {
		const struct project *p = list_entry(at, struct project, link);

		for (struct sorted_link *l = p->recent.first; l && r == 0; l = l->next)
			r = records_want(&t->records, p->name,
					 list_entry(l, struct live, recent_link)->task.id);
	}
	t->recount.wanted = true;
	t->missed_events = true;
	return r;
}

static int list_open(void *tasks, int lane, struct arena *a, struct record_found **ret,
		     unsigned *ret_n)
{
	const struct tasks *t = tasks;
	struct task_named *named;
	int r = store_task_open_names(store_lane(t->store, lane), a, &named, ret_n);

	*ret = r == 0 ? arena_zalloc(a, (*ret_n + 1) * sizeof(**ret)) : NULL;
	for (unsigned i = 0; *ret && i < *ret_n; i++)
		(*ret)[i] = (struct record_found) {.project = named[i].project, .id = named[i].id};
	return r == 0 && !*ret ? -ENOMEM : r;
}

static const struct text types[] = {TEXT("task.*")};

const struct record_read_ops task_reads = {
	.types = types,
	.n_types = 1,
	.heard = task_follow_heard,
	.find = task_follow_find,
	.key = key_of,
	.read = task_follow_read_rows,
	.sync = sync_found,
	.reload = task_follow_reload,
	.list = list_open,
};
