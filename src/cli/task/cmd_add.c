/* koine task add. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/task/task.h"

enum { PROMPT_MAX = 16 << 20 };

static int gather(const struct cli *cli, struct buf *all)
{
	int r;

	if (cli->n_args == 0) {
		complain("task add wants a PROMPT, or - for stdin");
		return EX_USAGE;
	}
	r = params_words(cli, all);
	if (r == 0 && all->err != 0)
		complain("the prompt is longer than %d bytes", PROMPT_MAX);
	return r == 0 && all->err != 0 ? EX_DATAERR : r;
}

static void add_text(struct koine_json *j, const char *key, const char *text)
{
	if (!text)
		return;
	koine_json_key(j, key);
	koine_json_string(j, text);
}

static void add_int(struct koine_json *j, const char *key, int64_t n)
{
	if (n == 0)
		return;
	koine_json_key(j, key);
	koine_json_int(j, n);
}

/* Who names a project, and no folder, means that one's. */
static int add_folder(struct koine_json *j, const struct cli *cli)
{
	const struct task_options *o = &cli->options.task;
	bool named = o->project && o->project[0];
	char path[PATH_MAX] = "";
	int r = o->folder || !named ? params_folder(cli, "--directory", o->folder, path) : 0;

	add_text(j, "cwd", path[0] ? path : NULL);
	return r;
}

static int add_after(struct koine_json *j, const struct task_options *o)
{
	char id[TASK_ID_MAX];

	if (o->n_after == 0)
		return 0;
	koine_json_key(j, "after");
	koine_json_begin_array(j);
	for (unsigned i = 0; i < o->n_after; i++) {
		if (!task_id(o->after[i], id)) {
			complain("'%s' is no task's id", o->after[i]);
			return EX_USAGE;
		}
		koine_json_string(j, id);
	}
	koine_json_end_array(j);
	return 0;
}

static int add_env(struct koine_json *j, const struct task_options *o)
{
	if (o->n_env == 0)
		return 0;
	koine_json_key(j, "env");
	koine_json_begin_object(j);
	for (unsigned i = 0; i < o->n_env; i++) {
		const char *equals = strchr(o->env[i], '=');
		char *name = strndup(o->env[i], (size_t)(equals - o->env[i]));

		if (!name) {
			complain("out of memory");
			return EX_SOFTWARE;
		}
		koine_json_key(j, name);
		koine_json_string(j, equals + 1);
		free(name);
	}
	koine_json_end_object(j);
	return 0;
}

static int add_options(struct koine_json *j, const struct cli *cli)
{
	const struct task_options *o = &cli->options.task;
	int r = add_folder(j, cli);

	if (r == 0)
		r = add_after(j, o);
	if (r == 0)
		r = add_env(j, o);
	if (o->has_priority) {
		koine_json_key(j, "priority");
		koine_json_double(j, o->priority);
	}
	add_text(j, "group", o->group);
	add_text(j, "agent", o->agent);
	add_text(j, "runner", o->runner);
	add_int(j, "timeout", o->timeout_ms);
	add_int(j, "delay", o->delay_ms);
	add_int(j, "retries", o->retries);
	add_int(j, "retry_delay", o->retry_delay_ms);
	return r;
}

static int send_task(struct task_call *t, const struct buf *prompt, struct koine_answer **ret)
{
	struct koine_json *j = task_params(t);
	int r;

	if (!j)
		return EX_SOFTWARE;
	koine_json_key(j, "prompt");
	koine_json_text_n(j, prompt->data ? prompt->data : "", prompt->len);
	r = add_options(j, t->cli);
	if (r != 0) {
		koine_json_free(j);
		return r;
	}
	return task_send(t, "task.add", j, ret);
}

/* Followed, it is the task that stdout belongs to. */
static void say_added(const struct cli *cli, const struct koine_value *task, char id[TASK_ID_MAX])
{
	size_t len;
	const char *text = koine_value_text(koine_value_get(task, "id"), &len);
	FILE *out = cli->options.task.follow ? stderr : stdout;

	id[0] = '\0';
	if (text && len < TASK_ID_MAX)
		snprintf(id, TASK_ID_MAX, "%.*s", (int)len, text);
	if (cli->options.json) {
		print_json_compact(stdout, task);
	} else {
		print_text(out, id, len);
		fputc('\n', out);
	}
	fflush(stdout);
}

int cmd_task_add(struct cli *cli)
{
	const struct task_options *o = &cli->options.task;
	CLEANUP(buf_donep) struct buf prompt;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct task_call t;
	char id[TASK_ID_MAX];
	int status = 0;
	int r;

	buf_init(&prompt, PROMPT_MAX);
	r = gather(cli, &prompt);
	if (r != 0)
		return r;
	r = task_open(&t, cli, o->wait || o->follow);
	if (r == 0)
		r = send_task(&t, &prompt, &a);
	if (r == 0)
		say_added(cli, koine_answer_result(a), id);
	if (r == 0 && o->follow)
		r = task_follow(&t, id, 0, &status);
	else if (r == 0 && o->wait)
		r = task_wait(&t, id, &status);
	task_close(&t);
	return r == 0 ? status : r;
}
