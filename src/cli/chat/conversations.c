/* Current and ended conversations, the token counts of a conversation, and its messages. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/chat/chat.h"
#include "cli/kit/call.h"
#include "cli/kit/list.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

/* ---- calls ---- */

bool chat_tell_missing(const struct koine_answer *a, const char *conversation)
{
	if (!text_begins(talk_error(a), TEXT("Agent not found")))
		return false;
	if (conversation)
		complain("conversation not found: '%s'", conversation);
	else
		complain("no conversation at this address yet");
	return true;
}

/* Calls a method about a conversation; limit 0: the method has no pages. */
static int chat_call(struct cli *cli, const char *method, const struct conversation *which,
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
	const struct conversation which = {.name = conversation};
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = chat_call(cli, "get_tokens", &which, 0, 0, &a);

	return r != 0 ? r : call_print_result(cli, a, NULL, print_tokens);
}

int chat_compact(struct cli *cli, const char *conversation)
{
	const struct conversation which = {.name = conversation};
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

/* Prints the whole answer with --json, otherwise a member of it as a list. */
static int print_answer(const struct cli *cli, const struct koine_answer *a, const char *member,
			const struct list *list)
{
	if (!cli->options.json)
		return list_print_as(cli, list, koine_value_get(koine_answer_result(a), member));
	print_json_compact(stdout, koine_answer_result(a));
	return 0;
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
	const struct list list = {.columns = columns, .most = n, .says_more = true};
	const struct conversation any = {0};
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = chat_call(cli, "list_agents", &any, 0, 0, &a);

	return r != 0 ? r : print_answer(cli, a, "agents", &list);
}

int chat_print_ended(struct cli *cli, int64_t n)
{
	static const struct column columns[] = {
		{"NUMBER", "number", NULL, 'r'},
		{"MESSAGES", "messages", NULL, 'r'},
		{"AGENT", "agent"},
		{"ENDED", "ended_at", cell_time},
		{"NAME", "conversation"},
		{NULL},
	};
	const struct list list = {.columns = columns, .most = n, .says_more = true};
	const struct conversation any = {0};
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int64_t limit = n + !cli->options.json;
	int r = chat_call(cli, "chat.past", &any, 0, limit < CHAT_PAGE_MAX ? limit : CHAT_PAGE_MAX,
			  &a);

	return r != 0 ? r : print_answer(cli, a, "conversations", &list);
}

static int print_purged(const struct cli *cli, const struct koine_value *result)
{
	int64_t n = member_number(result, "purged");

	printf("%" PRId64 " conversation%s purged\n", n, n == 1 ? "" : "s");
	return 0;
}

int chat_purge(struct cli *cli, int64_t number)
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
	if (text.len == 0)
		return;
	fputs(before, stdout);
	print_text(stdout, text);
}

static void print_calls(const struct koine_value *calls)
{
	for (const struct koine_value *v = koine_value_first(calls); v; v = koine_value_next(v)) {
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
	print_style(cli, style_bold);
	print_member("", member_text(m, "role"));
	print_plain(cli);
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

/* Returns how many it printed. */
static int print_page(const struct cli *cli, const struct koine_answer *a, int64_t *ret_n)
{
	const struct koine_value *m = koine_value_get(koine_answer_result(a), "messages");

	if (koine_value_kind(m) != KOINE_ARRAY) {
		complain("the server did not return messages");
		return EX_PROTOCOL;
	}
	*ret_n = (int64_t)koine_value_count(m);
	if (cli->options.json) {
		print_json_compact(stdout, koine_answer_result(a));
		return 0;
	}
	for (m = koine_value_first(m); m; m = koine_value_next(m))
		print_message(cli, m);
	return 0;
}

static int call_page(struct cli *cli, const struct conversation *which, int64_t offset,
		     int64_t limit, struct koine_answer **ret_answer)
{
	return chat_call(cli, which->number > 0 ? "chat.read" : "get_messages", which, offset,
			 limit, ret_answer);
}

/* How many messages there are. */
static int count(struct cli *cli, const struct conversation *which, int64_t *ret_total)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_page(cli, which, 0, 1, &a);

	*ret_total = member_number(koine_answer_result(a), "total");
	return r;
}

int chat_print_messages(struct cli *cli, const struct conversation *which, int64_t n)
{
	int64_t total = 0;
	int64_t at;
	int r = count(cli, which, &total);

	/* Pages are counted from the oldest. */
	at = total > n ? total - n : 0;
	/* With --json even an empty page is printed. */
	if (cli->options.json && at == total)
		total = at + 1;
	while (r == 0 && at < total) {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		int64_t want = total - at > CHAT_PAGE_MAX ? CHAT_PAGE_MAX : total - at;
		int64_t got = 0;

		r = call_page(cli, which, at, want, &a) ?: print_page(cli, a, &got);
		if (got == 0)
			break;
		at += got;
	}
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

static void cell_default(const struct cell *c)
{
	table_cell_str(c->table, member_flag(c->row, c->member) ? "*" : "");
}

static void cell_ok(const struct cell *c)
{
	table_cell_str(c->table, member_flag(c->row, c->member) ? "ok" : "no");
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
		{"", "default", cell_default}, {"NAME", "name", NULL, 'n'},
		{"KIND", "kind", NULL, 'n'},   {"MODEL", "model", NULL, 'n'},
		{"MS", "ms", NULL, 'r'},       {"OK", "ok", cell_ok},
		{"SAYS", NULL, cell_says},     {NULL},
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
	if (r == KOINE_ERROR_ANSWER && koine_answer_error_code(a) == CODE_METHOD_NOT_FOUND) {
		complain("this server does not list agents; use koine's own socket");
		return EXIT_ERROR_ANSWER;
	}
	if (r != 0)
		return talk_failed(cli->client, "chat.agents", r, a);
	*ret_answer = TAKE(a);
	return 0;
}

int chat_find_agent(struct cli *cli, const char *name)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *agent;
	int r = call_agents(cli, &a);

	if (r != 0)
		return r;
	agent = member_first(koine_answer_result(a), "agents");
	for (; agent; agent = koine_value_next(agent)) {
		if (member_is(agent, "name", name))
			return 0;
	}
	complain("agent not found: '%s' (/agents lists the agents)", name);
	return EXIT_ERROR_ANSWER;
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

/* Both answers as one object. */
static int print_both(const struct koine_value *agents, const struct koine_value *servers)
{
	CLEANUP(json_freep) struct koine_json *j = params_new();
	const char *text;

	if (j && agents) {
		koine_json_key(j, "agents");
		koine_json_value(j, agents);
	}
	if (j && servers) {
		koine_json_key(j, "servers");
		koine_json_value(j, servers);
	}
	text = params_end(j);
	return text ? (puts(text), EX_OK) : out_of_memory();
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
