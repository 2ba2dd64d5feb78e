/* koine task add, run, edit, log, follow and wait: a task on its way, what it prints, and how it ends. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "cli/child/child.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/signals.h"
#include "cli/kit/talk.h"
#include "cli/task/task.h"

/* koine task add, and koine run. */

enum { PIECE = 250000, TAIL = 16384, TAIL_MAX = 1000000 };

/* ---- its end ---- */

static int exit_status(const struct koine_value *end)
{
	int64_t status = member_number(end, "exit_status");

	if (member_is(end, "state", "completed"))
		return EX_OK;
	if (member_is(end, "state", "cancelled"))
		return EXIT_INTERRUPTED;
	return status > 0 && status < 256 ? (int)status : EXIT_ERROR_ANSWER;
}

/* On stderr, for people who watch. */
static void say_end(const struct cli *cli, const struct koine_value *end)
{
	struct text id = member_text(end, "id");

	if (print_if_json(cli, end) || member_is(end, "state", "completed"))
		return;
	PRINT(stderr, TEXT("koine: "), id.data ? id : TEXT("it"),
	      member_is(end, "state", "skipped")     ? TEXT(" was skipped")
	      : member_is(end, "state", "cancelled") ? TEXT(" was cancelled")
						     : TEXT(" failed"));
	talk_print_reason(member_text(end, "error"));
}

static void end_with(const struct cli *cli, const struct koine_answer *a, int *ret_status)
{
	say_end(cli, koine_answer_result(a));
	fflush(stdout);
	*ret_status = exit_status(koine_answer_result(a));
}

/* Ctrl-C ends the command, but not the task. */
static void say_on_interrupt(const char *typed)
{
	char id[TASK_ID_MAX];

	const char *quote;

	if (!task_id(typed, id))
		return;
	quote = strncmp(id, "task-", 5) == 0 ? "" : "'";
	signals_say_on_interrupt("\nkoine: stopped waiting; %s%.90s%s continues\n"
				 "  watch it:   koine task watch %s%.90s%s\n"
				 "  cancel it:  koine task cancel %s%.90s%s\n",
				 quote, id, quote, quote, id, quote, quote, id, quote);
}

/* Waits for its end. */
static int task_wait(struct cli *cli, const char *typed, int *ret_status)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r;

	say_on_interrupt(typed);
	r = task_send_id(cli, "task.wait", typed, &a);

	if (r == 0)
		end_with(cli, a, ret_status);
	return r;
}

/* ---- as it comes ---- */

struct task_log_output {
	const struct cli *cli;
	bool mid_line;
};

static void print_followed(struct task_log_output *o, struct text piece)
{
	if (piece.len == 0)
		return;
	task_print_output(o->cli, piece);
	o->mid_line = piece.data[piece.len - 1] != '\n';
}

static void on_notification(void *arg, const char *method, size_t method_len,
			    const struct koine_value *whole)
{
	const struct text name = {.data = method, .len = method_len};
	const struct koine_value *params = koine_value_get(whole, "params");
	struct task_log_output *o = arg;

	if (!text_is(name, "task.output"))
		return;
	if (!print_if_json(o->cli, params))
		print_followed(o, member_text(params, "text"));
	fflush(stdout);
}

/* Prints what comes from `offset` on until the task ends. *ret_status is the exit status: 0, the
 * task's own exit status, EXIT_ERROR_ANSWER, or EXIT_INTERRUPTED if it was cancelled. */
static int task_follow(struct cli *cli, const char *typed, int64_t offset, int *ret_status)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct task_log_output o = {.cli = cli};
	struct koine_json *j = NULL;
	int r = talk_connect(cli) ?: task_params_id(cli, typed, &j);

	if (r != 0)
		return r;
	params_add_int(j, "offset", offset);
	koine_client_on_notification(cli->client, on_notification, &o);
	say_on_interrupt(typed);
	r = call_send(cli, "task.follow", j, &a);
	koine_client_on_notification(cli->client, NULL, NULL);
	/* What is printed next must start on a new line. */
	if (o.mid_line && cli->terminal)
		fputs(cli->color ? "\033[0m\n" : "\n", stdout);
	fflush(stdout);
	if (r == 0)
		end_with(cli, a, ret_status);
	return r;
}

/* ---- what is there ---- */

static int send_output(struct cli *cli, const char *typed, int64_t offset, int64_t max,
		       struct koine_answer **ret_answer)
{
	struct koine_json *j = NULL;
	int r = task_params_id(cli, typed, &j);

	if (r != 0)
		return r;
	params_add_int(j, "offset", offset);
	params_add_int(j, "max", max);
	return call_send(cli, "task.output", j, ret_answer);
}

static void print_piece(const struct cli *cli, const struct koine_value *piece, struct text text)
{
	if (!print_if_json(cli, piece))
		task_print_output(cli, text);
}

/* All of it, piece by piece. */
static int print_all(struct cli *cli, const char *typed, int64_t *ret_next)
{
	int64_t at = 0;

	for (;;) {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		const struct koine_value *piece;
		int r = send_output(cli, typed, at, PIECE, &a);

		if (r != 0)
			return r;
		piece = koine_answer_result(a);
		*ret_next = member_number(piece, "next");
		if (*ret_next <= at && at > 0)
			return 0;
		print_piece(cli, piece, member_text(piece, "text"));
		if (*ret_next <= at)
			return 0;
		at = *ret_next;
	}
}

/* Requests more and more of the end, until it contains enough lines. */
static int print_tail(struct cli *cli, const char *typed, int64_t n, int64_t *ret_next)
{
	for (int64_t size = TAIL;; size = size * 8 < TAIL_MAX ? size * 8 : TAIL_MAX) {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		const struct koine_value *piece;
		struct text text;
		struct text tail;
		int r = send_output(cli, typed, -size, size, &a);

		if (r != 0)
			return r;
		piece = koine_answer_result(a);
		text = member_text(piece, "text");
		tail = text_tail(text, n);
		*ret_next = member_number(piece, "next");
		if (tail.len < text.len || member_number(piece, "offset") == 0 ||
		    size == TAIL_MAX) {
			print_piece(cli, piece, tail);
			return 0;
		}
	}
}

static int print_log(struct cli *cli, int64_t *ret_next)
{
	const struct task_options *o = cli->own;
	int r = o->limit > 0 ? print_tail(cli, cli->args[0], o->limit, ret_next)
			     : print_all(cli, cli->args[0], ret_next);

	fflush(stdout);
	return r;
}

/* ---- the commands ---- */

int cmd_task_log(struct cli *cli)
{
	const struct task_options *o = cli->own;
	int64_t next = 0;
	int status;
	int r;

	if (o->follow)
		talk_be_patient(cli);
	r = print_log(cli, &next);
	if (r == 0 && o->follow)
		r = task_follow(cli, cli->args[0], next, &status);
	return r;
}

int task_watch_one(struct cli *cli)
{
	const struct task_options *o = cli->own;
	int64_t next = 0;
	int status = 0;
	int r = 0;

	talk_be_patient(cli);
	if (o->limit > 0)
		r = print_log(cli, &next);
	if (r == 0)
		r = task_follow(cli, cli->args[0], next, &status);
	return r == 0 ? status : r;
}

/* Waits for all of them; the exit status is that of the first that failed. */
int cmd_task_wait(struct cli *cli)
{
	const struct task_options *o = cli->own;
	int first = 0;
	int r = 0;

	talk_be_patient(cli);
	for (int i = 0; r == 0 && i < cli->n_args; i++) {
		int status = 0;

		r = task_wait(cli, cli->args[i], &status);
		first = first ? first : status;
	}
	if (r != 0)
		return r;
	return o->status && strcmp(o->status, "any") == 0 ? EX_OK : first;
}

/* ---- add, and koine run ---- */

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
	return fail_with(EX_DATAERR, "the prompt is longer than %d bytes", PROMPT_MAX);
}

/* With a project and no folder it runs in the project's folder. */
static int add_folder(struct koine_json *j, const struct cli *cli)
{
	const struct task_options *o = cli->own;
	bool named = o->project && o->project[0];
	char path[PATH_MAX] = "";
	int r = o->folder || !named ? args_folder(cli, "--dir", o->folder, path) : 0;

	params_add(j, "cwd", path[0] ? path : NULL);
	return r;
}

/* Adds what the task comes after. 0 or an exit code. */
static int task_params_after(struct koine_json *j, const struct task_options *o)
{
	const struct option_list *after = &o->after;
	char id[TASK_ID_MAX];

	if (after->n == 0 || !params_begin_array(j, "after"))
		return 0;
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
	if (!value || name[0] == '\0')
		return fail_with(EX_USAGE,
				 name[0] ? "--env %s: your environment has no such variable"
					 : "--env requires NAME or NAME=VALUE, not '%s'",
				 given);
	koine_json_key(j, name);
	koine_json_string(j, value);
	return 0;
}

static int add_env(struct koine_json *j, const struct option_list *env)
{
	int r = 0;

	if (env->n == 0 || !params_begin_object(j, "env"))
		return 0;
	for (unsigned i = 0; r == 0 && i < env->n; i++)
		r = add_variable(j, env->values[i]);
	koine_json_end_object(j);
	return r;
}

/* Adds what the options' rows cannot say. */
static int send_added(struct cli *cli, struct koine_json *params, struct koine_answer **ret_answer)
{
	CLEANUP(json_freep) struct koine_json *j = params;
	const struct task_options *o = cli->own;
	int r = add_folder(j, cli) ?: task_params_after(j, o) ?: add_env(j, &o->env);

	return r ?: request_send(cli, TAKE(j), ret_answer);
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
	if (!utf8_is_valid(word, strlen(word)))
		return fail_with(EX_DATAERR, "invalid argument '%s': not UTF-8", word);
	koine_json_string(j, word);
	return 0;
}

static int send_command(struct cli *cli, struct koine_answer **ret_answer)
{
	const struct task_options *o = cli->own;
	const char *const shell[] = {"sh", "-c", o->line};
	const char *const *words = o->line ? shell : (const char *const *)cli->args;
	int n = o->line ? 3 : cli->n_args;
	CLEANUP(json_freep) struct koine_json *j = request_begin(cli, NULL);
	int r = params_begin_array(j, "command") ? 0 : out_of_memory();

	for (int i = 0; r == 0 && i < n; i++)
		r = add_word(j, words[i]);
	if (r != 0)
		return r;
	koine_json_end_array(j);
	return send_added(cli, TAKE(j), ret_answer);
}

/* With --follow stdout is for what the task prints. */
static void say_added(const struct cli *cli, const struct koine_value *task, char id[TASK_ID_MAX])
{
	const struct task_options *o = cli->own;
	FILE *out = o->follow ? stderr : stdout;

	member_copy(task, "id", id, TASK_ID_MAX);
	if (!print_if_json(cli, task))
		PRINT(out, text_of(id), TEXT("\n"));
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

/* Scripts of the previous version named an agent of Claude Code with --agent, and ours with --runner. */
static int check_agent(const struct cli *cli)
{
	const char *agent = NULL;

	for (unsigned i = 0; i < cli->n_given; i++) {
		if (strcmp(cli->given[i].option->name, "--agent") != 0)
			continue;
		if (agent && strcmp(agent, cli->given[i].value) != 0)
			return fail_with(
				EX_USAGE,
				"a task has one agent, not '%.60s' and '%.60s'; for an agent "
				"of Claude Code, use --claude-agent",
				agent, cli->given[i].value);
		agent = cli->given[i].value;
	}
	return 0;
}

int cmd_task_add(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf prompt;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r;

	buf_init(&prompt, PROMPT_MAX);
	r = check_agent(cli) ?: gather(cli, &prompt);
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
	CLEANUP(json_freep) struct koine_json *j = NULL;
	char id[TASK_ID_MAX];

	if (!task_read_id(cli->args[0], id))
		return EX_USAGE;
	j = request_begin(cli, id);
	params_add_text(j, "prompt", prompt);
	params_add_raw(j, "after", o->no_after ? TEXT("[]") : (struct text) {0});
	return task_params_after(j, o) ?: request_finish(cli, TAKE(j), id);
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
	return fail_with(EXIT_ERROR_ANSWER, "the task is %.*s; only queued tasks can be changed",
			 TEXT_ARGS(state));
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
