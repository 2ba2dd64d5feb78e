/* What a rule does: submits a task, runs a command, calls a webhook, tells the desktop. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/record.h"
#include "io/child.h"
#include "io/environment.h"
#include "io/http_client.h"
#include "engine/automation/inner.h"
#include "engine/task/task.h"

enum {
	ENV_JSON_MAX = 100 << 10, /* the kernel takes 128 KiB for one variable */
	GRACE_MS = 2000,
	TERMINATE_MS = 5000,
	NOTIFY_MS = 10 * 1000,
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

static void fail(struct firing *f, int result, const struct why *why)
{
	firing_done(f, "error", result > 0 && why ? why->text : strerror(-result));
}

/* Filled in, in the arena. */
int firing_fill(struct firing *f, struct text from, struct text *ret_text)
{
	struct buf out;
	const char *copy;
	int r;

	buf_init(&out, PROMPT_MAX);
	template_fill(f->rule->automation, &f->arena, from, f->event, &out);
	r = out.err;
	copy = r == 0 ? arena_copy(&f->arena, out.data ? out.data : "", out.len) : NULL;
	if (r == 0 && !copy)
		r = -ENOMEM;
	if (r == 0)
		*ret_text = (struct text) {.data = copy, .len = out.len};
	buf_done(&out);
	return r;
}

static int to_json(struct firing *f, struct text *ret_json)
{
	const struct automation_opts *opts = &f->rule->automation->opts;

	if (!opts->to_json)
		return -ENOSYS;
	return opts->to_json(&f->arena, f->event, ret_json);
}

/* ---- a task ---- */

static void on_submitted(void *arg, int result, const struct task_submitted *task,
			 const struct why *why)
{
	struct firing *f = arg;
	const char *id;

	if (result == REFUSE_STOPPING) {
		firing_give_back(f);
		return;
	}
	if (result != 0) {
		fail(f, result, why);
		return;
	}
	id = arena_copy(&f->arena, task->id.data, task->id.len);
	if (id)
		f->task = (struct text) {.data = id, .len = task->id.len};
	firing_done(f, "submitted", NULL);
}

static void submit_task(struct firing *f)
{
	const struct rule_new *d = &f->rule->def;
	struct task_new in = {
		.project = d->project,
		.agent = d->agent,
		.runner = d->runner,
		.group = d->group,
		.priority = d->priority,
	};
	struct record metadata;
	int r = firing_fill(f, d->prompt, &in.prompt);

	record_begin(&metadata, &f->arena);
	record_text(&metadata, "ruleId", d->id);
	record_text(&metadata, "eventType", f->type);
	in.metadata = metadata.root;
	if (r == 0)
		r = metadata.err;
	if (r == 0 && !f->rule->automation->opts.tasks)
		r = -ENOSYS;
	if (r != 0)
		fail(f, r, NULL);
	else
		task_submit(f->rule->automation->opts.services, &in, on_submitted, f);
}

/* ---- a program ---- */

static void on_output(void *arg, bool is_stderr, const char *data, size_t len)
{
	struct firing *f = arg;
	size_t room = f->output.max - f->output.len;

	(void)is_stderr;
	buf_add(&f->output, data, len < room ? len : room);
}

static void on_exit_of(void *arg, int status, int signal)
{
	struct firing *f = arg;
	bool notifies = f->rule->def.action == ACTION_DESKTOP;
	bool late = f->n_tries > 0;
	char text[80];

	log_debug("rule's command", "rule=%.*s status=%d signal=%d output=\"%.*s\"",
		  TEXT_ARGS(f->rule->def.id), status, signal, (int)f->output.len,
		  f->output.data ? f->output.data : "");
	action_drop(f);
	if (status == 0 && !late) {
		firing_done(f, notifies ? "notified" : "command_run", NULL);
		return;
	}
	if (late)
		snprintf(text, sizeof(text), "the command took too long");
	else if (signal)
		snprintf(text, sizeof(text), "the command was ended by signal %d", signal);
	else
		snprintf(text, sizeof(text), "the command failed with status %d", status);
	firing_done(f, "error", text);
}

static void on_too_long(void *arg)
{
	struct firing *f = arg;

	f->n_tries = 1;
	child_stop(f->child, 0, TERMINATE_MS);
}

static void start_program(struct firing *f, const char *const *argv, const char *const *more_env,
			  unsigned limit_ms)
{
	struct loop *loop = f->rule->automation->opts.loop;
	struct text project = f->rule->def.project;
	const struct child_opts opts = {
		.argv = argv,
		.env = environment_list(f->rule->automation->opts.env),
		.more_env = more_env,
		.cwd = project.len > 0 ? project.data : NULL,
		.on_output = on_output,
		.on_exit = on_exit_of,
		.grace_ms = GRACE_MS,
		.arg = f,
	};
	struct why why = {.text = ""};
	int r = 0;

	r = timer_new(loop, on_too_long, f, &f->timer);
	if (r == 0)
		r = child_start(loop, &opts, &f->child, &why);
	if (r != 0) {
		fail(f, r, &why);
		return;
	}
	timer_start(f->timer, limit_ms);
}

/* ---- a command: the event is in its environment ---- */

static const char *variable(struct firing *f, const char *name, struct text value)
{
	size_t n = strlen(name);
	char *out;

	if (value.len > 0 && memchr(value.data, '\0', value.len))
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

/* One that is too long for the environment goes without its payload. */
static struct text event_json(struct firing *f)
{
	const struct value *whole = f->event;
	struct text json = TEXT("");
	int r = to_json(f, &json);

	if (r == 0 && json.len > ENV_JSON_MAX &&
	    event_tree(&f->arena, f->type, value_text(value_find(whole, "source")), NULL,
		       &f->event) == 0)
		r = to_json(f, &json);
	f->event = whole;
	return r == 0 ? json : TEXT("");
}

enum { N_VARIABLES = 4 };

static int make_variables(struct firing *f, const char *env[N_VARIABLES + 1])
{
	unsigned n = 0;

	env[n++] = variable(f, "KOINE_EVENT_TYPE=", f->type);
	env[n++] = variable(f, "KOINE_EVENT_SOURCE=", value_text(value_find(f->event, "source")));
	env[n++] = variable(f, "KOINE_EVENT_JSON=", event_json(f));
	env[n++] = variable(f, "KOINE_RULE=", f->rule->def.id);
	env[n] = NULL;
	return env[0] && env[1] && env[2] && env[3] ? 0 : -ENOMEM;
}

static void run_command(struct firing *f)
{
	const char *const argv[] = {"/bin/sh", "-c", "--", f->rule->def.command.data, NULL};
	const char *env[N_VARIABLES + 1];
	int r = make_variables(f, env);

	if (r != 0)
		fail(f, r, NULL);
	else
		start_program(f, argv, env, COMMAND_MS);
}

/* ---- the desktop ---- */

static bool has_program(const char *name)
{
	const char *at = getenv("PATH");
	char file[4096];

	while (at && *at) {
		size_t n = strcspn(at, ":");

		if (snprintf(file, sizeof(file), "%.*s/%s", (int)n, at, name) < (int)sizeof(file) &&
		    access(file, X_OK) == 0)
			return true;
		at += n + (at[n] == ':');
	}
	return false;
}

static void notify(struct firing *f)
{
	char title[RULE_ID_MAX + 16];
	const char *argv[] = {"notify-send", "--app-name=koine", "--", title, NULL, NULL};
	int r = firing_fill(f, f->rule->def.message, &f->message);

	if (r != 0 || memchr(f->message.data, '\0', f->message.len)) {
		fail(f, r ? r : -EINVAL, NULL);
		return;
	}
	if (!has_program("notify-send")) {
		firing_done(f, "skipped_no_desktop", "there is no notify-send here");
		return;
	}
	snprintf(title, sizeof(title), "koine: %.*s", TEXT_ARGS(f->rule->def.id));
	argv[4] = f->message.data;
	start_program(f, argv, NULL, NOTIFY_MS);
}

/* ---- a webhook ---- */

static void post(void *firing);

/* Whether it may be otherwise the next time. */
static bool is_passing(const struct http_answer *answer)
{
	return answer->error != 0 || answer->status >= 500 || answer->status == 408 ||
	       answer->status == 429;
}

static void on_answer(void *arg, const struct http_answer *answer)
{
	struct firing *f = arg;
	unsigned wait = 1000U << f->n_tries;
	char text[160];

	f->fetch = NULL;
	if (answer->error == 0 && answer->status >= 200 && answer->status < 300) {
		firing_done(f, "webhook_sent", NULL);
		return;
	}
	if (++f->n_tries < WEBHOOK_TRIES && is_passing(answer)) {
		timer_start(f->timer, answer->retry_ms > wait && answer->retry_ms < WEBHOOK_MS
					      ? answer->retry_ms
					      : wait);
		return;
	}
	if (answer->error != 0)
		snprintf(text, sizeof(text), "the webhook did not answer: %.100s",
			 answer->text[0] ? answer->text : strerror(-answer->error));
	else
		snprintf(text, sizeof(text), "the webhook answered %d", answer->status);
	firing_done(f, "error", text);
}

static int fetch(struct firing *f)
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
		.on_done = on_answer,
		.arg = f,
	};
	const struct http_client_opts client = {.connections = 0};
	int r = a->http ? 0 : http_client_new(a->opts.loop, &client, &a->http);

	return r == 0 ? http_client_fetch(a->http, &opts, &f->fetch) : r;
}

static void post(void *firing)
{
	struct firing *f = firing;
	int r = fetch(f);

	if (r != 0)
		fail(f, r, NULL);
}

static void call_webhook(struct firing *f)
{
	int r = to_json(f, &f->body);

	if (r == 0)
		r = timer_new(f->rule->automation->opts.loop, post, f, &f->timer);
	if (r != 0)
		fail(f, r, NULL);
	else
		post(f);
}

void action_start(struct firing *f)
{
	switch (f->rule->def.action) {
	case ACTION_TASK:
		submit_task(f);
		break;
	case ACTION_COMMAND:
		run_command(f);
		break;
	case ACTION_WEBHOOK:
		call_webhook(f);
		break;
	case ACTION_DESKTOP:
		notify(f);
		break;
	}
}
