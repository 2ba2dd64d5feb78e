/* koine send, koine cancel. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/chat/chat.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/value.h"

enum { CONTENT_MAX = 16 << 20 };

static int gather(const struct cli *cli, struct buf *all)
{
	int r = args_text(cli, all);

	if (all->err != 0) {
		complain("cannot use this text: %s", strerror(-all->err));
		return EX_DATAERR;
	}
	if (r == 0 && chat_is_blank(buf_text(all))) {
		complain("the question is empty");
		return EX_DATAERR;
	}
	return r;
}

int cmd_send(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf all;
	struct turn t;
	int r;

	buf_init(&all, CONTENT_MAX);
	r = gather(cli, &all) ?: turn_begin(&t, cli);
	if (r != 0)
		return r;
	r = turn_ask(&t, buf_text(&all));
	turn_end(&t);
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

static int call_cancel(struct cli *cli, bool as_number, struct koine_answer **ret_answer)
{
	const struct chat_options *o = cli->own;
	const char *id = cli->args[0];
	struct koine_json *j = params_new();

	if (as_number && j) {
		koine_json_key(j, "request_id");
		koine_json_raw(j, id, strlen(id));
	} else {
		params_add(j, "request_id", id);
	}
	params_add(j, "agent_id", o->conversation);
	return call_send(cli, "cancel", j, ret_answer);
}

static bool was_cancelled(const struct koine_answer *a)
{
	return member_flag(koine_answer_result(a), "cancelled");
}

static int print_cancelled(const struct cli *cli, const struct koine_answer *a)
{
	bool cancelled = was_cancelled(a);
	FILE *out = cancelled ? stdout : stderr;

	if (cli->options.json) {
		print_json_compact(stdout, koine_answer_result(a));
	} else {
		fputs(cancelled ? "Cancelled: " : "koine: no such request in progress: ", out);
		print_text(out, text_of(cli->args[0]));
		fputc('\n', out);
	}
	return cancelled ? EX_OK : EXIT_ERROR_ANSWER;
}

/* What looks like a number may have been sent as one; programs distinguish 7 from "7". */
int cmd_cancel(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = cli->args[0][0] ? call_cancel(cli, false, &a) : args_refuse(cli);

	if (r == 0 && !was_cancelled(a) && is_integer(cli->args[0])) {
		koine_answer_free(TAKE(a));
		r = call_cancel(cli, true, &a);
	}
	return r != 0 ? r : print_cancelled(cli, a);
}
