/* [agent NAME]: the agents that the settings define, each with its own keys. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/settings/named_section.h"
#include "daemon/settings/paths.h"
#include "daemon/settings/setting.h"

enum { AGENTS_MAX = 32 };

/* The words of `kind`, in this order. */
enum agent_kind { AGENT_RECALL, AGENT_OPENAI, AGENT_ANTHROPIC, AGENT_COMMAND, AGENT_UNSAID };

struct agent_setting {
	SECTION_HEAD;
	unsigned kind; /* enum agent_kind, as set or as implied by its name */
	char url[PATH_LEN];
	char model[128];
	char key_env[128];
	char key_file[PATH_LEN];
	char key_command[PATH_LEN];
	unsigned max_tokens;
	double temperature;
	unsigned connect_timeout_ms;
	unsigned idle_timeout_ms;
	unsigned total_timeout_ms;
	unsigned retries;
	char command[PATH_LEN];
	unsigned input;  /* enum command_input */
	unsigned output; /* enum command_output */
	char cwd[PATH_LEN];
	char environment[VARIABLES_MAX];
	char state[PATH_LEN];
	unsigned interrupt_ms;
	unsigned terminate_ms;
	unsigned word_delay_ms;
	unsigned budget;  /* 0: [chat]'s */
	unsigned reserve; /* 0: [chat]'s */
};

struct agent_settings {
	struct agent_setting list[AGENTS_MAX]; /* the first is recall, which is always present */
	unsigned n;
};

extern const struct section_kind agent_section;

const char *agent_kind_word(enum agent_kind kind);

/* "a, b and c" */
void agent_settings_names(const struct agent_settings *a, char *out, size_t size);
