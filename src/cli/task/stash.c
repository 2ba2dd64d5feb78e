/* koine task stash, enqueue, pause and resume: what is kept back. */
#include <limits.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/kit/call.h"
#include "cli/task/task.h"

static int say_one(struct cli *cli, const char *method, struct koine_json *params,
		   const char *typed, const char *did)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char id[TASK_ID_MAX];
	int r = call_send(cli, method, params, &a);

	if (r == 0 && task_id(typed, id))
		call_say(cli, a, text_of(id), did);
	return r;
}

static int stash_one(struct cli *cli, const char *typed)
{
	struct koine_json *j = NULL;
	int r = task_params_id(cli, "id", typed, &j);

	return r != 0 ? r : say_one(cli, "task.stash", j, typed, "stashed");
}

static int enqueue_one(struct cli *cli, const char *typed)
{
	const struct task_options *o = cli->own;
	struct koine_json *j = NULL;
	int r = task_params_id(cli, "id", typed, &j);

	if (r != 0)
		return r;
	if (o->delay_ms > 0)
		params_add_int(j, "delay", o->delay_ms);
	return say_one(cli, "task.enqueue", j, typed, "enqueued");
}

int cmd_task_stash(struct cli *cli)
{
	return call_each(cli, stash_one);
}

int cmd_task_enqueue(struct cli *cli)
{
	return call_each(cli, enqueue_one);
}

/* Of a group, or all; single ones are stashed. */
static int pause_all(struct cli *cli, const char *method, const char *did)
{
	const struct task_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = params_new();
	char name[300] = "all tasks";
	int r;

	params_add(j, "group", o->group);
	if (o->group)
		snprintf(name, sizeof(name), "group %.200s", o->group);
	r = call_send(cli, method, j, &a);
	if (r == 0)
		call_say(cli, a, text_of(name), did);
	return r;
}

static int check_which(const struct cli *cli)
{
	const struct task_options *o = cli->own;

	if (cli->n_args == 0 || !o->group)
		return 0;
	complain("task %s takes a group or IDs, not both", cli->sub->name);
	return EX_USAGE;
}

int cmd_task_pause(struct cli *cli)
{
	int r = check_which(cli);

	if (r != 0)
		return r;
	return cli->n_args > 0 ? cmd_task_stash(cli) : pause_all(cli, "task.pause", "paused");
}

int cmd_task_resume(struct cli *cli)
{
	int r = check_which(cli);

	if (r != 0)
		return r;
	return cli->n_args > 0 ? cmd_task_enqueue(cli) : pause_all(cli, "task.resume", "resumed");
}

int cmd_task_parallel(struct cli *cli)
{
	const struct task_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j;
	char name[300] = "all tasks:", did[64] = "no limit until koined restarts";
	char *end;
	long n = strtol(cli->args[0], &end, 10);
	int r;

	if (end == cli->args[0] || *end != '\0' || n < 0 || n > INT_MAX) {
		complain("invalid number of tasks '%.60s': expected a whole number", cli->args[0]);
		return EX_USAGE;
	}
	j = params_new();
	params_add_int(j, "parallel", n);
	params_add(j, "group", o->group);
	r = call_send(cli, "task.parallel", j, &a);
	if (r != 0)
		return r;
	if (o->group)
		snprintf(name, sizeof(name), "group %.200s:", o->group);
	if (n > 0)
		snprintf(did, sizeof(did), "at most %ld at a time until koined restarts", n);
	call_say(cli, a, text_of(name), did);
	return 0;
}
