#include "daemon/settings/settings.h"

#include <string.h>

#include "agent/command/command.h"
#include "agent/model/model.h"

static const char *const kind_words[] = {"recall", "openai", "anthropic", "command", NULL};
static const char *const input_words[] = {
	[COMMAND_ARGUMENT] = "argument", [COMMAND_STDIN] = "stdin", NULL};
static const char *const output_words[] = {
	[COMMAND_TEXT] = "text", [COMMAND_STREAM_JSON] = "stream-json", NULL};

enum {
	RECALL = 1 << AGENT_RECALL,
	MODEL = 1 << AGENT_OPENAI | 1 << AGENT_ANTHROPIC,
	COMMAND = 1 << AGENT_COMMAND,
};

#define AT(member)      offsetof(struct agent_setting, member)
#define TEXT_AT(member) SETTING_TEXT(struct agent_setting, member)

static const struct setting rows[] = {
	{"agent", "kind", SET_WORD, AT(kind), 0, 0,
	 "kind of agent: recall, openai, anthropic or command", .words = kind_words},
	{"agent", "url", SET_URL, TEXT_AT(url),
	 "URL of the API: http://HOST[:PORT][/PATH], https://… or unix:PATH",
	 .check = model_check_url, .kinds = MODEL},
	{"agent", "model", SET_TEXT, TEXT_AT(model), "name of the model", .kinds = MODEL},
	{"agent", "key_env", SET_VARIABLE, TEXT_AT(key_env),
	 "environment variable that holds the API key", .kinds = MODEL},
	{"agent", "key_file", SET_PATH, TEXT_AT(key_file), "file (mode 0600) with the API key",
	 .kinds = MODEL},
	{"agent", "key_command", SET_TEXT, TEXT_AT(key_command),
	 "shell command that prints the API key", .kinds = MODEL},
	{"agent", "max_tokens", SET_UNSIGNED, AT(max_tokens), 0, 10000000,
	 "maximum number of tokens in one response; 0 means the provider's limit", .kinds = MODEL},
	{"agent", "temperature", SET_DECIMAL, AT(temperature), 0, 2,
	 "sampling temperature; empty means the provider's default", .kinds = MODEL},
	{"agent", "connect_timeout", SET_SECONDS, AT(connect_timeout_ms), 1, 600,
	 "timeout in seconds for the connection to the API", .kinds = MODEL},
	{"agent", "idle_timeout", SET_SECONDS, AT(idle_timeout_ms), 1, 86400,
	 "timeout in seconds if the provider sends no data", .kinds = MODEL},
	{"agent", "total_timeout", SET_SECONDS, AT(total_timeout_ms), 0, 604800,
	 "timeout for one response in seconds; 0 means one hour (kind command: no limit)",
	 .kinds = MODEL | COMMAND},
	{"agent", "retries", SET_UNSIGNED, AT(retries), 0, 10,
	 "number of retries for a request that fails before the first byte of the response",
	 .kinds = MODEL},
	{"agent", "command", SET_TEXT, TEXT_AT(command),
	 "program and its arguments; koined replaces {prompt} with the prompt", .kinds = COMMAND},
	{"agent", "input", SET_WORD, AT(input), 0, 0,
	 "how koined passes the prompt to the program: argument or stdin", .words = input_words,
	 .kinds = COMMAND},
	{"agent", "output", SET_WORD, AT(output), 0, 0,
	 "output format of the program: text or stream-json", .words = output_words,
	 .kinds = COMMAND},
	{"agent", "cwd", SET_PATH, TEXT_AT(cwd),
	 "working directory; empty means koined's working directory", .kinds = COMMAND},
	{"agent", "environment", SET_VARIABLES, TEXT_AT(environment),
	 "environment variables for the program: NAME, NAME* or NAME=VALUE, separated by spaces",
	 .kinds = COMMAND},
	{"agent", "state", SET_PATH, TEXT_AT(state),
	 "folder in which a sandboxed program can keep its state; empty means a folder next to the "
	 "store",
	 .kinds = COMMAND},
	{"agent", "interrupt_time", SET_SECONDS, AT(interrupt_ms), 0, 3600,
	 "seconds between SIGINT and SIGTERM when koined cancels a turn", .kinds = COMMAND},
	{"agent", "terminate_time", SET_SECONDS, AT(terminate_ms), 0, 3600,
	 "seconds between SIGTERM and SIGKILL when koined cancels a turn", .kinds = COMMAND},
	{"agent", "word_delay", SET_UNSIGNED, AT(word_delay_ms), 0, 60000,
	 "delay in milliseconds between the words of a response", .kinds = RECALL},
	{"agent", "budget", SET_UNSIGNED, AT(budget), 0, 100000000,
	 "maximum number of conversation tokens in one request; 0 means chat.budget"},
	{"agent", "reserve", SET_UNSIGNED, AT(reserve), 0, 100000000,
	 "part of the budget that is reserved for the response, in tokens; 0 means chat.reserve"},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* ---- names ---- */

static enum agent_kind kind_named(const char *name)
{
	unsigned i = AGENT_RECALL;

	while (kind_words[i] && strcmp(kind_words[i], name) != 0)
		i++;
	return i;
}

const char *agent_kind_word(enum agent_kind kind)
{
	return kind_words[kind];
}

static int check_name(const char *name, struct error *error)
{
	if (strcmp(name, "none") == 0)
		return refuse(error, REFUSE_PARAMS,
			      "[agent none]: 'none' is reserved and means no agent");
	return section_check_name(&agent_section, name, error);
}

void agent_settings_names(const struct agent_settings *a, char *out, size_t size)
{
	size_t at = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < a->n && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s",
				       i == 0         ? ""
				       : i + 1 < a->n ? ", "
						      : " and ",
				       a->list[i].name);
}

/* ---- as a section ---- */

static void init(void *section, const char *name, const char *where)
{
	*(struct agent_setting *)section = (struct agent_setting) {
		.kind = kind_named(name),
		.temperature = -1,
		.connect_timeout_ms = 10 * 1000,
		.idle_timeout_ms = 120 * 1000,
		.retries = 2,
		.interrupt_ms = 5 * 1000,
		.terminate_ms = 5 * 1000,
	};
}

/* ---- checks when all was read ---- */

static int check_keys(const struct agent_setting *s, struct error *error)
{
	int r = section_check_kinds(&agent_section, s, error);

	if (r != 0)
		return r;
	if (!!s->key_env[0] + !!s->key_file[0] + !!s->key_command[0] > 1)
		return refuse(error, REFUSE_PARAMS,
			      "[agent %s]: set only one of key_env, key_file and key_command",
			      s->name);
	return 0;
}

static int check_needs(const struct agent_setting *s, enum agent_kind kind, struct error *error)
{
	if (kind == AGENT_OPENAI && !s->url[0])
		return refuse(error, REFUSE_PARAMS, "[agent %s]: kind openai requires url",
			      s->name);
	if (kind == AGENT_ANTHROPIC && !s->model[0])
		return refuse(error, REFUSE_PARAMS, "[agent %s]: kind anthropic requires model",
			      s->name);
	if (kind == AGENT_COMMAND && !s->command[0])
		return refuse(error, REFUSE_PARAMS, "[agent %s]: kind command requires command",
			      s->name);
	return 0;
}

static int check_agent(const void *section, struct error *error)
{
	const struct agent_setting *s = section;
	enum agent_kind kind = s->kind;

	if (kind == AGENT_UNSAID)
		return refuse(error, REFUSE_PARAMS,
			      "[agent %s] requires kind: recall, openai, anthropic or command",
			      s->name);
	if (strcmp(s->name, "recall") == 0 && kind != AGENT_RECALL)
		return refuse(error, REFUSE_PARAMS, "[agent recall]: kind must be recall");
	return check_keys(s, error) ?: check_needs(s, kind, error);
}

const struct section_kind agent_section = {
	.word = "agent",
	.several = "agents",
	.list = offsetof(struct settings, agents.list),
	.n = offsetof(struct settings, agents.n),
	.size = sizeof(struct agent_setting),
	.max = AGENTS_MAX,
	.n_keys = N_ROWS,
	.rows = rows,
	.check_name = check_name,
	.init = init,
	.own_kind = offsetof(struct agent_setting, kind),
	.unknown_kind = AGENT_UNSAID,
	.check = check_agent,
};
