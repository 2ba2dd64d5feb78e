/* koine task edit: what is to be done, when and by whom, before it begins. */
#include <math.h>

#include "base/cleanup.h"
#include "cli/child/editor.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/task/task.h"

enum { PROMPT_MAX = 16 << 20 };

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

static bool is_given(const struct task_options *o)
{
	return o->prompt || !isnan(o->priority) || o->label || o->runner || o->after.n > 0 ||
	       o->no_after || o->timeout_ms >= 0 || o->host || o->on;
}

static int add_changes(struct koine_json *j, const struct task_options *o)
{
	params_add(j, "label", o->label);
	params_add(j, "runner", o->runner);
	params_add(j, "host", o->host);
	params_add(j, "on", o->on);
	if (o->timeout_ms >= 0)
		params_add_int(j, "timeout", o->timeout_ms);
	if (o->no_after && j) {
		koine_json_key(j, "after");
		koine_json_begin_array(j);
		koine_json_end_array(j);
	}
	return task_params_order(j, o);
}

static int send_edit(struct cli *cli, struct text prompt)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = NULL;
	char id[TASK_ID_MAX];
	int r = task_params_id(cli, "id", cli->args[0], &j);

	if (r != 0)
		return r;
	if (prompt.data)
		params_add_text(j, "prompt", prompt);
	r = add_changes(j, cli->own);
	if (r != 0) {
		koine_json_free(j);
		return r;
	}
	r = call_send(cli, "task.edit", j, &a);
	if (r == 0 && task_id(cli->args[0], id))
		call_say(cli, a, text_of(id), "changed");
	return r;
}

static int send_prompt(void *cli, struct text prompt)
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
	int r = task_send_id(cli, "task.show", "id", cli->args[0], &a);

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
						    .send = send_prompt,
						    .arg = cli});
}

int cmd_task_edit(struct cli *cli)
{
	const struct task_options *o = cli->own;
	int r = check_options(o);

	if (r != 0)
		return r;
	if (o->editor || !is_given(o))
		return edit_prompt(cli);
	return send_edit(cli, o->prompt ? text_of(o->prompt) : (struct text) {0});
}
