/* Which tasks are at hand: by name, and for each project the newest first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/pack.h"
#include "engine/task/inner.h"

static struct list *bucket(struct tasks *t, struct text id)
{
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < id.len; i++)
		h = (h ^ (unsigned char)id.data[i]) * 16777619U;
	return &t->buckets[h % TASK_BUCKETS];
}

struct project *project_find(const struct tasks *t, struct text name)
{
	list_for_each (at, following, (struct list *)&t->projects) {
		struct project *p = list_entry(at, struct project, link);

		if (text_equal(p->name, name))
			return p;
	}
	return NULL;
}

struct project *project_get(struct tasks *t, struct text name)
{
	struct project *p = project_find(t, name);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->folder = strndup(name.data ? name.data : "", name.len);
	if (!p->folder) {
		free(p);
		return NULL;
	}
	p->name = text_of(p->folder);
	p->tasks = t;
	list_init(&p->ready);
	list_init(&p->held);
	list_init(&p->recent);
	list_append(&t->projects, &p->link);
	return p;
}

struct group *group_get(struct tasks *t, struct text name)
{
	struct group *g;

	list_for_each (at, following, &t->groups) {
		g = list_entry(at, struct group, link);
		if (text_is(name, g->name))
			return g;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	memcpy(g->name, name.data, name.len < TASK_NAME_MAX ? name.len : TASK_NAME_MAX);
	list_append(&t->groups, &g->link);
	return g;
}

/* ---- texts ---- */

static size_t text_bytes(const struct task_row *row)
{
	size_t n = row->prompt.len + row->agent.len + row->result.len + row->error.len +
		   row->metadata.len + row->cwd.len + row->env.len;

	for (unsigned i = 0; i < row->n_after; i++)
		n += row->after[i].len;
	return n;
}

/* In its own room as long as there is some. */
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
		to = arena_copy(&l->arena, t->data, t->len);
	}
	t->data = to;
	return to ? 0 : -ENOMEM;
}

static int keep_after(struct live *l)
{
	struct task_row *row = &l->task.row;
	struct text *after = NULL;

	if (row->n_after > 0)
		after = arena_alloc(&l->arena, row->n_after * sizeof(after[0]));
	if (!after && row->n_after > 0)
		return -ENOMEM;
	for (unsigned i = 0; i < row->n_after; i++) {
		after[i] = row->after[i];
		if (keep(l, &after[i]) != 0)
			return -ENOMEM;
	}
	row->after = after;
	return 0;
}

enum { N_SHORT = 7, N_LONG = 4 };

static void short_texts(struct task_row *row, struct text *ret[N_SHORT])
{
	ret[0] = &row->id;
	ret[1] = &row->agent;
	ret[2] = &row->mark;
	ret[3] = &row->error;
	ret[4] = &row->group;
	ret[5] = &row->runner;
	ret[6] = &row->cwd;
}

static void long_texts(struct task_row *row, struct text *ret[N_LONG])
{
	ret[0] = &row->prompt;
	ret[1] = &row->result;
	ret[2] = &row->metadata;
	ret[3] = &row->env;
}

static size_t room_for(struct text *const *texts, unsigned n)
{
	size_t room = 0;

	for (unsigned i = 0; i < n; i++)
		room += texts[i]->data ? texts[i]->len + 1 : 0;
	return room;
}

static int keep_short(struct live *l)
{
	struct text *texts[N_SHORT];
	int r = keep_after(l);

	short_texts(&l->task.row, texts);
	for (unsigned i = 0; r == 0 && i < N_SHORT; i++)
		r = keep(l, texts[i]);
	return r;
}

static int keep_long(struct live *l)
{
	const struct task_row *row = &l->task.row;
	struct text *texts[N_LONG];
	struct value *metadata = NULL;
	int r = 0;

	long_texts(&l->task.row, texts);
	for (unsigned i = 0; r == 0 && i < N_LONG; i++)
		r = keep(l, texts[i]);
	if (r == 0 && row->metadata.data && value_unpack(&l->arena, row->metadata, &metadata) == 0)
		l->task.metadata = metadata;
	return r;
}

static void forget_long(struct task_row *row)
{
	struct text *texts[N_LONG];

	long_texts(row, texts);
	for (unsigned i = 0; i < N_LONG; i++)
		*texts[i] = (struct text) {0};
}

/* ---- made and freed ---- */

static void put_recent(struct project *p, struct live *l)
{
	/* Nearly always the newest of all; an import may bring older ones. */
	struct list *at = p->recent.next;

	while (at != &p->recent &&
	       list_entry(at, struct live, recent_link)->task.row.seq > l->task.row.seq)
		at = at->next;
	/* Before `at`: a list's end is its head. */
	list_append(at, &l->recent_link);
}

static int fill(struct tasks *t, struct live *l)
{
	const struct task_row *row = &l->task.row;
	int r = keep_short(l);

	if (r == 0 && l->light)
		r = keep_long(l);
	if (r == 0 && row->group.data) {
		l->group = group_get(t, row->group);
		r = l->group ? 0 : -ENOMEM;
		if (l->group)
			l->group->n_tasks++;
	}
	l->task.row.project = l->project->name;
	return r;
}

static struct live *live_alloc(struct task_row row)
{
	/* Where the store left its prompt out, it is long. */
	bool light = row.prompt.data && text_bytes(&row) <= TASK_LIGHT_MAX;
	struct text *texts[N_SHORT + N_LONG];
	struct live *l;
	size_t n;

	if (!light)
		forget_long(&row);
	short_texts(&row, texts);
	long_texts(&row, texts + N_SHORT);
	n = room_for(texts, N_SHORT + N_LONG);
	for (unsigned i = 0; i < row.n_after; i++)
		n += row.after[i].len + 1;
	l = calloc(1, sizeof(*l) + n);
	if (!l)
		return NULL;
	l->n_own = l->n_left = n;
	l->task.row = row;
	l->light = light;
	return l;
}

struct live *live_new(struct tasks *t, struct project *p, const struct task_row *row)
{
	struct live *l = live_alloc(*row);

	if (!l)
		return NULL;
	l->project = p;
	list_init(&l->link);
	list_init(&l->changes);
	list_init(&l->failed_link);
	arena_init(&l->arena, TASK_ARENA_MAX);
	if (fill(t, l) != 0) {
		arena_done(&l->arena);
		free(l);
		return NULL;
	}
	live_changed(l);
	put_recent(p, l);
	list_append(bucket(t, l->task.row.id), &l->bucket_link);
	return l;
}

/* Names are the clients' own: one that nobody has any more is forgotten, unless it has a limit. */
static void leave_group(struct live *l)
{
	struct group *g = l->group;

	if (!g || --g->n_tasks > 0 || g->parallel > 0)
		return;
	list_remove(&g->link);
	free(g);
}

void live_free(struct live *l)
{
	leave_group(l);
	task_write_drop(l);
	list_remove(&l->failed_link);
	list_remove(&l->link);
	list_remove(&l->recent_link);
	list_remove(&l->bucket_link);
	arena_done(&l->arena);
	free(l);
}

static bool at_end(const struct live *l)
{
	return l->task.row.state > TASK_RUNNING;
}

struct live *live_find(struct tasks *t, struct text project, struct text id, unsigned *ret_n)
{
	struct live *found = NULL;

	*ret_n = 0;
	list_for_each (at, following, bucket(t, id)) {
		struct live *l = list_entry(at, struct live, bucket_link);

		if (!text_equal(l->task.row.id, id) ||
		    (project.data && !text_equal(l->project->name, project)))
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

void live_set_state(struct live *l, enum task_state state)
{
	l->project->n[l->task.row.state]--;
	l->project->n[state]++;
	if (!at_end(l) && state > TASK_RUNNING)
		l->project->n_recent++;
	else if (at_end(l) && state <= TASK_RUNNING)
		l->project->n_recent--;
	l->task.row.state = state;
	live_changed(l);
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

void project_trim(struct project *p)
{
	struct list *at = p->recent.prev;

	while (p->n_recent > TASK_RECENT_MAX && at != &p->recent) {
		struct live *l = list_entry(at, struct live, recent_link);

		at = at->prev;
		/* Only from the old end: what is at hand of the ended ones has no holes. */
		if (!at_end(l))
			continue;
		if (l->n_writes > 0)
			return;
		p->n_recent--;
		if (p->whole_from <= l->task.row.seq)
			p->whole_from = l->task.row.seq + 1;
		live_free(l);
	}
}
