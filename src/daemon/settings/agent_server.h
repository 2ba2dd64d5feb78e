/* [agent-server NAME]: servers that agents work in, and whose questions the inbox mirrors. */
#pragma once

#include <stdbool.h>

#include "daemon/settings/named_section.h"
#include "daemon/settings/paths.h"
#include "daemon/settings/setting.h"

enum { AGENT_SERVERS_MAX = 16 };

/* The words of `kind`, in this order. */
enum agent_server_kind { AGENT_SERVER_OPENCODE, AGENT_SERVER_UNSAID };

struct agent_server_setting {
	char name[SECTION_NAME_MAX + 1];
	unsigned kind; /* enum agent_server_kind, as set or as implied by its name */
	char url[PATH_LEN];
	char username[128];
	char password_env[128];
	char password_file[PATH_LEN];
	unsigned idle_timeout_ms;
	unsigned away_ms;
};

struct agent_server_settings {
	struct agent_server_setting list[AGENT_SERVERS_MAX];
	unsigned n;
};

extern const struct section_kind agent_server_section;

/* Call it when everything has been read: checks that each has what it needs. */
int agent_server_settings_check(const struct agent_server_settings *a, struct why *why);

/* The names of variables that hold passwords. Returns how many. */
unsigned agent_server_settings_secrets(const struct agent_server_settings *a, const char **out,
				       unsigned max);

const char *agent_server_kind_word(enum agent_server_kind kind);

bool agent_server_setting_equal(const struct agent_server_setting *a,
				const struct agent_server_setting *b);
