/* The commands about conversations: options, the table, and send, cancel, messages and purge. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/chat/chat.h"
#include "cli/commands.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/value.h"

/* ---- the options ---- */

#define AT(member) OPTION_AT(struct chat_options, member)

static void chat_options_init(void *own)
{
	struct chat_options *o = own;

	o->user = option_from_environment("ASH_USER_ID");
	o->chat = option_from_environment("ASH_CHAT_ID");
}

bool chat_read_count(const char *text, int64_t *ret_n)
{
	return option_read_int(text, ret_n) && *ret_n >= 1;
}

bool chat_is_blank(struct text t)
{
	size_t i = 0;

	while (i < t.len && t.data[i] != '\0' && strchr(" \t\r\n", t.data[i]))
		i++;
	return i == t.len;
}

bool chat_check_name(const char *name)
{
	static const char fit[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789._-:@";
	size_t len = strlen(name);

	if (len > 0 && len <= CHAT_NAME_BYTES && strspn(name, fit) == len &&
	    strspn(name, ".") != len)
		return true;
	complain("invalid conversation name '%s': use 1 to %d letters, digits and . _ - : @", name,
		 CHAT_NAME_BYTES);
	return false;
}

/* clang-format off */
#define CONVERSATION(help) \
	{"--conversation", "-c", "NAME", help, option_word, AT(conversation), \
		.completes = COMPLETES_CONVERSATION}
#define AGENT \
	{"--agent", "-a", "NAME", "use this agent; default: the conversation's " \
				  "agent", option_word, AT(agent), \
		.completes = COMPLETES_AGENT}
#define WHO \
	{"--user", NULL, "USER", "let the agent quote memories of USER; default: ASH_USER_ID", option_name, \
		AT(user)}, \
	{"--chat", NULL, "CHAT", "also let the agent quote memories of CHAT; default: ASH_CHAT_ID", \
		option_name, AT(chat)}
#define LIMIT(help) \
	{"--limit", "-n", "N", help, option_number, AT(limit), "a whole number above 0", 1}
/* clang-format on */

static const struct option chat_options[] = {
	CONVERSATION("select a conversation; default: \"default\""), AGENT, WHO, {NULL}};

static const struct option send_options[] = {
	CONVERSATION("select a conversation; default: \"default\""),
	AGENT,
	{"--request-id", "-r", "ID",
	 "set the request id for `koine cancel`; default: a generated id", option_word,
	 AT(request_id)},
	{"--no-stream", NULL, NULL, "wait for the complete response, then print it", option_flag,
	 AT(no_stream)},
	WHO,
	{NULL},
};

static const struct option tokens_options[] = {
	CONVERSATION("select a conversation; default: \"default\""), {NULL}};

static const struct option cancel_options[] = {
	CONVERSATION("search only this conversation for the request; default: all conversations"),
	{NULL}};

static const struct option messages_options[] = {
	CONVERSATION("select a conversation; default: \"default\""),
	LIMIT("show the last N messages; default 20"),
	{"--ended", NULL, "NUMBER", "show the ended conversation with this number", option_number,
	 AT(number), "a whole number above 0", 1, .completes = COMPLETES_ENDED},
	{NULL},
};

static const struct option conversations_options[] = {
	LIMIT("show at most N conversations; default 20"),
	{"--ended", NULL, NULL, "list ended conversations, most recently ended first", option_flag,
	 AT(ended)},
	{"--all", NULL, NULL, "permanently delete all ended conversations", option_flag, AT(all)},
	{NULL},
};

/* ---- send ---- */

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

static int cmd_send(struct cli *cli)
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
static int cmd_cancel(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = cli->args[0][0] ? call_cancel(cli, false, &a) : args_refuse(cli);

	if (r == 0 && !was_cancelled(a) && is_integer(cli->args[0])) {
		koine_answer_free(TAKE(a));
		r = call_cancel(cli, true, &a);
	}
	return r != 0 ? r : print_cancelled(cli, a);
}

/* ---- the others ---- */

enum { ROWS = 20 };

static int cmd_tokens(struct cli *cli)
{
	const struct chat_options *o = cli->own;
	return chat_print_tokens(cli, o->conversation);
}

/* Either numbers or --all, but not both. */
static int check_purge(const struct cli *cli)
{
	const struct chat_options *o = cli->own;
	int64_t number;

	if ((cli->n_args == 1) != o->all) {
		complain("conversations purge requires --all or NUMBERs (koine conversations "
			 "--ended lists the numbers)");
		return EX_USAGE;
	}
	for (int i = 1; i < cli->n_args; i++) {
		if (!chat_read_count(cli->args[i], &number)) {
			complain(
				"invalid conversation number '%s': see koine conversations --ended",
				cli->args[i]);
			return EX_USAGE;
		}
	}
	return 0;
}

static int purge(struct cli *cli)
{
	const struct chat_options *o = cli->own;
	int64_t number = 0;
	int r = check_purge(cli);

	if (r == 0 && o->all)
		r = chat_purge(cli, 0);
	for (int i = 1; r == 0 && i < cli->n_args; i++) {
		(void)chat_read_count(cli->args[i], &number);
		r = chat_purge(cli, number);
	}
	return r;
}

static int cmd_conversations(struct cli *cli)
{
	const struct chat_options *o = cli->own;
	int64_t n = o->limit ? o->limit : ROWS;

	if (cli->n_args > 0)
		return strcmp(cli->args[0], "purge") == 0 ? purge(cli) : args_refuse(cli);
	return o->ended ? chat_print_ended(cli, n) : chat_print_conversations(cli, n);
}

static int cmd_messages(struct cli *cli)
{
	const struct chat_options *o = cli->own;
	const struct conversation which = {
		.name = cli->n_args > 0 ? cli->args[0] : o->conversation,
		.number = o->number,
	};

	if (which.number && which.name) {
		complain("messages takes a NAME or --ended NUMBER, not both");
		return EX_USAGE;
	}
	if (cli->n_args == 1 && o->conversation) {
		complain("messages takes a NAME or --conversation, not both");
		return EX_USAGE;
	}
	return chat_print_messages(cli, &which, o->limit ? o->limit : ROWS);
}

#define OWN sizeof(struct chat_options), chat_options_init

const struct command chat_commands[] = {
	{"chat", "", "Chat with an agent",
	 "On a terminal, koine shows a prompt with history and line editing. Ctrl-C cancels an "
	 "answer and keeps the text received so far, or clears the line; Ctrl-D quits. /help lists "
	 "more commands. In a pipe, every input line is a question, and stdout contains only the "
	 "answers.\n",
	 cmd_chat, NULL, chat_options, OWN,
	 ARGS(0, 0, "takes no arguments; for a single question use koine send TEXT"),
	 .examples = {"koine chat", "koine chat --agent claude --conversation release"}},
	{"send", "TEXT... | -", "Ask an agent one question and stream its answer",
	 "Use - to read the question from stdin. Ctrl-C cancels the answer; the text received so "
	 "far stays in the conversation.\n",
	 cmd_send, NULL, send_options, OWN, ARGS(1, INT_MAX, "requires TEXT, or - for stdin"),
	 .examples = {"koine send \"What did we decide about the cache?\"",
		      "git diff | koine send --agent claude -"}},
	{"cancel", "ID", "Cancel a request to an agent",
	 "ID is the id that you set with `koine send --request-id`. If ID is a number, koine tries "
	 "it as a string first, then as an integer.\n",
	 cmd_cancel, NULL, cancel_options, OWN, ARGS(1, 1, "requires one request ID"),
	 .examples = {"koine cancel r1", "koine cancel r1 -c release"}},
	{"agents", "", "List configured agents and check that they respond",
	 "* marks the default agent. Each agent has ten seconds to respond. After the agents, the "
	 "list shows the agent servers ([agent-server NAME]) and the number of pending requests of "
	 "each.\n",
	 chat_print_agents, NO_ARGS, .examples = {"koine agents", "koine agents --json"}},
	{"conversations", "[purge NUMBER...]", "List conversations, most recently changed first",
	 "koined keeps ended conversations: --ended lists them with their numbers, `koine messages "
	 "--ended NUMBER` shows one, and `koine conversations purge NUMBER` deletes it "
	 "permanently.\n",
	 cmd_conversations, NULL, conversations_options, OWN,
	 ARGS(0, INT_MAX, "takes no arguments"), .completes = COMPLETES_ENDED,
	 .examples = {"koine conversations", "koine conversations --ended",
		      "koine conversations purge 12"}},
	{"messages", "[NAME]", "Show the last messages of a conversation", NULL, cmd_messages, NULL,
	 messages_options, OWN, ARGS(0, 1, "takes at most one NAME"),
	 .completes = COMPLETES_CONVERSATION,
	 .examples = {"koine messages", "koine messages release -n 5"}},
	{"tokens", "", "Show the token count and budget of a conversation", NULL, cmd_tokens, NULL,
	 tokens_options, OWN, NO_ARGS,
	 .examples = {"koine tokens -c release", "koine tokens --json"}},
	{NULL},
};
