/* A task until its end: what it prints as it comes, or the end alone. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/task/task.h"

int task_exit_status(const struct koine_value *end)
{
	const struct koine_value *state = koine_value_get(end, "state");
	int64_t status = 0;

	if (value_is(state, "completed"))
		return EX_OK;
	if (value_is(state, "cancelled"))
		return EXIT_TASK_CANCELLED;
	if (koine_value_int(koine_value_get(end, "exit_status"), &status) && status > 0 &&
	    status < 256)
		return (int)status;
	return EXIT_ERROR_ANSWER;
}

/* On stderr, for those who watch. */
static void say_end(const struct cli *cli, const struct koine_value *end)
{
	size_t id_len = 0;
	size_t len = 0;
	const char *id = koine_value_text(koine_value_get(end, "id"), &id_len);
	const char *error = koine_value_text(koine_value_get(end, "error"), &len);

	if (cli->options.json) {
		print_json_compact(stdout, end);
		return;
	}
	if (value_is(koine_value_get(end, "state"), "completed"))
		return;
	fputs("koine: ", stderr);
	print_text(stderr, id ? id : "it", id ? id_len : 2);
	fputs(value_is(koine_value_get(end, "state"), "cancelled") ? " was cancelled" : " failed",
	      stderr);
	while (len > 0 && error[len - 1] == '\n')
		len--;
	if (error && len > 0) {
		fputs(": ", stderr);
		talk_print_why(error, len);
	}
	fputc('\n', stderr);
}

struct shown {
	const struct cli *cli;
	bool mid_line;
};

static void on_notification(void *arg, const char *method, size_t method_len,
			    const struct koine_value *whole)
{
	const struct koine_value *params = koine_value_get(whole, "params");
	struct shown *s = arg;
	const char *text;
	size_t len;

	if (method_len != 11 || memcmp(method, "task.output", 11) != 0)
		return;
	text = koine_value_text(koine_value_get(params, "text"), &len);
	if (s->cli->options.json)
		print_json_compact(stdout, params);
	else if (text && len > 0) {
		task_print_output(s->cli, text, len);
		s->mid_line = text[len - 1] != '\n';
	}
	fflush(stdout);
}

static int end_with(struct task_call *t, const struct koine_answer *a, int *ret_status)
{
	const struct koine_value *end = koine_answer_result(a);

	say_end(t->cli, end);
	fflush(stdout);
	*ret_status = task_exit_status(end);
	return 0;
}

int task_follow(struct task_call *t, const char *typed, int64_t offset, int *ret_status)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct shown s = {.cli = t->cli};
	char id[TASK_ID_MAX];
	struct koine_json *j = task_id(typed, id) ? task_params(t) : NULL;
	int r;

	if (!j)
		return EX_USAGE;
	koine_json_key(j, "id");
	koine_json_string(j, id);
	koine_json_key(j, "offset");
	koine_json_int(j, offset);
	koine_client_on_notification(t->client, on_notification, &s);
	r = task_send(t, "task.follow", j, &a);
	koine_client_on_notification(t->client, NULL, NULL);
	/* What is said next begins a line of its own. */
	if (s.mid_line && t->cli->terminal)
		fputs(t->cli->color ? "\033[0m\n" : "\n", stdout);
	fflush(stdout);
	return r == 0 ? end_with(t, a, ret_status) : r;
}

int task_wait(struct task_call *t, const char *typed, int *ret_status)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = task_send_id(t, "task.wait", "id", typed, &a);

	return r == 0 ? end_with(t, a, ret_status) : r;
}
