#include "daemon/settings/task.h"

#include <string.h>

#include "daemon/settings/settings.h"

static const struct setting row = {
	"group",
	"parallel",
	SET_UNSIGNED,
	offsetof(struct group_setting, parallel),
	0,
	10000,
	"maximum number of running tasks of the group; 0 means no limit",
};

/* Clients may name groups freely. */
static int check_name(const char *name, struct why *why)
{
	if (!name[0] || strlen(name) > SECTION_NAME_MAX)
		return refuse(why, REFUSE_PARAMS,
			      "[group %.45s]: the name must have 1 to %d characters", name,
			      SECTION_NAME_MAX);
	return 0;
}

const struct section_kind group_section = {
	.word = "group",
	.several = "groups",
	.short_limit = true,
	.keys_make_it = true,
	.list = offsetof(struct settings, tasks.groups),
	.n = offsetof(struct settings, tasks.n_groups),
	.size = sizeof(struct group_setting),
	.max = GROUPS_MAX,
	.n_keys = 1,
	.rows = &row,
	.check_name = check_name,
};
