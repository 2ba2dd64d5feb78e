/* koine call and ping, and the table of the commands for any server. */
#include <time.h>

#include "base/cleanup.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
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

	printf("%s answered in %.3f ms", cli->address, ms);
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
	"  key:=JSON     any JSON: n:=3, tags:='[\"a\",\"b\"]'\n"                                  \
	"  {...} [...]   all parameters as one JSON text\n"                                        \
	"  -             the same, read from stdin\n"                                              \
	"With --framing gob any JSON will do (koine call Arith.Double 21), and {\"$uint\": 7} "    \
	"says\n"                                                                                   \
	"what JSON cannot: see koine(1).\n"

const struct command server_commands[] = {
	{"ping", "", "ask whether the server is there, and how fast",
	 "Other servers need not have the method: at nexus's port, koine tokens asks as much.\n",
	 cmd_ping, NO_ARGS},
	{"call", "METHOD [key=value | key:=JSON | JSON | -]...",
	 "call a method and print its result",
	 PARAMS_HELP "\nThe result is printed as indented JSON; with --json on one line.\n",
	 cmd_call, ARGS(1, INT_MAX, "wants a method: koine call METHOD [key=value]...")},
	{"discover", "[METHOD]", "list the methods, or show the fields of one",
	 "A parameter in brackets may be left out. With --json the OpenRPC document itself\n"
	 "(of one method: its part of it) is printed.\n",
	 cmd_discover, ARGS(0, 1, "takes one method at most")},
	{"wire", "METHOD [key=value | key:=JSON | JSON | -]...",
	 "call a method and show the bytes both ways",
	 PARAMS_HELP
	 "\nLines sent begin with \"> \", lines received with \"< \". What is no printable\n"
	 "ASCII is shown as \\xNN, and the token of --token-file as ***.\n",
	 cmd_wire, ARGS(1, INT_MAX, "wants a method: koine wire METHOD [key=value]...")},
	{NULL},
};
