/* koine task: its table, and the commands that are one call each. */
#include "cli/commands.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/task/task.h"

enum {
	PAGE = 1000, /* tasks that koined answers at once */
	RETRIED_MAX = 1 << 20,
};

static struct koine_json *page_params(const struct cli *cli, int64_t limit, int64_t before)
{
	const struct task_options *o = cli->own;
	struct koine_json *j = task_params(cli);

	params_add(j, "state", o->state);
	params_add(j, "group", o->group);
	params_add(j, "label", o->label);
	params_add_bool(j, "open_first", true);
	params_add_int(j, "limit", limit);
	if (before > 0)
		params_add_int(j, "before", before);
	return j;
}

/* With --json the pages are one array. */
static int cmd_list(struct cli *cli)
{
	const struct task_options *o = cli->own;
	int64_t left = o->limit ? o->limit : 20;
	int64_t before = 0;
	int r;

	do {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		const struct koine_value *found;
		bool first = before == 0;
		bool last;

		r = call_send(cli, "task.find", page_params(cli, left < PAGE ? left : PAGE, before),
			      &a);
		if (r != 0)
			return r;
		found = koine_answer_result(a);
		before = member_number(found, "next");
		left -= PAGE;
		last = left <= 0 || before == 0;
		if (!cli->options.json) {
			r = task_print_list(cli, found, last,
					    (o->limit ? o->limit : 20) - (left > 0 ? left : 0));
		} else {
			fputs(first ? "[" : "", stdout);
			print_json_items(stdout, koine_value_get(found, "tasks"), first);
			fputs(last ? "]\n" : "", stdout);
		}
	} while (r == 0 && left > 0 && before > 0);
	return r;
}

static int cmd_stats(struct cli *cli)
{
	return call_print(cli, "task.stats", task_params(cli), NULL, task_print_counts);
}

static int cmd_groups(struct cli *cli)
{
	return call_print(cli, "task.groups", task_params(cli), "groups", task_print_groups);
}

static int cmd_get(struct cli *cli)
{
	struct koine_json *j = NULL;
	int r = task_params_id(cli, "id", cli->args[0], &j);

	return r != 0 ? r : call_print(cli, "task.show", j, NULL, task_print_one);
}

static int print_cleaned(const struct cli *cli, const struct koine_value *result)
{
	printf("%lld forgotten\n", (long long)member_number(result, "cleaned"));
	return 0;
}

static int cmd_clean(struct cli *cli)
{
	const struct task_options *o = cli->own;
	struct koine_json *j = task_params(cli);

	params_add(j, "group", o->group);
	params_add_bool(j, "successful_only", o->successful);
	talk_be_patient(cli);
	return call_print(cli, "task.clean", j, NULL, print_cleaned);
}

/* ---- of several ---- */

static const struct change {
	const char *command;
	const char *method;
	const char *key; /* what the method calls the id */
	const char *did;
} changes[] = {
	{"cancel", "task.cancel", "taskId", "cancelled"},
	{"release", "task.release", "id", "released"},
};

static int change_one(struct cli *cli, const char *typed)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct change *c = changes;
	char id[TASK_ID_MAX];
	int r;

	while (strcmp(c->command, cli->sub->name) != 0)
		c++;
	r = task_send_id(cli, c->method, c->key, typed, &a);
	if (r == 0 && task_id(typed, id))
		call_say(cli, a, text_of(id), c->did);
	return r;
}

static int cmd_change(struct cli *cli)
{
	return call_each(cli, change_one);
}

/* ---- retrying ---- */

/* Whether a retry of an earlier argument has queued it, too: one id on each line. */
static bool is_retried(const struct buf *retried, const char *typed)
{
	struct text rest = buf_text(retried), line;
	char id[TASK_ID_MAX];

	while (task_id(typed, id) && rest.len > 0 && text_next(&rest, '\n', &line)) {
		if (text_is(line, id))
			return true;
	}
	return false;
}

/* A task brings those that were skipped because of it: each is named once. */
static int retry_one(struct cli *cli, const char *typed, struct buf *retried)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *id;
	int r = task_send_id(cli, "task.retry", "id", typed, &a);

	if (r != 0)
		return r;
	if (cli->options.json)
		call_say(cli, a, TEXT(""), "");
	id = member_first(koine_answer_result(a), "tasks");
	for (; id; id = koine_value_next(id)) {
		struct text t = text_of_value(id);

		if (!cli->options.json)
			call_say(cli, a, t, "queued");
		buf_add(retried, t.data, t.len);
		buf_add_char(retried, '\n');
	}
	return retried->err ? out_of_memory() : 0;
}

static int cmd_retry(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf retried;
	int r = talk_connect(cli);
	int first = r;

	buf_init(&retried, RETRIED_MAX);
	for (int i = 0; i < cli->n_args && r != EX_UNAVAILABLE; i++) {
		if (is_retried(&retried, cli->args[i]))
			continue;
		r = retry_one(cli, cli->args[i], &retried);
		first = first ? first : r;
	}
	return first;
}

/* ---- the table ---- */

#define ONE_ID ARGS(1, 1, "wants one ID")
#define IDS    ARGS(1, INT_MAX, "wants one ID or more")
#define BY_ID  "ID is a task's id, or its number alone: 3 is task-0003.\n"
#define EXITS                                                                                      \
	"The exit status follows the task: 0 when it was completed, its program's own when that\n" \
	"failed, else 1; 130 when it was cancelled.\n"

static const struct command subs[] = {
	{"add", "[OPTION]... [--] PROMPT... | -", "give an agent something to do, and print its id",
	 "- reads the prompt from stdin; with --stdin that follows the PROMPT. TIME is a number of "
	 "seconds, or 10s, 15m, 2h, 1d, 1h30m.\n"
	 "With --follow its output is all that goes to stdout.\n" EXITS,
	 cmd_task_add, NULL, task_add_options, ARGS(0, INT_MAX, "wants a PROMPT, or - for stdin")},
	{"list", "", "list tasks, newest first", NULL, cmd_list, NULL, task_list_options, NO_ARGS},
	{"get", "ID", "show all of one task", BY_ID, cmd_get, ONE_ID},
	{"log", "ID", "print what a task has printed",
	 BY_ID "With -n no more than the last million bytes are looked through.\n", cmd_task_log,
	 NULL, task_log_options, ONE_ID},
	{"follow", "ID", "print what a task prints, until it ends", BY_ID EXITS, cmd_task_follow,
	 NULL, task_follow_options, ONE_ID},
	{"wait", "ID...", "wait until tasks have ended",
	 BY_ID EXITS "Of several, the first that did not go well counts.\n", cmd_task_wait, NULL,
	 task_wait_options, IDS},
	{"cancel", "ID...", "stop tasks, with all their processes", BY_ID, cmd_change, IDS},
	{"release", "ID...", "let tasks begin that are held",
	 BY_ID
	 "Held are those that came with a project, until that is trusted, or with a store that\n"
	 "was adopted.\n",
	 cmd_change, IDS},
	{"retry", "ID...", "queue tasks again that failed or were cancelled",
	 BY_ID
	 "The tasks that were skipped because of ID are queued with it. A task whose dependency\n"
	 "did not complete is refused: retry the dependency.\n",
	 cmd_retry, IDS},
	{"edit", "ID", "change a task that has not begun",
	 BY_ID "What is not given stays; --after names all that it comes after. The editor is that "
	       "of VISUAL, else\n"
	       "of EDITOR, else vi.\n",
	 cmd_task_edit, NULL, task_edit_options, ONE_ID},
	{"stash", "ID...", "keep queued tasks back",
	 BY_ID "They begin once they are enqueued. koine task pause ID does the same.\n",
	 cmd_task_stash, IDS},
	{"enqueue", "ID...", "let tasks begin that were stashed", BY_ID, cmd_task_enqueue, NULL,
	 task_enqueue_options, IDS},
	{"pause", "[ID...]", "begin no more tasks: none at all, none of a group, or not these",
	 BY_ID "Tasks that run go on; nothing new begins until koine task resume, also after a "
	       "restart of\n"
	       "koined. It concerns all projects.\n",
	 cmd_task_pause, NULL, task_pause_options},
	{"resume", "[ID...]", "begin tasks again", BY_ID, cmd_task_resume, NULL,
	 task_pause_options},
	{"parallel", "N",
	 "run at most N tasks at a time, of all or of a group, until the next start",
	 "At once, and on this host alone: what runs goes on. 0 takes the limit of a group away.\n",
	 cmd_task_parallel, NULL, task_pause_options, ARGS(1, 1, "requires one N")},
	{"clean", "", "forget tasks that have ended, with what they printed",
	 "Those of the project; one that another still waits for stays.\n", cmd_clean, NULL,
	 task_clean_options, NO_ARGS},
	{"stats", "", "count tasks by state", NULL, cmd_stats, NULL, task_count_options, NO_ARGS},
	{"groups", "", "count tasks by group", NULL, cmd_groups, NULL, task_count_options, NO_ARGS},
	{"watch", "", "watch tasks on the terminal, live", "q or Ctrl-C leaves.\n", cmd_task_watch,
	 NULL, task_watch_options, NO_ARGS},
	{NULL},
};

const struct command task_commands[] = {
	{"task", "COMMAND [ARGUMENT]...", "give agents things to do, and see how they go",
	 "A task belongs to a project: that of --project, else the nearest folder above this one\n"
	 "that has .aiwg in it, else none.\n",
	 NULL, subs, task_options, sizeof(struct task_options), task_options_init,
	 task_find_project, task_print_hint, .completes = COMPLETES_TASK, .scope = task_scope},
	{"run", "[OPTION]... [--] PROGRAM [ARG]... | -c LINE",
	 "run a command as a task, without an agent",
	 "The words go to the program as they are; -c LINE is one that sh reads. It runs in this "
	 "folder,\n"
	 "in the environment that tasks have and what --env names, and prints its id: koine task "
	 "log,\n"
	 "follow, wait and cancel go on from there. koined refuses it to agents.\n" EXITS,
	 cmd_run, NULL, task_run_options, sizeof(struct task_options), task_options_init,
	 task_find_project, task_print_hint, ARGS(0, INT_MAX, "wants a PROGRAM, or -c LINE"),
	 .completes = COMPLETES_TASK, .scope = task_scope},
	{NULL},
};
