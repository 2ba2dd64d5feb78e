#include "engine/automation/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/pack.h"
#include "base/object_builder.h"
#include "engine/automation/automation.h"
#include "engine/chat/chat.h"
#include "engine/event/event.h"
#include "engine/record/record.h"
#include "store/rule.h"
#include "store/store.h"

/* The name of their set of rules. Jobs are rules that belong to no project. */
#define ORIGIN TEXT("\njobs")

struct live_job {
	struct list link;
	struct arena arena;
	struct job job;
	char id[JOB_ID_LEN];
};

struct jobs {
	struct jobs_opts opts;
	struct list list;
	unsigned n;
	struct records records;
};

/* A change on its way to the store. */
struct job_change {
	struct work work;
	struct jobs *jobs;
	struct live_job *job; /* the new state; NULL: it is to be removed */
	char id[JOB_ID_LEN];
	int64_t was_ms; /* when it was changed before; 0: it is new */
	struct buf packed;
	struct error error;
	job_fn fn;
	void *arg;
};

/* ---- jobs ---- */

static void job_free(struct live_job *j)
{
	if (!j)
		return;
	arena_done(&j->arena);
	free(j);
}

static int job_new(const char *id, const struct value *data, struct live_job **ret_job)
{
	struct live_job *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	list_init(&j->link);
	arena_init(&j->arena, 4 * JOB_BYTES_MAX);
	snprintf(j->id, sizeof(j->id), "%s", id);
	j->job.id = text_of(j->id);
	r = value_copy(&j->arena, data, &j->job.data.value);
	if (r != 0) {
		job_free(j);
		return r;
	}
	*ret_job = j;
	return 0;
}

static struct live_job *automation_job_find(const struct jobs *jobs, struct text id)
{
	list_for_each (at, following, &jobs->list) {
		struct live_job *j = list_entry(at, struct live_job, link);

		if (text_is(id, j->id))
			return j;
	}
	return NULL;
}

static struct text member(const struct value *v, const char *key)
{
	return value_text(value_find(v, key));
}

/* ---- as a rule ---- */

static int read_schedule(const struct value *v, struct rule *rule, struct error *error)
{
	struct text kind = member(v, "kind");

	if (v && v->kind == VALUE_STRING) {
		rule->cron = value_text(v);
		return 0;
	}
	if (text_is(kind, "cron")) {
		rule->cron = member(v, "expr");
		if (member(v, "tz").len > 0)
			rule->zone = member(v, "tz");
		return 0;
	}
	if (!text_is(kind, "every"))
		return refuse_field(error, "schedule",
				    "schedule.kind must be cron or every, not '%.*s'",
				    TEXT_ARGS(text_cut(kind, 40)));
	rule->trigger = TRIGGER_EVERY;
	if (!value_int(value_find(v, "everyMs"), &rule->every_ms))
		return refuse_field(error, "schedule", "schedule.everyMs must be an integer");
	return 0;
}

/* In a session of its own, only an agent's turn can run. */
static bool is_agent_turn(const struct value *data, const struct value *payload)
{
	struct text kind = member(payload, "kind");

	return text_is(kind, "agentTurn") ||
	       (kind.len == 0 && text_is(member(data, "sessionTarget"), "isolated"));
}

static int read_payload(struct jobs *jobs, const struct value *data, struct rule *rule,
			struct error *error)
{
	const struct value *v = value_find(data, "payload");
	struct text model = member(v, "model");

	if (!is_agent_turn(data, v))
		return refuse_field(error, "payload", "payload.kind must be agentTurn, not '%.*s'",
				    TEXT_ARGS(text_cut(member(v, "kind"), 40)));
	rule->prompt = member(v, "message");
	if (rule->prompt.len == 0)
		return refuse_field(error, "payload", "payload.message is required");
	if (model.len > 0 && chat_agent(jobs->opts.chat, model))
		rule->agent = model;
	return 0;
}

/* The client does not know a rule's keys: to the client, all of these are its schedule. */
static int check_rule(struct rule *rule, struct error *error)
{
	static const char *const of_schedule[] = {"cron", "every", "zone"};
	int r = automation_check_rule(rule, error);
	struct error no;

	for (unsigned i = 0; r > 0 && i < 3; i++) {
		if (strcmp(error->field, of_schedule[i]) == 0) {
			no = *error;
			return refuse_field(error, "schedule", "schedule: %.180s", no.text);
		}
	}
	return r;
}

static int make_rule(struct jobs *jobs, const struct live_job *j, struct rule *ret,
		     struct error *error)
{
	const struct value *enabled = value_find(j->job.data.value, "enabled");
	int r;

	*ret = (struct rule) {
		.id = text_of(j->id),
		.disabled = enabled && enabled->kind == VALUE_FALSE,
		.description = member(j->job.data.value, "name"),
		.trigger = TRIGGER_CRON,
		.action = ACTION_TASK,
	};
	r = read_schedule(value_find(j->job.data.value, "schedule"), ret, error)
		    ?: read_payload(jobs, j->job.data.value, ret, error);
	return r != 0 ? r : check_rule(ret, error);
}

static int set_rules(struct jobs *jobs)
{
	CLEANUP(freep) struct rule *rules = calloc(jobs->n + 1, sizeof(rules[0]));
	struct error error;
	unsigned n = 0;

	if (!rules)
		return -ENOMEM;
	list_for_each (at, following, &jobs->list) {
		const struct live_job *j = list_entry(at, struct live_job, link);

		if (make_rule(jobs, j, &rules[n], &error) == 0)
			n++;
	}
	return automation_set_rules(jobs->opts.automation, ORIGIN, rules, n, NULL, NULL);
}

/* ---- showing ---- */

static void automation_job_show(struct jobs *jobs, const struct live_job *j, struct job_info *ret)
{
	const struct rule *rule = NULL;

	*ret = (struct job_info) {.id = j->id,
				  .data = j->job.data.value,
				  .created_ms = j->job.created_ms,
				  .updated_ms = j->job.updated_ms};
	while ((rule = automation_next_rule(jobs->opts.automation, (struct text) {0}, rule))) {
		if (rule->project.len > 0 || !text_is(rule->id, j->id))
			continue;
		ret->enabled = rule->enabled;
		ret->next_ms = rule->next_ms;
		ret->fired_ms = rule->fired_ms;
		ret->n_fired = rule->n_fired;
	}
}

bool job_at(struct jobs *jobs, unsigned i, struct job_info *ret_info)
{
	if (!jobs)
		return false;
	list_for_each (at, following, &jobs->list) {
		if (i-- > 0)
			continue;
		automation_job_show(jobs, list_entry(at, struct live_job, link), ret_info);
		return true;
	}
	return false;
}

/* ---- changes ---- */

/* The time in milliseconds, as clients expect ids. */
static void name_job(char out[JOB_ID_LEN], int64_t ms)
{
	snprintf(out, JOB_ID_LEN, "job-%lld", (long long)ms);
}

/* Another host may have made one in the same millisecond: then it is the next. */
static int add_new(struct job_change *c, struct connection *db)
{
	int64_t ms = c->job->job.created_ms;
	bool added = false;
	int r = store_job_add(db, &c->job->job, &added);

	while (r == 0 && !added) {
		name_job(c->id, ++ms);
		name_job(c->job->id, ms);
		c->job->job.id = text_of(c->job->id);
		r = store_job_add(db, &c->job->job, &added);
	}
	return r;
}

static int change_old(struct job_change *c, struct connection *db)
{
	bool changed = false;
	int r = store_job_change(db, &c->job->job, c->was_ms, &changed);

	if (r == 0 && !changed)
		r = refuse(&c->error, REFUSE_CONFLICT,
			   "job %s was changed in the meantime; read it again and retry", c->id);
	return r;
}

static int automation_job_notify(const struct job_change *c)
{
	struct event_new e = {.type = !c->job          ? "job.removed"
				      : c->was_ms == 0 ? "job.added"
						       : "job.changed"};
	struct event_data d;

	event_data_begin(&d);
	packer_text(&d.members, "id", text_of(c->id));
	return event_add_data(c->jobs->opts.events, &e, &d);
}

static int change_run(struct work *w, int lane)
{
	struct job_change *c = list_entry(w, struct job_change, work);
	struct connection *db = store_lane(c->jobs->opts.store, lane);
	bool found;
	int r;

	if (!c->job)
		r = store_job_delete(db, text_of(c->id), &found);
	else
		r = c->was_ms == 0 ? add_new(c, db) : change_old(c, db);
	return r ?: automation_job_notify(c);
}

/* It is stored: apply it here, too. job: the new state, which is taken; NULL: it is gone. */
static int automation_job_take(struct jobs *jobs, struct text id, struct live_job *job)
{
	struct live_job *old = automation_job_find(jobs, id);

	if (job && old)
		list_append(&old->link, &job->link); /* takes its place */
	else if (job)
		list_append(&jobs->list, &job->link);
	jobs->n += job != NULL;
	if (old) {
		list_remove(&old->link);
		jobs->n--;
		job_free(old);
	}
	return set_rules(jobs);
}

static void change_free(struct job_change *c)
{
	job_free(c->job);
	buf_done(&c->packed);
	free(c);
}

static void change_finished(struct work *w, int result)
{
	struct job_change *c = list_entry(w, struct job_change, work);
	struct job_info info = {.id = c->id};
	struct live_job *job = NULL;

	if (result == 0) {
		records_touch(&c->jobs->records);
		job = c->job;
		c->job = NULL;
		result = automation_job_take(c->jobs, text_of(c->id), job);
	}
	if (job)
		automation_job_show(c->jobs, job, &info);
	c->fn(c->arg, result, &info, &c->error);
	change_free(c);
}

/* Takes ownership of the job. old: what it was; NULL: it is new. */
static int automation_job_submit(struct jobs *jobs, const char *id, struct live_job *job,
				 const struct live_job *old, job_fn fn, void *arg)
{
	struct job_change *c = calloc(1, sizeof(*c));
	int r;

	if (!c) {
		job_free(job);
		return -ENOMEM;
	}
	*c = (struct job_change) {
		.work = {.run = change_run, .finished = change_finished},
		.jobs = jobs,
		.job = job,
		.was_ms = old ? old->job.updated_ms : 0,
		.fn = fn,
		.arg = arg,
	};
	snprintf(c->id, sizeof(c->id), "%s", id);
	buf_init(&c->packed, 2 * JOB_BYTES_MAX);
	if (job) {
		value_pack(&c->packed, job->job.data.value);
		job->job.data.bytes = (struct text) {c->packed.data, c->packed.len};
	}
	r = c->packed.err;
	if (r == 0)
		workers_start(jobs->opts.workers, &c->work, true);
	else
		change_free(c);
	return r;
}

static int check_data(const struct value *data, struct error *error)
{
	struct buf packed;
	int r;

	if (!data || data->kind != VALUE_OBJECT)
		return refuse(error, REFUSE_PARAMS, "job must be an object");
	buf_init(&packed, JOB_BYTES_MAX);
	value_pack(&packed, data);
	r = packed.err;
	buf_done(&packed);
	return r == -EMSGSIZE ? refuse(error, REFUSE_TOO_LARGE, "job is larger than %d bytes",
				       JOB_BYTES_MAX)
			      : r;
}

static int make(struct jobs *jobs, const char *id, const struct value *data,
		struct live_job **ret_job, struct error *error)
{
	struct rule rule;
	struct live_job *j = NULL;
	int r = check_data(data, error) ?: job_new(id, data, &j);

	if (r != 0)
		return r;
	r = make_rule(jobs, j, &rule, error);
	if (r != 0) {
		job_free(j);
		return r;
	}
	j->job.created_ms = j->job.updated_ms = clock_utc_ms();
	*ret_job = j;
	return 0;
}

static int check_service(const struct jobs *jobs, struct error *error)
{
	if (!jobs || !jobs->opts.automation)
		return refuse(error, REFUSE_UNAVAILABLE, "this server does not support automation");
	return 0;
}

int job_add(struct jobs *jobs, const struct value *data, job_fn fn, void *arg, struct error *error)
{
	char id[JOB_ID_LEN];
	struct live_job *job;
	int r = check_service(jobs, error);

	if (r != 0)
		return r;
	if (jobs->n >= JOBS_MAX)
		return refuse(error, REFUSE_LIMIT, "too many jobs (limit %d)", JOBS_MAX);
	name_job(id, clock_utc_ms());
	return make(jobs, id, data, &job, error)
		       ?: automation_job_submit(jobs, id, job, NULL, fn, arg);
}

static int get(const struct jobs *jobs, struct text id, struct live_job **ret_job,
	       struct error *error)
{
	int r = check_service(jobs, error);

	if (r != 0)
		return r;
	*ret_job = automation_job_find(jobs, id);
	if (*ret_job)
		return 0;
	return refuse(error, REFUSE_NOT_FOUND, "job not found: %.*s", TEXT_ARGS(text_cut(id, 100)));
}

/* The member of v that has the same name as `key`. */
static const struct value *namesake(const struct value *v, const struct value *key)
{
	value_each (m, v) {
		if (m->key_len == key->key_len && memcmp(m->key, key->key, m->key_len) == 0)
			return m;
	}
	return NULL;
}

static void automation_job_put(struct object_builder *w, const struct value *name,
			       const struct value *v)
{
	char *key = arena_copy(w->arena, name->key, name->key_len);

	if (key)
		object_value(w, key, v);
	else
		w->err = -ENOMEM;
}

/* deep: the members of an object are merged with those of the object that it would replace. */
static int merge(struct arena *a, const struct value *old, const struct value *patch, bool deep,
		 const struct value **ret)
{
	struct object_builder w;

	object_begin(&w, a);
	value_each (m, old) {
		if (!namesake(patch, m))
			automation_job_put(&w, m, m);
	}
	value_each (m, patch) {
		const struct value *was = deep ? namesake(old, m) : NULL;
		const struct value *to = m;

		if (was && was->kind == VALUE_OBJECT && m->kind == VALUE_OBJECT) {
			int r = merge(a, was, m, false, &to);

			if (r != 0)
				return r;
		}
		if (m->kind != VALUE_NULL)
			automation_job_put(&w, m, to);
	}
	*ret = w.root;
	return w.err;
}

int job_update(struct jobs *jobs, struct text id, const struct value *patch, job_fn fn, void *arg,
	       struct error *error)
{
	const struct value *data = NULL;
	struct live_job *old, *fresh = NULL;
	struct arena a;
	int r = get(jobs, id, &old, error);

	arena_init(&a, 4 * JOB_BYTES_MAX);
	if (r == 0)
		r = check_data(patch, error) ?:
			merge(&a, old->job.data.value, patch, true, &data) ?:
			make(jobs, old->id, data, &fresh, error);
	arena_done(&a);
	if (r != 0)
		return r;
	fresh->job.created_ms = old->job.created_ms;
	/* Later than that, whatever our clock says: others see by this that it has changed. */
	if (fresh->job.updated_ms <= old->job.updated_ms)
		fresh->job.updated_ms = old->job.updated_ms + 1;
	return automation_job_submit(jobs, old->id, fresh, old, fn, arg);
}

int job_remove(struct jobs *jobs, struct text id, job_fn fn, void *arg, struct error *error)
{
	struct live_job *j;

	return get(jobs, id, &j, error) ?: automation_job_submit(jobs, j->id, NULL, j, fn, arg);
}

/* ---- running one now ---- */

struct job_now {
	struct jobs *jobs;
	job_fn fn;
	void *arg;
	char id[JOB_ID_LEN];
};

static void on_run(void *arg, int result, const struct error *error)
{
	struct job_now *n = arg;
	const struct live_job *j = automation_job_find(n->jobs, text_of(n->id));
	struct job_info info = {.id = n->id};

	if (j)
		automation_job_show(n->jobs, j, &info);
	n->fn(n->arg, result, &info, error);
	free(n);
}

int job_run(struct jobs *jobs, struct text id, job_fn fn, void *arg, struct error *error)
{
	CLEANUP(freep) struct job_now *n = NULL;
	struct live_job *j;
	int r = get(jobs, id, &j, error);

	if (r != 0)
		return r;
	n = malloc(sizeof(*n));
	if (!n)
		return -ENOMEM;
	*n = (struct job_now) {.jobs = jobs, .fn = fn, .arg = arg};
	memcpy(n->id, j->id, sizeof(n->id));
	r = automation_run(jobs->opts.automation, (struct text) {NULL, 0}, text_of(n->id), on_run,
			   n, error);
	if (r == 0)
		(void)TAKE(n);
	return r;
}

/* ---- from the store ---- */

static int job_of_row(struct arena *a, const struct job *row, struct live_job **ret_job)
{
	struct value *data;
	char id[JOB_ID_LEN];
	int r;

	snprintf(id, sizeof(id), "%.*s", TEXT_ARGS(text_cut(row->id, JOB_ID_LEN - 1)));
	r = value_unpack(a, row->data.bytes, &data) ?: job_new(id, data, ret_job);
	if (r != 0)
		return r;
	(*ret_job)->job.created_ms = row->created_ms;
	(*ret_job)->job.updated_ms = row->updated_ms;
	return 0;
}

static int automation_job_read_rows(void *arg, int lane, struct arena *a,
				    struct record_found *found, unsigned n)
{
	const struct jobs *jobs = arg;
	const struct text *ids = record_ids(a, found, n);
	struct job *rows;
	unsigned n_rows;
	int r = ids ? store_job_find_named(store_lane(jobs->opts.store, lane), ids, n, a, &rows,
					   &n_rows)
		    : -ENOMEM;

	if (r == 0)
		record_match(found, n, rows, n_rows, sizeof(*rows), offsetof(struct job, id));
	return r;
}

/* Another host has changed it. What we have may be newer than what was read. */
static void take_found(void *arg, const struct record_found *found)
{
	struct jobs *jobs = arg;
	const struct job *row = found->row;
	const struct live_job *old = automation_job_find(jobs, found->id);
	struct live_job *fresh = NULL;
	struct arena a;
	int r = 0;

	if (row ? old && old->job.updated_ms >= row->updated_ms : !old)
		return;
	arena_init(&a, 4 * JOB_BYTES_MAX);
	if (row)
		r = job_of_row(&a, row, &fresh);
	if (r == 0)
		r = automation_job_take(jobs, found->id, fresh);
	arena_done(&a);
	if (r != 0)
		log_err("could not load job from another host, restart koined to retry", "job=%.*s",
			TEXT_ARGS(found->id));
}

static int automation_job_reload(void *arg)
{
	struct jobs *jobs = arg;
	int r = 0;

	list_for_each (at, following, &jobs->list) {
		if (r == 0)
			r = records_want(&jobs->records, (struct text) {0},
					 list_entry(at, struct live_job, link)->job.id);
	}
	return r;
}

static int list_ids(void *arg, int lane, struct arena *a, struct record_found **ret,
		    unsigned *ret_n)
{
	const struct jobs *jobs = arg;
	struct text *ids;
	int r = store_job_ids(store_lane(jobs->opts.store, lane), a, &ids, ret_n);

	return r ?: record_keys(a, ids, *ret_n, ret);
}

static int follow(struct jobs *jobs)
{
	static const struct text types[] = {TEXT("job.*")};
	static const struct record_read_ops reads = {
		.types = types,
		.n_types = 1,
		.read = automation_job_read_rows,
		.sync = take_found,
		.reload = automation_job_reload,
		.list = list_ids,
	};
	const struct records_opts opts = {
		.events = jobs->opts.events,
		.loop = jobs->opts.loop,
		.workers = jobs->opts.workers,
		.name = "job",
		.arg = jobs,
		.reads = &reads,
	};

	return records_start(&jobs->records, &opts);
}

/* ---- start and end ---- */

static int load(struct jobs *jobs)
{
	struct job *rows;
	struct arena a;
	unsigned n;
	int r;

	arena_init(&a, 2 * JOBS_MAX * JOB_BYTES_MAX);
	r = store_job_list(store_writer(jobs->opts.store), &a, &rows, &n);
	for (unsigned i = 0; r == 0 && i < n; i++) {
		struct live_job *j = NULL;

		r = job_of_row(&a, &rows[i], &j);
		if (r != 0)
			break;
		list_append(&jobs->list, &j->link);
		jobs->n++;
	}
	arena_done(&a);
	return r;
}

int jobs_new(const struct jobs_opts *opts, struct jobs **ret_jobs)
{
	struct jobs *jobs = calloc(1, sizeof(*jobs));
	int r;

	if (!jobs)
		return -ENOMEM;
	jobs->opts = *opts;
	list_init(&jobs->list);
	r = load(jobs) ?: set_rules(jobs) ?: follow(jobs);
	if (r != 0) {
		jobs_free(jobs);
		return r;
	}
	*ret_jobs = jobs;
	return 0;
}

void jobs_free(struct jobs *jobs)
{
	if (!jobs)
		return;
	records_done(&jobs->records);
	list_for_each (at, following, &jobs->list)
		job_free(list_entry(at, struct live_job, link));
	free(jobs);
}
