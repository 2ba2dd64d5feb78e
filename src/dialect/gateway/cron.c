/* Jobs at /cron, in the shapes that the gateway's clients expect. */
#include "base/clock.h"
#include "dialect/engine.h"
#include "dialect/gateway/gateway.h"
#include "engine/automation/job.h"
#include "wire/json.h"

#define MEMBER(kind, field) MEMBER_OF(struct job_info, kind, field)

static const struct member members[] = {
	{"enabled", NULL, MEMBER(BOOL, enabled)},
	{"createdAt", NULL, MEMBER(TIME, created_ms)},
	{"updatedAt", NULL, MEMBER(TIME, updated_ms)},
	{"createdAtMs", NULL, MEMBER(INT, created_ms), 0, NONE_IS_ZERO},
	{"updatedAtMs", NULL, MEMBER(INT, updated_ms), 0, NONE_IS_ZERO},
};

static const struct member state_members[] = {
	{"nextRunAtMs", NULL, MEMBER(INT, next_ms), 0, NONE_IS_ZERO},
	{"lastRunAtMs", NULL, MEMBER(INT, fired_ms), 0, NONE_IS_ZERO},
	{"runs", NULL, MEMBER(INT, n_fired)},
};

static const struct schema job_shown = SCHEMA(struct job_info, members);
static const struct schema state_shown = SCHEMA(struct job_info, state_members);

/* Members that we write ourselves. */
static bool gateway_cron_is_ours(struct text key)
{
	static const char *const names[] = {"id", "state", "success", "ok", "jobId", "job"};
	unsigned found;

	schema_each(m, &job_shown)
	{
		if (text_is(key, m->name))
			return true;
	}
	return member_find_word(names, sizeof(names) / sizeof(names[0]), key, &found);
}

/* Writes the members that the job's client gave. */
static void write_said(struct call *c, struct json *j, const struct value *data)
{
	value_each (m, data) {
		struct text name = {.data = m->key, .len = m->key_len};
		char *key;

		if (gateway_cron_is_ours(name))
			continue;
		key = arena_copy(&c->arena, name.data, name.len);
		if (!key)
			j->out->err = -ENOMEM;
		json_key(j, key ?: "");
		json_value(j, m);
	}
}

static void write_inside(struct call *c, struct json *j, const struct job_info *job)
{
	json_member_str(j, "id", job->id);
	write_said(c, j, job->data);
	json_members(j, &job_shown, (struct selection) {0}, job, 0);
	json_member_object(j, "state");
	json_members(j, &state_shown, (struct selection) {0}, job, 0);
	json_end_object(j);
}

static void write_job(struct call *c, struct json *j, const struct job_info *job)
{
	json_begin_object(j);
	write_inside(c, j, job);
	json_end_object(j);
}

struct done gateway_cron_list(struct call *c)
{
	struct jobs *jobs = call_jobs(c);
	struct json *j = call_result(c);
	struct job_info job;

	json_begin_array(j);
	for (unsigned i = 0; job_at(jobs, i, &job); i++)
		write_job(c, j, &job);
	json_end_array(j);
	return call_reply(c);
}

struct done gateway_cron_status(struct call *c)
{
	struct jobs *jobs = call_jobs(c);
	unsigned n = 0, enabled = 0, due = 0;
	int64_t now = clock_utc_ms();
	int64_t next = 0;
	struct job_info job;
	struct json *j = call_result(c);

	for (; job_at(jobs, n, &job); n++) {
		enabled += job.enabled;
		if (!job.enabled || job.next_ms == 0)
			continue;
		due += job.next_ms <= now;
		if (next == 0 || job.next_ms < next)
			next = job.next_ms;
	}
	json_begin_object(j);
	json_member_bool(j, "running", true);
	json_member_uint(j, "total_jobs", n);
	json_member_uint(j, "enabled", enabled);
	json_member_uint(j, "disabled", n - enabled);
	json_member_uint(j, "due_now", due);
	json_key(j, "next_check");
	if (next > 0)
		json_int(j, next);
	else
		json_null(j);
	return call_reply_object(c);
}

/* ---- changes ---- */

/* Some clients look for the job's members beside "ok", others in "job". */
static void answer(struct call *c, int result, const struct job_info *job,
		   const struct error *error)
{
	struct json *j = call_object_for(c, result, error);

	if (!j)
		return;
	json_member_bool(j, "success", true);
	json_member_bool(j, "ok", true);
	json_member_str(j, "jobId", job->id);
	if (job->data) {
		write_inside(c, j, job);
		json_key(j, "job");
		write_job(c, j, job);
	}
	(void)call_reply_object(c);
}

static void gateway_cron_on_done(void *arg, int result, const struct job_info *job,
				 const struct error *error)
{
	answer(arg, result, job, error);
}

/* A change goes on, whether or not its client waits. */
static void gateway_cron_on_cancel(struct call *c, void *arg)
{
}

static struct done begun(struct call *c, int r)
{
	return r != 0 ? call_fail(c, r) : call_later(c, gateway_cron_on_cancel, NULL);
}

static int read_id(struct call *c, struct text *ret_id)
{
	const struct gateway_job_in *in = c->in;

	*ret_id = in->job_id.len > 0 ? in->job_id : in->id;
	return ret_id->len > 0 ? 0 : refuse_field(&c->error, "jobId", "jobId is required");
}

/* Some clients put the job into "job". */
static const struct value *job_in(const struct value *params)
{
	const struct value *job = value_find(params, "job");
	bool bare = value_find(params, "schedule");

	return job && job->kind == VALUE_OBJECT && !bare ? job : params;
}

struct done gateway_cron_add(struct call *c)
{
	int r = job_add(call_jobs(c), job_in(c->request.params), gateway_cron_on_done, c,
			&c->error);

	return begun(c, r);
}

struct done gateway_cron_update(struct call *c)
{
	const struct gateway_job_in *in = c->in;
	struct text id;
	int r = read_id(c, &id);

	if (r == 0 && !in->patch)
		r = refuse_field(&c->error, "patch", "patch is required");
	return begun(
		c,
		r ?: job_update(call_jobs(c), id, in->patch, gateway_cron_on_done, c, &c->error));
}

struct done gateway_cron_remove(struct call *c)
{
	struct text id;
	int r = read_id(c, &id) ?: job_remove(call_jobs(c), id, gateway_cron_on_done, c, &c->error);

	return begun(c, r);
}

struct done gateway_cron_run(struct call *c)
{
	struct text id;
	int r = read_id(c, &id) ?: job_run(call_jobs(c), id, gateway_cron_on_done, c, &c->error);

	return begun(c, r);
}
