/*
 * One table names every setting; the file, the environment, --set and --check
 * all go through it.
 */
#include "daemon/settings/settings.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "daemon/settings/setting.h"
#include "engine/memory/embedding.h"

static const char *const shutdown_words[] = {"daemon", "listener", "off", NULL};

#define AT(member)    offsetof(struct settings, member)
#define LIMIT(member) offsetof(struct settings, limits.member)

static const struct setting table[] = {
	{"daemon", "log_level", SET_LEVEL, AT(log_level), 0, 0, "err, warn, info or debug"},
	{"daemon", "debug_methods", SET_BOOL, AT(debug_methods), 0, 0,
	 "offer debug.echo and debug.sleep"},
	{"daemon", "log_messages", SET_BOOL, AT(log_messages), 0, 0,
	 "log every message both ways, at debug"},
	{"koine", "token_file", SET_PATH, AT(token_file), 0, PATH_LEN,
	 "a file (0600) with the token that HTTP calls must carry"},
	{"store", "url", SET_PATH, AT(store), 0, PATH_LEN,
	 "sqlite:PATH, where everything is kept; empty for the default place"},
	{"memory", "enabled", SET_BOOL, AT(memory_enabled), 0, 0, "remember and find at all"},
	{"memory", "index_bytes", SET_SIZE, AT(index_bytes), 1 << 20, 1LL << 40,
	 "memory for all search indexes together"},
	{"memory", "embedding_url", SET_URL, AT(embedding_url), 0, PATH_LEN,
	 "an OpenAI-compatible /v1/embeddings, for searches by meaning; empty for none",
	 .check = embedding_check},
	{"memory", "embedding_model", SET_PATH, AT(embedding_model), 0, PATH_LEN,
	 "the model to ask it for"},
	{"memory", "embedding_key_file", SET_PATH, AT(embedding_key_file), 0, PATH_LEN,
	 "a file (0600) with the key it wants; empty for none"},
	{"memory", "embedding_timeout", SET_UNSIGNED, AT(embedding_timeout_ms), 1, 60000,
	 "milliseconds that a search waits for it"},
	{"ash", "context_secret", SET_SECRET, AT(context_secret), 0, PATH_LEN,
	 "calls must carry a token signed with it; empty for none",
	 .secret = "ASH_CONTEXT_TOKEN_SECRET"},
	{"project", "webhooks", SET_TEXT, AT(project_webhooks), 0, PATH_LEN,
	 "where webhooks of projects may go: beginnings of addresses; empty for nowhere"},
	{"hld", "heartbeat", SET_SECONDS, AT(hld_heartbeat_ms), 1, 86400,
	 "seconds of silence, before its subscribers are told that the daemon is there"},
	{"ocg", "user", SET_TEXT, AT(ocg_user), 0, sizeof(((struct settings *)0)->ocg_user),
	 "whose memories its clients store and find; empty for common ones"},
	{"gateway", "token_file", SET_PATH, AT(gateway_token_file), 0, PATH_LEN,
	 "a file (0600) with the token that its calls must carry; empty for OPENCLAW_UI_TOKEN",
	 .secret = "OPENCLAW_UI_TOKEN"},
	{"gateway", "tools", SET_TEXT, AT(gateway_tools), 0,
	 sizeof(((struct settings *)0)->gateway_tools),
	 "what its agents may use: memory, exec, read, write, edit, with commas; or none"},
	{"gateway", "folder", SET_PATH, AT(gateway_folder), 0, PATH_LEN,
	 "where exec, read, write and edit work, and nowhere else"},
	{"gateway", "timeout", SET_SECONDS, AT(gateway_timeout_ms), 1, 86400,
	 "seconds that an agent may say nothing"},
	{"gateway", "ping", SET_SECONDS, AT(gateway_ping_ms), 1, 86400,
	 "seconds of silence after which a WebSocket's client is asked whether it is there"},
	{"gateway", "process", SET_BOOL, AT(gateway_process), 0, 0,
	 "let its clients start programs, each after it was approved"},
	{"gateway", "environment", SET_VARIABLES, AT(gateway_environment), 0, VARIABLES_MAX,
	 "what exec and its programs get beside a short list: NAME, NAME* or NAME=VALUE each"},
	{"nexus", "token_file", SET_PATH, AT(nexus_token_file), 0, PATH_LEN,
	 "a file (0600) with the token that its calls must carry; empty for koine.token_file"},
	{"nexus", "shutdown", SET_WORD, AT(nexus_shutdown), 0, 0,
	 "what its shutdown stops: daemon or listener; or off", .words = shutdown_words},
	{"chat", "agent", SET_TEXT, AT(chat_agent), 0, sizeof(((struct settings *)0)->chat_agent),
	 "who answers: recall, the name of an [agent NAME] section, or none"},
	{"chat", "system", SET_TEXT, AT(chat_system), 0, PATH_LEN,
	 "the system prompt; empty for none"},
	{"chat", "system_file", SET_PATH, AT(chat_system_file), 0, PATH_LEN,
	 "a file with the system prompt, instead"},
	{"chat", "budget", SET_UNSIGNED, AT(chat_budget), 100, 100000000,
	 "tokens that a conversation may have when it is sent to its agent"},
	{"chat", "reserve", SET_UNSIGNED, AT(chat_reserve), 0, 100000000,
	 "of these, kept free for the answer"},
	{"events", "keep_days", SET_UNSIGNED, AT(events_keep_days), 0, 36500,
	 "days that an event is kept; 0 for ever"},
	{"events", "keep", SET_UNSIGNED, AT(events_keep), 0, 1000000000,
	 "events that are kept; 0 for any number"},
	{"tasks", "parallel", SET_UNSIGNED, AT(tasks.parallel), 1, 10000,
	 "tasks that run side by side, in all"},
	{"tasks", "project_parallel", SET_UNSIGNED, AT(tasks.project_parallel), 1, 10000,
	 "tasks of one project that do"},
	{"tasks", "queue", SET_UNSIGNED, AT(tasks.queue), 1, 1000000,
	 "tasks that wait, in all; more are refused"},
	{"tasks", "timeout", SET_SECONDS, AT(tasks.timeout_ms), 1, 2592000,
	 "seconds that one attempt may take"},
	{"tasks", "output_bytes", SET_SIZE, AT(tasks.output_bytes), 4096, 1LL << 40,
	 "output of one task in its file, and as much again in the one before"},
	{"tasks", "keep_days", SET_UNSIGNED, AT(tasks.keep_days), 0, 36500,
	 "days that a task is kept after its end; 0 for ever"},
	{"tasks", "interrupt_time", SET_SECONDS, AT(tasks.interrupt_ms), 0, 3600,
	 "seconds from SIGTERM to SIGKILL when a task is ended"},
	{"tasks", "runner", SET_TEXT, AT(tasks.runner), 0,
	 sizeof(((struct settings *)0)->tasks.runner),
	 "who works on those that name nobody: an agent, or claude; empty: claude, else "
	 "chat.agent"},
	{"tasks", "environment", SET_VARIABLES, AT(tasks.environment), 0, VARIABLES_MAX,
	 "what claude gets beside our own environment: NAME, NAME* or NAME=VALUE each"},
	{"session", "program", SET_TEXT, AT(sessions.program), 0,
	 sizeof(((struct settings *)0)->sessions.program),
	 "words of the program that runs a session; it prints stream-json as claude does"},
	{"session", "parallel", SET_UNSIGNED, AT(sessions.parallel), 1, 10000,
	 "sessions that run side by side; more are refused"},
	{"session", "interrupt_time", SET_SECONDS, AT(sessions.interrupt_ms), 0, 3600,
	 "seconds from SIGINT to SIGTERM when a session is interrupted"},
	{"session", "terminate_time", SET_SECONDS, AT(sessions.terminate_ms), 0, 3600,
	 "seconds from SIGTERM to SIGKILL after that"},
	{"session", "keep_bytes", SET_SIZE, AT(sessions.keep_bytes), 4096, 1LL << 40,
	 "of what one session says; what it says further is not kept"},
	{"session", "keep_days", SET_UNSIGNED, AT(sessions.keep_days), 0, 36500,
	 "days that a session is kept after its end; 0 for ever"},
	{"session", "runner", SET_TEXT, AT(sessions.runner), 0,
	 sizeof(((struct settings *)0)->sessions.runner),
	 "who runs those that name nobody: an agent, or claude; empty: the program, else "
	 "chat.agent"},
	{"session", "environment", SET_VARIABLES, AT(sessions.environment), 0, VARIABLES_MAX,
	 "what its program gets beside our own environment: NAME, NAME* or NAME=VALUE each"},
	{"approval", "timeout", SET_SECONDS, AT(approvals.timeout_ms), 0, 2592000,
	 "seconds that one waits for a human where who asks does not say; 0 for ever"},
	{"approval", "pending", SET_UNSIGNED, AT(approvals.pending), 1, 100000,
	 "that may wait for a human; more are refused"},
	{"approval", "keep_days", SET_UNSIGNED, AT(approvals.keep_days), 0, 36500,
	 "days that one is kept after it was decided; 0 for ever"},
	{"approval", "agents_decide", SET_BOOL, AT(approvals.agents_decide), 0, 0,
	 "let agents decide what they ask themselves"},
	{"limits", "connections", SET_UNSIGNED, LIMIT(connections), 1, 1000000,
	 "connections in all; more wait"},
	{"limits", "connections_per_uid", SET_UNSIGNED, LIMIT(connections_per_uid), 1, 1000000,
	 "connections of one other user who may connect; more are closed"},
	{"limits", "calls", SET_UNSIGNED, LIMIT(calls), 1, 1000000,
	 "calls in flight; more are refused"},
	{"limits", "waiting", SET_UNSIGNED, LIMIT(waiting), 1, 10000,
	 "calls of one connection that wait behind a running one"},
	{"limits", "queue_bytes", SET_SIZE, LIMIT(queue_bytes), 4096, 1 << 30,
	 "answers waiting for one client before it is not read any more"},
	{"limits", "total_queue_bytes", SET_SIZE, LIMIT(total_queue_bytes), 1 << 20, 1LL << 40,
	 "answers waiting for all clients; others wait, and the slowest are cut"},
	{"limits", "room_wait", SET_SECONDS, LIMIT(room_wait_ms), 0, 3600,
	 "seconds that a call waits for room for its answer"},
	{"limits", "total_input_bytes", SET_SIZE, LIMIT(total_input_bytes), 1 << 20, 1LL << 40,
	 "half-sent messages of all clients, before the largest and slowest are cut"},
	{"limits", "progress_bytes", SET_SIZE, LIMIT(progress_bytes), 1, 1 << 30,
	 "bytes of a half-sent message that must come in each read_timeout"},
	{"limits", "reply_bytes", SET_SIZE, LIMIT(reply_bytes), 4096, 1 << 30, "one answer"},
	{"limits", "json_depth", SET_UNSIGNED, LIMIT(json_depth), 16, JSON_DEPTH_MAX,
	 "nested arrays and objects"},
	{"limits", "json_values", SET_UNSIGNED, LIMIT(json_values), 1000, 100000000,
	 "values in one message"},
	{"limits", "batch", SET_UNSIGNED, LIMIT(batch), 1, 1000000, "requests in one batch"},
	{"limits", "read_timeout", SET_SECONDS, LIMIT(read_timeout_ms), 1, 3600,
	 "seconds to send one HTTP request in, or progress_bytes of another message"},
	{"limits", "linger", SET_SECONDS, LIMIT(linger_ms), 0, 60,
	 "seconds that a refused client has to read why"},
	{"limits", "stop_time", SET_SECONDS, LIMIT(stop_ms), 0, 3600,
	 "seconds that running calls have when the daemon stops"},
};

enum { N_SETTINGS = sizeof(table) / sizeof(table[0]) };

/* What there was once, and what to say to who still has it. */
static const struct {
	const char *section;
	const char *key;
	const char *text;
} gone[] = {
	{"koine", "allow_uids",
	 "koine.allow_uids is no more: name a listener, as in [listen ash] allow_uids = 1001"},
};

enum { N_GONE = sizeof(gone) / sizeof(gone[0]) };

static int check_gone(const char *section, const char *key, struct why *why)
{
	for (size_t i = 0; i < N_GONE; i++) {
		if (strcmp(gone[i].section, section) == 0 && strcmp(gone[i].key, key) == 0)
			return refuse(why, REFUSE_PARAMS, "%s", gone[i].text);
	}
	return 0;
}

void settings_init(struct settings *s)
{
	*s = (struct settings) {
		.log_level = LOG_LEVEL_INFO,
		.limits = default_limits,
		.memory_enabled = true,
		.index_bytes = 512 << 20,
		.embedding_timeout_ms = 300,
		.hld_heartbeat_ms = 30000,
		.gateway_tools = "memory",
		.gateway_timeout_ms = 120000,
		.gateway_ping_ms = 30000,
		.chat_agent = "recall",
		.chat_system = "You are an assistant on the user's own machine, reached through "
			       "koine. Be brief and exact, and say so when you do not know.",
		.chat_budget = 8000,
		.chat_reserve = 2000,
		.sessions = {.program = "claude",
			     .parallel = 64,
			     .interrupt_ms = 5000,
			     .terminate_ms = 5000,
			     .keep_bytes = 256 << 20,
			     .keep_days = 365},
		.events_keep_days = 7,
		.events_keep = 100000,
	};
	agent_settings_init(&s->agents);
	task_settings_init(&s->tasks);
	approval_settings_init(&s->approvals);
}

/* The words that its users know. */
static int check_nexus_host(const char *address, struct why *why)
{
	static const char *const hosts[] = {"127.0.0.1:", "localhost:", "[::1]:", "::1:"};
	const char *host = strchr(address, ':');
	const char *port = strrchr(address, ':');

	if (!host || port == host || strncmp(address, "unix:", 5) == 0)
		return 0;
	host++;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		if (strncasecmp(host, hosts[i], strlen(hosts[i])) == 0)
			return 0;
	}
	return refuse(why, REFUSE_FORBIDDEN,
		      "Security: HTTP server must bind to localhost only, not '%.*s'",
		      (int)(port - host), host);
}

static int add_listen(struct settings *s, const char *dialect, const char *address, struct why *why)
{
	struct listen_setting *l;
	struct address parsed;
	bool word = strcmp(address, "off") == 0 || strcmp(address, "on") == 0;
	int r = 0;

	if (strcmp(dialect, "nexus") == 0 && !word)
		r = check_nexus_host(address, why);
	if (r == 0 && !word)
		r = address_parse(address, &parsed, why);
	if (r != 0)
		return r;
	if (s->n_listens == LISTENS_MAX)
		return refuse(why, REFUSE_LIMIT, "more than %d listeners", LISTENS_MAX);
	if (strlen(dialect) >= sizeof(l->dialect) || strlen(address) >= sizeof(l->address))
		return refuse(why, REFUSE_PARAMS, "listener is too long: %.40s", dialect);
	l = &s->listens[s->n_listens++];
	memcpy(l->dialect, dialect, strlen(dialect) + 1);
	memcpy(l->address, address, strlen(address) + 1);
	return 0;
}

/* A dialect that a lower layer has placed elsewhere moves. */
static int move_listen(struct settings *s, const char *dialect, const char *address,
		       struct why *why)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_listens; i++) {
		if (strcmp(s->listens[i].dialect, dialect) != 0)
			s->listens[n++] = s->listens[i];
	}
	s->n_listens = n;
	return add_listen(s, dialect, address, why);
}

static const char agent_section[] = "agent ";
static const char listen_section[] = "listen ";
static const char rule_section[] = "rule ";
static const char group_section[] = "group ";
static const char policy_section[] = "policy ";

/* One task or many: [task] is [tasks]. */
static const char *whole_name(const char *section)
{
	return strcmp(section, "task") == 0 ? "tasks" : section;
}

static int settings_add_section(struct settings *s, const char *section, struct why *why)
{
	section = whole_name(section);
	if (strcmp(section, "listen") == 0)
		return 0;
	if (strncmp(section, agent_section, strlen(agent_section)) == 0)
		return agent_settings_add(&s->agents, section + strlen(agent_section), why);
	if (strncmp(section, rule_section, strlen(rule_section)) == 0)
		return rule_settings_add(&s->rules, section + strlen(rule_section), s->where, why);
	if (strncmp(section, group_section, strlen(group_section)) == 0 ||
	    strncmp(section, listen_section, strlen(listen_section)) == 0)
		return 0; /* its keys make it */
	if (strncmp(section, policy_section, strlen(policy_section)) == 0)
		return policy_settings_add(&s->approvals, section + strlen(policy_section), why);
	for (size_t i = 0; i < N_SETTINGS; i++) {
		if (strcmp(table[i].section, section) == 0)
			return 0;
	}
	return refuse(why, REFUSE_PARAMS, "unknown section [%.60s]", section);
}

int settings_set(struct settings *s, const char *section, const char *key, const char *value,
		 struct why *why)
{
	int r = check_gone(section, key, why);

	if (r != 0)
		return r;
	section = whole_name(section);
	if (strcmp(section, "listen") == 0)
		return move_listen(s, key, value, why);
	if (strncmp(section, listen_section, strlen(listen_section)) == 0)
		return listener_settings_set(&s->listeners, section + strlen(listen_section), key,
					     value, why);
	if (strncmp(section, agent_section, strlen(agent_section)) == 0)
		return agent_settings_set(&s->agents, section + strlen(agent_section), key, value,
					  why);
	if (strncmp(section, rule_section, strlen(rule_section)) == 0)
		return rule_settings_set(&s->rules, section + strlen(rule_section), key, value,
					 s->where[0] ? s->where : "--set", why);
	if (strncmp(section, group_section, strlen(group_section)) == 0)
		return group_settings_set(&s->tasks, section + strlen(group_section), key, value,
					  why);
	if (strncmp(section, policy_section, strlen(policy_section)) == 0)
		return policy_settings_set(&s->approvals, section + strlen(policy_section), key,
					   value, why);
	for (size_t i = 0; i < N_SETTINGS; i++) {
		if (strcmp(table[i].section, section) == 0 && strcmp(table[i].key, key) == 0)
			return setting_apply(&table[i], s, section, value, why);
	}
	if (!section[0])
		return refuse(why, REFUSE_PARAMS, "'%.60s' stands outside any [section]", key);
	return refuse(why, REFUSE_PARAMS, "unknown setting '%.60s' in [%.60s]", key, section);
}

/* "agent.NAME.KEY": the section is "agent NAME", and a NAME may have dots. So with all of these. */
static const char *named_dot(const char *pair, const char *equals)
{
	static const char *const prefixes[] = {"agent.", "group.", "rule.", "policy.", "listen."};
	const char *dot = equals;

	while (dot > pair && *dot != '.')
		dot--;
	for (unsigned i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t n = strlen(prefixes[i]);

		if (strncmp(pair, prefixes[i], n) == 0)
			return dot - pair < (ptrdiff_t)n ? NULL : dot;
	}
	return NULL;
}

int settings_set_pair(struct settings *s, const char *pair, struct why *why)
{
	const char *equals = strchr(pair, '=');
	const char *named = equals ? named_dot(pair, equals) : NULL;
	const char *dot = named ? named : strchr(pair, '.');
	char section[64];
	char key[64];

	if (!equals || !dot || dot > equals || (size_t)(dot - pair) >= sizeof(section) ||
	    (size_t)(equals - dot) > sizeof(key))
		return refuse(why, REFUSE_PARSE, "--set '%.60s' is not SECTION.KEY=VALUE", pair);
	snprintf(section, sizeof(section), "%.*s", (int)(dot - pair), pair);
	snprintf(key, sizeof(key), "%.*s", (int)(equals - dot - 1), dot + 1);
	if (named)
		section[strcspn(section, ".")] = ' ';
	return settings_set(s, section, key, equals + 1, why);
}

int settings_add_listen(struct settings *s, const char *pair, struct why *why)
{
	const char *equals = strchr(pair, '=');
	char dialect[16];

	if (!equals || (size_t)(equals - pair) >= sizeof(dialect))
		return refuse(why, REFUSE_PARSE, "--listen '%.100s' is not DIALECT=ADDRESS", pair);
	snprintf(dialect, sizeof(dialect), "%.*s", (int)(equals - pair), pair);
	if (!s->listen_only)
		s->n_listens = 0;
	s->listen_only = true;
	return add_listen(s, dialect, equals + 1, why);
}

int settings_add_project(struct settings *s, const char *folder, struct why *why)
{
	char path[PATH_LEN];
	int r = paths_folder(folder, path, why);

	if (r != 0)
		return r;
	for (unsigned i = 0; i < s->n_projects; i++) {
		if (strcmp(s->projects[i], path) == 0)
			return 0;
	}
	if (s->n_projects == PROJECTS_MAX)
		return refuse(why, REFUSE_LIMIT, "more than %d projects", PROJECTS_MAX);
	memcpy(s->projects[s->n_projects++], path, strlen(path) + 1);
	return 0;
}

/* ---- the file ---- */

struct ini_text {
	struct settings *settings;
	const char *file;
	const char *at;
	const char *end;
	unsigned line;
	int result;
	struct why *why;
};

static int ini_refuse(struct ini_text *t, const char *text)
{
	t->result = refuse(t->why, REFUSE_PARAMS, "%.90s:%u: %.100s", t->file, t->line, text);
	return t->result;
}

static void say_where(const struct ini_text *t)
{
	snprintf(t->settings->where, sizeof(t->settings->where), "%.100s:%u", t->file, t->line);
}

/* inih tells of keys only: a section without any would pass unseen. */
static int check_section(struct ini_text *t, size_t len)
{
	const char *end = memchr(t->at, ']', len);
	char section[64];
	struct why inner;

	if (*t->at != '[' || !end)
		return 0;
	snprintf(section, sizeof(section), "%.*s", (int)(end - t->at - 1), t->at + 1);
	say_where(t);
	return settings_add_section(t->settings, section, &inner) == 0 ? 0
								       : ini_refuse(t, inner.text);
}

/* The last line may lack its end, and is no longer for that: `whole` is its length with it. */
static int check_line(struct ini_text *t, size_t len, size_t whole, size_t size)
{
	char words[64];

	if (memchr(t->at, '\0', len))
		return ini_refuse(t, "not text: there is a NUL character");
	if (whole < size)
		return check_section(t, len);
	snprintf(words, sizeof(words), "line is longer than %zu bytes", size - 2);
	return ini_refuse(t, words);
}

/* Gives inih one line. One longer than its buffer would be read as two, and one
 * that is indented as more of the value before it, comments included. */
static char *ini_line(char *out, int size, void *stream)
{
	struct ini_text *t = stream;
	const char *newline;
	size_t len;

	if (t->at == t->end || t->result != 0)
		return NULL;
	newline = memchr(t->at, '\n', (size_t)(t->end - t->at));
	len = (size_t)((newline ? newline + 1 : t->end) - t->at);
	t->line++;
	while (len > 1 && isspace((unsigned char)*t->at)) {
		t->at++;
		len--;
	}
	if (check_line(t, len, len + !newline, (size_t)size) != 0)
		return NULL;
	memcpy(out, t->at, len);
	out[len] = '\0';
	t->at += len;
	return out;
}

static int ini_setting(void *user, const char *section, const char *key, const char *value)
{
	struct ini_text *t = user;
	struct why inner;
	int r;

	if (t->result != 0)
		return 0;
	say_where(t);
	r = settings_set(t->settings, section, key, value, &inner);
	if (r != 0)
		ini_refuse(t, inner.text);
	return r == 0;
}

int settings_read_text(struct settings *s, const char *file, const char *text, size_t len,
		       struct why *why)
{
	static const char mark[] = "\xef\xbb\xbf"; /* that some editors begin a file with */
	struct ini_text t = {
		.settings = s,
		.file = file,
		.at = text,
		.end = text + len,
		.why = why,
	};
	int line;

	if (len >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0)
		t.at += strlen(mark);
	line = ini_parse_stream(ini_line, &t, ini_setting, &t);
	if (t.result != 0)
		return t.result;
	if (line != 0) {
		t.line = (unsigned)(line > 0 ? line : 0);
		return ini_refuse(&t, "not a [section], a comment, or KEY = VALUE");
	}
	return 0;
}

static void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

int settings_read_file(struct settings *s, const char *file, struct why *why)
{
	CLEANUP(fclosep) FILE *f = fopen(file, "re");
	CLEANUP(buf_donep) struct buf text;
	char part[4096];
	size_t n;

	buf_init(&text, 1 << 20);
	if (!f) {
		int error = errno;

		refuse(why, REFUSE_NOT_FOUND, "cannot read %.100s: %s", file, strerror(error));
		return -error;
	}
	while (text.err == 0 && (n = fread(part, 1, sizeof(part), f)) > 0)
		buf_add(&text, part, n);
	if (ferror(f))
		return refuse(why, REFUSE_UNAVAILABLE, "cannot read %.100s: %s", file,
			      strerror(errno));
	if (text.err != 0)
		return refuse(why, REFUSE_TOO_LARGE, "%.100s is larger than 1 MiB", file);
	snprintf(s->config, sizeof(s->config), "%s", file);
	return settings_read_text(s, file, text.data, text.len, why);
}

/* ---- the environment ---- */

enum { ENV_NAME_MAX = 128 };

static void env_name(const char *section, const char *key, char out[ENV_NAME_MAX])
{
	snprintf(out, ENV_NAME_MAX, "KOINE_%s_%s", section, key);
	for (char *p = out; *p; p++)
		*p = (char)toupper((unsigned char)*p);
}

static const char *env_of(const char *section, const char *key)
{
	char name[ENV_NAME_MAX];

	env_name(section, key, name);
	return getenv(name);
}

/* "NAME=..." */
static bool env_is(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

/* Of one of our sections, but no setting: a slip that would go unnoticed. */
static bool env_is_unknown(const char *entry)
{
	char name[ENV_NAME_MAX];
	bool ours = false;

	if (strncmp(entry, "KOINE_", 6) != 0)
		return false;
	for (size_t i = 0; i < N_SETTINGS; i++) {
		env_name(table[i].section, table[i].key, name);
		if (env_is(entry, name))
			return false;
		env_name(table[i].section, "", name);
		ours = ours || strncmp(entry, name, strlen(name)) == 0;
	}
	return ours;
}

static int check_env_names(struct why *why)
{
	for (char **entry = environ; entry && *entry; entry++) {
		if (env_is_unknown(*entry))
			return refuse(why, REFUSE_PARAMS, "environment: %.*s names no setting",
				      (int)strcspn(*entry, "="), *entry);
	}
	return 0;
}

static int read_env(struct settings *s, const char *section, const char *key, struct why *why)
{
	const char *value = env_of(section, key);
	struct why inner;

	if (!value || settings_set(s, section, key, value, &inner) == 0)
		return 0;
	return refuse(why, REFUSE_PARAMS, "environment: %s", inner.text);
}

int settings_read_listen(struct settings *s, const char *dialect, struct why *why)
{
	return read_env(s, "listen", dialect, why);
}

static bool env_is_on(const char *name)
{
	const char *value = getenv(name);
	bool on = false;

	return value && setting_parse_bool(value, &on) == 0 && on;
}

int settings_read_environment(struct settings *s, struct why *why)
{
	const char *secret = getenv("ASH_CONTEXT_TOKEN_SECRET");
	int r = 0;

	for (size_t i = 0; r == 0 && i < N_GONE; i++)
		r = read_env(s, gone[i].section, gone[i].key, why);
	if (r == 0)
		r = check_env_names(why);

	if (r == 0 && secret)
		r = settings_set(s, "ash", "context_secret", secret, why);
	for (size_t i = 0; r == 0 && i < N_SETTINGS; i++)
		r = read_env(s, table[i].section, table[i].key, why);
	if (r == 0)
		r = listener_settings_read_environment(&s->listeners, why);
	if (r == 0)
		r = agent_settings_read_environment(&s->agents, why);
	if (r == 0)
		r = rule_settings_read_environment(&s->rules, why);
	if (r == 0)
		r = group_settings_read_environment(&s->tasks, why);
	if (r == 0)
		r = policy_settings_read_environment(&s->approvals, why);
	if (env_is_on("KOINE_DEBUG") || env_is_on("AIWG_IPC_DEBUG")) {
		s->log_level = LOG_LEVEL_DEBUG;
		s->log_messages = true;
	}
	return r;
}

void settings_store_url(const struct settings *s, char *out, size_t size)
{
	char path[PATH_LEN];

	if (s->store[0]) {
		snprintf(out, size, "%s", s->store);
	} else if (s->root[0]) {
		snprintf(out, size, "sqlite:%s/koine.db", s->root);
	} else {
		paths_store(path);
		snprintf(out, size, "sqlite:%s", path);
	}
}

/* ---- what was read, as a whole ---- */

static bool is_utf8(const char *text)
{
	const char *end = text + strlen(text);

	while (text < end) {
		size_t n = *text & 0x80 ? utf8_sequence(text, end) : 1;

		if (n == 0)
			return false;
		text += n;
	}
	return true;
}

static int check_budgets(const struct settings *s, struct why *why)
{
	if (s->chat_reserve >= s->chat_budget)
		return refuse(why, REFUSE_PARAMS,
			      "chat.reserve = %u: must be less than chat.budget, which is %u",
			      s->chat_reserve, s->chat_budget);
	for (unsigned i = 0; i < s->agents.n; i++) {
		const struct agent_setting *a = &s->agents.list[i];

		if (settings_reserve(s, a) >= settings_budget(s, a))
			return refuse(why, REFUSE_PARAMS,
				      "[agent %s]: the reserve, %u, must be less than the budget, "
				      "which is %u",
				      a->name, settings_reserve(s, a), settings_budget(s, a));
	}
	return 0;
}

/* An agent of the settings, or what stands for something else there. */
static int check_named(const struct settings *s, const char *key, const char *name,
		       const char *other, struct why *why)
{
	char names[200];

	if (!name[0] || strcmp(name, other) == 0 || agent_settings_find(&s->agents, name))
		return 0;
	agent_settings_names(&s->agents, names, sizeof(names));
	return refuse(why, REFUSE_PARAMS, "%s = %.40s: there is no such agent, only %s", key, name,
		      names);
}

static int check_chat(const struct settings *s, struct why *why)
{
	int r = check_named(s, "chat.agent", s->chat_agent, "none", why);

	if (r == 0)
		r = check_named(s, "tasks.runner", s->tasks.runner, "claude", why);
	if (r == 0)
		r = check_named(s, "session.runner", s->sessions.runner, "claude", why);
	if (r != 0)
		return r;
	if (!is_utf8(s->chat_system))
		return refuse(why, REFUSE_PARAMS, "chat.system must be UTF-8");
	return check_budgets(s, why);
}

static int check_store(const struct settings *s, struct why *why)
{
	static const char scheme[] = "sqlite:";

	if (s->store[0] &&
	    (strncmp(s->store, scheme, strlen(scheme)) != 0 || !s->store[strlen(scheme)]))
		return refuse(why, REFUSE_PARAMS, "store.url = %.100s: must be sqlite:PATH",
			      s->store);
	return 0;
}

int settings_check(const struct settings *s, struct why *why)
{
	unsigned tools;
	int r = agent_settings_check(&s->agents, why);

	if (r == 0)
		r = check_store(s, why);
	if (r == 0)
		r = policy_settings_check(&s->approvals, why);
	if (r == 0)
		r = settings_gateway_tools(s, &tools, why);
	return r != 0 ? r : check_chat(s, why);
}

unsigned settings_budget(const struct settings *s, const struct agent_setting *a)
{
	return a->budget ? a->budget : s->chat_budget;
}

unsigned settings_reserve(const struct settings *s, const struct agent_setting *a)
{
	return a->reserve ? a->reserve : s->chat_reserve;
}

void settings_secrets(const struct settings *s, const char *out[SECRETS_MAX + 1])
{
	unsigned n = 0;

	for (size_t i = 0; i < N_SETTINGS && n < SECRETS_MAX; i++) {
		if (table[i].secret)
			out[n++] = table[i].secret;
	}
	n += agent_settings_secrets(&s->agents, out + n, SECRETS_MAX - n);
	out[n] = NULL;
}

/* ---- out ---- */

void settings_write(const struct settings *s, FILE *out)
{
	const char *section = "";

	for (size_t i = 0; i < N_SETTINGS; i++) {
		if (strcmp(section, table[i].section) != 0)
			fprintf(out, "%s[%s]\n", i ? "\n" : "", table[i].section);
		section = table[i].section;
		setting_write(&table[i], s, out);
	}
	listener_settings_write(&s->listeners, out);
	agent_settings_write(&s->agents, out);
	rule_settings_write(&s->rules, out);
	group_settings_write(&s->tasks, out);
	policy_settings_write(&s->approvals, out);
}
