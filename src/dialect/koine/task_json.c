#include "dialect/koine/task_json.h"

#include "base/clock.h"
#include "base/utf8.h"

static void write_time(struct json *j, const char *key, int64_t ms)
{
	char text[ISO_LEN + 1];

	json_key(j, key);
	if (ms == 0) {
		json_null(j);
		return;
	}
	clock_format_iso(ms, text);
	json_str(j, text);
}

static void write_times(struct json *j, const struct task_row *row)
{
	write_time(j, "created_at", row->created_ms);
	write_time(j, "started_at", row->started_ms);
	write_time(j, "completed_at", row->completed_ms);
}

/* What there is none of is null: an exit status of 0 is one. */
static void write_unless(struct json *j, const char *key, int64_t n, int64_t none)
{
	json_key(j, key);
	if (n == none)
		json_null(j);
	else
		json_int(j, n);
}

static void write_exit(struct json *j, const struct task_row *row)
{
	write_unless(j, "exit_status", row->exit_status, -1);
	write_unless(j, "signal", row->signal, 0);
}

static void write_name(struct json *j, const struct task_row *row)
{
	json_member_text(j, "project", row->project.data ? row->project : TEXT(""));
	json_member_text(j, "id", row->id);
}

static struct text shown(struct text t)
{
	if (t.len <= TASK_SHOWN)
		return t;
	t.len = TASK_SHOWN;
	t.len = utf8_whole(t.data, t.len);
	return t;
}

static void write_plan(struct json *j, const struct task_row *row)
{
	json_member_text(j, "agent", row->agent);
	json_member_text(j, "runner", row->runner);
	json_member_text(j, "group", row->group);
	json_key(j, "priority");
	json_double(j, row->priority);
}

static void write_after(struct json *j, const struct task_row *row)
{
	json_key(j, "after");
	json_begin_array(j);
	for (unsigned i = 0; i < row->n_after; i++)
		json_text(j, row->after[i]);
	json_end_array(j);
}

static void write_attempts(struct json *j, const struct task_row *row)
{
	json_member_int(j, "attempts", row->attempts);
	json_member_int(j, "max_attempts", row->max_attempts);
}

/* Names alone: a value may be a secret. */
static void write_env(struct json *j, struct text env)
{
	json_key(j, "env");
	json_begin_array(j);
	while (env.len > 0) {
		const char *end = memchr(env.data, '\0', env.len);
		size_t len = end ? (size_t)(end - env.data) : env.len;
		const char *equals = memchr(env.data, '=', len);

		json_text(j, (struct text) {.data = env.data,
					    .len = equals ? (size_t)(equals - env.data) : len});
		env.data += end ? len + 1 : len;
		env.len -= end ? len + 1 : len;
	}
	json_end_array(j);
}

static void write_metadata(struct json *j, const struct value *metadata)
{
	json_key(j, "metadata");
	if (metadata)
		json_value(j, metadata);
	else
		json_raw(j, "{}", 2);
}

void task_json_write(struct json *j, const struct task *t)
{
	const struct task_row *row = &t->row;

	json_begin_object(j);
	write_name(j, row);
	json_member_text(j, "prompt", row->prompt);
	write_plan(j, row);
	json_member_str(j, "state", task_state_name(row->state));
	json_member_bool(j, "held", row->held && row->state == TASK_QUEUED);
	write_times(j, row);
	write_time(j, "not_before", row->not_before_ms);
	write_after(j, row);
	write_attempts(j, row);
	json_member_int(j, "retry_delay", row->retry_ms);
	json_member_int(j, "timeout", row->timeout_ms);
	json_member_text(j, "cwd", row->cwd);
	write_env(j, row->env);
	write_unless(j, "pid", row->pid, 0);
	write_exit(j, row);
	json_member_text(j, "result", row->result);
	json_member_text(j, "error", row->error);
	json_member_int(j, "output_bytes", row->output_bytes);
	write_metadata(j, t->metadata);
	json_end_object(j);
}

void task_json_begin_short(struct json *j, const struct task *t)
{
	const struct task_row *row = &t->row;

	json_begin_object(j);
	write_name(j, row);
	json_member_text(j, "prompt", shown(row->prompt));
	write_plan(j, row);
	json_member_str(j, "state", task_state_name(row->state));
	json_member_bool(j, "held", row->held && row->state == TASK_QUEUED);
	write_times(j, row);
	write_time(j, "not_before", row->not_before_ms);
	write_after(j, row);
	write_attempts(j, row);
	write_exit(j, row);
	json_member_text(j, "error", shown(row->error));
	json_member_int(j, "output_bytes", row->output_bytes);
}

void task_json_write_end(struct json *j, const struct task *t)
{
	json_begin_object(j);
	write_name(j, &t->row);
	json_member_str(j, "state", task_state_name(t->row.state));
	write_exit(j, &t->row);
	json_member_text(j, "error", t->row.error);
	json_end_object(j);
}

void task_json_counts(struct json *j, const int64_t n[N_TASK_STATES])
{
	for (unsigned i = 0; i < N_TASK_STATES; i++)
		json_member_int(j, task_state_name((enum task_state)i), n[i]);
}
