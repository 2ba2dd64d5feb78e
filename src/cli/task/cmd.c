/* koine task: its table, and the commands that are one call each. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/task/task.h"

static int takes_none(const struct cli *cli)
{
	if (cli->n_args == 0)
		return 0;
	complain("%s %s takes no arguments", cli->command->name, cli->sub->name);
	return EX_USAGE;
}

static void add_text(struct koine_json *j, const char *key, const char *text)
{
	if (!text)
		return;
	koine_json_key(j, key);
	koine_json_string(j, text);
}

static int cmd_list(struct cli *cli)
{
	const struct task_options *o = &cli->options.task;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct task_call t;
	struct koine_json *j;
	int r = takes_none(cli);

	if (r == 0)
		r = task_open(&t, cli, false);
	if (r != 0)
		return r;
	j = task_params(&t);
	if (j) {
		add_text(j, "state", o->state);
		add_text(j, "group", o->group);
		koine_json_key(j, "limit");
		koine_json_int(j, o->limit ? o->limit : 20);
	}
	r = j ? task_send(&t, "task.find", j, &a) : EX_SOFTWARE;
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_value_get(koine_answer_result(a), "tasks"));
	else if (r == 0)
		r = task_print_list(&t, koine_value_get(koine_answer_result(a), "tasks"));
	task_close(&t);
	return r;
}

static int cmd_get(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct task_call t;
	int r;

	if (cli->n_args != 1) {
		complain("task get wants one ID");
		return EX_USAGE;
	}
	r = task_open(&t, cli, false);
	if (r == 0)
		r = task_send_id(&t, "task.show", "id", cli->args[0], &a);
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else if (r == 0)
		r = task_print_one(cli, koine_answer_result(a));
	task_close(&t);
	return r;
}

/* One after another; what goes wrong with one does not keep the others. */
static int each(struct cli *cli, const char *method, const char *key, const char *did)
{
	struct task_call t;
	int all = 0;
	int r;

	if (cli->n_args == 0) {
		complain("task %s wants one ID or more", cli->sub->name);
		return EX_USAGE;
	}
	r = task_open(&t, cli, false);
	for (int i = 0; r == 0 && i < cli->n_args; i++) {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		char id[TASK_ID_MAX];
		int one = task_send_id(&t, method, key, cli->args[i], &a);

		all = all ? all : one;
		if (one == EX_UNAVAILABLE)
			break;
		if (one == 0 && cli->options.json)
			print_json_compact(stdout, koine_answer_result(a));
		else if (one == 0 && task_id(cli->args[i], id))
			printf("%s %s\n", id, did);
	}
	task_close(&t);
	return r == 0 ? all : r;
}

static int cmd_cancel_task(struct cli *cli)
{
	return each(cli, "task.cancel", "taskId", "cancelled");
}

static int cmd_retry(struct cli *cli)
{
	return each(cli, "task.retry", "id", "queued");
}

static int cmd_release(struct cli *cli)
{
	return each(cli, "task.release", "id", "released");
}

static int print_counts(const struct koine_value *counts)
{
	static const char *const rows[] = {"queued", "running",   "completed",
					   "failed", "cancelled", "total"};
	CLEANUP(table_freep) struct table *t = table_new("lr");

	if (!t) {
		complain("out of memory");
		return EX_SOFTWARE;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		table_cell_str(t, rows[i]);
		table_cell_value(t, koine_value_get(counts, rows[i]));
	}
	return table_print(t, stdout, false);
}

static int cmd_stats(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct task_call t;
	struct koine_json *j;
	int r = takes_none(cli);

	if (r == 0)
		r = task_open(&t, cli, false);
	if (r != 0)
		return r;
	j = task_params(&t);
	r = j ? task_send(&t, "task.stats", j, &a) : EX_SOFTWARE;
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else if (r == 0)
		r = print_counts(koine_answer_result(a));
	task_close(&t);
	return r;
}

static int cmd_groups(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct task_call t;
	struct koine_json *j;
	int r = takes_none(cli);

	if (r == 0)
		r = task_open(&t, cli, false);
	if (r != 0)
		return r;
	j = task_params(&t);
	r = j ? task_send(&t, "task.groups", j, &a) : EX_SOFTWARE;
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_value_get(koine_answer_result(a), "groups"));
	else if (r == 0)
		r = task_print_groups(&t, koine_value_get(koine_answer_result(a), "groups"));
	task_close(&t);
	return r;
}

#define BY_ID "ID is a task's id, or its number alone: 3 is task-0003.\n"
#define EXITS                                                                                      \
	"The exit status follows the task: 0 when it was completed, its program's own when that\n" \
	"failed, else 1; 130 when it was cancelled.\n"

const struct command task_commands[] = {
	{"add", "[OPTION]... [--] PROMPT... | -", "give an agent something to do, and print its id",
	 "- reads the prompt from stdin. TIME is a number of seconds, or 10s, 15m, 2h, 1d, 1h30m.\n"
	 "With --follow its output is all that goes to stdout.\n" EXITS,
	 cmd_task_add, NULL, task_add_options},
	{"list", "", "list tasks, newest first", NULL, cmd_list, NULL, task_list_options},
	{"get", "ID", "show all of one task", BY_ID, cmd_get},
	{"log", "ID", "print what a task has printed",
	 BY_ID "With -n no more than the last million bytes are looked through.\n", cmd_task_log,
	 NULL, task_log_options},
	{"follow", "ID", "print what a task prints, until it ends", BY_ID EXITS, cmd_task_follow,
	 NULL, task_follow_options},
	{"wait", "ID...", "wait until tasks have ended",
	 BY_ID EXITS "Of several, the first that did not go well counts.\n", cmd_task_wait, NULL,
	 task_wait_options},
	{"cancel", "ID...", "stop tasks, with all their processes", BY_ID, cmd_cancel_task},
	{"release", "ID...", "let tasks begin that are held",
	 BY_ID
	 "Held are those that came with a project, until that is trusted, or with a store that\n"
	 "was adopted.\n",
	 cmd_release},
	{"retry", "ID...", "queue tasks again that failed or were cancelled", BY_ID, cmd_retry},
	{"stats", "", "count tasks by state", NULL, cmd_stats, NULL, task_count_options},
	{"groups", "", "count tasks by group", NULL, cmd_groups, NULL, task_count_options},
	{"watch", "", "watch tasks on the terminal, live", "q or Ctrl-C leaves.\n", cmd_task_watch,
	 NULL, task_watch_options},
	{NULL},
};
