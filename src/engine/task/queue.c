/*
 * Chooses the next task. Each project has its own queue, ordered by priority and age; tasks of a
 * group with a limit have a line of their own in it, so that a full group is passed over at
 * once. A task that waits for a time, for others, for its release or until it is enqueued or
 * resumes it is set aside, so that the lines hold only tasks that could start.
 *
 * Many may become ready at once, be released, or fail with one that they come after. They are
 * taken some at a time, a turn of the loop each. Nothing starts until all that are ready are in
 * line: the order is the same as if it were one turn. What is to be stored goes on only as fast
 * as the store keeps up, so that writes of others come in between.
 */
#include <assert.h>

#include "base/clock.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"

enum {
	LINED_UP_AT_ONCE = 1000,
	WRITTEN_AT_ONCE = 100,
	CHOICE = 4, /* of so many for each host, one takes its own first */
	NOW_MAX = 256,
	RENDERED_MAX = 4 << 10,
	LOOKS_MAX = 1000,
	UNKEPT_MS = 1000, /* a task whose change is not stored waits so long for the next look */
};

static struct live *live_of(const struct sorted_link *order)
{
	return order ? list_entry(order, struct live, order) : NULL;
}

/* ---- where a queued task waits ---- */

static void wait_for_time(struct tasks *t)
{
	const struct live *first = live_of(t->timed.first);
	uint64_t now = clock_steady_ms();

	if (first)
		timer_start(t->timer, first->ready_ms > now ? first->ready_ms - now : 0);
}

/* As far as hosts matter. */
static bool is_for_us(const struct tasks *t, const struct task *task)
{
	bool label = !task->on_label.data || node_has_label(t->node, task->on_label);

	return label && !node_is_other(t->node, task->on_host);
}

/* A user has to let it go on, or another host has to take it; it has no turn until then. */
static bool is_kept_back(const struct live *l)
{
	return l->task.held || l->task.stashed || l->n_edits > 0 ||
	       (l->group && l->group->paused) || !is_for_us(l->project->tasks, &l->task);
}

static void set_aside(struct tasks *t, struct live *l)
{
	struct project *p = l->project;

	list_append(&p->aside, &l->link);
	l->place = PLACE_ASIDE;
	if (l->task.held) {
		list_append(&p->held, &l->held_link);
		p->n_held++;
	} else if (!is_kept_back(l) && l->n_after_open == 0) {
		l->place = PLACE_TIMED;
		sorted_add(&t->timed, &l->order);
		if (t->timed.first == &l->order)
			wait_for_time(t);
	}
}

static void line_up(struct tasks *t, struct live *l)
{
	l->place = PLACE_READY;
	l->stands_in = l->line;
	sorted_add(&l->line->ready, &l->order);
	if (l->project->n_ready++ == 0)
		list_append(&t->eager, &l->project->eager_link);
}

static void task_queue_put(struct tasks *t, struct live *l)
{
	if (is_kept_back(l) || l->n_after_open > 0 || l->ready_ms > clock_steady_ms())
		set_aside(t, l);
	else
		line_up(t, l);
}

static void leave_line(struct live *l)
{
	sorted_remove(&l->stands_in->ready, &l->order);
	if (--l->project->n_ready == 0)
		list_remove(&l->project->eager_link);
}

static void take_out(struct tasks *t, struct live *l)
{
	if (l->place == PLACE_READY)
		leave_line(l);
	else if (l->place == PLACE_TIMED)
		sorted_remove(&t->timed, &l->order);
	if (!list_empty(&l->held_link))
		l->project->n_held--;
	list_remove(&l->held_link);
	list_remove(&l->link);
	l->place = PLACE_NONE;
}

/* One that is held keeps its place, which may be among those that are being released. */
void queue_place(struct live *l)
{
	struct tasks *t = l->project->tasks;
	bool has = l->place != PLACE_NONE;

	if (l->task.state != TASK_QUEUED || l->record.stale || (has && l->task.held))
		return;
	if (has)
		take_out(t, l);
	t->n_queued += !has;
	task_queue_put(t, l);
	assert(task_is_legal(l));
}

void queue_remove(struct live *l)
{
	for (unsigned i = 0; i < l->task.after.n; i++)
		list_remove(&l->waits[i].link);
	l->n_after_open = 0;
	if (l->place == PLACE_NONE)
		return;
	take_out(l->project->tasks, l);
	l->project->tasks->n_queued--;
}

/* ---- the next one ---- */

static unsigned project_limit(const struct tasks *t, const struct project *p)
{
	return p->parallel ? p->parallel : t->project_parallel;
}

/* Storing its start has failed and is being retried: another try would only wait behind that. */
static bool is_unkept(const struct tasks *t, const struct live *l)
{
	return t->records.failing && record_pending(&l->record);
}

static bool has_room(const struct group *g)
{
	return !g || g->parallel == 0 || g->n_running < g->parallel;
}

/* Where several hosts look at the same line, each begins with other ones of its first, so that they
 * seldom claim the same. */
static struct live *choose_in(struct tasks *t, struct live *first)
{
	unsigned rank, count = first ? node_count(t->node, &rank) : 1;
	const struct sorted_link *at = first ? &first->order : NULL;

	for (unsigned n = 0; count > 1 && n < CHOICE * count && at; n++, at = at->next) {
		struct live *l = live_of(at);

		if (l->task.priority != first->task.priority)
			break;
		if ((uint64_t)l->task.seq % count == rank && !is_unkept(t, l))
			return l;
	}
	return first;
}

static struct live *first_in(struct tasks *t, struct line *line)
{
	struct live *l;

	if (!has_room(line->group))
		return NULL;
	t->n_looked++;
	while ((l = live_of(line->ready.first)) && is_unkept(t, l)) {
		l->ready_ms = clock_steady_ms() + UNKEPT_MS;
		queue_place(l);
	}
	return choose_in(t, l);
}

static struct live *better_of(struct live *a, struct live *b)
{
	if (!a || !b)
		return a ? a : b;
	return live_goes_before(a, b) ? a : b;
}

/* The first task in the project's queue whose group has room. */
static struct live *first_of(struct tasks *t, struct project *p)
{
	struct live *best;

	if (!p->served || p->n_running >= project_limit(t, p))
		return NULL;
	best = first_in(t, &p->line);
	list_for_each (at, following, &p->lines)
		best = better_of(best, first_in(t, list_entry(at, struct line, link)));
	return best;
}

static struct live *next_task(struct tasks *t)
{
	struct live *best = NULL;

	list_for_each (at, following, &t->eager) {
		struct project *p = list_entry(at, struct project, eager_link);

		best = better_of(best, first_of(t, p));
	}
	return best;
}

static void start_next(struct tasks *t)
{
	struct live *l;

	if (t->records.stopping || t->paused || t->n_drains > 0 || t->lining_up ||
	    !node_allows(t->node))
		return;
	while (t->n_running < t->parallel && (l = next_task(t)))
		run_start(t, l);
}

/* ---- why a task waits ---- */

static struct task_waits waits_for_dependency(const struct live *l)
{
	struct task_waits w = {.reason = WAIT_AFTER, .more = l->n_after_open - 1};

	for (unsigned i = 0; i < l->task.after.n && !w.on.data; i++) {
		if (!list_empty(&l->waits[i].link))
			w.on = l->task.after.items[i];
	}
	return w;
}

static bool label_is_alive(const struct tasks *t, struct text label)
{
	int64_t now_ms;
	unsigned n;
	const struct host *hosts = node_list(t->node, &n, &now_ms);

	for (unsigned i = 0; i < n; i++) {
		if (hosts[i].state == HOST_ALIVE && host_has_label(&hosts[i], label))
			return true;
	}
	return false;
}

static struct task_waits waits_for_host(const struct tasks *t, const struct task *task)
{
	const struct host *host;

	if (task->on_host.data && !node_is_us(t->node, task->on_host)) {
		host = node_find(t->node, task->on_host);
		return (struct task_waits) {
			.reason = host && host->state == HOST_ALIVE ? WAIT_HOST : WAIT_NO_HOST,
			.on = task->on_host};
	}
	return (struct task_waits) {.reason = label_is_alive(t, task->on_label) ? WAIT_LABEL
										: WAIT_NO_LABEL,
				    .on = task->on_label};
}

/* A task that could start as soon as there is a slot for it. */
static struct task_waits waits_for_slot(const struct tasks *t, const struct live *l)
{
	const struct project *p = l->project;
	struct task_waits w = {.reason = WAIT_NONE};

	if (!p->served)
		w.reason = WAIT_UNSERVED;
	else if (t->n_drains > 0 || t->records.stopping)
		w.reason = WAIT_DRAIN;
	else if (!node_allows(t->node) || is_unkept(t, l))
		w.reason = WAIT_STORE;
	else if (!has_room(l->group))
		w = (struct task_waits) {.reason = WAIT_GROUP, .on = l->task.group};
	else if (p->n_running >= project_limit(t, p))
		w.reason = WAIT_PROJECT;
	else if (t->n_running >= t->parallel)
		w.reason = WAIT_PARALLEL;
	return w;
}

/* Dependencies and times come before a pause and a missing host: those may be over before it matters. */
static struct task_waits queue_waits(const struct tasks *t, const struct live *l)
{
	const struct task *task = &l->task;
	struct task_waits w = {.reason = WAIT_NONE};

	if (l->place == PLACE_NONE)
		return w;
	if (task->held)
		w.reason = WAIT_RELEASE;
	else if (task->stashed)
		w.reason = WAIT_ENQUEUE;
	else if (l->n_after_open > 0)
		return waits_for_dependency(l);
	else if (l->ready_ms > clock_steady_ms() && task->not_before_ms > 0)
		w = (struct task_waits) {.reason = WAIT_UNTIL, .until_ms = task->not_before_ms};
	else if (t->paused)
		w.reason = WAIT_PAUSE;
	else if (l->group && l->group->paused)
		w = (struct task_waits) {.reason = WAIT_GROUP_PAUSE, .on = task->group};
	else if (!is_for_us(t, task))
		return waits_for_host(t, task);
	else
		return waits_for_slot(t, l);
	return w;
}

/* ---- listing ---- */

/* The line whose next task comes first; `shown` is where each line has got to. */
static struct line *next_line(struct project *p)
{
	struct line *best = p->line.shown ? &p->line : NULL;

	list_for_each (at, following, &p->lines) {
		struct line *line = list_entry(at, struct line, link);

		if (line->shown &&
		    (!best || live_goes_before(live_of(line->shown), live_of(best->shown))))
			best = line;
	}
	return best;
}

static void queue_list(struct project *p, const struct task **found, unsigned max, unsigned *n)
{
	struct line *line;

	p->line.shown = p->line.ready.first;
	list_for_each (at, following, &p->lines) {
		line = list_entry(at, struct line, link);
		line->shown = line->ready.first;
	}
	while (*n < max && (line = next_line(p))) {
		found[(*n)++] = &live_of(line->shown)->task;
		line->shown = line->shown->next;
	}
}

/* p: only those of that project; NULL: all. */
static void add_tasks(struct list *tasks, const struct project *p, const struct task **found,
		      unsigned *n)
{
	list_for_each (at, following, tasks) {
		const struct live *l = list_entry(at, struct live, link);

		if (*n == NOW_MAX)
			return;
		if (!p || l->project == p)
			found[(*n)++] = &l->task;
	}
}

static bool fits(const struct task_filter *f, const struct task *row)
{
	if (f->state >= 0 && (int)row->state != f->state)
		return false;
	if (f->skips != SKIPS_TOO && (f->skips == SKIPS_ONLY) != (row->skipped.data != NULL))
		return false;
	return (!f->group.data || text_equal(f->group, row->group)) &&
	       (!f->label.data || text_equal(f->label, row->label));
}

/* False: the store must be asked. */
static bool list_project(const struct project *p, const struct task_filter *f, unsigned limit,
			 const struct task **found, unsigned *n)
{
	unsigned n_looks = 0;

	for (struct sorted_link *at = p->recent.first; at; at = at->next) {
		const struct live *l = list_entry(at, struct live, recent_link);

		/* The others may be many: a reader finds those that fit by an index. */
		if (n_looks++ == LOOKS_MAX)
			return false;
		/* An open task may be older than others that are not in memory. */
		if (l->task.seq < p->whole_from)
			return false;
		if (!fits(f, &l->task))
			continue;
		if (!l->light)
			return false;
		found[(*n)++] = &l->task;
		if (*n == limit)
			return true;
	}
	return p->whole_from == 0;
}

/* Open tasks: those that run, then those that wait, in the order they will start. */
static void list_open(struct tasks *t, const struct project *p, const struct task **found,
		      unsigned *n)
{
	add_tasks(&t->running, p, found, n);
	add_tasks(&t->elsewhere, p, found, n);
	list_for_each (at, following, &t->projects) {
		struct project *one = list_entry(at, struct project, link);

		if (p && one != p)
			continue;
		queue_list(one, found, NOW_MAX, n);
		add_tasks(&one->aside, NULL, found, n);
	}
}

/* Watchers request lists again and again, and little changes in between. Slots are few and short. A task's number
 * determines its slot, so that the newest ones, which lists start with, do not evict each other. */
static struct buf *words_of(struct tasks *t, const struct task *task, const void *by)
{
	struct rendered *slot = &t->rendered[(uint64_t)task->seq % RENDERED_SLOTS];
	uint64_t version = list_entry(task, struct live, task)->version;

	/* It is another's of the same list. */
	if (!by || slot->list == t->n_lists)
		return NULL;
	if (slot->version == 0)
		buf_init(&slot->text, RENDERED_MAX);
	if (slot->version != version || slot->by != by)
		buf_clear(&slot->text);
	slot->list = t->n_lists;
	slot->version = version;
	slot->by = by;
	return &slot->text;
}

bool task_list_now(struct tasks *t, const struct task_filter *f, const struct task_now **ret_tasks,
		   unsigned *ret_n)
{
	static struct task_now now[NOW_MAX];
	const struct task *found[NOW_MAX];
	bool all = true;
	const struct project *p = f->project.data ? project_find(t, f->project, false) : NULL;

	*ret_n = 0;
	*ret_tasks = now;
	if (f->in_turn && (p || !f->project.data))
		list_open(t, p, found, ret_n);
	else if (!f->in_turn)
		all = f->limit <= NOW_MAX && p &&
		      list_project(p, f, f->limit > 0 ? (unsigned)f->limit : TASK_LIST_DEFAULT,
				   found, ret_n);
	t->n_lists++;
	for (unsigned i = 0; i < *ret_n; i++)
		now[i] = (struct task_now) {found[i], words_of(t, found[i], f->rendered_by)};
	return all;
}

/* ---- what is read meanwhile ---- */

static bool is_paused(const struct tasks *t, const struct live *l)
{
	return l->task.state == TASK_QUEUED && (t->paused || (l->group && l->group->paused));
}

/* NULL: what was read is up to date. */
static const struct task *newer_than(struct tasks *t, struct task *task)
{
	unsigned n;
	const struct live *l = live_find(t, task->project, task->id, &n);

	task->paused = l && is_paused(t, l);
	task->waits = l ? queue_waits(t, l) : (struct task_waits) {.reason = WAIT_NONE};
	/* Another host has changed it, and we have not heard of that yet. */
	if (l && !record_pending(&l->record) && task->version > l->task.version)
		return NULL;
	/* If it has ended and its texts are not in memory, the store knows more. */
	return l && (l->task.state <= TASK_RUNNING || l->light) ? &l->task : NULL;
}

bool task_catch_up(struct tasks *t, struct task *task, const struct task_output *output)
{
	const struct task *now = newer_than(t, task);
	bool ended = now && now->state > TASK_RUNNING && task->state <= TASK_RUNNING;

	if (!now)
		return true;
	task->state = now->state;
	task->held = now->held;
	task->stashed = now->stashed;
	task->not_before_ms = now->not_before_ms;
	task->started_ms = now->started_ms;
	task->completed_ms = now->completed_ms;
	task->pid = now->pid;
	task->attempts = now->attempts;
	task->stops = now->stops;
	task->skipped = now->skipped;
	task->exit_status = now->exit_status;
	task->signal = now->signal;
	if (now->state > TASK_RUNNING) {
		task->result = now->result;
		task->error = now->error;
	}
	return !ended || !output || output->bytes.len >= output->max ||
	       output->bytes.len >= (size_t)now->output_bytes;
}

/* ---- held tasks ---- */

static bool release_next(struct tasks *t)
{
	struct list *first = list_first(&t->releases);
	struct live *l = first ? list_entry(first, struct live, held_link) : NULL;

	if (!l)
		return false;
	l->task.held = false;
	queue_place(l);
	task_write(t, l, "task.released", NULL);
	return true;
}

unsigned tasks_each_held(struct tasks *t, struct text project,
			 void (*fn)(void *arg, struct text id), void *arg)
{
	struct project *p = t ? project_find(t, project, false) : NULL;

	if (!p)
		return 0;
	list_for_each (at, following, &p->held) {
		if (fn)
			fn(arg, list_entry(at, struct live, held_link)->task.id);
	}
	return p->n_held;
}

/* ---- tasks that come after others: each open task has the waits for it in a list. When it ends, its list moves as
 * a whole to those of its kind of end, and is worked off from there. One that does not complete makes all its
 * dependents fail, the dependents of these, and so on. If the daemon dies meanwhile, the next start finds the rest
 * (recover.c) ---- */

static void wait_for(struct live *l, unsigned index, struct list *waits)
{
	struct wait *w = &l->waits[index];

	w->waiting = l;
	list_append(waits, &w->link);
	l->n_after_open++;
}

static struct wait *take_first(struct list *waits)
{
	struct list *first = list_first(waits);

	if (!first)
		return NULL;
	list_remove(first);
	return list_entry(first, struct wait, link);
}

static unsigned release_dependents(struct tasks *t, unsigned max)
{
	struct wait *w;
	unsigned n = 0;

	while (n < max && (w = take_first(&t->dependents[TASK_COMPLETED]))) {
		n++;
		t->n_looked++;
		if (--w->waiting->n_after_open == 0)
			queue_place(w->waiting);
	}
	return n;
}

/* The task fails without a run: the dependency with this index ended in that state. */
static void skip(struct tasks *t, struct live *l, unsigned index, enum task_state state)
{
	struct text id = l->task.after.items[index];
	char error[SKIP_WORDS_MAX];

	task_skip_words(id, state, error);
	live_set_text(l, &l->task.skipped, id);
	task_end(t, l, TASK_FAILED, (struct text) {0}, text_of(error), NULL);
}

/* A dependency that was queued again meanwhile is waited for again, or has even completed. */
static void task_queue_settle(struct tasks *t, const struct wait *w, enum task_state state)
{
	struct live *l = w->waiting;
	unsigned index = (unsigned)(w - l->waits);
	unsigned n;
	struct live *before = live_find(t, l->project->name, l->task.after.items[index], &n);

	t->n_looked++;
	if (before)
		state = before->task.state;
	if (state > TASK_COMPLETED) {
		skip(t, l, index, state);
		return;
	}
	l->n_after_open--;
	if (state < TASK_COMPLETED)
		wait_for(l, index, &before->dependents);
	else if (l->n_after_open == 0)
		queue_place(l);
}

static bool fail_next(struct tasks *t)
{
	static const enum task_state ends[] = {TASK_FAILED, TASK_CANCELLED};

	/* What fails meanwhile would not be found by it, and stay skipped. */
	if (t->n_retries > 0)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		const struct wait *w = take_first(&t->dependents[ends[i]]);

		if (!w)
			continue;
		task_queue_settle(t, w, ends[i]);
		return true;
	}
	return false;
}

/* It does not wait for the one with this index, which did not complete, or is not known here. False: it is in no
 * queue any more. */
static bool stand_aside(struct tasks *t, struct live *l, unsigned index, enum task_state stored,
			enum task_state state, bool elsewhere)
{
	if (stored <= TASK_RUNNING) {
		/* Another host has added it or queued it again, which has not been heard yet; or it has ended here
		 * since that was read. */
		queue_remove(l);
		record_stale(&l->record);
		return false;
	}
	if (!elsewhere) {
		skip(t, l, index, state);
		return false;
	}
	wait_for(l, index, &t->orphans[state > TASK_RUNNING ? state : TASK_FAILED]);
	return true;
}

/* It waits for those in its `after` that are open. states: as they are stored; NULL: what is not in memory is
 * completed. elsewhere: another host fails it if one did not complete. False: it is in no queue, since it has failed,
 * or since another host knows of one that is not known here yet. */
static bool wait_for_all(struct tasks *t, struct live *l, const enum task_state *states,
			 bool elsewhere)
{
	for (unsigned i = 0; i < l->task.after.n; i++) {
		unsigned n;
		struct live *before = live_find(t, l->project->name, l->task.after.items[i], &n);
		enum task_state stored = states ? states[i] : TASK_COMPLETED;
		enum task_state state = before ? before->task.state : stored;

		if (before && state <= TASK_RUNNING)
			wait_for(l, i, &before->dependents);
		else if (state != TASK_COMPLETED && !stand_aside(t, l, i, stored, state, elsewhere))
			return false;
	}
	return true;
}

void queue_enter(struct tasks *t, struct live *l, const enum task_state *states, bool elsewhere)
{
	const struct task *row = &l->task;
	int64_t wait = row->not_before_ms - clock_utc_ms();

	/* If the clock was set back, it must not wait longer than intended. */
	if (wait > row->not_before_ms - row->created_ms)
		wait = row->not_before_ms - row->created_ms;
	l->ready_ms = row->not_before_ms > 0 && wait > 0 ? clock_steady_ms() + (uint64_t)wait : 0;
	if (wait_for_all(t, l, states, elsewhere))
		queue_place(l);
}

/* ---- many at once ---- */

static bool is_due(const struct live *l)
{
	return l && l->ready_ms <= clock_steady_ms();
}

/* Those whose time has come. */
static void line_up_due(struct tasks *t, unsigned max)
{
	struct live *l;

	while (max-- > 0 && is_due(l = live_of(t->timed.first)))
		queue_place(l);
}

/* Returns whether there may be more. */
static bool write_some(struct tasks *t)
{
	for (unsigned n = 0; n < WRITTEN_AT_ONCE && t->records.n_changes < TASK_CHANGES_MAX; n++) {
		if (!fail_next(t) && !release_next(t))
			return false;
	}
	return true;
}

static void queue_settle(struct tasks *t)
{
	unsigned n;

	/* A task that fails here is not the last: those behind it are settled by this loop. */
	if (t->settling)
		return;
	t->settling = true;
	n = release_dependents(t, LINED_UP_AT_ONCE);
	line_up_due(t, LINED_UP_AT_ONCE - n);
	t->writes_left = write_some(t);
	t->lining_up =
		!list_empty(&t->dependents[TASK_COMPLETED]) || is_due(live_of(t->timed.first));
	t->settling = false;
	if (t->lining_up || (t->writes_left && t->records.n_changes < TASK_CHANGES_MAX))
		wake_send(t->more);
	else
		wait_for_time(t);
}

void queue_run(struct tasks *t)
{
	queue_settle(t);
	start_next(t);
}

/* ---- the end of a task ---- */

static const char *end_event(enum task_state state)
{
	return state == TASK_COMPLETED ? "task.completed"
	       : state == TASK_FAILED  ? "task.failed"
				       : "task.cancelled";
}

void task_end(struct tasks *t, struct live *l, enum task_state state, struct text result,
	      struct text error, struct record_change *change)
{
	struct task *row = &l->task;
	struct task whole;

	row->completed_ms = clock_utc_ms();
	/* If the clock was set back, it must not end before it started. */
	if (row->completed_ms < row->started_ms)
		row->completed_ms = row->started_ms;
	live_step(l, STEP_END, state);
	whole = *row;
	whole.result = result;
	whole.error = error;
	live_set_text(l, &row->result, result);
	live_set_text(l, &row->error, error);
	task_write_row(t, l, &whole, end_event(state), change);
	queue_settle(t);
}

void task_put_back(struct tasks *t, struct live *l, uint64_t wait_ms, const char *event)
{
	l->task.epoch = 0;
	l->task.host = (struct text) {0};
	live_step(l, STEP_PUT_BACK, TASK_QUEUED);
	l->ready_ms = clock_steady_ms() + wait_ms;
	queue_place(l);
	task_write(t, l, event, NULL);
}
