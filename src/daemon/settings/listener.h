/* [listen DIALECT]: who may connect where that dialect listens. The plan refuses unknown
 * dialects. */
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
extern const struct setting listen_row; /* its only key */

/* Never NULL: without a section only our own user and root may connect. */
const struct uids *settings_uids(const struct settings *s, const char *dialect);
