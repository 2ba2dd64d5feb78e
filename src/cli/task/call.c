/* Where the commands about tasks find project and server, and what every call of theirs says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/task/task.h"

void answer_freep(struct koine_answer **a)
{
	koine_answer_free(*a);
}

/* Below a task that project is ours, too, wherever the task has gone. */
static int find_project(struct task_call *t)
{
	const char *said = t->cli->options.task.project;
	const char *given = said ? said : getenv("KOINE_PROJECT");

	if (!given) {
		if (!task_project_above(".", t->project))
			t->project[0] = '\0';
		return 0;
	}
	if (given[0] != '\0' && !realpath(given, t->project)) {
		complain("%s %s: %s", said ? "--project" : "KOINE_PROJECT", given, strerror(errno));
		return EX_NOINPUT;
	}
	return 0;
}

int task_open(struct task_call *t, struct cli *cli, bool patient)
{
	int r;

	*t = (struct task_call) {.cli = cli, .all_projects = cli->options.task.all_projects};
	r = find_project(t);
	if (r != 0)
		return r;
	if (patient && cli->options.timeout_ms == 0)
		cli->options.timeout_ms = UINT32_MAX;
	return talk_dial(cli, NULL, NULL, &t->client);
}

void task_close(struct task_call *t)
{
	koine_client_free(t->client);
}

struct koine_json *task_params(const struct task_call *t)
{
	struct koine_json *j = NULL;

	if (koine_json_new(&j) != 0) {
		complain("out of memory");
		return NULL;
	}
	koine_json_begin_object(j);
	if (!t->all_projects) {
		koine_json_key(j, "project");
		koine_json_string(j, t->project);
	}
	return j;
}

/* The daemon does not know the folder that we stand in: what to do about it. */
static void hint(const struct task_call *t, const struct koine_answer *a)
{
	const struct koine_value *field = koine_value_get(koine_answer_error_data(a), "field");

	if (t->project[0] && value_is(field, "project"))
		fprintf(stderr,
			"koined serves a project when it is started with --project %s; --project "
			"\"\" means none\n",
			t->project);
}

int task_send(struct task_call *t, const char *method, struct koine_json *params,
	      struct koine_answer **ret_answer)
{
	struct koine_answer *a = NULL;
	const char *text;
	int r;

	koine_json_end_object(params);
	text = koine_json_text(params, NULL);
	if (!text) {
		complain("out of memory");
		koine_json_free(params);
		return EX_SOFTWARE;
	}
	r = koine_client_call(t->client, method, text, &a);
	koine_json_free(params);
	if (r == 0)
		*ret_answer = a;
	else if (r == KOINE_ERROR_ANSWER) {
		talk_print_error(method, a);
		hint(t, a);
		koine_answer_free(a);
		return EXIT_ERROR_ANSWER;
	}
	return r == 0 ? 0 : talk_failed(t->client, method, r, a);
}

int task_send_id(struct task_call *t, const char *method, const char *key, const char *typed,
		 struct koine_answer **ret_answer)
{
	char id[TASK_ID_MAX];
	struct koine_json *j;

	if (!task_id(typed, id)) {
		complain("'%s' is no task's id", typed);
		return EX_USAGE;
	}
	j = task_params(t);
	if (!j)
		return EX_SOFTWARE;
	koine_json_key(j, key);
	koine_json_string(j, id);
	return task_send(t, method, j, ret_answer);
}
