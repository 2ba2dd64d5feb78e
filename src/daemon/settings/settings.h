/*
 * Settings, from three sources that name the same things: the file (INI), the environment
 * (KOINE_SECTION_KEY), the flags (--set SECTION.KEY=VALUE and short forms). Later ones win.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/error.h"
#include "call/server.h"
#include "daemon/settings/named_section.h"
#include "daemon/settings/paths.h"
#include "daemon/settings/setting.h"
#include "model/event.h"
#include "model/host.h"
#include "model/rule.h"

/* [agent NAME]: the agents that the settings define, each with its own keys. */

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

/*
 * [rule NAME]: what the settings say about rules, key by key and as text. It is interpreted
 * when everything has been read (rule_make): a wrong rule is left out, and does not keep
 * koined from starting.
 */

enum { RULE_SETTINGS_MAX = 64, RULE_TEXT_MAX = 4096 };

enum rule_key {
	RULE_PROJECT,
	RULE_DESCRIPTION,
	RULE_ENABLED,
	RULE_CRON,
	RULE_ZONE,
	RULE_EVERY,
	RULE_CATCH_UP,
	RULE_WATCH,
	RULE_IGNORE,
	RULE_EXTENSIONS,
	RULE_DEBOUNCE,
	RULE_EVENT,
	RULE_SOURCE,
	RULE_PATTERN,
	RULE_CONDITION, /* condition1 to condition9 */
	RULE_PROMPT = RULE_CONDITION + 9,
	RULE_AGENT,
	RULE_RUNNER,
	RULE_GROUP,
	RULE_PRIORITY,
	RULE_COMMAND,
	RULE_WEBHOOK,
	RULE_NOTIFY,
	RULE_COOLDOWN,
	RULE_APPROVAL,
	N_RULE_KEYS,
};

struct rule_setting {
	SECTION_HEAD;
	char where[PATH_LEN + 16]; /* "FILE:LINE" of its section */
	bool invalid;              /* a reload has found it so, and had no former one to keep */
	struct section_texts texts;
	char text[RULE_TEXT_MAX]; /* the texts themselves */
};

struct rule_settings {
	struct rule_setting list[RULE_SETTINGS_MAX];
	unsigned n;
};

extern const struct section_kind rule_section;

/* NULL: it was not given. */
const char *rule_setting_get(const struct rule_setting *r, enum rule_key key);

const char *rule_key_name(enum rule_key key);

/* A condition on an event, as the settings spell it: FIELD OPERATOR [VALUE]. Texts point into the given one. -EINVAL: it has no operator. */
int condition_parse(const char *text, struct arena *a, struct event_condition *ret_condition);

/* Turns a rule of the settings into one for automation. Texts point into the setting or the arena. Refuses what the text alone shows to be wrong: two
 * triggers, a value that is not a number, a key that does not apply. */
int rule_make(const struct rule_setting *from, struct arena *a, struct rule *ret_rule,
	      struct error *error);

/*
 * [notify NAME]: whom koined tells when something needs a human, and how. A wrong one keeps koined
 * from starting; a key that cannot be read does not.
 */

enum {
	NOTIFIES_MAX = 16,
	NOTIFY_TEXT_MAX = 1024,
	NOTIFY_CONDITIONS_MAX = 9,
	CONDITION_TEXT_MAX = 640
};

struct notify_setting {
	SECTION_HEAD;
	unsigned kind; /* enum notifier_kind + 1; 0: not said */
	char on[512];
	char condition[NOTIFY_CONDITIONS_MAX][CONDITION_TEXT_MAX];
	char url[PATH_LEN]; /* "": the kind's own server */
	char key_env[64];
	char key_file[PATH_LEN];
	char topic_env[64];
	char topic_file[PATH_LEN];
	char reply_topic_env[64];
	char reply_topic_file[PATH_LEN];
	char chat[32];
	char user[32];
	char template[NOTIFY_TEXT_MAX];
	char command[NOTIFY_TEXT_MAX];
	char link[PATH_LEN];
	char quiet[16];
	char zone[64];
	unsigned per_minute;
	unsigned button_ms;
	bool links;
	bool escape_html;
};

/* Its conditions; texts point into it or the arena. */
int notify_setting_conditions(const struct notify_setting *s, struct arena *a,
			      struct event_condition ret[NOTIFY_CONDITIONS_MAX], unsigned *ret_n,
			      struct error *error);

struct notify_settings {
	struct notify_setting list[NOTIFIES_MAX];
	unsigned n;
};

extern const struct section_kind notify_section;

/* [listen DIALECT]: who may connect where that dialect listens. */

enum { LISTENERS_MAX = 16 };

struct listener_setting {
	SECTION_HEAD; /* the name is the dialect's */
	struct uids allow_uids;
};

struct listener_settings {
	struct listener_setting list[LISTENERS_MAX];
	unsigned n;
};

extern const struct section_kind listen_section;
extern const struct setting listen_row; /* its only key */

/* Never NULL: without a section only our own user and root may connect. */
const struct uids *settings_uids(const struct settings *s, const char *dialect);

/* [tasks] and [group NAME]: how many tasks run and wait, and for how long. */

enum { GROUPS_MAX = 64 };

struct group_setting {
	SECTION_HEAD;
	unsigned parallel; /* 0: no limit of its own */
};

struct task_settings {
	unsigned parallel;
	unsigned project_parallel;
	unsigned queue;
	unsigned timeout_ms;
	size_t output_bytes;
	unsigned keep_days;
	unsigned interrupt_ms;
	char runner[64]; /* "": not given */
	char environment[VARIABLES_MAX];
	struct group_setting groups[GROUPS_MAX];
	unsigned n_groups;
};

extern const struct section_kind group_section;

/*
 * [approval] and [policy NAME]: what may be done without asking a human, and by whom. A wrong
 * policy keeps koined from starting: the one left out might be the one that denies.
 */

enum { POLICIES_MAX = 128, POLICY_TEXT_MAX = 1024 };

enum policy_key {
	POLICY_VERDICT,
	POLICY_AGENT,
	POLICY_TOOL,
	POLICY_INPUT,
	POLICY_COMMENT,
	N_POLICY_KEYS,
};

struct policy_setting {
	SECTION_HEAD;
	struct section_texts texts;
	char text[POLICY_TEXT_MAX]; /* the texts themselves */
};

struct approval_settings {
	unsigned timeout_ms; /* 0: none */
	unsigned pending;
	unsigned keep_days; /* 0: forever */
	bool agents_decide;
	struct policy_setting policies[POLICIES_MAX]; /* in the order in which they were named */
	unsigned n_policies;
};

extern const struct section_kind policy_section;

/* NULL: it was not given, or is empty. */
const char *policy_setting_get(const struct policy_setting *p, enum policy_key key);

/* [agent-server NAME]: servers that agents work in, and whose questions the inbox bridges. */

enum { AGENT_SERVERS_MAX = 16 };

/* The words of `kind`, in this order. */
enum agent_server_kind { AGENT_SERVER_OPENCODE, AGENT_SERVER_UNSAID };

struct agent_server_setting {
	SECTION_HEAD;
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

const char *agent_server_kind_word(enum agent_server_kind kind);

enum {
	LISTENS_MAX = 32,
	PROJECTS_MAX = 32,
	SECRETS_MAX = AGENTS_MAX + AGENT_SERVERS_MAX + 3 * NOTIFIES_MAX + 16,
	DIALECTS_MAX = 16,
	SETTING_LINES_MAX = 512,
	DIALECT_SETTINGS_MAX = 4096, /* bytes of one's section */
};

struct listen_setting {
	const struct dialect *dialect;
	char address[ADDRESS_TEXT_MAX]; /* or "off"; or "on": its default place */
	unsigned line;                  /* in the file; 0: it is not from there */
};

struct session_settings {
	char program[1024];
	unsigned parallel;
	unsigned interrupt_ms;
	unsigned terminate_ms;
	unsigned silence_ms; /* 0: they do not end by it */
	size_t keep_bytes;
	unsigned keep_days;
	char runner[64]; /* "": not given */
	char environment[VARIABLES_MAX];
};

enum { EXTRACT_AFTER, EXTRACT_BEFORE };

enum { PLACES_ORIGINAL, PLACES_OWN };

struct settings {
	char config[PATH_LEN]; /* the file that was read, or "" */
	char root[PATH_LEN];   /* "" for none */
	unsigned log_level;    /* enum log_level */
	bool debug_methods;
	bool log_messages;
	char log_file[PATH_LEN]; /* "": stderr is left alone */
	unsigned places;         /* PLACES_ORIGINAL, PLACES_OWN: where dialects listen by default */
	bool programs;           /* any may be started */
	struct limits limits;
	struct listener_settings listeners;
	char token_file[PATH_LEN];
	char store[PATH_LEN];                    /* its URL; "" for the default place */
	char host_name[HOST_NAME_MAX_BYTES + 1]; /* "" for the machine's */
	char host_labels[256];                   /* words */
	unsigned host_lease_ms;
	bool memory_enabled;
	size_t index_bytes;
	size_t index_file_bytes;
	unsigned keep_deleted_days;
	char words[PATH_LEN];         /* "" for the default places, or "off" */
	char embedding_url[PATH_LEN]; /* "" for no model */
	char embedding_model[PATH_LEN];
	char embedding_key_file[PATH_LEN];
	unsigned embedding_timeout_ms;
	char extract[64]; /* the agent that draws facts; "" for none */
	unsigned extract_idle_s;
	unsigned extract_review; /* EXTRACT_AFTER, EXTRACT_BEFORE */
	char chat_agent[64];     /* "none" or "" for none */
	char chat_system[PATH_LEN];
	char chat_system_file[PATH_LEN]; /* instead; "" for none */
	unsigned chat_budget;            /* tokens */
	unsigned chat_reserve;
	unsigned chat_keep_days; /* 0: forever */
	struct agent_settings agents;
	struct agent_server_settings agent_servers;
	struct rule_settings rules;
	struct notify_settings notifies;
	char where[PATH_LEN + 16]; /* "FILE:LINE" while a file is read; else "" */
	uint16_t lines
		[SETTING_LINES_MAX]; /* of each row (settings_row) in the file; 0: it is not from there */
	uint16_t overridden
		[SETTING_LINES_MAX]; /* those lines of rows that were set again after the file */
	struct task_settings tasks;
	struct session_settings sessions;
	struct approval_settings approvals;
	unsigned events_keep_days; /* 0: forever */
	unsigned events_keep;      /* 0: no limit */

	/* From the file and the environment: where a dialect listens instead of its default place.
	 * From flags (listen_only): the only listeners. */
	struct listen_setting listens[LISTENS_MAX];
	unsigned n_listens;
	bool listen_only;

	/* The dialects' own sections, in the order of the array of dialects; see settings_of. */
	max_align_t dialects[DIALECTS_MAX][DIALECT_SETTINGS_MAX / sizeof(max_align_t)];

	char projects[PROJECTS_MAX][PATH_LEN]; /* --project: absolute, each once */
	unsigned n_projects;
};

void settings_init(struct settings *s);

/* A dialect's own section. */
void *settings_of(const struct settings *s, const struct dialect *d);

/* One setting by name, as the file has it. Refuses an unknown name or a bad value. */
int settings_set(struct settings *s, const char *section, const char *key, const char *value,
		 struct error *error);

/* The file begins a section. Creates it, if it is one that users name. */
int settings_add_section(struct settings *s, const char *section, struct error *error);

/* "SECTION.KEY=VALUE"; REFUSE_PARSE if it does not look like that. */
int settings_set_pair(struct settings *s, const char *pair, struct error *error);

/* --listen DIALECT=ADDRESS: once there is one, only those listen. REFUSE_PARSE likewise. */
int settings_add_listen(struct settings *s, const char *pair, struct error *error);

/* --project DIR: a folder that exists. */
int settings_add_project(struct settings *s, const char *folder, struct error *error);

/* Reads INI text; a refusal names file and line. */
int settings_read_text(struct settings *s, const char *file, const char *text, size_t len,
		       struct error *error);

/* Reads the file. -ENOENT when there is none. */
int settings_read_file(struct settings *s, const char *file, struct error *error);

/* KOINE_SECTION_KEY for every setting, KOINE_LISTEN_DIALECT, KOINE_DEBUG, and what the dialects'
 * own programs read. */
int settings_read_environment(struct settings *s, struct error *error);

/* Call it when everything has been read: checks that settings fit together, above all agents and
 * the default agent. */
int settings_check(const struct settings *s, struct error *error);

/* In tokens; the agent's own, or [chat]'s. */
unsigned settings_budget(const struct settings *s, const struct agent_setting *a);
unsigned settings_reserve(const struct settings *s, const struct agent_setting *a);

/* The names of variables that hold a secret of these settings, NULL-terminated. Variables that
 * are settings themselves (KOINE_…) are not among them. */
void settings_secrets(const struct settings *s, const char *out[SECRETS_MAX + 1]);

/* Writes every setting with its value and what it means, in the form of a file. */
void settings_write(const struct settings *s, FILE *out);

/* Writes what every setting is, with its default and its environment variable: a line with tabs
 * for each. */
void settings_write_reference(const struct settings *defaults, FILE *out);

/* The store's URL: as set, under --root, or at the default place. */
void settings_store_url(const struct settings *s, char *out, size_t size);
/* What this machine keeps for itself stands beside this path, and is named after it: the store's
 * file, or where that would be. */
void settings_beside_store(const struct settings *s, char *out, size_t size);

/* The tables that the file, the environment, --set and --check use. */

struct settings_table {
	const struct setting *rows; /* NULL: the dialects' tables come here */
	unsigned n;
};

/* The words of daemon.log_level, NULL-terminated. */
extern const char *const log_levels[];

extern const struct settings_table settings_tables[];
extern const unsigned n_settings_tables;

/* Settings that no longer exist, and what to tell those who still have them. */
struct setting_gone {
	const char *section;
	const char *key;
	const char *text;
};

extern const struct setting_gone settings_gone[];
extern const unsigned n_settings_gone;

/* The row with that number, counted through all tables, and the struct that it is about; NULL
 * after the last. */
const struct setting *settings_row(const struct settings *s, unsigned i, void **ret_base);

enum { ENV_NAME_MAX = 128 };

/* KOINE_SECTION_KEY. */
void setting_variable(const char *section, const char *key, char out[ENV_NAME_MAX]);
