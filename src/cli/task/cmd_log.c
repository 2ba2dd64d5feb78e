/* koine task log, follow and wait. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/task/task.h"

enum { PIECE = 250000, TAIL_MAX = 1000000 };

static int send_output(struct task_call *t, const char *typed, int64_t offset, int64_t max,
		       struct koine_answer **ret)
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
	koine_json_key(j, "id");
	koine_json_string(j, id);
	koine_json_key(j, "offset");
	koine_json_int(j, offset);
	koine_json_key(j, "max");
	koine_json_int(j, max);
	return task_send(t, "task.output", j, ret);
}

static void print_piece(const struct cli *cli, const struct koine_value *piece)
{
	size_t len;
	const char *text = koine_value_text(koine_value_get(piece, "text"), &len);

	if (cli->options.json)
		print_json_compact(stdout, piece);
	else if (text)
		task_print_output(cli, text, len);
}

/* All that is there, piece by piece. */
static int print_all(struct task_call *t, const char *typed, int64_t *ret_next)
{
	int64_t at = 0;

	for (;;) {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		const struct koine_value *piece;
		int64_t next = 0;
		int r = send_output(t, typed, at, PIECE, &a);

		if (r != 0)
			return r;
		piece = koine_answer_result(a);
		koine_value_int(koine_value_get(piece, "next"), &next);
		*ret_next = next;
		if (next <= at && at > 0)
			return 0;
		print_piece(t->cli, piece);
		if (next <= at)
			return 0;
		at = next;
	}
}

/* Where the last n lines begin; 0 when there are no more than these. */
static size_t tail_of(const char *text, size_t len, int64_t n)
{
	size_t at = len > 0 && text[len - 1] == '\n' ? len - 1 : len;

	for (; at > 0; at--) {
		if (text[at - 1] == '\n' && --n == 0)
			break;
	}
	return at;
}

/* Asks for more and more of the end, until it has enough lines in it. */
static int print_tail(struct task_call *t, const char *typed, int64_t n, int64_t *ret_next)
{
	int64_t size = 16384;

	for (;;) {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		const struct koine_value *piece;
		int64_t offset = 0;
		size_t from;
		size_t len;
		const char *text;
		int r = send_output(t, typed, -size, size, &a);

		if (r != 0)
			return r;
		piece = koine_answer_result(a);
		text = koine_value_text(koine_value_get(piece, "text"), &len);
		koine_value_int(koine_value_get(piece, "offset"), &offset);
		koine_value_int(koine_value_get(piece, "next"), ret_next);
		from = text ? tail_of(text, len, n) : 0;
		if (from > 0 || offset == 0 || size == TAIL_MAX) {
			if (t->cli->options.json)
				print_json_compact(stdout, piece);
			else if (text)
				task_print_output(t->cli, text + from, len - from);
			return 0;
		}
		size = size * 8 < TAIL_MAX ? size * 8 : TAIL_MAX;
	}
}

static int need_one(const struct cli *cli)
{
	if (cli->n_args == 1)
		return 0;
	complain("task %s wants one ID", cli->sub->name);
	return EX_USAGE;
}

static int print_log(struct task_call *t, const char *typed, int64_t *ret_next)
{
	int64_t lines = t->cli->options.task.limit;
	int r = lines > 0 ? print_tail(t, typed, lines, ret_next) : print_all(t, typed, ret_next);

	fflush(stdout);
	return r;
}

int cmd_task_log(struct cli *cli)
{
	struct task_call t;
	int64_t next = 0;
	int status;
	int r = need_one(cli);

	if (r != 0)
		return r;
	r = task_open(&t, cli, cli->options.task.follow);
	if (r == 0)
		r = print_log(&t, cli->args[0], &next);
	if (r == 0 && cli->options.task.follow)
		r = task_follow(&t, cli->args[0], next, &status);
	task_close(&t);
	return r;
}

int cmd_task_follow(struct cli *cli)
{
	struct task_call t;
	int64_t next = 0;
	int status = 0;
	int r = need_one(cli);

	if (r != 0)
		return r;
	r = task_open(&t, cli, true);
	if (r == 0 && cli->options.task.limit > 0)
		r = print_log(&t, cli->args[0], &next);
	if (r == 0)
		r = task_follow(&t, cli->args[0], next, &status);
	task_close(&t);
	return r == 0 ? status : r;
}

/* All of them; the first that did not go well says how we exit. */
int cmd_task_wait(struct cli *cli)
{
	struct task_call t;
	int all = 0;
	int r;

	if (cli->n_args == 0) {
		complain("task wait wants one ID or more");
		return EX_USAGE;
	}
	r = task_open(&t, cli, true);
	for (int i = 0; r == 0 && i < cli->n_args; i++) {
		int status = 0;

		r = task_wait(&t, cli->args[i], &status);
		all = all ? all : status;
	}
	task_close(&t);
	if (r != 0)
		return r;
	return cli->options.task.any_status ? EX_OK : all;
}
