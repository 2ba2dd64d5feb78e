/* koine task log, follow and wait: what a task prints, and how it ends. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/task/task.h"

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

	if (cli->options.json) {
		print_json_compact(stdout, end);
		return;
	}
	if (member_is(end, "state", "completed"))
		return;
	fputs("koine: ", stderr);
	print_text(stderr, id.data ? id : TEXT("it"));
	if (member_is(end, "state", "skipped"))
		fputs(" was skipped", stderr);
	else
		fputs(member_is(end, "state", "cancelled") ? " was cancelled" : " failed", stderr);
	talk_print_reason(member_text(end, "error"));
}

static void end_with(const struct cli *cli, const struct koine_answer *a, int *ret_status)
{
	say_end(cli, koine_answer_result(a));
	fflush(stdout);
	*ret_status = exit_status(koine_answer_result(a));
}

int task_wait(struct cli *cli, const char *typed, int *ret_status)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = task_send_id(cli, "task.wait", typed, &a);

	if (r == 0)
		end_with(cli, a, ret_status);
	return r;
}

/* ---- as it comes ---- */

struct output {
	const struct cli *cli;
	bool mid_line;
};

static void print_followed(struct output *o, struct text piece)
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
	struct output *o = arg;

	if (!text_is(name, "task.output"))
		return;
	if (o->cli->options.json)
		print_json_compact(stdout, params);
	else
		print_followed(o, member_text(params, "text"));
	fflush(stdout);
}

int task_follow(struct cli *cli, const char *typed, int64_t offset, int *ret_status)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct output o = {.cli = cli};
	struct koine_json *j = NULL;
	int r = talk_connect(cli) ?: task_params_id(cli, typed, &j);

	if (r != 0)
		return r;
	params_add_int(j, "offset", offset);
	koine_client_on_notification(cli->client, on_notification, &o);
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
	if (cli->options.json)
		print_json_compact(stdout, piece);
	else
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

/* The last n lines; everything if there are no more than that. */
static struct text tail_of(struct text text, int64_t n)
{
	size_t at = text.len;

	/* The newline that ends the last line does not start another. */
	if (at > 0 && text.data[at - 1] == '\n')
		at--;
	for (; at > 0; at--) {
		if (text.data[at - 1] == '\n' && --n == 0)
			break;
	}
	return text_skip(text, at);
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
		tail = tail_of(text, n);
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

int cmd_task_follow(struct cli *cli)
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
