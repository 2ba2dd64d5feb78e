/* koine call, wire and ping, and the table of the commands for any server. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/server/server.h"

/* ---- wire: a call that shows its bytes ---- */

struct tap {
	bool out;    /* the direction of the current line */
	bool inside; /* it has begun and not ended */
	bool color;
	size_t matched; /* bytes of the current line that match `secret` */
	bool hides;     /* what follows them */
};

/* The line that contains a token starts with this. People show this output to others, so the
 * token is hidden. */
static const char secret[] = "Authorization: Bearer ";

static void begin_line(struct tap *tap, bool out)
{
	if (tap->color)
		fputs(out ? "\033[33m" : "\033[36m", stdout);
	fputs(out ? "> " : "< ", stdout);
	tap->out = out;
	tap->inside = true;
	tap->matched = 0;
	tap->hides = false;
}

static void end_line(struct tap *tap)
{
	if (!tap->inside)
		return;
	if (tap->color)
		fputs("\033[0m", stdout);
	fputc('\n', stdout);
	tap->inside = false;
}

/* True for a byte of the token; stars replace all of them. */
static bool hide(struct tap *tap, char byte)
{
	size_t len = strlen(secret);

	if (byte == '\r')
		tap->hides = false;
	if (tap->hides)
		return true;
	/* A line that has differed once cannot match any more. */
	if (tap->matched < len)
		tap->matched = byte == secret[tap->matched] ? tap->matched + 1 : len + 1;
	return false;
}

static void show_byte(struct tap *tap, char byte)
{
	if (hide(tap, byte))
		return;
	if (byte >= 0x20 && byte < 0x7f)
		fputc(byte, stdout);
	else
		printf("\\x%02x", (unsigned char)byte);
	if (tap->out && tap->matched == strlen(secret)) {
		fputs("***", stdout);
		tap->hides = true;
		tap->matched++;
	}
}

/* Bytes arrive in arbitrary pieces. A line is printed up to its end in the stream, or until the
 * other side begins. */
static void show_bytes(void *arg, bool out, const char *data, size_t len)
{
	struct tap *tap = arg;

	if (tap->out != out)
		end_line(tap);
	for (size_t i = 0; i < len; i++) {
		if (!tap->inside)
			begin_line(tap, out);
		if (data[i] == '\n')
			end_line(tap);
		else
			show_byte(tap, data[i]);
	}
	fflush(stdout);
}

static int cmd_wire(struct cli *cli)
{
	CLEANUP(freep) char *params = NULL;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct tap tap = {.color = cli->color};
	const char *method = args_take(cli);
	int r;

	talk_be_exact();
	r = args_params(cli, talk_is_gob(cli), &params);
	if (r == 0)
		r = talk_dial(cli, show_bytes, &tap, &cli->client);
	if (r != 0)
		return r;
	r = koine_client_call(cli->client, method, params, &a);
	end_line(&tap);
	fflush(stdout);
	if (r != 0)
		r = talk_failed(cli->client, method, r, a);
	/* The tap is a local variable, and is called until the connection ends. */
	talk_hang_up(cli);
	return r;
}

/* ---- call and ping ---- */

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
