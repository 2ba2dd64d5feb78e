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
	"tasks of the group that run side by side; 0 for no limit of its own",
};

static const char *key_name(unsigned i)
{
	(void)i;
	return row.key;
}

/* Clients name groups as they like. */
static int check_name(const char *name, struct why *why)
{
	if (!name[0] || strlen(name) > SECTION_NAME_MAX)
		return refuse(why, REFUSE_PARAMS,
			      "[group %.45s]: a group's name has 1 to %d characters", name,
			      SECTION_NAME_MAX);
	return 0;
}

static int put(void *section, unsigned key, const char *value, struct why *why)
{
	struct group_setting *g = section;
	char name[SECTION_NAME_MAX + 8];

	(void)key;
	snprintf(name, sizeof(name), "group.%s", g->name);
	return setting_apply(&row, g, name, value, why);
}

static void write_keys(const void *section, FILE *out)
{
	setting_write(&row, section, out);
}

const struct section_kind group_section = {
	.word = "group",
	.its = "a group's",
	.several = "groups",
	.short_limit = true,
	.keys_make_it = true,
	.list = offsetof(struct settings, tasks.groups),
	.n = offsetof(struct settings, tasks.n_groups),
	.size = sizeof(struct group_setting),
	.max = GROUPS_MAX,
	.n_keys = 1,
	.key = key_name,
	.check_name = check_name,
	.put = put,
	.write = write_keys,
};
