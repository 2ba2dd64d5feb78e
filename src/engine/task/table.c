/*
 * The tasks in memory: by name, and for each project the newest first; the groups of tasks; and what a task's state
 * may become, by which step, and what else it may be then. That is written down here and nowhere else; each change
 * of a task asserts it.
 *
 *	            claim            put back          end
 *	queued -----------> running -----------> queued
 *	queued ----------------------------------------> failed, cancelled
 *	                    running -------------------> completed, failed, cancelled
 *
 * A sync makes a task like its row, whatever it was before: other hosts may have gone several steps, and a change
 * of ours that was lost is undone by it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pack.h"
#include "engine/event/event.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { LATER_BLOCK = 256 }; /* bytes: few texts are set later */

/* ---- projects, groups and their lines ---- */

static bool is_newer(const struct sorted_link *a, const struct sorted_link *b)
{
	list_entry(a, struct live, recent_link)->project->tasks->n_looked++;
	return list_entry(a, struct live, recent_link)->task.seq >
	       list_entry(b, struct live, recent_link)->task.seq;
}

static bool is_older(const struct sorted_link *a, const struct sorted_link *b)
{
	list_entry(a, struct live, order)->project->tasks->n_looked++;
	return list_entry(a, struct live, order)->task.seq <
	       list_entry(b, struct live, order)->task.seq;
}

static bool line_goes_before(const struct sorted_link *a, const struct sorted_link *b)
{
	list_entry(a, struct live, order)->project->tasks->n_looked++;
	return live_goes_before(list_entry(a, struct live, order),
				list_entry(b, struct live, order));
}

static struct project *project_new(struct tasks *t, struct text name)
{
	struct project *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->folder = strndup(name.data ? name.data : "", name.len);
	if (!p->folder) {
		free(p);
		return NULL;
	}
	p->name = text_of(p->folder);
	p->tasks = t;
	p->whole_from = t->whole_from;
	list_init(&p->eager_link);
	list_init(&p->lines);
	list_init(&p->aside);
	list_init(&p->held);
	sorted_init(&p->line.ready, line_goes_before);
	sorted_init(&p->recent, is_newer);
	sorted_init(&p->ended, is_older);
	list_append(&t->projects, &p->link);
	table_add(&t->projects_by_name, &p->by_name, table_hash(name));
	return p;
}

struct project *project_find(struct tasks *t, struct text name, bool make)
{
	const struct table *all = &t->projects_by_name;

	for (struct table_link *at = table_find(all, table_hash(name)); at; at = table_next(at)) {
		struct project *p = list_entry(at, struct project, by_name);

		if (text_equal(p->name, name))
			return p;
	}
	return make ? project_new(t, name) : NULL;
}

static struct group *group_find(const struct tasks *t, struct text name)
{
	for (struct table_link *at = table_find(&t->groups_by_name, table_hash(name)); at;
	     at = table_next(at)) {
		struct group *g = list_entry(at, struct group, by_name);

		if (text_is(name, g->name))
			return g;
	}
	return NULL;
}

static struct group *group_get(struct tasks *t, struct text name)
{
	struct group *g = group_find(t, name);

	if (g)
		return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	memcpy(g->name, name.data, name.len < TASK_NAME_MAX ? name.len : TASK_NAME_MAX);
	list_init(&g->members);
	list_append(&t->groups, &g->link);
	table_add(&t->groups_by_name, &g->by_name, table_hash(name));
	return g;
}

/* Few groups have a limit. */
static struct line *find_line(const struct project *p, const struct group *g)
{
	list_for_each (at, following, &p->lines) {
		struct line *line = list_entry(at, struct line, link);

		if (line->group == g)
			return line;
	}
	return NULL;
}

/* NULL: no memory. */
static struct line *line_get(struct project *p, struct group *g)
{
	struct line *line;

	if (!g || g->parallel == 0)
		return &p->line;
	line = find_line(p, g);
	if (line)
		return line;
	line = calloc(1, sizeof(*line));
	if (!line)
		return NULL;
	line->group = g;
	sorted_init(&line->ready, line_goes_before);
	list_append(&p->lines, &line->link);
	return line;
}

/* ---- texts ---- */

static void forget_long(struct task *task)
{
	schema_each(m, &task_schema)
	{
		if (m->flags & TASK_LONG)
			*member_bytes(m, task) = (struct text) {0};
	}
}

static void free_texts(struct live *l)
{
	if (l->later)
		arena_done(l->later);
	free(l->later);
	free(l->texts);
}

/* NULL: no memory. */
static struct arena *later_of(struct live *l)
{
	if (l->later)
		return l->later;
	l->later = malloc(sizeof(*l->later));
	if (l->later) {
		arena_init(l->later, TASK_ARENA_MAX);
		l->later->first = LATER_BLOCK;
	}
	return l->later;
}

/* One piece of memory: its waits, the texts, and their bytes. */
static int set_after(struct live *l, const struct texts *after)
{
	size_t n = after->n * (sizeof(struct wait) + sizeof(struct text)) + 1;
	struct wait *waits;
	struct text *items;
	char *bytes;

	for (unsigned i = 0; i < after->n; i++)
		n += after->items[i].len;
	waits = calloc(1, n);
	if (!waits)
		return -ENOMEM;
	queue_remove(l);
	free(l->waits);
	l->waits = waits;
	items = (struct text *)(waits + after->n);
	bytes = (char *)(items + after->n);
	for (unsigned i = 0; i < after->n; i++) {
		list_init(&waits[i].link);
		memcpy(bytes, after->items[i].data, after->items[i].len);
		items[i] = (struct text) {.data = bytes, .len = after->items[i].len};
		bytes += after->items[i].len;
	}
	l->task.after = (struct texts) {.items = items, .n = after->n};
	return 0;
}

/* All texts go to a new place, so that many edits take no more memory than one. Its names and what it comes after
 * stay: changes on their way to the store use its names. */
int live_set_row(struct live *l, const struct task *from, const struct texts *after)
{
	struct value *metadata = NULL;
	struct task row = *from;
	char *texts, *at;
	bool light;

	row.id = row.project = (struct text) {0};
	row.metadata.value = NULL;
	/* The store leaves out a long prompt. */
	light = row.prompt.data && schema_bytes(&task_schema, &row) <= TASK_LIGHT_MAX;
	if (!light)
		forget_long(&row);
	texts = at = malloc(schema_bytes(&task_schema, &row) + task_schema.n);
	if (!texts)
		return -ENOMEM;
	schema_each(m, &task_schema)
	{
		struct text *t = member_bytes(m, &row);

		if (!t || !t->data)
			continue;
		memcpy(at, t->data, t->len);
		at[t->len] = '\0';
		*t = (struct text) {.data = at, .len = t->len};
		at += t->len + 1;
	}
	row.id = l->task.id;
	row.project = l->project->name;
	row.after = l->task.after;
	free_texts(l);
	l->texts = texts;
	l->later = NULL;
	l->task = row;
	l->light = light;
	if (row.metadata.bytes.data && later_of(l) &&
	    value_unpack(l->later, row.metadata.bytes, &metadata) == 0)
		l->task.metadata.value = metadata;
	live_changed(l);
	return after ? set_after(l, after) : 0;
}

void live_set_text(struct live *l, struct text *at, struct text value)
{
	live_changed(l);
	*at = (struct text) {0};
	if (value.data && (value.len > TASK_LIGHT_MAX || !later_of(l) ||
			   arena_copy_text(l->later, value, at) != 0))
		l->light = false;
}

/* ---- what a task may be ---- */

#define TO(state) (1U << (state))
#define ENDED     (TO(TASK_COMPLETED) | TO(TASK_FAILED) | TO(TASK_CANCELLED))
#define ANY       (TO(TASK_QUEUED) | TO(TASK_RUNNING) | ENDED)

static const unsigned steps[N_TASK_STEPS][N_TASK_STATES] = {
	[STEP_CLAIM] = {[TASK_QUEUED] = TO(TASK_RUNNING)},
	[STEP_PUT_BACK] = {[TASK_RUNNING] = TO(TASK_QUEUED)},
	[STEP_END] = {[TASK_QUEUED] = TO(TASK_FAILED) | TO(TASK_CANCELLED), [TASK_RUNNING] = ENDED},
	[STEP_SYNC] = {[TASK_QUEUED] = ANY,
		       [TASK_RUNNING] = ANY,
		       [TASK_COMPLETED] = ANY,
		       [TASK_FAILED] = ANY,
		       [TASK_CANCELLED] = ANY},
};

/* What a task in a state may have. */
static const struct {
	bool places; /* a place in the queue, unless it is stale */
	bool waits;  /* dependencies that are open */
	bool run;    /* a run; without one, another host runs it */
} legal[N_TASK_STATES] = {
	[TASK_QUEUED] = {.places = true, .waits = true},
	[TASK_RUNNING] = {.run = true},
};

/* What a task in a place may have. */
static const struct {
	bool waits;
	bool edits; /* on their way to the store */
	bool kept_back;
} legal_in[] = {
	[PLACE_NONE] = {.waits = true, .edits = true, .kept_back = true},
	[PLACE_ASIDE] = {.waits = true, .edits = true, .kept_back = true},
	[PLACE_READY] = {0},
	[PLACE_TIMED] = {0},
};

static bool fits_state(const struct live *l)
{
	enum task_state state = l->task.state;

	/* What it should be is not known until its row is read. */
	if (l->record.stale)
		return l->place == PLACE_NONE;
	if ((l->place != PLACE_NONE) != legal[state].places)
		return false;
	if (l->n_after_open > 0 && !legal[state].waits)
		return false;
	return legal[state].run ? l->run || !list_empty(&l->link) : !l->run;
}

static bool fits_place(const struct live *l)
{
	bool kept_back = l->task.held || l->task.stashed || (l->group && l->group->paused);

	return (legal_in[l->place].waits || l->n_after_open == 0) &&
	       (legal_in[l->place].edits || l->n_edits == 0) &&
	       (legal_in[l->place].kept_back || !kept_back);
}

bool task_is_legal(const struct live *l)
{
	return fits_state(l) && fits_place(l);
}

/* The oldest ended tasks go, down to TASK_RECENT_MAX, but for this one. From the old end alone: there must be no gaps
 * between the ended ones in memory. */
static void trim(struct project *p, const struct live *but)
{
	while (p->n_recent > TASK_RECENT_MAX) {
		struct live *l = list_entry(p->ended.first, struct live, order);

		if (l == but || record_pending(&l->record))
			return;
		if (p->whole_from <= l->task.seq)
			p->whole_from = l->task.seq + 1;
		live_free(l);
	}
}

static void join_ended(struct live *l)
{
	sorted_add(&l->project->ended, &l->order);
	l->project->n_recent++;
	trim(l->project, l);
}

static void leave_ended(struct live *l)
{
	sorted_remove(&l->project->ended, &l->order);
	l->project->n_recent--;
}

void live_step(struct live *l, enum task_step step, enum task_state state)
{
	struct project *p = l->project;
	struct tasks *t = p->tasks;
	/* The host that ended it fails those that come after it. */
	bool theirs = step == STEP_SYNC && state != TASK_COMPLETED;

	assert(steps[step][l->task.state] & TO(state));
	(void)steps;
	if (state != TASK_QUEUED)
		queue_remove(l);
	if (l->task.state > TASK_RUNNING)
		leave_ended(l);
	project_count(p, l->task.state, -1);
	project_count(p, state, 1);
	l->task.state = state;
	if (state > TASK_RUNNING) {
		list_splice(theirs ? &t->orphans[state] : &t->dependents[state], &l->dependents);
		join_ended(l);
	}
	live_changed(l);
}

/* ---- making and freeing ---- */

static int join(struct tasks *t, struct live *l)
{
	struct text group = l->task.group;

	l->group = group.data ? group_get(t, group) : NULL;
	l->line = group.data && !l->group ? NULL : line_get(l->project, l->group);
	if (!l->line)
		return -ENOMEM;
	if (l->group)
		list_append(&l->group->members, &l->group_link);
	return 0;
}

static uint64_t name_hash(const struct project *p, uint64_t id_hash)
{
	return id_hash ^ p->by_name.hash * 0x9e3779b97f4a7c15U;
}

static void enter(struct tasks *t, struct live *l)
{
	uint64_t hash = table_hash(l->task.id);

	table_add(&t->by_id, &l->by_id, hash);
	table_add(&t->by_name, &l->by_name, name_hash(l->project, hash));
	sorted_add(&l->project->recent, &l->recent_link);
	if (l->task.state > TASK_RUNNING)
		join_ended(l);
}

struct live *live_new(struct tasks *t, struct project *p, const struct task *row)
{
	struct live *l = calloc(1, sizeof(*l) + row->id.len + 1);

	if (!l)
		return NULL;
	memcpy(l->id, row->id.data, row->id.len);
	l->task.id = (struct text) {.data = l->id, .len = row->id.len};
	l->project = p;
	list_init(&l->link);
	list_init(&l->held_link);
	list_init(&l->group_link);
	list_init(&l->dependents);
	list_init(&l->watches);
	live_stored(l, row);
	record_init(&l->record, &t->records);
	if (live_set_row(l, row, row->after.n > 0 ? &row->after : NULL) != 0 || join(t, l) != 0) {
		free_texts(l);
		free(l->waits);
		free(l);
		return NULL;
	}
	enter(t, l);
	return l;
}

/* Clients make up group names: drop one without tasks, unless it has a limit or is paused. */
static void group_drop(struct tasks *t, struct group *g)
{
	if (!list_empty(&g->members) || g->parallel > 0 || g->paused)
		return;
	list_remove(&g->link);
	table_remove(&t->groups_by_name, &g->by_name);
	free(g);
}

static void leave_group(struct live *l)
{
	if (!l->group)
		return;
	list_remove(&l->group_link);
	group_drop(l->project->tasks, l->group);
}

void live_free(struct live *l)
{
	struct tasks *t = l->project->tasks;

	struct list *first;

	leave_group(l);
	record_drop(&l->record);
	if (l->reserved)
		t->records.opts.changes->free(l->reserved);
	while ((first = list_first(&l->watches)))
		task_unwatch(list_entry(first, struct task_watch, link));
	queue_remove(l);
	while ((first = list_first(&l->dependents)))
		list_remove(first);
	list_remove(&l->link);
	list_remove(&l->held_link);
	sorted_remove(&l->project->recent, &l->recent_link);
	if (l->task.state > TASK_RUNNING)
		leave_ended(l);
	table_remove(&t->by_id, &l->by_id);
	table_remove(&t->by_name, &l->by_name);
	free_texts(l);
	free(l->waits);
	free(l);
}

static struct live *find_named(struct tasks *t, struct text project, struct text id)
{
	const struct project *p = project_find(t, project, false);
	uint64_t hash = p ? name_hash(p, table_hash(id)) : 0;

	for (struct table_link *at = p ? table_find(&t->by_name, hash) : NULL; at;
	     at = table_next(at)) {
		struct live *l = list_entry(at, struct live, by_name);

		if (l->project == p && text_equal(l->task.id, id))
			return l;
	}
	return NULL;
}

struct live *live_find(struct tasks *t, struct text project, struct text id, unsigned *ret_n)
{
	struct live *found = NULL;

	if (project.data) {
		found = find_named(t, project, id);
		*ret_n = found != NULL;
		return found;
	}
	*ret_n = 0;
	for (struct table_link *at = table_find(&t->by_id, table_hash(id)); at && *ret_n < 2;
	     at = table_next(at)) {
		struct live *l = list_entry(at, struct live, by_id);

		if (!text_equal(l->task.id, id))
			continue;
		found = l;
		++*ret_n;
	}
	return found;
}

/* ---- limits ---- */

static int move_line(struct live *l)
{
	struct line *line = line_get(l->project, l->group);

	if (!line)
		return -ENOMEM;
	l->line = line;
	queue_place(l);
	return 0;
}

static unsigned count_limits(const struct tasks *t)
{
	unsigned n = 0;

	list_for_each (at, following, &t->groups)
		n += list_entry(at, struct group, link)->parallel > 0;
	return n;
}

/* No task is in them any more. */
static void drop_lines(struct tasks *t, const struct group *g)
{
	list_for_each (at, following, &t->projects) {
		struct line *line = find_line(list_entry(at, struct project, link), g);

		if (!line)
			continue;
		list_remove(&line->link);
		free(line);
	}
}

/* Tasks of a group with a limit have a line of their own. */
static int set_group_parallel(struct tasks *t, struct group *g, unsigned parallel)
{
	int r = 0;

	g->parallel = parallel;
	list_for_each (at, following, &g->members) {
		int e = move_line(list_entry(at, struct live, group_link));

		if (e != 0)
			r = e;
	}
	if (parallel == 0)
		drop_lines(t, g);
	group_drop(t, g);
	return r;
}

int tasks_set_parallel(struct tasks *t, struct text group, unsigned parallel, struct error *error)
{
	struct group *g;
	int r = 0;

	if (!t)
		return 0;
	if (!group.data && parallel == 0)
		return refuse_field(
			error, "parallel",
			"parallel must be at least 1, not 0; use task.pause to pause all tasks");
	if (group.data && (group.len == 0 || group.len > TASK_NAME_MAX))
		return refuse_field(error, "group", "group must have 1 to %d bytes, not %zu",
				    TASK_NAME_MAX, group.len);
	g = group.data ? group_find(t, group) : NULL;
	if (group.data && parallel > 0 && !(g && g->parallel > 0) &&
	    count_limits(t) >= GROUP_LIMITS_MAX)
		return refuse(error, REFUSE_LIMIT, "too many group limits (maximum %d)",
			      GROUP_LIMITS_MAX);
	if (!group.data)
		t->parallel = parallel;
	else if (parallel > 0 && !g && !(g = group_get(t, group)))
		r = -ENOMEM;
	else if (g)
		r = set_group_parallel(t, g, parallel);
	queue_run(t);
	return r;
}

struct task_group_state task_group_state(const struct tasks *t, struct text group)
{
	const struct group *g = t && group.data ? group_find(t, group) : NULL;

	if (g)
		return (struct task_group_state) {g->parallel, g->paused};
	return t && !group.data ? (struct task_group_state) {t->parallel, t->paused}
				: (struct task_group_state) {0};
}

/* ---- a group, or all: they stay queued. A pause concerns only the start of tasks, not those that run: a
 * program that is stopped would notice neither its time limit nor a request to end ---- */

void tasks_each_paused(struct tasks *t, void (*fn)(void *arg, struct text group), void *arg)
{
	if (!t)
		return;
	list_for_each (at, following, &t->groups) {
		const struct group *g = list_entry(at, struct group, link);

		if (g->paused)
			fn(arg, text_of(g->name));
	}
}

/* Its members have another place in the queue from now on. */
static void pause_group(struct tasks *t, struct group *g, bool paused)
{
	if (g->paused == paused)
		return;
	g->paused = paused;
	t->n_paused += paused ? 1 : -1U;
	list_for_each (at, following, &g->members)
		queue_place(list_entry(at, struct live, group_link));
	group_drop(t, g);
}

struct pause {
	struct request request; /* id: the group; {NULL, 0}: all */
	bool paused;
	bool changes; /* it was not so before */
};

static int add_pause_event(const struct pause *p)
{
	struct event_new e = {.type = p->paused ? "task.paused" : "task.resumed"};
	struct event_data d;

	event_data_begin(&d);
	packer_text(&d.members, "group", p->request.id);
	return event_add_data(p->request.tasks->events, &e, &d);
}

static int pause_run(struct work *w, int lane)
{
	struct pause *p = list_entry(w, struct pause, request.work);
	struct connection *db = store_writer(p->request.tasks->store);
	int r;

	r = p->paused ? store_task_pause(db, p->request.id, clock_utc_ms(), &p->changes)
		      : store_task_resume(db, p->request.id, &p->changes);
	return r == 0 && p->changes ? add_pause_event(p) : r;
}

static int apply_pause(const struct pause *p)
{
	struct tasks *t = p->request.tasks;
	struct group *g;

	if (!p->request.id.data) {
		t->paused = p->paused;
		return 0;
	}
	g = p->paused ? group_get(t, p->request.id) : group_find(t, p->request.id);
	if (g)
		pause_group(t, g, p->paused);
	return g || !p->paused ? 0 : -ENOMEM;
}

static void pause_finished(struct work *w, int result)
{
	struct pause *p = list_entry(w, struct pause, request.work);
	struct tasks *t = p->request.tasks;

	if (result == 0)
		result = apply_pause(p);
	records_touch(&t->records);
	request_done(&p->request, result);
	queue_run(t);
}

static int check_pause(const struct tasks *t, struct text group, bool paused, struct error *error)
{
	if (t->records.stopping)
		return refuse(error, REFUSE_STOPPING, "koined is stopping");
	if (!group.data)
		return 0;
	if (group.len == 0 || group.len > TASK_NAME_MAX || memchr(group.data, '\0', group.len))
		return refuse_field(error, "group", "group must have 1 to %d bytes without NUL",
				    TASK_NAME_MAX);
	if (paused && t->n_paused >= TASK_PAUSES_MAX)
		return refuse(error, REFUSE_LIMIT, "too many paused groups (limit %d)",
			      TASK_PAUSES_MAX);
	return 0;
}

/* In the order of the calls: the writer takes them, and the loop applies them, in that order. */
static int pause_submit(struct tasks *t, struct text group, bool paused, task_done_fn fn, void *arg)
{
	struct pause *p =
		request_new(t, sizeof(*p), (struct text) {0}, group, pause_run, pause_finished);

	if (!p)
		return -ENOMEM;
	p->paused = paused;
	p->request.fn = fn;
	p->request.arg = arg;
	return request_submit(p, 0, true);
}

int task_pause(struct tasks *t, struct text group, bool paused, task_done_fn fn, void *arg,
	       struct error *error)
{
	return check_pause(t, group, paused, error) ?: pause_submit(t, group, paused, fn, arg);
}

static bool is_among(const struct text *groups, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++) {
		if (text_is(groups[i], name))
			return true;
	}
	return false;
}

int task_pauses_set(struct tasks *t, const struct text *groups, unsigned n)
{
	int r = 0;

	t->paused = is_among(groups, n, "");
	for (unsigned i = 0; i < n; i++) {
		struct group *g = groups[i].len > 0 ? group_get(t, groups[i]) : NULL;

		if (g)
			pause_group(t, g, true);
		else if (groups[i].len > 0)
			r = -ENOMEM;
	}
	list_for_each (at, following, &t->groups) {
		struct group *g = list_entry(at, struct group, link);

		if (g->paused && !is_among(groups, n, g->name))
			pause_group(t, g, false);
	}
	wake_send(t->more);
	return r;
}
