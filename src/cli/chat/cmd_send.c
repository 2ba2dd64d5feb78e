/* koine send, koine cancel. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/chat/chat.h"

enum { CONTENT_MAX = 16 << 20 };

static int gather(const struct cli *cli, struct buf *all)
{
	int r;

	if (cli->n_args == 0) {
		complain("send wants a text: koine send TEXT..., or - for stdin");
		return EX_USAGE;
	}
	r = params_words(cli, all);
	if (all->err != 0) {
		complain("the text is too large: %s", strerror(-all->err));
		return EX_DATAERR;
	}
	if (r == 0 && chat_is_blank((struct text) {.data = all->data, .len = all->len})) {
		complain("there is nothing to ask: the text is empty");
		return EX_DATAERR;
	}
	return r;
}

int cmd_send(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf all;
	struct turn t = {0};
	int r;

	buf_init(&all, CONTENT_MAX);
	r = gather(cli, &all);
	if (r == 0)
		r = turn_dial(&t, cli);
	if (r == 0)
		r = turn_ask(&t, (struct text) {.data = all.data, .len = all.len});
	turn_done(&t);
	return r;
}

/* ---- cancel ---- */

static bool is_integer(const char *id)
{
	size_t sign = id[0] == '-';
	size_t digits = strspn(id + sign, "0123456789");

	return digits > 0 && digits < 19 && id[sign + digits] == '\0' &&
	       (id[sign] != '0' || digits == 1);
}

static int call_cancel(struct cli *cli, struct koine_client *c, bool as_number,
		       struct koine_answer **ret_answer)
{
	const char *id = cli->args[0];
	struct koine_json *j = NULL;
	const char *params;
	int r = EX_SOFTWARE;

	if (koine_json_new(&j) != 0) {
		complain("out of memory");
		return r;
	}
	koine_json_begin_object(j);
	koine_json_key(j, "request_id");
	if (as_number)
		koine_json_raw(j, id, strlen(id));
	else
		koine_json_string(j, id);
	if (cli->options.chat.conversation) {
		koine_json_key(j, "agent_id");
		koine_json_string(j, cli->options.chat.conversation);
	}
	koine_json_end_object(j);
	params = koine_json_text(j, NULL);
	if (params)
		r = talk_call(c, "cancel", params, ret_answer);
	else
		complain("out of memory");
	koine_json_free(j);
	return r;
}

static bool was_cancelled(const struct koine_answer *a)
{
	bool cancelled = false;

	koine_value_bool(koine_value_get(koine_answer_result(a), "cancelled"), &cancelled);
	return cancelled;
}

static int print_cancelled(const struct cli *cli, const struct koine_answer *a)
{
	bool cancelled = was_cancelled(a);
	FILE *out = cancelled ? stdout : stderr;

	if (cli->options.json) {
		print_json_compact(stdout, koine_answer_result(a));
	} else {
		fputs(cancelled ? "Cancelled: " : "koine: no such request is under way: ", out);
		print_text(out, cli->args[0], strlen(cli->args[0]));
		fputc('\n', out);
	}
	return cancelled ? EX_OK : EXIT_ERROR_ANSWER;
}

/* What looks like a number may have been sent as one; programs tell 7 from "7". */
int cmd_cancel(struct cli *cli)
{
	struct koine_client *c = NULL;
	struct koine_answer *a = NULL;
	int r;

	if (cli->n_args != 1 || cli->args[0][0] == '\0') {
		complain("cancel wants the ID of one request");
		return EX_USAGE;
	}
	r = talk_dial(cli, NULL, NULL, &c);
	if (r == 0)
		r = call_cancel(cli, c, false, &a);
	if (r == 0 && !was_cancelled(a) && is_integer(cli->args[0])) {
		koine_answer_free(a);
		a = NULL;
		r = call_cancel(cli, c, true, &a);
	}
	if (r == 0)
		r = print_cancelled(cli, a);
	koine_answer_free(a);
	koine_client_free(c);
	return r;
}
