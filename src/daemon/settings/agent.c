#include "daemon/settings/agent.h"

#include <string.h>

#include "agent/command/command.h"
#include "agent/model/model.h"
#include "daemon/settings/settings.h"

static const char *const kind_words[] = {"recall", "openai", "anthropic", "command", NULL};
static const char *const input_words[] = {
	[COMMAND_ARGUMENT] = "argument", [COMMAND_STDIN] = "stdin", NULL};
static const char *const output_words[] = {
	[COMMAND_TEXT] = "text", [COMMAND_STREAM_JSON] = "stream-json", NULL};

enum {
	RECALL = 1 << AGENT_RECALL,
	MODEL = 1 << AGENT_OPENAI | 1 << AGENT_ANTHROPIC,
	COMMAND = 1 << AGENT_COMMAND,
	ALL = RECALL | MODEL | COMMAND,
};

struct agent_row {
	unsigned kinds; /* that it fits */
	struct setting setting;
};

#define ROW(kinds, key, type, member, min, max, doc, ...)                                          \
	{                                                                                          \
		kinds,                                                                             \
		{                                                                                  \
			"agent", key, type, offsetof(struct agent_setting, member), min, max, doc, \
				##__VA_ARGS__                                                      \
		}                                                                                  \
	}

static const struct agent_row table[] = {
	ROW(ALL, "kind", SET_WORD, said, 0, 0, "recall, openai, anthropic or command",
	    .words = kind_words),
	ROW(MODEL, "url", SET_URL, url, 0, PATH_LEN,
	    "http://HOST[:PORT][/PATH], https or unix:PATH", .check = model_check_url),
	ROW(MODEL, "model", SET_TEXT, model, 0, 128, "the model to ask it for"),
	ROW(MODEL, "key_env", SET_VARIABLE, key_env, 0, 128,
	    "the environment variable that has its key"),
	ROW(MODEL, "key_file", SET_PATH, key_file, 0, PATH_LEN, "a file (0600) with its key"),
	ROW(MODEL, "key_command", SET_TEXT, key_command, 0, PATH_LEN,
	    "a shell command that prints its key"),
	ROW(MODEL, "max_tokens", SET_UNSIGNED, max_tokens, 0, 10000000,
	    "of one answer; 0 for the provider's own limit"),
	ROW(MODEL, "temperature", SET_DECIMAL, temperature, 0, 2, "empty for the provider's own"),
	ROW(MODEL, "connect_timeout", SET_SECONDS, connect_timeout_ms, 1, 600,
	    "seconds to connect in"),
	ROW(MODEL, "idle_timeout", SET_SECONDS, idle_timeout_ms, 1, 86400,
	    "seconds without a byte of the answer"),
	ROW(MODEL | COMMAND, "total_timeout", SET_SECONDS, total_timeout_ms, 0, 604800,
	    "seconds for one answer in all; 0: an hour, for a command no limit"),
	ROW(MODEL, "retries", SET_UNSIGNED, retries, 0, 10,
	    "further tries when it fails before the first byte"),
	ROW(COMMAND, "command", SET_TEXT, command, 0, PATH_LEN,
	    "the program and its arguments; {prompt} is where the prompt goes"),
	ROW(COMMAND, "input", SET_WORD, input, 0, 0, "how it gets the prompt: argument or stdin",
	    .words = input_words),
	ROW(COMMAND, "output", SET_WORD, output, 0, 0, "what it prints: text or stream-json",
	    .words = output_words),
	ROW(COMMAND, "cwd", SET_PATH, cwd, 0, PATH_LEN, "the folder it runs in; empty for ours"),
	ROW(COMMAND, "environment", SET_VARIABLES, environment, 0, VARIABLES_MAX,
	    "what it gets beside our own environment: NAME, NAME* or NAME=VALUE each"),
	ROW(COMMAND, "state", SET_PATH, state, 0, PATH_LEN,
	    "the folder that it may write even where it is sandboxed; empty for one of ours"),
	ROW(COMMAND, "interrupt_time", SET_SECONDS, interrupt_ms, 0, 3600,
	    "seconds from SIGINT to SIGTERM when it is cancelled"),
	ROW(COMMAND, "terminate_time", SET_SECONDS, terminate_ms, 0, 3600,
	    "seconds from SIGTERM to SIGKILL"),
	ROW(RECALL, "word_delay", SET_UNSIGNED, word_delay_ms, 0, 60000,
	    "milliseconds between two words"),
	ROW(ALL, "budget", SET_UNSIGNED, budget, 0, 100000000,
	    "tokens that a conversation may have with it; 0: chat.budget"),
	ROW(ALL, "reserve", SET_UNSIGNED, reserve, 0, 100000000,
	    "of these, kept free for the answer; 0: chat.reserve"),
};

enum { N_ROWS = sizeof(table) / sizeof(table[0]) };

_Static_assert(N_ROWS <= 32, "a bit of `given` for each");

/* ---- names ---- */

enum agent_kind agent_setting_kind(const struct agent_setting *a)
{
	unsigned kind = a->said;

	for (unsigned i = AGENT_RECALL; kind == AGENT_UNSAID && kind_words[i]; i++) {
		if (strcmp(kind_words[i], a->name) == 0)
			kind = i;
	}
	return kind;
}

const char *agent_kind_word(enum agent_kind kind)
{
	return kind_words[kind];
}

static int check_name(const char *name, struct why *why)
{
	if (strcmp(name, "none") == 0)
		return refuse(why, REFUSE_PARAMS, "[agent none]: 'none' means that there is none");
	return section_check_name(&agent_section, name, why);
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

static const char *key_name(unsigned i)
{
	return table[i].setting.key;
}

static void init(void *section, const char *where)
{
	(void)where;
	*(struct agent_setting *)section = (struct agent_setting) {
		.said = AGENT_UNSAID,
		.temperature = -1,
		.connect_timeout_ms = 10 * 1000,
		.idle_timeout_ms = 120 * 1000,
		.retries = 2,
		.interrupt_ms = 5 * 1000,
		.terminate_ms = 5 * 1000,
	};
}

static int put(void *section, unsigned key, const char *value, struct why *why)
{
	struct agent_setting *s = section;
	char name[SECTION_NAME_MAX + 8];
	int r;

	snprintf(name, sizeof(name), "agent.%s", s->name);
	r = setting_apply(&table[key].setting, s, name, value, why);
	if (r != 0)
		return r;
	s->given |= UINT32_C(1) << key;
	return 0;
}

/* What fits its kind, and whatever else was set. */
static void write_keys(const void *section, FILE *out)
{
	struct agent_setting shown = *(const struct agent_setting *)section;

	shown.said = agent_setting_kind(&shown);
	for (unsigned i = 0; i < N_ROWS; i++) {
		if ((shown.given >> i & 1) ||
		    (shown.said != AGENT_UNSAID && (table[i].kinds & 1U << shown.said)))
			setting_write(&table[i].setting, &shown, out);
	}
}

const struct section_kind agent_section = {
	.word = "agent",
	.its = "an agent's",
	.several = "agents",
	.list = offsetof(struct settings, agents.list),
	.n = offsetof(struct settings, agents.n),
	.size = sizeof(struct agent_setting),
	.max = AGENTS_MAX,
	.n_keys = N_ROWS,
	.key = key_name,
	.check_name = check_name,
	.init = init,
	.put = put,
	.write = write_keys,
};

/* ---- what was read, as a whole ---- */

static int check_keys(const struct agent_setting *s, enum agent_kind kind, struct why *why)
{
	for (unsigned i = 0; i < N_ROWS; i++) {
		if ((s->given >> i & 1) && !(table[i].kinds & 1U << kind))
			return refuse(why, REFUSE_PARAMS, "[agent %s]: %s is nothing for kind %s",
				      s->name, table[i].setting.key, kind_words[kind]);
	}
	if (!!s->key_env[0] + !!s->key_file[0] + !!s->key_command[0] > 1)
		return refuse(why, REFUSE_PARAMS,
			      "[agent %s]: only one of key_env, key_file and key_command", s->name);
	return 0;
}

static int check_needs(const struct agent_setting *s, enum agent_kind kind, struct why *why)
{
	if (kind == AGENT_OPENAI && !s->url[0])
		return refuse(why, REFUSE_PARAMS, "[agent %s]: kind openai needs a url", s->name);
	if (kind == AGENT_ANTHROPIC && !s->model[0])
		return refuse(why, REFUSE_PARAMS, "[agent %s]: kind anthropic needs a model",
			      s->name);
	if (kind == AGENT_COMMAND && !s->command[0])
		return refuse(why, REFUSE_PARAMS, "[agent %s]: kind command needs a command",
			      s->name);
	return 0;
}

static int check_agent(const struct agent_setting *s, struct why *why)
{
	enum agent_kind kind = agent_setting_kind(s);
	int r;

	if (kind == AGENT_UNSAID)
		return refuse(why, REFUSE_PARAMS,
			      "[agent %s] needs a kind: recall, openai, anthropic or command",
			      s->name);
	if (strcmp(s->name, "recall") == 0 && kind != AGENT_RECALL)
		return refuse(why, REFUSE_PARAMS, "[agent recall]: its kind is always recall");
	r = check_keys(s, kind, why);
	return r != 0 ? r : check_needs(s, kind, why);
}

int agent_settings_check(const struct agent_settings *a, struct why *why)
{
	for (unsigned i = 0; i < a->n; i++) {
		int r = check_agent(&a->list[i], why);

		if (r != 0)
			return r;
	}
	return 0;
}

/* ---- secrets ---- */

unsigned agent_settings_secrets(const struct agent_settings *a, const char **out, unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < a->n; i++) {
		for (unsigned k = 0; k < N_ROWS; k++) {
			const char *at = (const char *)&a->list[i] + table[k].setting.offset;

			if (table[k].setting.type == SET_VARIABLE && at[0] && n < max)
				out[n++] = at;
		}
	}
	return n;
}

bool agent_setting_equal(const struct agent_setting *a, const struct agent_setting *b)
{
	bool equal = strcmp(a->name, b->name) == 0;

	for (unsigned i = 0; equal && i < N_ROWS; i++)
		equal = setting_equal(&table[i].setting, a, b);
	return equal;
}
