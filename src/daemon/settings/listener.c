#include "daemon/settings/listener.h"

#include <string.h>

#include "daemon/settings/settings.h"

const struct setting listen_row = {
	"listen",
	"allow_uids",
	SET_UIDS,
	offsetof(struct listener_setting, allow_uids),
	0,
	0,
	"users who may connect, in addition to koined's user and root",
};

static int check_name(const char *dialect, struct why *why)
{
	if (!dialect[0] || strlen(dialect) > DIALECT_NAME_MAX)
		return refuse(why, REFUSE_PARAMS, "unknown dialect '%.40s'", dialect);
	return 0;
}

const struct section_kind listen_section = {
	.word = "listen",
	.several = "[listen DIALECT]",
	.short_limit = true,
	.keys_make_it = true,
	.bare = true,
	.list = offsetof(struct settings, listeners.list),
	.n = offsetof(struct settings, listeners.n),
	.size = sizeof(struct listener_setting),
	.max = LISTENERS_MAX,
	.n_keys = 1,
	.rows = &listen_row,
	.check_name = check_name,
};

const struct uids *settings_uids(const struct settings *s, const char *dialect)
{
	static const struct uids nobody = {.n = 0};
	const struct listener_setting *l = section_find(&listen_section, s, dialect);

	return l ? &l->allow_uids : &nobody;
}
