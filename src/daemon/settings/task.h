/* [tasks] and [group NAME]: how many tasks run, wait, and for how long. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/why.h"
#include "daemon/settings/setting.h"

/* inih cuts a section's name at 49 bytes, "group " included. */
enum { GROUPS_MAX = 64, GROUP_LABEL_MAX = 40 };

struct group_setting {
	char name[GROUP_LABEL_MAX + 1];
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
	char runner[64]; /* "": not said */
	char environment[VARIABLES_MAX];
	struct group_setting groups[GROUPS_MAX];
	unsigned n_groups;
};

void task_settings_init(struct task_settings *t);

/* Of [group NAME], which is made if there is none by that name. */
int group_settings_set(struct task_settings *t, const char *name, const char *key,
		       const char *value, struct why *why);

/* Every KOINE_GROUP_NAME_PARALLEL in the environment. */
int group_settings_read_environment(struct task_settings *t, struct why *why);

void group_settings_write(const struct task_settings *t, FILE *out);
