#include "cli/connect/door.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/kit/call.h"
#include "cli/kit/print.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

/* "127.0.0.1:8766"; {NULL, 0}: no port. One that a service manager has handed over is a "tcp:". */
static struct text port_of(const struct koine_value *listener)
{
	struct text address = member_string(listener, "address");

	if (text_begins(address, TEXT("http:")))
		return text_skip(address, strlen("http:"));
	if (text_begins(address, TEXT("tcp:")) && member_flag(listener, "handed_over"))
		return text_skip(address, strlen("tcp:"));
	return (struct text) {0};
}

/* NULL: none that speaks MCP over HTTP. */
static const struct koine_value *find_listener(const struct koine_value *status)
{
	const struct koine_value *l = member_first(status, "listeners");

	while (l && !(member_is(l, "dialect", "mcp") && port_of(l).data))
		l = koine_value_next(l);
	return l;
}

/* The file must be private, so only its owner gets this far. */
static int read_token(const struct koine_value *listener, struct door *ret, struct why *why)
{
	char file[PATH_MAX];

	member_copy(listener, "token_file", file, sizeof(file));
	ret->token[0] = '\0';
	return file[0] ? file_read_secret(file, "token", ret->token, sizeof(ret->token), why) : 0;
}

static int read_door(const struct koine_value *status, struct door *ret, struct why *why)
{
	const struct koine_value *l = find_listener(status);
	struct text address = port_of(l);

	if (!l)
		return refuse(
			why, REFUSE_UNAVAILABLE,
			"koined has no port for MCP: set [listen] mcp = on and restart koined");
	ret->held = member_flag(l, "handed_over");
	snprintf(ret->url, sizeof(ret->url), "http://%.*s/hook", (int)text_cut(address, 120).len,
		 address.data);
	return read_token(l, ret, why);
}

static int ask(struct cli *cli, struct door *ret, struct why *why)
{
	CLEANUP(client_freep) struct koine_client *c = NULL;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char error[TALK_ERROR] = "";

	if (talk_try(cli, &c, error) != 0)
		return refuse(why, REFUSE_UNAVAILABLE, "%.190s", error);
	if (koine_client_call(c, "daemon.status", NULL, &a) != 0)
		return refuse(why, REFUSE_UNAVAILABLE, "koined does not report its addresses");
	return read_door(koine_answer_result(a), ret, why);
}

int door_find(struct cli *cli, bool quiet, struct door *ret)
{
	struct why why = {0};
	int r = ask(cli, ret, &why);

	if (r != 0 && !quiet)
		complain("%s", r < 0 ? strerror(-r) : why.text);
	return r != 0 ? EX_UNAVAILABLE : 0;
}
