/* koine task add, and koine run. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "cli/child/child.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/task/task.h"

enum { PROMPT_MAX = 16 << 20 };

/* What stands on the command line says what to do with the rest. */
static int gather_all(const struct cli *cli, struct buf *all)
{
	const struct task_options *o = cli->own;

	if (cli->n_args == 0 && !o->from_stdin)
		return args_refuse(cli);
	if (!o->from_stdin || args_is_stdin(cli))
		return args_text(cli, all);
	args_join(cli, all);
	buf_add_str(all, cli->n_args > 0 ? "\n\n" : "");
	return args_stdin(all);
}

static int gather(const struct cli *cli, struct buf *all)
{
	int r = gather_all(cli, all);

	if (r != 0 || all->err == 0)
		return r;
	complain("the prompt is longer than %d bytes", PROMPT_MAX);
	return EX_DATAERR;
}

/* With a project and no folder it runs in the project's folder. */
static int add_folder(struct koine_json *j, const struct cli *cli)
{
	const struct task_options *o = cli->own;
	bool named = o->project && o->project[0];
	char path[PATH_MAX] = "";
	int r = o->folder || !named ? args_folder(cli, "--directory", o->folder, path) : 0;

	params_add(j, "cwd", path[0] ? path : NULL);
	return r;
}

int task_params_after(struct koine_json *j, const struct task_options *o)
{
	const struct option_list *after = &o->after;
	char id[TASK_ID_MAX];

	if (after->n == 0 || !j)
		return 0;
	koine_json_key(j, "after");
	koine_json_begin_array(j);
	for (unsigned i = 0; i < after->n; i++) {
		if (!task_read_id(after->values[i], id))
			return EX_USAGE;
		koine_json_string(j, id);
	}
	koine_json_end_array(j);
	return 0;
}

/* NAME alone takes our own value along: nothing of our environment goes unless it is named. */
static int add_variable(struct koine_json *j, const char *given)
{
	CLEANUP(freep) char *name = strndup(given, strcspn(given, "="));
	const char *value = strchr(given, '=');

	if (!name)
		return out_of_memory();
	value = value ? value + 1 : getenv(name);
	if (!value || name[0] == '\0') {
		complain(name[0] ? "--env %s: your environment has no such variable"
				 : "--env requires NAME or NAME=VALUE, not '%s'",
			 given);
		return EX_USAGE;
	}
	koine_json_key(j, name);
	koine_json_string(j, value);
	return 0;
}

static int add_env(struct koine_json *j, const struct option_list *env)
{
	int r = 0;

	if (env->n == 0 || !j)
		return 0;
	koine_json_key(j, "env");
	koine_json_begin_object(j);
	for (unsigned i = 0; r == 0 && i < env->n; i++)
		r = add_variable(j, env->values[i]);
	koine_json_end_object(j);
	return r;
}

/* Adds what the options' rows cannot say. */
static int send_added(struct cli *cli, struct koine_json *j, struct koine_answer **ret_answer)
{
	const struct task_options *o = cli->own;
	int r = add_folder(j, cli) ?: task_params_after(j, o) ?: add_env(j, &o->env);

	if (r == 0)
		return request_send(cli, j, ret_answer);
	koine_json_free(j);
	return r;
}

static int send_prompt(struct cli *cli, const struct buf *prompt, struct koine_answer **ret_answer)
{
	struct koine_json *j = request_begin(cli, NULL);

	params_add_text(j, "prompt", buf_text(prompt));
	return send_added(cli, j, ret_answer);
}

/* A word that would arrive as another one must not be run. */
static int add_word(struct koine_json *j, const char *word)
{
	if (!utf8_is_valid(word, strlen(word))) {
		complain("'%s' is not UTF-8", word);
		return EX_DATAERR;
	}
	koine_json_string(j, word);
	return 0;
}

static int send_command(struct cli *cli, struct koine_answer **ret_answer)
{
	const struct task_options *o = cli->own;
	const char *const shell[] = {"sh", "-c", o->line};
	const char *const *words = o->line ? shell : (const char *const *)cli->args;
	int n = o->line ? 3 : cli->n_args;
	struct koine_json *j = request_begin(cli, NULL);
	int r = j ? 0 : out_of_memory();

	if (r == 0) {
		koine_json_key(j, "command");
		koine_json_begin_array(j);
	}
	for (int i = 0; r == 0 && i < n; i++)
		r = add_word(j, words[i]);
	if (r != 0) {
		koine_json_free(j);
		return r;
	}
	koine_json_end_array(j);
	return send_added(cli, j, ret_answer);
}

/* With --follow stdout is for what the task prints. */
static void say_added(const struct cli *cli, const struct koine_value *task, char id[TASK_ID_MAX])
{
	const struct task_options *o = cli->own;
	FILE *out = o->follow ? stderr : stdout;

	member_copy(task, "id", id, TASK_ID_MAX);
	if (cli->options.json) {
		print_json_compact(stdout, task);
	} else {
		print_text(out, text_of(id));
		fputc('\n', out);
	}
	fflush(stdout);
}

/* It has been added: waits for it, if wished. */
static int see_it_through(struct cli *cli, const struct koine_answer *a)
{
	const struct task_options *o = cli->own;
	char id[TASK_ID_MAX];
	int status = 0;
	int r = 0;

	say_added(cli, koine_answer_result(a), id);
	if (o->follow)
		r = task_follow(cli, id, 0, &status);
	else if (o->wait)
		r = task_wait(cli, id, &status);
	return r == 0 ? status : r;
}

static void prepare(struct cli *cli)
{
	const struct task_options *o = cli->own;

	if (o->wait || o->follow)
		talk_be_patient(cli);
}

int cmd_task_add(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf prompt;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r;

	buf_init(&prompt, PROMPT_MAX);
	r = gather(cli, &prompt);
	if (r != 0)
		return r;
	prepare(cli);
	r = send_prompt(cli, &prompt, &a);
	return r == 0 ? see_it_through(cli, a) : r;
}

int cmd_run(struct cli *cli)
{
	const struct task_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r;

	if ((cli->n_args > 0) == (o->line != NULL))
		return args_refuse(cli);
	prepare(cli);
	r = send_command(cli, &a);
	return r == 0 ? see_it_through(cli, a) : r;
}

/* ---- edit: what is to be done, when and by whom, before it begins ---- */

static int check_options(const struct task_options *o)
{
	if (o->prompt && o->editor)
		complain("task edit takes a prompt or --editor, not both");
	else if (o->no_after && o->after.n > 0)
		complain("task edit takes --after or --no-after, not both");
	else
		return 0;
	return EX_USAGE;
}

/* Whether any option says what is to change. */
static bool is_given(const struct cli *cli)
{
	const struct task_options *o = cli->own;
	bool given = o->no_after || o->after.n > 0;

	for (unsigned i = 0; i < cli->n_given; i++)
		given |= cli->given[i].option->param != NULL;
	return given;
}

static int send_edit(struct cli *cli, struct text prompt)
{
	const struct task_options *o = cli->own;
	char id[TASK_ID_MAX];
	struct koine_json *j;
	int r;

	if (!task_read_id(cli->args[0], id))
		return EX_USAGE;
	j = request_begin(cli, id);
	params_add_text(j, "prompt", prompt);
	if (o->no_after && j) {
		koine_json_key(j, "after");
		koine_json_begin_array(j);
		koine_json_end_array(j);
	}
	r = task_params_after(j, o);
	if (r == 0)
		return request_finish(cli, j, id);
	koine_json_free(j);
	return r;
}

static int send_edited(void *cli, struct text prompt)
{
	return send_edit(cli, prompt);
}

/* koined refuses a task that has begun, but nobody should type for nothing. */
static int check_waits(const struct koine_value *task)
{
	struct text state = member_text(task, "state");

	if (text_is(state, "queued"))
		return 0;
	complain("the task is %.*s; only queued tasks can be changed", TEXT_ARGS(state));
	return EXIT_ERROR_ANSWER;
}

static int edit_prompt(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *task;
	int r = task_send_id(cli, "task.show", cli->args[0], &a);

	if (r != 0)
		return r;
	task = koine_answer_result(a);
	r = check_waits(task);
	if (r != 0)
		return r;
	/* An editor may take longer than a server keeps an idle connection. */
	talk_hang_up(cli);
	return editor_change(&(struct edited_text) {.name = "task",
						    .before = member_text(task, "prompt"),
						    .max = PROMPT_MAX,
						    .send = send_edited,
						    .arg = cli});
}

int cmd_task_edit(struct cli *cli)
{
	const struct task_options *o = cli->own;
	int r = check_options(o);

	if (r != 0)
		return r;
	return o->editor || !is_given(cli) ? edit_prompt(cli) : send_edit(cli, (struct text) {0});
}
