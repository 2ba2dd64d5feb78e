/* The tasks in memory: by name, and for each project the newest first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/pack.h"
#include "engine/task/inner.h"

enum { EXTRA_BLOCK = 256 }; /* bytes: few texts do not fit into a task's own room */

/* ---- projects, groups and their lines ---- */

struct project *project_find(const struct tasks *t, struct text name)
{
	const struct table *all = &t->projects_by_name;

	for (struct table_link *at = table_find(all, table_hash(name)); at; at = table_next(at)) {
		struct project *p = list_entry(at, struct project, by_name);

		if (text_equal(p->name, name))
			return p;
	}
	return NULL;
}

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
	list_init(&p->eager_link);
	list_init(&p->lines);
	list_init(&p->aside);
	list_init(&p->held);
	sorted_init(&p->line.ready, queue_goes_before);
	sorted_init(&p->recent, is_newer);
	sorted_init(&p->ended, is_older);
	list_append(&t->projects, &p->link);
	table_add(&t->projects_by_name, &p->by_name, table_hash(name));
	return p;
}

struct project *project_get(struct tasks *t, struct text name)
{
	struct project *p = project_find(t, name);

	return p ? p : project_new(t, name);
}

struct group *group_find(const struct tasks *t, struct text name)
{
	for (struct table_link *at = table_find(&t->groups_by_name, table_hash(name)); at;
	     at = table_next(at)) {
		struct group *g = list_entry(at, struct group, by_name);

		if (text_is(name, g->name))
			return g;
	}
	return NULL;
}

struct group *group_get(struct tasks *t, struct text name)
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
	sorted_init(&line->ready, queue_goes_before);
	list_append(&p->lines, &line->link);
	return line;
}

/* ---- texts ---- */

/* NULL: no memory. */
static struct arena *extra_of(struct live *l)
{
	if (l->extra)
		return l->extra;
	l->extra = malloc(sizeof(*l->extra));
	if (!l->extra)
		return NULL;
	arena_init(l->extra, TASK_ARENA_MAX);
	l->extra->first = EXTRA_BLOCK;
	return l->extra;
}

static void free_extra(struct live *l)
{
	if (l->extra)
		arena_done(l->extra);
	free(l->extra);
}

/* Uses its own room while the text fits. */
static int keep(struct live *l, struct text *t)
{
	char *to = l->own + l->n_own - l->n_left;

	if (!t->data)
		return 0;
	if (t->len < l->n_left) {
		memcpy(to, t->data, t->len);
		to[t->len] = '\0';
		l->n_left -= t->len + 1;
	} else {
		to = extra_of(l) ? arena_copy(l->extra, t->data, t->len) : NULL;
	}
	t->data = to;
	return to ? 0 : -ENOMEM;
}

/* Its room for these is behind those for its waits. */
static int keep_after(struct live *l)
{
	struct texts *after = &l->task.after;
	struct text *items = (struct text *)(l->waits + after->n);

	for (unsigned i = 0; i < after->n; i++) {
		list_init(&l->waits[i].link);
		items[i] = after->items[i];
		if (keep(l, &items[i]) != 0)
			return -ENOMEM;
	}
	after->items = items;
	return 0;
}

static int keep_texts(struct live *l)
{
	struct task *task = &l->task;
	struct value *metadata = NULL;

	portrait_each (m, &task_portrait) {
		struct text *t = member_bytes(m, task);

		if (t && keep(l, t) != 0)
			return -ENOMEM;
	}
	if (task->metadata.bytes.data && extra_of(l) &&
	    value_unpack(l->extra, task->metadata.bytes, &metadata) == 0)
		task->metadata.value = metadata;
	return keep_after(l);
}

static void forget_long(struct task *task)
{
	portrait_each (m, &task_portrait) {
		if (m->flags & TASK_LONG)
			*member_bytes(m, task) = (struct text) {0};
	}
	task->metadata.value = NULL;
}

/* Bytes of its texts, each followed by a NUL. */
static size_t room_for(struct task *task)
{
	size_t room = 0;

	portrait_each (m, &task_portrait) {
		const struct text *t = member_bytes(m, task);

		if (t && t->data)
			room += t->len + 1;
	}
	for (unsigned i = 0; i < task->after.n; i++)
		room += task->after.items[i].len + 1;
	return room;
}

/* ---- making and freeing ---- */

static int fill(struct tasks *t, struct live *l)
{
	int r = keep_texts(l);

	l->task.project = l->project->name;
	if (r != 0)
		return r;
	if (l->task.group.data) {
		l->group = group_get(t, l->task.group);
		if (!l->group)
			return -ENOMEM;
	}
	l->line = line_get(l->project, l->group);
	if (!l->line)
		return -ENOMEM;
	if (l->group) {
		l->group->n_tasks++;
		list_append(&l->group->members, &l->group_link);
	}
	return 0;
}

static struct live *live_alloc(struct task task)
{
	size_t n_after = task.after.n * (sizeof(struct wait) + sizeof(struct text));
	struct live *l;
	bool light;
	size_t n;

	/* Its project already has that name. */
	task.project = (struct text) {0};
	n = room_for(&task);
	/* The store leaves out a long prompt. */
	light = task.prompt.data && n <= TASK_LIGHT_MAX;
	if (!light) {
		forget_long(&task);
		n = room_for(&task);
	}
	l = calloc(1, sizeof(*l) + n_after + n);
	if (!l)
		return NULL;
	l->waits = (struct wait *)(l + 1);
	l->own = (char *)(l + 1) + n_after;
	l->n_own = l->n_left = n;
	l->task = task;
	l->light = light;
	return l;
}

static bool at_end(const struct live *l)
{
	return l->task.state > TASK_RUNNING;
}

static void join_ended(struct live *l)
{
	sorted_add(&l->project->ended, &l->order);
	l->project->n_recent++;
}

static void leave_ended(struct live *l)
{
	sorted_remove(&l->project->ended, &l->order);
	l->project->n_recent--;
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
	if (at_end(l))
		join_ended(l);
}

struct live *live_new(struct tasks *t, struct project *p, const struct task *row)
{
	struct live *l = live_alloc(*row);

	if (!l)
		return NULL;
	l->project = p;
	list_init(&l->link);
	list_init(&l->held_link);
	list_init(&l->group_link);
	list_init(&l->behind);
	list_init(&l->watches);
	l->former = (struct former) {row->state, row->attempts, row->epoch};
	record_init(&l->record, &t->records);
	if (fill(t, l) != 0) {
		free_extra(l);
		free(l);
		return NULL;
	}
	live_changed(l);
	enter(t, l);
	return l;
}

/* Clients make up group names: drop one without tasks, unless it has a limit or is paused. */
void group_drop(struct tasks *t, struct group *g)
{
	if (g->n_tasks > 0 || g->parallel > 0 || g->paused)
		return;
	list_remove(&g->link);
	table_remove(&t->groups_by_name, &g->by_name);
	free(g);
}

static int move_line(struct tasks *t, struct live *l)
{
	struct line *line = line_get(l->project, l->group);
	bool waits = l->place != PLACE_NONE;

	if (!line)
		return -ENOMEM;
	if (waits)
		queue_remove(t, l);
	l->line = line;
	if (waits)
		queue_add(t, l);
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
		int e = move_line(t, list_entry(at, struct live, group_link));

		if (e != 0)
			r = e;
	}
	if (parallel == 0)
		drop_lines(t, g);
	group_drop(t, g);
	return r;
}

int tasks_set_parallel(struct tasks *t, struct text group, unsigned parallel, struct why *why)
{
	struct group *g;
	int r = 0;

	if (!t)
		return 0;
	if (!group.data && parallel == 0)
		return refuse_field(
			why, "parallel",
			"parallel must be at least 1; use task.pause to stop all tasks");
	if (group.data && (group.len == 0 || group.len > TASK_NAME_MAX))
		return refuse_field(why, "group", "group must have 1 to %d bytes", TASK_NAME_MAX);
	g = group.data ? group_find(t, group) : NULL;
	if (group.data && parallel > 0 && !(g && g->parallel > 0) &&
	    count_limits(t) >= GROUP_LIMITS_MAX)
		return refuse(why, REFUSE_LIMIT, "at most %d groups can have limits",
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

void tasks_set_project_parallel(struct tasks *t, unsigned parallel)
{
	if (!t)
		return;
	t->project_parallel = parallel;
	queue_run(t);
}

unsigned tasks_parallel(const struct tasks *t, struct text group)
{
	const struct group *g = t && group.data ? group_find(t, group) : NULL;

	return g ? g->parallel : t && !group.data ? t->parallel : 0;
}

static void leave_group(struct live *l)
{
	if (!l->group)
		return;
	list_remove(&l->group_link);
	l->group->n_tasks--;
	group_drop(l->project->tasks, l->group);
}

/* Not those that it began with. */
static bool has_own_waits(const struct live *l)
{
	return l->waits != (const struct wait *)(l + 1);
}

void live_free(struct live *l)
{
	struct tasks *t = l->project->tasks;

	leave_group(l);
	task_write_drop(l);
	behind_drop(l);
	watch_drop(l);
	list_remove(&l->link);
	list_remove(&l->held_link);
	sorted_remove(&l->project->recent, &l->recent_link);
	if (at_end(l))
		leave_ended(l);
	table_remove(&t->by_id, &l->by_id);
	table_remove(&t->by_name, &l->by_name);
	free_extra(l);
	if (has_own_waits(l))
		free(l->waits);
	free(l);
}

static struct live *find_named(struct tasks *t, struct text project, struct text id)
{
	const struct project *p = project_find(t, project);
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

void live_changed(struct live *l)
{
	l->version = ++l->project->tasks->last_version;
}

void live_set_text(struct live *l, struct text *at, struct text value)
{
	live_changed(l);
	if (value.len > TASK_LIGHT_MAX) {
		l->light = false;
		*at = (struct text) {0};
		return;
	}
	*at = value;
	if (keep(l, at) == 0)
		return;
	l->light = false;
	*at = (struct text) {0};
}

/* All texts go to a new place, so that many edits need no more room than one. But its id stays
 * where it is: changes on their way to the store use it. */
int live_replace(struct live *l, const struct task *next)
{
	const struct task was = l->task;
	struct arena *extra = l->extra;
	bool light = l->light;
	int r;

	l->task = *next;
	l->task.id = l->task.project = (struct text) {0};
	l->task.after = (struct texts) {0};
	l->extra = NULL;
	l->light = l->task.prompt.data && room_for(&l->task) <= TASK_LIGHT_MAX;
	if (!l->light)
		forget_long(&l->task);
	r = keep_texts(l);
	l->task.id = was.id;
	l->task.project = was.project;
	l->task.after = was.after;
	if (r != 0) {
		free_extra(l);
		l->task = was;
		l->extra = extra;
		l->light = light;
		return r;
	}
	if (extra)
		arena_done(extra);
	free(extra);
	live_changed(l);
	return 0;
}

/* One piece of memory: its waits, the texts, and their bytes. */
int live_set_after(struct live *l, const struct texts *after)
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
	behind_stop_waiting(l);
	if (has_own_waits(l))
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
	live_changed(l);
	return 0;
}

/* Drops only from the old end: there must be no gaps between the ended ones in memory. */
void project_trim(struct project *p)
{
	while (p->n_recent > TASK_RECENT_MAX) {
		struct live *l = list_entry(p->ended.first, struct live, order);

		if (record_pending(&l->record))
			return;
		if (p->whole_from <= l->task.seq)
			p->whole_from = l->task.seq + 1;
		live_free(l);
	}
}
