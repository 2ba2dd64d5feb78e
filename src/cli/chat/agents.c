/* Which agents koined has, in which servers of their own others work, and whether they answer. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/chat/chat.h"
#include "cli/kit/call.h"
#include "cli/kit/list.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

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
