/* [tasks] and [group NAME]: how many tasks run and wait, and for how long. */
#pragma once

#include <stddef.h>

#include "daemon/settings/named_section.h"
#include "daemon/settings/setting.h"

enum { GROUPS_MAX = 64 };

struct group_setting {
	char name[SECTION_NAME_MAX + 1];
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
