/* Projects: listing them, what their files would do, and whether they are trusted to. */

#include "base/clock.h"
#include "call/call.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "engine/task/task.h"
#include "engine/automation/trust.h"
#include "wire/json.h"

enum { TASKS_MAX = 10000 };

struct project_in {
	struct text folder;
	struct text digest;
	const struct value *tasks;
};

static void write_id(void *json, struct text id)
{
	json_text(json, id);
}

/* ---- listing ---- */

static void write_head(struct json *j, const struct trust *t, const struct trust_offer *o)
{
	int64_t ms = 0;

	json_member_text(j, "folder", o->folder);
	json_member_str(j, "state", trust_state_name(trust_of(t, o, &ms)));
	member_time(j, "trusted_at", ms);
}

static void write_short(struct call *c, struct json *j, const struct trust_offer *o)
{
	json_begin_object(j);
	write_head(j, call_trust(c), o);
	json_member_uint(j, "rules", o->n_rules);
	json_member_uint(j, "left_out", o->n_left_out);
	json_member_uint(j, "watches", o->n_watches);
	json_member_uint(j, "jobs", o->n_jobs);
	json_member_uint(j, "held", tasks_each_held(call_tasks(c), o->folder, NULL, NULL));
	json_end_object(j);
}

static struct done koine_project_handle_list(struct call *c)
{
	const struct trust_offer *const *offers;
	unsigned n = trust_offers(call_trust(c), &offers);
	struct json *j = call_object(c);

	json_member_array(j, "projects");
	for (unsigned i = 0; i < n; i++)
		write_short(c, j, offers[i]);
	json_end_array(j);
	return call_reply_object(c);
}

/* ---- what one would do ---- */

static void write_rules(struct json *j, const struct trust_offer *o)
{
	json_member_array(j, "rules");
	for (unsigned i = 0; i < o->n_rules; i++) {
		const struct rule *r = &o->rules[i];

		json_begin_object(j);
		json_member_text(j, "rule", r->id);
		koine_rule_parts(j, r);
		json_members(j, &rule_schema, (struct selection) {.with = RULE_LIMITS}, r, 0);
		json_end_object(j);
	}
	json_end_array(j);
}

static void write_times(struct json *j, const struct trust_offer *o)
{
	json_member_array(j, "watches");
	for (unsigned i = 0; i < o->n_watches; i++)
		json_text(j, o->watches[i]);
	json_end_array(j);
	json_member_array(j, "jobs");
	for (unsigned i = 0; i < o->n_jobs; i++) {
		json_begin_object(j);
		json_member_text(j, "id", o->jobs[i].id);
		json_member_text(j, "cron", o->jobs[i].cron);
		json_end_object(j);
	}
	json_end_array(j);
}

static struct done handle_show(struct call *c)
{
	const struct project_in *in = c->in;
	const struct trust_offer *o = NULL;
	int r = trust_find(call_trust(c), in->folder, &o, &c->error);
	struct json *j;

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	write_head(j, call_trust(c), o);
	json_member_text(j, "digest", o->digest.data ? o->digest : TEXT(""));
	write_rules(j, o);
	json_member_uint(j, "left_out", o->n_left_out);
	write_times(j, o);
	json_member_array(j, "held");
	tasks_each_held(call_tasks(c), o->folder, write_id, j);
	json_end_array(j);
	return call_reply_object(c);
}

/* ---- trusting and distrusting ---- */

static int check_tasks(const struct value *tasks, struct error *error)
{
	if (!tasks)
		return 0;
	if (tasks->len > TASKS_MAX)
		return refuse_field(error, "tasks", "tasks must have at most %d entries, not %u",
				    TASKS_MAX, (unsigned)tasks->len);
	value_each (id, tasks) {
		if (id->kind != VALUE_STRING)
			return refuse_field(error, "tasks",
					    "tasks must contain only task ids, not %s",
					    value_kind_name(id));
	}
	return 0;
}

static int trust_work(struct call *c)
{
	const struct project_in *in = c->in;

	return trust_write(call_trust(c), in->folder, in->digest, clock_utc_ms());
}

static struct done trust_then(struct call *c, int r)
{
	const struct project_in *in = c->in;

	if (r == 0)
		r = trust_set(call_trust(c), in->folder, in->digest, clock_utc_ms());
	if (r != 0)
		return call_fail(c, r);
	for (const struct value *id = in->tasks ? in->tasks->first : NULL; id; id = id->next)
		(void)task_hold(call_tasks(c), in->folder, value_text(id), TASK_RELEASE, 0, NULL,
				NULL, &c->error);
	return call_answer(c, 0, NULL,
			   PAIRS(JSON_TEXT("folder", in->folder),
				 JSON_BOOL("trusted", in->digest.data != NULL)));
}

static struct done handle_trust(struct call *c)
{
	const struct project_in *in = c->in;
	const struct trust_offer *o = NULL;
	int r = trust_find(call_trust(c), in->folder, &o, &c->error) ?:
		trust_check(o, in->digest, &c->error) ?: check_tasks(in->tasks, &c->error);

	return r != 0 ? call_fail(c, r) : call_work(c, WRITER, trust_work, trust_then);
}

/* A project that is not served now can be distrusted, too: it may come back. */
static struct done handle_distrust(struct call *c)
{
	const struct project_in *in = c->in;
	int r = trust_known(call_trust(c), in->folder, &c->error);

	return r != 0 ? call_fail(c, r) : call_work(c, WRITER, trust_work, trust_then);
}

/* ---- the method table ---- */

#define FOLDER                                                                                     \
	FIELD(STRING, project_in, folder, "Folder of the project, from project.list",              \
	      .required = true)

static const struct field folder_fields[] = {FOLDER};

static const struct field trust_fields[] = {
	FOLDER,
	FIELD(STRING, project_in, digest, "Digest of the project's automation, from project.show",
	      .required = true),
	FIELD(ARRAY, project_in, tasks, "Ids of the held tasks to release"),
};

#define TRUSTED "{folder:string trusted:boolean}"

static const struct method rows[] = {
	{"project.list", "List served projects with their trust state", "{projects:[object]}",
	 .handle = koine_project_handle_list},
	{"project.show", "Show the automation and the held tasks of a project", "object",
	 FIELDS(folder_fields, project_in), .handle = handle_show},
	{"project.trust", "Trust a project until its automation changes", TRUSTED,
	 FIELDS(trust_fields, project_in), .handle = handle_trust,
	 .flags = METHOD_LATER | METHOD_FOR_HUMANS},
	{"project.distrust", "Stop trusting a project", TRUSTED, FIELDS(folder_fields, project_in),
	 .handle = handle_distrust, .flags = METHOD_LATER},
};

const struct method_table koine_project_methods = METHOD_TABLE(rows);
