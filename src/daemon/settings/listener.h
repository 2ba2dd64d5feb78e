/* [listen DIALECT]: who may connect where that dialect listens. Whether there is such a dialect is for
 * the plan to say. */
#pragma once

#include "daemon/settings/named_section.h"
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

extern const struct section_kind listen_section;

/* Never NULL: who has no section has nobody beside our own user and root. */
const struct uids *settings_uids(const struct settings *s, const char *dialect);
