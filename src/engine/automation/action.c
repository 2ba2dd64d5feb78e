/* The actions of a rule: submit a task, run a command, call a webhook, notify the desktop. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agent/command/words.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/object_builder.h"
#include "engine/automation/inner.h"
#include "engine/task/task.h"
#include "io/process/child.h"
#include "io/http_client.h"

enum {
	ENV_JSON_MAX = 100 << 10,    /* the kernel accepts 128 KiB for one variable */
	COMMAND_MS = 10 * 60 * 1000, /* that a command may take */
	NOTIFY_MS = 10 * 1000,
	GRACE_MS = 2000,
	TERMINATE_MS = 5000,
	WEBHOOK_MS = 10 * 1000,
	WEBHOOK_TRIES = 3,
};

void action_drop(struct firing *f)
{
	child_free(f->child);
	http_fetch_cancel(f->fetch);
	timer_free(f->timer);
	f->child = NULL;
	f->fetch = NULL;
	f->timer = NULL;
}

static int to_json(struct firing *f, const struct value *v, struct text *ret_json)
{
	const struct automation_opts *opts = &f->rule->automation->opts;

	return opts->to_json ? opts->to_json(&f->arena, v, ret_json) : -ENOSYS;
}

/* ---- a task ---- */

static void on_submitted(void *arg, int result, const struct task_submitted *task,
			 const struct error *error)
{
	struct firing *f = arg;

	if (result != 0) {
		firing_fail(f, result, error);
		return;
	}
	(void)arena_copy_text(&f->arena, task->id, &f->task);
	firing_done(f, OUTCOME_SUBMITTED, NULL);
}

static int submit_task(struct firing *f, struct error *error)
{
	const struct automation_opts *opts = &f->rule->automation->opts;
	const struct rule *d = &f->rule->def;
	struct task_new in = {
		.task = {.project = d->project,
			 .agent = d->agent,
			 .runner = d->runner,
			 .group = d->group,
			 .priority = d->priority},
	};
	struct object_builder metadata;
	const char *name;
	int r = action_text(f, &name, &in.task.prompt);

	if (r != 0)
		return r;
	object_begin(&metadata, &f->arena);
	object_text(&metadata, "ruleId", d->id);
	object_text(&metadata, "eventType", f->type);
	if (metadata.err != 0)
		return metadata.err;
	if (!opts->tasks)
		return -ENOSYS;
	in.task.metadata.value = metadata.root;
	r = task_submit(opts->tasks, &in, on_submitted, f, error);
	if (r == REFUSE_STOPPING)
		firing_give_back(f);
	return r == REFUSE_STOPPING ? 0 : r;
}

/* ---- a program ---- */

static void automation_action_on_output(void *arg, bool is_stderr, const char *data, size_t len)
{
	struct firing *f = arg;
	size_t n = len < RULE_OUTPUT_MAX ? len : RULE_OUTPUT_MAX;

	f->output_bytes += (int64_t)len;
	if (f->output.len + n > f->output.max)
		buf_consume(&f->output, f->output.len + n - RULE_OUTPUT_MAX);
	buf_add(&f->output, data + len - n, n);
}

static void on_exit_of(void *arg, int status, int signal)
{
	struct firing *f = arg;
	bool notifies = f->rule->def.action == ACTION_DESKTOP;
	char text[80];

	f->exit_status = signal ? -1 : status;
	f->exit_signal = signal;
	log_debug("rule command ended", "rule=%.*s status=%d signal=%d output=\"%.*s\"",
		  TEXT_ARGS(f->rule->def.id), status, signal, (int)f->output.len,
		  f->output.data ? f->output.data : "");
	if (status == 0 && !f->late) {
		firing_done(f, notifies ? OUTCOME_NOTIFIED : OUTCOME_COMMAND_RUN, NULL);
		return;
	}
	if (f->late)
		snprintf(text, sizeof(text), "the command timed out");
	else if (signal)
		snprintf(text, sizeof(text), "the command was killed by signal %d", signal);
	else
		snprintf(text, sizeof(text), "the command failed with status %d", status);
	firing_done(f, OUTCOME_ERROR, text);
}

static void on_too_long(void *arg)
{
	struct firing *f = arg;

	f->late = true;
	child_stop(f->child, 0, TERMINATE_MS);
}

static int start_program(struct firing *f, const char *const *argv, const char *const *more_env,
			 unsigned limit_ms, struct error *error)
{
	const struct automation_opts *automation = &f->rule->automation->opts;
	struct text project = f->rule->def.project;
	const struct child_opts opts = {
		.argv = argv,
		.env = environment_list(automation->env),
		.more_env = more_env,
		.cwd = project.len > 0 ? project.data : NULL,
		.on_output = automation_action_on_output,
		.on_exit = on_exit_of,
		.grace_ms = GRACE_MS,
		.arg = f,
	};
	int r = timer_new(automation->loop, on_too_long, f, &f->timer);

	if (r != 0)
		return r;
	r = child_start(automation->loop, &opts, &f->child, error);
	if (r == 0) {
		f->started_ms = clock_steady_ms();
		timer_start(f->timer, limit_ms);
	}
	return r;
}

/* ---- a command: the event is in its environment ---- */

static const char *variable(struct firing *f, const char *name, struct text value)
{
	size_t n = strlen(name);
	char *out;

	if (text_find(value, '\0'))
		value = TEXT("");
	out = arena_alloc(&f->arena, n + value.len + 1);
	if (!out)
		return NULL;
	memcpy(out, name, n);
	if (value.len > 0)
		memcpy(out + n, value.data, value.len);
	out[n + value.len] = '\0';
	return out;
}

/* An event that is too long for the environment is passed without its payload. */
static struct text event_json(struct firing *f, struct text source)
{
	const struct value *alone;
	struct text json;
	int r = to_json(f, f->event, &json);

	if (r == 0 && json.len > ENV_JSON_MAX &&
	    event_tree(&f->arena, f->type, source, NULL, &alone) == 0)
		r = to_json(f, alone, &json);
	return r == 0 ? json : TEXT("");
}

static int run_command(struct firing *f, struct error *error)
{
	const char *const argv[] = {"/bin/sh", "-c", "--", f->rule->def.command.data, NULL};
	struct text source = value_text(value_find(f->event, "source"));
	const char *const env[] = {
		variable(f, "KOINE_EVENT_TYPE=", f->type),
		variable(f, "KOINE_EVENT_SOURCE=", source),
		variable(f, "KOINE_EVENT_JSON=", event_json(f, source)),
		variable(f, "KOINE_RULE=", f->rule->def.id),
		NULL,
	};

	if (!env[0] || !env[1] || !env[2] || !env[3])
		return -ENOMEM;
	return start_program(f, argv, env, COMMAND_MS, error);
}

/* ---- the desktop ---- */

static int notify(struct firing *f, struct error *error)
{
	char title[RULE_ID_MAX + 16], file[PATH_MAX];
	const char *argv[] = {"notify-send", "--app-name=koine", "--", title, NULL, NULL};
	const char *name;
	int r = action_text(f, &name, &f->message);

	if (r != 0)
		return r;
	if (text_find(f->message, '\0'))
		return -EINVAL;
	if (command_find("notify-send", "", file, sizeof(file), NULL) != 0) {
		firing_done(f, OUTCOME_NO_DESKTOP, "notify-send not found");
		return 0;
	}
	snprintf(title, sizeof(title), "koine: %.*s", TEXT_ARGS(f->rule->def.id));
	argv[4] = f->message.data;
	return start_program(f, argv, NULL, NOTIFY_MS, error);
}

/* ---- a webhook ---- */

/* Whether another try may succeed. */
static bool is_passing(const struct http_answer *answer)
{
	return answer->error != 0 || answer->status >= 500 || answer->status == 408 ||
	       answer->status == 429;
}

static void automation_action_on_answer(void *arg, const struct http_answer *answer)
{
	struct firing *f = arg;
	unsigned wait = 1000U << f->n_tries;
	char text[160];

	f->fetch = NULL;
	if (answer->error == 0 && answer->status >= 200 && answer->status < 300) {
		firing_done(f, OUTCOME_WEBHOOK_SENT, NULL);
		return;
	}
	if (++f->n_tries < WEBHOOK_TRIES && is_passing(answer)) {
		timer_start(f->timer, answer->retry_ms > wait && answer->retry_ms < WEBHOOK_MS
					      ? answer->retry_ms
					      : wait);
		return;
	}
	if (answer->error != 0)
		snprintf(text, sizeof(text), "no response from the webhook: %.100s",
			 answer->text[0] ? answer->text : strerror(-answer->error));
	else
		snprintf(text, sizeof(text), "the webhook returned HTTP %d", answer->status);
	firing_done(f, OUTCOME_ERROR, text);
}

static int post(struct firing *f)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	struct automation *a = f->rule->automation;
	const struct http_fetch_opts opts = {
		.url = f->rule->def.url.data,
		.method = "POST",
		.headers = headers,
		.body = f->body,
		.connect_timeout_ms = WEBHOOK_MS,
		.total_timeout_ms = WEBHOOK_MS,
		.on_done = automation_action_on_answer,
		.arg = f,
	};
	const struct http_client_opts client = {.connections = 0};
	int r = a->http ? 0 : http_client_new(a->opts.loop, &client, &a->http);

	return r == 0 ? http_client_fetch(a->http, &opts, &f->fetch) : r;
}

static void on_again(void *firing)
{
	struct firing *f = firing;
	int r = post(f);

	if (r != 0)
		firing_fail(f, r, NULL);
}

static int call_webhook(struct firing *f, struct error *error)
{
	int r = to_json(f, f->event, &f->body)
			?: timer_new(f->rule->automation->opts.loop, on_again, f, &f->timer);

	return r == 0 ? post(f) : r;
}

/* ---- the table of actions ---- */

static const struct {
	const char *name; /* of its operand */
	bool filled;      /* a template */
	/* 0: it is done, or firing_done follows; else it could not start. */
	int (*start)(struct firing *f, struct error *error);
} actions[] = {
	[ACTION_TASK] = {"prompt", true, submit_task},
	[ACTION_COMMAND] = {"command", false, run_command},
	[ACTION_WEBHOOK] = {"url", false, call_webhook},
	[ACTION_DESKTOP] = {"message", true, notify},
};

int action_text(struct firing *f, const char **ret_name, struct text *ret_text)
{
	const struct rule *d = &f->rule->def;

	*ret_name = actions[d->action].name;
	*ret_text = rule_subject(d);
	if (!actions[d->action].filled)
		return 0;
	return template_fill(f->rule->automation, &f->arena, *ret_text, f->event, ret_text);
}

void action_start(struct firing *f)
{
	struct error error = {.text = ""};
	int r = actions[f->rule->def.action].start(f, &error);

	if (r != 0)
		firing_fail(f, r, &error);
}
