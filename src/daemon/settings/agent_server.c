#include "daemon/settings/settings.h"

#include <string.h>

#include "agent/server/server.h"
#include "engine/bridge/bridge.h"

_Static_assert((int)AGENT_SERVERS_MAX == (int)BRIDGES_MAX, "all of them are mirrored");

static const char *const kind_words[] = {[AGENT_SERVER_OPENCODE] = "opencode", NULL};

#define AT(member)      offsetof(struct agent_server_setting, member)
#define TEXT_AT(member) SETTING_TEXT(struct agent_server_setting, member)

static const struct setting rows[] = {
	{"agent-server", "kind", SET_WORD, AT(kind), 0, 0, "kind of server: opencode",
	 .words = kind_words},
	{"agent-server", "url", SET_TEXT, TEXT_AT(url),
	 "URL of the server: http://HOST[:PORT][/PATH] on loopback, or https://…"},
	{"agent-server", "username", SET_TEXT, TEXT_AT(username),
	 "user name that koined sends to the server"},
	{"agent-server", "password_env", SET_VARIABLE, TEXT_AT(password_env),
	 "environment variable that holds the password"},
	{"agent-server", "password_file", SET_PATH, TEXT_AT(password_file),
	 "file (mode 0600) with the password"},
	{"agent-server", "idle_timeout", SET_SECONDS, AT(idle_timeout_ms), 1, 86400,
	 "seconds without data after which koined reports the server as unreachable"},
	{"agent-server", "away_time", SET_SECONDS, AT(away_ms), 1, 86400,
	 "seconds after which koined withdraws the approvals of an unreachable server"},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* The name is part of the ids of the server's sessions, which have less space than a section's name. */
static int check_name(const char *name, struct error *error)
{
	if (strlen(name) > BRIDGE_NAME_MAX)
		return refuse(error, REFUSE_PARAMS,
			      "invalid agent-server name '%.45s': expected at most %d characters",
			      name, BRIDGE_NAME_MAX);
	return section_check_name(&agent_server_section, name, error);
}

static void init(void *section, const char *name, const char *where)
{
	*(struct agent_server_setting *)section = (struct agent_server_setting) {
		.kind = strcmp(name, kind_words[AGENT_SERVER_OPENCODE]) == 0 ? AGENT_SERVER_OPENCODE
									     : AGENT_SERVER_UNSAID,
		.username = "opencode",
		.idle_timeout_ms = 45 * 1000,
		.away_ms = 60 * 1000,
	};
}

static int check_one(const void *section, struct error *error)
{
	const struct agent_server_setting *s = section;
	struct error inner;

	if (s->kind == AGENT_SERVER_UNSAID)
		return refuse(error, REFUSE_PARAMS, "[agent-server %s] requires kind: opencode",
			      s->name);
	if (!s->url[0])
		return refuse(error, REFUSE_PARAMS, "[agent-server %s] requires url", s->name);
	if (agent_server_check_url(s->url, &inner) != 0)
		return refuse(error, REFUSE_PARAMS, "[agent-server %s]: %s", s->name, inner.text);
	if (s->password_env[0] && s->password_file[0])
		return refuse(error, REFUSE_PARAMS,
			      "[agent-server %s]: set only one of password_env and password_file",
			      s->name);
	if (strchr(s->username, ':'))
		return refuse(error, REFUSE_PARAMS,
			      "[agent-server %s]: username must not contain a colon", s->name);
	return 0;
}

const struct section_kind agent_server_section = {
	.word = "agent-server",
	.several = "agent servers",
	.bare = true, /* [agent server] has variables that begin like ours */
	.list = offsetof(struct settings, agent_servers.list),
	.n = offsetof(struct settings, agent_servers.n),
	.size = sizeof(struct agent_server_setting),
	.max = AGENT_SERVERS_MAX,
	.n_keys = N_ROWS,
	.rows = rows,
	.check_name = check_name,
	.init = init,
	.own_kind = offsetof(struct agent_server_setting, kind),
	.unknown_kind = AGENT_SERVER_UNSAID,
	.check = check_one,
};

const char *agent_server_kind_word(enum agent_server_kind kind)
{
	return kind_words[kind];
}
