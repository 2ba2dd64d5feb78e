/* koine task edit: what is to be done, when and by whom, before it begins. */
#include "base/cleanup.h"
#include "cli/child/editor.h"
#include "cli/kit/request.h"
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
						    .send = send_prompt,
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
