/* [listen DIALECT]: who may connect where that dialect listens. */
#pragma once

#include <stdio.h>

#include "base/why.h"
#include "daemon/settings/setting.h"

enum { LISTENERS_MAX = 16, DIALECT_NAME_MAX = 15 };

struct listener_setting {
	char dialect[DIALECT_NAME_MAX + 1];
	struct uids allow_uids;
};

struct listener_settings {
	struct listener_setting list[LISTENERS_MAX];
	unsigned n;
};

/* Whether there is such a dialect is for the plan to say. */
int listener_settings_set(struct listener_settings *l, const char *dialect, const char *key,
			  const char *value, struct why *why);

/* Every KOINE_LISTEN_DIALECT_KEY in the environment. */
int listener_settings_read_environment(struct listener_settings *l, struct why *why);

void listener_settings_write(const struct listener_settings *l, FILE *out);

/* Never NULL: who has no section has nobody beside our own user and root. */
const struct uids *listener_settings_uids(const struct listener_settings *l, const char *dialect);
