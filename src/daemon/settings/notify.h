/*
 * [notify NAME]: whom koined tells when something needs a human, and how. A wrong one keeps koined
 * from starting; a key that cannot be read does not.
 */
#pragma once

#include "base/arena.h"
#include "model/event.h"
#include "base/setting.h"
#include "daemon/settings/named_section.h"

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
			      struct why *why);

struct notify_settings {
	struct notify_setting list[NOTIFIES_MAX];
	unsigned n;
};

extern const struct section_kind notify_section;
