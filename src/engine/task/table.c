/* The tasks in memory: by name, and for each project the newest first. */
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
	list_init(&p->aside);
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
		to = arena_copy(&l->arena, t->data, t->len);
	}
	t->data = to;
	return to ? 0 : -ENOMEM;
}

static int keep_after(struct live *l)
{
	struct texts *after = &l->task.after;
	struct text *items;

	if (after->n == 0)
		return 0;
	items = arena_alloc(&l->arena, after->n * sizeof(items[0]));
	if (!items)
		return -ENOMEM;
	for (unsigned i = 0; i < after->n; i++) {
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
	if (task->metadata.bytes.data &&
	    value_unpack(&l->arena, task->metadata.bytes, &metadata) == 0)
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

static void put_recent(struct project *p, struct live *l)
{
	/* It is nearly always the newest of all; an import may bring older ones. */
	struct list *at = p->recent.next;

	while (at != &p->recent && list_entry(at, struct live, recent_link)->task.seq > l->task.seq)
		at = at->next;
	/* Inserts before `at`: a list's end is its head. */
	list_append(at, &l->recent_link);
}

static int fill(struct tasks *t, struct live *l)
{
	int r = keep_texts(l);

	l->task.project = l->project->name;
	if (r != 0 || !l->task.group.data)
		return r;
	l->group = group_get(t, l->task.group);
	if (!l->group)
		return -ENOMEM;
	l->group->n_tasks++;
	return 0;
}

static struct live *live_alloc(struct task task)
{
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
	l = calloc(1, sizeof(*l) + n);
	if (!l)
		return NULL;
	l->n_own = l->n_left = n;
	l->task = task;
	l->light = light;
	return l;
}

struct live *live_new(struct tasks *t, struct project *p, const struct task *row)
{
	struct live *l = live_alloc(*row);

	if (!l)
		return NULL;
	l->project = p;
	list_init(&l->link);
	changes_init(&l->changes, &t->keeper);
	arena_init(&l->arena, TASK_ARENA_MAX);
	if (fill(t, l) != 0) {
		arena_done(&l->arena);
		free(l);
		return NULL;
	}
	live_changed(l);
	put_recent(p, l);
	list_append(bucket(t, l->task.id), &l->bucket_link);
	return l;
}

/* Clients make up group names: drop one without tasks, unless it has a limit. */
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
	list_remove(&l->link);
	list_remove(&l->recent_link);
	list_remove(&l->bucket_link);
	arena_done(&l->arena);
	free(l);
}

static bool at_end(const struct live *l)
{
	return l->task.state > TASK_RUNNING;
}

struct live *live_find(struct tasks *t, struct text project, struct text id, unsigned *ret_n)
{
	struct live *found = NULL;

	*ret_n = 0;
	list_for_each (at, following, bucket(t, id)) {
		struct live *l = list_entry(at, struct live, bucket_link);

		if (!text_equal(l->task.id, id) ||
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
	l->project->n[l->task.state]--;
	l->project->n[state]++;
	if (!at_end(l) && state > TASK_RUNNING)
		l->project->n_recent++;
	else if (at_end(l) && state <= TASK_RUNNING)
		l->project->n_recent--;
	l->task.state = state;
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
		/* Drop only from the old end: there must be no gaps between the ended ones in
		 * memory. */
		if (!at_end(l))
			continue;
		if (changes_pending(&l->changes))
			return;
		p->n_recent--;
		if (p->whole_from <= l->task.seq)
			p->whole_from = l->task.seq + 1;
		live_free(l);
	}
}
