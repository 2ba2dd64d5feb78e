/* koine call and ping, and the table of the commands for any server. */
#include <time.h>

#include "base/cleanup.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/commands.h"
#include "cli/server/server.h"

static int print_result(const struct cli *cli, const struct koine_value *result)
{
	print_json_pretty(stdout, result, cli->color);
	return 0;
}

static int cmd_call(struct cli *cli)
{
	CLEANUP(freep) char *params = NULL;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const char *method = args_take(cli);
	int r;

	talk_be_exact();
	r = args_params(cli, talk_is_gob(cli), &params) ?: call_plain(cli, method, params, &a);
	return r != 0 ? r : call_print_result(cli, a, NULL, print_result);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void print_pong(const struct cli *cli, const struct koine_value *result, double ms)
{
	struct text timestamp = member_text(result, "timestamp");

	printf("%s responded in %.3f ms", cli->address, ms);
	if (timestamp.data) {
		fputs(", timestamp ", stdout);
		print_text(stdout, timestamp);
	}
	fputc('\n', stdout);
}

/* The time is that of the call alone, without connecting. */
static int cmd_ping(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	double begin;
	int r = talk_connect(cli);

	if (r != 0)
		return r;
	begin = now_ms();
	r = call_plain(cli, "ping", NULL, &a);
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else if (r == 0)
		print_pong(cli, koine_answer_result(a), now_ms() - begin);
	return r;
}

#define PARAMS_HELP                                                                                \
	"Parameters:\n"                                                                            \
	"  key=value     a string\n"                                                               \
	"  key:=JSON     a JSON value: n:=3, tags:='[\"a\",\"b\"]'\n"                              \
	"  {...} [...]   all parameters as JSON\n"                                                 \
	"  -             all parameters as JSON, read from stdin\n"                                \
	"With --framing gob the parameter may be any JSON value: koine call Arith.Double 21. "     \
	"See koine(1).\n"

static const struct option discover_options[] = {
	{"--markdown", NULL, NULL, "print a reference in Markdown, with koined's MCP tools",
	 option_flag, OPTION_AT(struct server_options, markdown)},
	{NULL},
};

const struct command server_commands[] = {
	{"ping", "", "Check that the server responds, and measure the response time",
	 "Other servers may not support ping. At the port of nexus, use `koine tokens` instead.\n",
	 cmd_ping, NO_ARGS,
	 .examples = {"koine ping", "koine ping --url http://127.0.0.1:8080/rpc"}},
	{"call", "METHOD [key=value | key:=JSON | JSON | -]...",
	 "Call a method and print its result",
	 PARAMS_HELP "\nThe result is indented JSON; with --json it is one line.\n", cmd_call,
	 ARGS(1, INT_MAX, "requires a method: koine call METHOD [key=value]..."),
	 .examples = {"koine call memory.search query=oslo limit:=3",
		      "koine call rpc.discover --url http://127.0.0.1:8080/rpc"}},
	{"discover", "[METHOD]", "List the methods of a server, or show one",
	 "Parameters in brackets are optional. With --json, koine prints the OpenRPC document, or "
	 "only its description of METHOD.\n",
	 cmd_discover, NULL, discover_options, sizeof(struct server_options),
	 ARGS(0, 1, "takes at most one method"),
	 .examples = {"koine discover", "koine discover task.add"}},
	{"wire", "METHOD [key=value | key:=JSON | JSON | -]...",
	 "Call a method and show the bytes sent and received",
	 PARAMS_HELP
	 "\nSent lines begin with \"> \", received lines with \"< \". Bytes that are not "
	 "printable ASCII are shown as \\xNN, and the token of --token-file is shown as ***.\n",
	 cmd_wire, ARGS(1, INT_MAX, "requires a method: koine wire METHOD [key=value]..."),
	 .examples = {"koine wire ping", "koine wire memory.search query=oslo"}},
	{NULL},
};
