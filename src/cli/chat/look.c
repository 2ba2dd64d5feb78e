/* What there is to see of conversations and agents, as tables and lists. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/chat/chat.h"
#include "cli/kit/glyph.h"

static int out_of_memory(void)
{
	complain("out of memory");
	return EX_SOFTWARE;
}

static void answer_freep(struct koine_answer **a)
{
	koine_answer_free(*a);
}

bool look_tell_missing(const struct koine_answer *a, const char *conversation)
{
	static const char words[] = "Agent not found";
	size_t len = 0;
	const char *message = koine_answer_error_message(a, &len);

	if (!message || len < strlen(words) || memcmp(message, words, strlen(words)) != 0)
		return false;
	if (conversation)
		complain("there is no conversation '%s' yet", conversation);
	else
		complain("there is no conversation at this address yet");
	return true;
}

static int call_about(struct koine_client *c, const char *method, const char *params,
		      const char *conversation, struct koine_answer **ret_answer)
{
	struct koine_answer *a = NULL;
	int r = koine_client_call(c, method, params, &a);

	if (r == KOINE_ERROR_ANSWER && look_tell_missing(a, conversation)) {
		koine_answer_free(a);
		return EXIT_ERROR_ANSWER;
	}
	if (r != 0)
		return talk_failed(c, method, r, a);
	*ret_answer = a;
	return 0;
}

int look_call(struct koine_client *c, const char *method, const char *conversation, int64_t offset,
	      int64_t limit, struct koine_answer **ret_answer)
{
	struct koine_json *j = NULL;
	const char *params;
	int r;

	if (koine_json_new(&j) != 0)
		return out_of_memory();
	koine_json_begin_object(j);
	if (conversation) {
		koine_json_key(j, "agent_id");
		koine_json_string(j, conversation);
	}
	if (limit > 0) {
		koine_json_key(j, "offset");
		koine_json_int(j, offset);
		koine_json_key(j, "limit");
		koine_json_int(j, limit);
	}
	koine_json_end_object(j);
	params = koine_json_text(j, NULL);
	r = params ? call_about(c, method, params, conversation, ret_answer) : out_of_memory();
	koine_json_free(j);
	return r;
}

/* ---- tokens ---- */

int look_tokens(struct cli *cli, struct koine_client *c, const char *conversation)
{
	static const char *const rows[] = {"system", "tools",  "messages",
					   "total",  "budget", "available"};
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	CLEANUP(table_freep) struct table *t = NULL;
	int r = look_call(c, "get_tokens", conversation, 0, 0, &a);

	if (r != 0)
		return r;
	if (cli->options.json) {
		print_json_compact(stdout, koine_answer_result(a));
		return 0;
	}
	t = table_new("lr");
	if (!t)
		return out_of_memory();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		table_cell_str(t, rows[i]);
		table_cell_value(t, koine_value_get(koine_answer_result(a), rows[i]));
	}
	return table_print(t, stdout, false);
}

int look_compact(struct cli *cli, struct koine_client *c, const char *conversation)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *result;
	int64_t before = 0;
	int64_t after = 0;
	bool compacted = false;
	int r = look_call(c, "compact", conversation, 0, 0, &a);

	if (r != 0)
		return r;
	result = koine_answer_result(a);
	koine_value_bool(koine_value_get(result, "compacted"), &compacted);
	koine_value_int(koine_value_get(result, "tokens_before"), &before);
	koine_value_int(koine_value_get(result, "tokens_after"), &after);
	if (compacted)
		printf("%lld tokens before, %lld now\n", (long long)before, (long long)after);
	else
		printf("there is too little to gain\n");
	return 0;
}

/* ---- agents ---- */

/* What it says, without what stands in the row already: "agent 'NAME': " before it, or the
 * program of a command, which is its model. */
static struct text agent_says(const struct koine_value *agent)
{
	struct text says = {0};
	struct text name = {0};
	struct text model = {0};
	char before[CHAT_NAME_BYTES + 16];
	size_t n;

	says.data = koine_value_text(koine_value_get(agent, "text"), &says.len);
	name.data = koine_value_text(koine_value_get(agent, "name"), &name.len);
	model.data = koine_value_text(koine_value_get(agent, "model"), &model.len);
	if (!says.data || (model.data && text_equal(says, model)))
		return TEXT("");
	n = (size_t)snprintf(before, sizeof(before), "agent '%.*s': ", TEXT_ARGS(name));
	if (n < sizeof(before) && n < says.len && memcmp(says.data, before, n) == 0)
		says = (struct text) {.data = says.data + n, .len = says.len - n};
	return says;
}

/* "*" marks the default. */
static void add_agent(struct table *t, const struct koine_value *agent)
{
	struct text says = agent_says(agent);
	bool is_default = false;
	bool ok = false;

	koine_value_bool(koine_value_get(agent, "default"), &is_default);
	koine_value_bool(koine_value_get(agent, "ok"), &ok);
	table_cell_str(t, is_default ? "*" : "");
	table_cell_value(t, koine_value_get(agent, "name"));
	table_cell_value(t, koine_value_get(agent, "kind"));
	table_cell_value(t, koine_value_get(agent, "model"));
	table_cell_value(t, koine_value_get(agent, "ms"));
	table_cell_str(t, ok ? "ok" : "no");
	table_cell(t, says.data, says.len);
}

static int print_agents(const struct cli *cli, const struct koine_value *agents)
{
	static const char *const titles[] = {"", "NAME", "KIND", "MODEL", "MS", "OK", "SAYS"};
	CLEANUP(table_freep) struct table *t = table_new("lnnnrll");
	const struct koine_value *agent = koine_value_first(agents);

	if (!t)
		return out_of_memory();
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		table_cell_str(t, titles[i]);
	for (; agent; agent = koine_value_next(agent))
		add_agent(t, agent);
	if (cli->terminal)
		table_fit(t, terminal_columns());
	return table_print(t, stdout, cli->color);
}

static int call_agents(struct koine_client *c, struct koine_answer **ret_answer)
{
	struct koine_answer *a = NULL;
	int r = koine_client_call(c, "chat.agents", NULL, &a);

	if (r == KOINE_ERROR_ANSWER && koine_answer_error_code(a) == METHOD_NOT_FOUND) {
		koine_answer_free(a);
		complain("this server does not say which agents it has; koined does at its own "
			 "socket");
		return EXIT_ERROR_ANSWER;
	}
	if (r != 0)
		return talk_failed(c, "chat.agents", r, a);
	*ret_answer = a;
	return 0;
}

int look_find_agent(struct koine_client *c, const char *name)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *agent;
	int r = call_agents(c, &a);

	if (r != 0)
		return r;
	agent = koine_value_first(koine_value_get(koine_answer_result(a), "agents"));
	for (; agent; agent = koine_value_next(agent)) {
		struct text found = {0};

		found.data = koine_value_text(koine_value_get(agent, "name"), &found.len);
		if (found.data && text_is(found, name))
			return 0;
	}
	complain("there is no agent '%s'; /agents shows those there are", name);
	return EXIT_ERROR_ANSWER;
}

int look_agents(struct cli *cli, struct koine_client *c)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_agents(c, &a);

	if (r != 0)
		return r;
	if (!cli->options.json)
		return print_agents(cli, koine_value_get(koine_answer_result(a), "agents"));
	print_json_compact(stdout, koine_answer_result(a));
	return 0;
}
