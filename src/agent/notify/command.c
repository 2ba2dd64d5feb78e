/*
 * A program of the user's: it reads the notice's text from its stdin and finds the fields in its
 * environment, KOINE_NOTIFY_APPROVAL_TOOL and so on. Nothing that an agent brought ever becomes
 * a part of the command or one of its options.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/notify/inner.h"
#include "io/process/child.h"

enum {
	RUN_MS = 60 * 1000,
	TERMINATE_MS = 5000,
	GRACE_MS = 1000,
	VALUE_MAX = 32 << 10, /* of one variable */
};

static const char prefix[] = "KOINE_NOTIFY_";

struct notify_command {
	struct notifier base;
	char *command;
	const struct environment *env;
	struct child *child;
	struct timer *late;
	bool is_late;
};

static struct notify_command *of(struct notifier *n)
{
	return list_entry(n, struct notify_command, base);
}

static void ended(struct notify_command *c, const struct notice_sent *sent)
{
	child_free(c->child);
	c->child = NULL;
	timer_stop(c->late);
	c->base.events.on_sent(c->base.arg, sent);
}

static void on_exit_of(void *arg, int status, int signal)
{
	struct notify_command *c = arg;
	struct notice_sent sent = {.error = status == 0 && !c->is_late ? 0 : -EIO};

	if (c->is_late)
		snprintf(sent.text, sizeof(sent.text), "the command timed out");
	else if (signal)
		snprintf(sent.text, sizeof(sent.text), "the command was killed by signal %d",
			 signal);
	else if (status != 0)
		snprintf(sent.text, sizeof(sent.text), "the command failed with status %d", status);
	ended(c, &sent);
}

static void on_started(void *arg, int result, const struct error *error)
{
	struct notice_sent sent = {.error = result < 0 ? result : -EIO};

	if (result == 0)
		return;
	snprintf(sent.text, sizeof(sent.text), "%.150s", error_words(result, error));
	ended(arg, &sent);
}

static void command_on_output(void *arg, bool is_stderr, const char *data, size_t len)
{
}

static void on_late(void *arg)
{
	struct notify_command *c = arg;

	c->is_late = true;
	child_terminate(c->child, TERMINATE_MS);
}

/* NAME=VALUE; what no variable can hold is left out. */
static char *variable(struct arena *a, const struct notice_field *f)
{
	struct text value = text_cut(f->value, VALUE_MAX);
	size_t n = strlen(f->name);
	char *out = arena_alloc(a, sizeof(prefix) + n + 1 + value.len + 1);
	char *at = out;

	if (!out)
		return NULL;
	at += snprintf(at, sizeof(prefix), "%s", prefix);
	for (size_t i = 0; i < n; i++)
		*at++ = f->name[i] == '.' ? '_' : (char)(f->name[i] - 'a' + 'A');
	*at++ = '=';
	for (size_t i = 0; i < value.len; i++)
		*at++ = value.data[i] ? value.data[i] : ' ';
	*at = '\0';
	return out;
}

static int start_child(struct notify_command *c, const struct notice *notice, struct arena *a,
		       struct error *error)
{
	const char *const argv[] = {"/bin/sh", "-c", "--", c->command, NULL};
	const char *env[NOTICE_FIELDS_MAX + 1] = {NULL};
	const struct child_opts opts = {
		.argv = argv,
		.env = environment_list(c->env),
		.more_env = env,
		.input = notice->text.data ? notice->text.data : "",
		.input_len = notice->text.len,
		.on_started = on_started,
		.on_output = command_on_output,
		.on_exit = on_exit_of,
		.grace_ms = GRACE_MS,
		.arg = c,
	};

	for (unsigned i = 0; i < notice->n_fields; i++) {
		env[i] = variable(a, &notice->fields[i]);
		if (!env[i])
			return -ENOMEM;
	}
	return child_start(c->base.loop, &opts, &c->child, error);
}

static int send_notice(struct notifier *n, const struct notice *notice)
{
	struct notify_command *c = of(n);
	struct error error = {.text = ""};
	struct arena arena;
	int r;

	c->is_late = false;
	arena_init(&arena, NOTIFIER_ARENA_MAX);
	r = start_child(c, notice, &arena, &error);
	arena_done(&arena);
	if (r == 0)
		timer_start(c->late, RUN_MS);
	return r > 0 ? -EACCES : r;
}

static int open_command(struct notifier *n, const struct notifier_opts *o, struct error *error)
{
	struct notify_command *c = of(n);

	c->env = o->env;
	c->command = strdup(o->command);
	return c->command ? timer_new(n->loop, on_late, c, &c->late) : -ENOMEM;
}

static void close_command(struct notifier *n)
{
	struct notify_command *c = of(n);

	child_free(c->child);
	timer_free(c->late);
	free(c->command);
}

const struct notifier_ops command_notifier = {.size = sizeof(struct notify_command),
					      .open = open_command,
					      .close = close_command,
					      .send = send_notice};
