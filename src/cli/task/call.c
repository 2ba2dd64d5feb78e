/* Which project the task commands mean, and the parameters of their calls. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kit/call.h"
#include "cli/kit/value.h"
#include "cli/task/task.h"

/* A task's program has its project in the environment, whatever its working folder is. */
int task_find_project(struct cli *cli)
{
	struct task_options *o = cli->own;
	const char *given = o->project ? o->project : getenv("KOINE_PROJECT");

	if (!given) {
		if (!task_project_above(".", o->project_path))
			o->project_path[0] = '\0';
		return 0;
	}
	if (given[0] == '\0' || realpath(given, o->project_path))
		return 0;
	complain("%s %s: %s", o->project ? "--project" : "KOINE_PROJECT", given, strerror(errno));
	return EX_NOINPUT;
}

void task_scope(const struct cli *cli, struct koine_json *params)
{
	const struct task_options *o = cli->own;

	params_add(params, "project", o->all_projects ? NULL : o->project_path);
}

struct koine_json *task_params(const struct cli *cli)
{
	struct koine_json *j = params_new();

	task_scope(cli, j);
	return j;
}

/* The daemon does not know our working folder: says what to do about it. */
void task_print_hint(const struct cli *cli, const struct koine_answer *error)
{
	const struct task_options *o = cli->own;

	if (o->project_path[0] && member_is(koine_answer_error_data(error), "field", "project"))
		fprintf(stderr,
			"to serve this project, start koined with --project %s; to use no project, "
			"pass --project \"\"\n",
			o->project_path);
}

bool task_read_id(const char *typed, char id[TASK_ID_MAX])
{
	if (task_id(typed, id))
		return true;
	complain("invalid task id '%s': expected task-NNNN or a number", typed);
	return false;
}

int task_params_id(const struct cli *cli, const char *typed, struct koine_json **ret_params)
{
	char id[TASK_ID_MAX];

	if (!task_read_id(typed, id))
		return EX_USAGE;
	*ret_params = task_params(cli);
	params_add(*ret_params, "id", id);
	return 0;
}

int task_send_id(struct cli *cli, const char *method, const char *typed,
		 struct koine_answer **ret_answer)
{
	struct koine_json *j = NULL;
	int r = task_params_id(cli, typed, &j);

	return r != 0 ? r : call_send(cli, method, j, ret_answer);
}
