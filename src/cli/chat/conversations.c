/* The commands about conversations and agents: their table, and what they print. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/chat/chat.h"
#include "cli/commands.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/list.h"
#include "cli/kit/talk.h"

/* ---- calls ---- */

bool chat_tell_missing(const struct koine_answer *a, const char *conversation)
{
	if (!text_begins(talk_error(a), TEXT("Agent not found")))
		return false;
	if (conversation)
		complain("conversation not found: '%s'", conversation);
	else
		complain("no conversation exists at this URL yet");
	return true;
}

/* Calls a method about a conversation; limit 0: the method has no pages. */
static int chat_call(struct cli *cli, const char *method, const struct chat_conversation *which,
		     int64_t offset, int64_t limit, struct koine_answer **ret_answer)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j;
	int r = talk_connect(cli);

	if (r != 0)
		return r;
	j = params_new();
	params_add(j, "agent_id", which->name);
	if (which->number > 0)
		params_add_int(j, "number", which->number);
	if (limit > 0) {
		params_add_int(j, "offset", offset);
		params_add_int(j, "limit", limit);
	}
	r = call_ask(cli, method, j, &a);
	if (r == KOINE_ERROR_ANSWER && which->number == 0 && chat_tell_missing(a, which->name))
		return EXIT_ERROR_ANSWER;
	if (r != 0)
		return talk_failed(cli->client, method, r, a);
	*ret_answer = TAKE(a);
	return 0;
}

/* ---- what one counts ---- */

static int print_tokens(const struct cli *cli, const struct koine_value *tokens)
{
	static const char *const rows[] = {"system", "tools",     "messages", "total",
					   "budget", "available", NULL};

	return list_print_counts(tokens, rows);
}

int chat_print_tokens(struct cli *cli, const char *conversation)
{
	const struct chat_conversation which = {.name = conversation};
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = chat_call(cli, "get_tokens", &which, 0, 0, &a);

	return r != 0 ? r : call_print_result(cli, a, NULL, print_tokens);
}

int chat_compact(struct cli *cli, const char *conversation)
{
	const struct chat_conversation which = {.name = conversation};
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *result;
	int r = chat_call(cli, "compact", &which, 0, 0, &a);

	if (r != 0)
		return r;
	result = koine_answer_result(a);
	if (member_flag(result, "compacted"))
		printf("%" PRId64 " tokens before compaction, %" PRId64 " after\n",
		       member_number(result, "tokens_before"),
		       member_number(result, "tokens_after"));
	else
		puts("nothing to compact");
	return 0;
}

/* ---- lists ---- */

/* Prints a member of the answer, which is a list. */
static int print_answer(const struct cli *cli, const struct koine_answer *a, const char *member,
			const struct cli_list *list)
{
	const struct koine_value *rows = koine_value_get(koine_answer_result(a), member);

	return print_if_json(cli, rows) ? 0 : list_print_as(cli, list, rows);
}

int chat_print_conversations(struct cli *cli, int64_t n)
{
	static const struct column columns[] = {
		{"MESSAGES", "message_count", NULL, 'r'},
		{"AGENT", "model"},
		{"CHANGED", "last_action_at", cell_time},
		{"NAME", "agent_id"},
		{NULL},
	};
	const struct cli_list list = {.columns = columns, .most = n, .says_more = true};
	const struct chat_conversation any = {0};
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = chat_call(cli, "list_agents", &any, 0, 0, &a);

	return r != 0 ? r : print_answer(cli, a, "agents", &list);
}

/* Those that were ended; they have numbers. */
static int chat_print_ended(struct cli *cli, int64_t n)
{
	static const struct column columns[] = {
		{"NUMBER", "number", NULL, 'r'},
		{"MESSAGES", "messages", NULL, 'r'},
		{"AGENT", "agent"},
		{"ENDED", "ended_at", cell_time},
		{"NAME", "conversation"},
		{NULL},
	};
	const struct cli_list list = {.columns = columns, .most = n, .says_more = true};
	const struct chat_conversation any = {0};
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int64_t limit = n + !cli->options.json;
	int r = chat_call(cli, "chat.past", &any, 0, limit < CHAT_PAGE_MAX ? limit : CHAT_PAGE_MAX,
			  &a);

	return r != 0 ? r : print_answer(cli, a, "conversations", &list);
}

static int print_purged(const struct cli *cli, const struct koine_value *result)
{
	int64_t n = member_number(result, "purged");

	printf("%" PRId64 " conversation%s deleted\n", n, n == 1 ? "" : "s");
	return 0;
}

/* Deletes one that was ended, or (0) all of them. */
static int chat_purge(struct cli *cli, int64_t number)
{
	struct koine_json *j = params_new();

	if (number > 0)
		params_add_int(j, "number", number);
	else
		params_add_bool(j, "all", true);
	return call_print(cli, "chat.purge", j, NULL, print_purged);
}

/* ---- what was said ---- */

static void print_member(const char *before, struct text text)
{
	if (text.len > 0)
		PRINT(stdout, text_of(before), text);
}

static void print_calls(const struct koine_value *calls)
{
	for (EACH(v, koine_value_first(calls))) {
		print_member("(calls ", member_text(v, "name"));
		fputs(")\n", stdout);
	}
}

/* "role, time" and the text below it. */
static void print_message(const struct cli *cli, const struct koine_value *m)
{
	struct text text = member_text(m, "content");
	char when[TIME_SHOWN];

	format_time(koine_value_get(m, "created_at"), when);
	print_styled(cli, style_bold, member_text(m, "role"));
	printf(", %s", when);
	/* A turn that did not end normally is marked. */
	if (!member_is(m, "state", "done"))
		print_member(", ", member_text(m, "state"));
	fputc('\n', stdout);
	if (text.len > 0) {
		print_text(stdout, text);
		fputs(text.data[text.len - 1] == '\n' ? "" : "\n", stdout);
	}
	print_calls(koine_value_get(m, "tool_calls"));
	fputc('\n', stdout);
}

/* Returns how many it printed. With --json the pages are one array. */
static int print_page(const struct cli *cli, const struct koine_answer *a, bool first,
		      int64_t *ret_n)
{
	const struct koine_value *m = koine_value_get(koine_answer_result(a), "messages");

	if (koine_value_kind(m) != KOINE_ARRAY)
		return fail_with(EX_PROTOCOL, "the server did not return messages");
	*ret_n = (int64_t)koine_value_count(m);
	if (cli->options.json) {
		print_json_items(stdout, m, first);
		return 0;
	}
	for (m = koine_value_first(m); m; m = koine_value_next(m))
		print_message(cli, m);
	return 0;
}

static int call_page(struct cli *cli, const struct chat_conversation *which, int64_t offset,
		     int64_t limit, struct koine_answer **ret_answer)
{
	return chat_call(cli, which->number > 0 ? "chat.read" : "get_messages", which, offset,
			 limit, ret_answer);
}

/* How many messages there are. */
static int count(struct cli *cli, const struct chat_conversation *which, int64_t *ret_total)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_page(cli, which, 0, 1, &a);

	*ret_total = member_number(koine_answer_result(a), "total");
	return r;
}

int chat_print_messages(struct cli *cli, const struct chat_conversation *which, int64_t n)
{
	bool first = true;
	int64_t total = 0;
	int64_t at;
	int r = count(cli, which, &total);

	/* Pages are counted from the oldest. */
	at = total > n ? total - n : 0;
	if (r == 0 && cli->options.json)
		fputc('[', stdout);
	while (r == 0 && at < total) {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		int64_t want = total - at > CHAT_PAGE_MAX ? CHAT_PAGE_MAX : total - at;
		int64_t got = 0;

		r = call_page(cli, which, at, want, &a) ?: print_page(cli, a, first, &got);
		if (got == 0)
			break;
		at += got;
		first = false;
	}
	if (r == 0 && cli->options.json)
		fputs("]\n", stdout);
	return r;
}

/* ---- agents: which there are, in which servers others work, and whether they answer ---- */

/* What the agent says, without what the row already shows: "agent 'NAME': " before it, or a
 * command's program, which is its model. */
static void cell_says(const struct cell *c)
{
	struct text says = member_text(c->row, "text");
	struct text model = member_text(c->row, "model");
	char before[CHAT_NAME_BYTES + 16];
	size_t n = (size_t)snprintf(before, sizeof(before),
				    "agent '%.*s': ", TEXT_ARGS(member_text(c->row, "name")));

	if (model.data && text_equal(says, model))
		says.len = 0;
	else if (n < sizeof(before) && n < says.len && text_begins(says, text_of(before)))
		says = text_skip(says, n);
	table_cell(c->table, says);
}

/* Those that koined is a client of, to answer what is asked there. */
static int print_servers(const struct cli *cli, const struct koine_value *servers)
{
	static const struct column columns[] = {
		{"SERVER", "name", NULL, 'n'},
		{"KIND", "kind", NULL, 'n'},
		{"OPEN", "open", NULL, 'r'},
		{"STATE", "state"},
		{"URL", "url", NULL, 'n'},
		{"SAYS", "text"},
		{NULL},
	};

	if (!koine_value_first(servers))
		return 0;
	fputc('\n', stdout);
	return list_print(cli, columns, servers);
}

static int print_agents(const struct cli *cli, const struct koine_value *agents)
{
	static const struct column columns[] = {
		{"", "default", .truth = {"", "*"}},
		{"NAME", "name", NULL, 'n'},
		{"KIND", "kind", NULL, 'n'},
		{"MODEL", "model", NULL, 'n'},
		{"MS", "ms", NULL, 'r'},
		{"OK", "ok", .truth = {"no", "ok"}},
		{"SAYS", NULL, cell_says},
		{NULL},
	};

	return list_print(cli, columns, agents);
}

static int call_agents(struct cli *cli, struct koine_answer **ret_answer)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = talk_connect(cli);

	if (r != 0)
		return r;
	r = koine_client_call(cli->client, "chat.agents", NULL, &a);
	if (r == KOINE_ERROR_ANSWER && koine_answer_error_code(a) == CODE_METHOD_NOT_FOUND)
		return fail_with(
			EXIT_ERROR_ANSWER,
			"this server cannot list agents; connect to koine's own socket (--socket)");
	if (r != 0)
		return talk_failed(cli->client, "chat.agents", r, a);
	*ret_answer = TAKE(a);
	return 0;
}

int chat_find_agent(struct cli *cli, const char *name)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_agents(cli, &a);

	if (r != 0 || member_find(member_first(koine_answer_result(a), "agents"), "name", name))
		return r;
	return fail_with(EXIT_ERROR_ANSWER, "agent not found: '%s' (/agents lists the agents)",
			 name);
}

/* What other servers do not tell is left out. */
static int call_servers(struct cli *cli, struct koine_answer **ret_answer)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = koine_client_call(cli->client, "agent.server.list", NULL, &a);

	if (r < 0)
		return talk_failed(cli->client, "agent.server.list", r, a);
	*ret_answer = r == 0 ? TAKE(a) : NULL;
	return 0;
}

/* Both answers as one array. */
static int print_both(const struct koine_value *agents, const struct koine_value *servers)
{
	fputc('[', stdout);
	print_json_items(stdout, agents, true);
	print_json_items(stdout, servers, !koine_value_first(agents));
	fputs("]\n", stdout);
	return 0;
}

int chat_print_agents(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	CLEANUP(answer_freep) struct koine_answer *s = NULL;
	const struct koine_value *agents;
	const struct koine_value *servers;
	int r = call_agents(cli, &a);

	r = r != 0 ? r : call_servers(cli, &s);
	if (r != 0)
		return r;
	agents = koine_value_get(koine_answer_result(a), "agents");
	servers = s ? koine_value_get(koine_answer_result(s), "servers") : NULL;
	if (cli->options.json)
		return print_both(agents, servers);
	r = print_agents(cli, agents);
	return r != 0 ? r : print_servers(cli, servers);
}

/* The commands about conversations: options, the table, and send, cancel, messages and purge. */

/* ---- the options ---- */

#define AT(member) OPTION_AT(struct chat_options, member)

bool chat_read_count(const char *text, int64_t *ret_n)
{
	return option_read_int(text, ret_n) && *ret_n >= 1;
}

bool chat_is_blank(struct text t)
{
	return text_trim(t, " \t\r\n").len == 0;
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
	{"--agent", "-a", "NAME", "use this agent (default: the conversation's " \
				  "agent)", option_word, AT(agent), \
		.completes = COMPLETES_AGENT}
#define WHO \
	{"--user", NULL, "USER", "let the agent use the memories of USER (default: $ASH_USER_ID)", option_name, \
		AT(user), .env = "ASH_USER_ID"}, \
	{"--chat", NULL, "CHAT", "also let the agent use the memories of CHAT (default: $ASH_CHAT_ID)", \
		option_name, AT(chat), .env = "ASH_CHAT_ID"}
#define LIMIT(help) \
	{"--limit", "-n", "N", help, option_number, AT(limit), "a positive integer", 1}
/* clang-format on */

static const struct option chat_options[] = {
	CONVERSATION("use the conversation NAME (default: \"default\")"), AGENT, WHO, {NULL}};

static const struct option send_options[] = {
	CONVERSATION("use the conversation NAME (default: \"default\")"),
	AGENT,
	{"--request-id", "-r", "ID",
	 "set the request id for `koine cancel` (default: a generated id)", option_word,
	 AT(request_id)},
	{"--no-stream", NULL, NULL, "wait for the complete response, then print it", option_flag,
	 AT(no_stream)},
	WHO,
	{NULL},
};

static const struct option tokens_options[] = {
	CONVERSATION("use the conversation NAME (default: \"default\")"), {NULL}};

static const struct option cancel_options[] = {
	CONVERSATION("look for the request only in the conversation NAME (default: all "
		     "conversations)"),
	{NULL}};

static const struct option show_options[] = {
	CONVERSATION("use the conversation NAME (default: \"default\")"),
	LIMIT("show the last N messages (default: 20)"),
	{"--ended", NULL, "NUMBER", "show the ended conversation NUMBER", option_number, AT(number),
	 "a positive integer", 1, .completes = COMPLETES_ENDED},
	{NULL},
};

static const struct option list_options[] = {
	LIMIT("show at most N conversations (default: 20)"),
	{"--ended", NULL, NULL, "list ended conversations, most recently ended first", option_flag,
	 AT(ended)},
	{NULL},
};

static const struct option delete_options[] = {
	{"--all", NULL, NULL, "permanently delete all ended conversations", option_flag, AT(all)},
	{NULL},
};

/* ---- send ---- */

enum { CONTENT_MAX = 16 << 20 };

static int gather(const struct cli *cli, struct buf *all)
{
	int r = args_text(cli, all);

	if (all->err != 0)
		return fail_with(EX_DATAERR, "invalid text: %s", strerror(-all->err));
	if (r == 0 && chat_is_blank(buf_text(all)))
		return fail_with(EX_DATAERR, "the question is empty");
	return r;
}

static int cmd_send(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf all;
	struct cli_turn t;
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

	if (as_number)
		params_add_raw(j, "request_id", text_of(id));
	else
		params_add(j, "request_id", id);
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

	if (!print_if_json(cli, koine_answer_result(a)))
		PRINT(out,
		      cancelled ? TEXT("Cancelled: ")
				: TEXT("koine: no such request in progress: "),
		      text_of(cli->args[0]), TEXT("\n"));
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

static int check_numbers(const struct cli *cli)
{
	const struct chat_options *o = cli->own;
	int64_t number;

	if ((cli->n_args == 0) != o->all)
		return args_refuse(cli);
	for (int i = 0; i < cli->n_args; i++) {
		if (!chat_read_count(cli->args[i], &number))
			return fail_with(
				EX_USAGE,
				"invalid conversation number '%s': expected a positive integer "
				"(koine conversations --ended lists the numbers)",
				cli->args[i]);
	}
	return 0;
}

static int cmd_delete(struct cli *cli)
{
	const struct chat_options *o = cli->own;
	int64_t number = 0;
	int r = check_numbers(cli);

	if (r == 0 && o->all)
		r = chat_purge(cli, 0);
	for (int i = 0; r == 0 && i < cli->n_args; i++) {
		(void)chat_read_count(cli->args[i], &number);
		r = chat_purge(cli, number);
	}
	return r;
}

static int cmd_list(struct cli *cli)
{
	const struct chat_options *o = cli->own;
	int64_t n = o->limit ? o->limit : ROWS;

	return o->ended ? chat_print_ended(cli, n) : chat_print_conversations(cli, n);
}

static int cmd_show(struct cli *cli)
{
	const struct chat_options *o = cli->own;
	const struct chat_conversation which = {
		.name = cli->n_args > 0 ? cli->args[0] : o->conversation,
		.number = o->number,
	};

	if (which.number && which.name)
		return fail_with(EX_USAGE,
				 "conversation show takes a NAME or --ended NUMBER, not both");
	if (cli->n_args == 1 && o->conversation)
		return fail_with(EX_USAGE,
				 "conversation show takes a NAME or --conversation, not both");
	return chat_print_messages(cli, &which, o->limit ? o->limit : ROWS);
}

static const struct command agent_subs[] = {
	{"list", "", "List configured agents and check that they respond",
	 "* marks the default agent. An agent must respond within ten seconds. The "
	 "list also shows the agent servers ([agent-server NAME]) with their pending "
	 "requests.\n",
	 chat_print_agents, NO_ARGS, .examples = {"koine agent list", "koine agent list --json"}},
	{NULL},
};

static const struct command conversation_subs[] = {
	{"list", "", "List conversations, most recently changed first",
	 "koined keeps ended conversations. --ended lists them with their numbers.\n", cmd_list,
	 NULL, list_options, NO_ARGS,
	 .examples = {"koine conversation list", "koine conversation list --ended"}},
	{"show", "[NAME]", "Show the last messages of a conversation", NULL, cmd_show, NULL,
	 show_options, ARGS(0, 1, "takes at most one NAME"),
	 .examples = {"koine conversation show", "koine conversation show release -n 5",
		      "koine conversation show --ended 12"}},
	{"delete", "NUMBER... | --all", "Delete ended conversations permanently",
	 "`koine conversation list --ended` lists the numbers.\n", cmd_delete, NULL, delete_options,
	 ARGS(0, INT_MAX,
	      "requires --all or at least one NUMBER (koine conversations --ended lists "
	      "the numbers)"),
	 .completes = COMPLETES_ENDED,
	 .examples = {"koine conversation delete 12", "koine conversation delete --all"}},
	{"tokens", "", "Show how many tokens a conversation uses, and its limit", NULL, cmd_tokens,
	 NULL, tokens_options, NO_ARGS,
	 .examples = {"koine conversation tokens -c release", "koine conversation tokens --json"}},
	{NULL},
};

#define OWN sizeof(struct chat_options)

const struct command chat_commands[] = {
	{"chat", "", "Chat with an agent",
	 "On a terminal, koine shows a prompt with history and line editing. Ctrl-C "
	 "cancels the current response and keeps the text received so far; at the "
	 "prompt, it clears the line. Ctrl-D quits. /help lists more commands. If "
	 "stdin or stdout is not a terminal, each input line is a question, and "
	 "stdout contains only the responses.\n",
	 cmd_chat, NULL, chat_options, OWN,
	 ARGS(0, 0, "takes no arguments; for a single question use koine send TEXT"),
	 .examples = {"koine chat", "koine chat --agent claude --conversation release"}},
	{"send", "TEXT... | -", "Ask an agent one question and stream its response",
	 "Use - to read the question from stdin. Ctrl-C cancels the response; the text received so "
	 "far stays in the conversation.\n",
	 cmd_send, NULL, send_options, OWN, ARGS(1, INT_MAX, "requires TEXT, or - for stdin"),
	 .examples = {"koine send \"What did we decide about the cache?\"",
		      "git diff | koine send --agent claude -"}},
	{"cancel", "ID", "Cancel a request to an agent",
	 "ID is the id that you set with `koine send --request-id`. If ID is a "
	 "number, koine looks for a string id first, then for an integer id.\n",
	 cmd_cancel, NULL, cancel_options, OWN, ARGS(1, 1, "requires one request ID"),
	 .examples = {"koine cancel r1", "koine cancel r1 -c release"}},
	{"agent", "COMMAND", "List agents", NULL, NULL, agent_subs,
	 .examples = {"koine agent list", "koine agent list --json"}},
	{"conversation", "COMMAND [ARGUMENT]...", "List, show and delete conversations", NULL, NULL,
	 conversation_subs, NULL, OWN, .completes = COMPLETES_CONVERSATION,
	 .examples = {"koine conversation list", "koine conversation show release"}},
	{NULL},
};
