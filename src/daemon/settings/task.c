#include "daemon/settings/task.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "daemon/settings/setting.h"

static const struct setting row = {
	"group",
	"parallel",
	SET_UNSIGNED,
	offsetof(struct group_setting, parallel),
	0,
	10000,
	"tasks of the group that run side by side; 0 for no limit of its own",
};

void task_settings_init(struct task_settings *t)
{
	*t = (struct task_settings) {
		.parallel = 16,
		.project_parallel = 3,
		.queue = 1000,
		.timeout_ms = 120 * 60 * 1000,
		.output_bytes = 16 << 20,
		.keep_days = 365,
		.interrupt_ms = 5 * 1000,
	};
}

static struct group_setting *find(struct task_settings *t, const char *name)
{
	for (unsigned i = 0; i < t->n_groups; i++) {
		if (strcmp(t->groups[i].name, name) == 0)
			return &t->groups[i];
	}
	return NULL;
}

int group_settings_set(struct task_settings *t, const char *name, const char *key,
		       const char *value, struct why *why)
{
	struct group_setting *g = find(t, name);
	char section[GROUP_LABEL_MAX + 8];

	if (!name[0] || strlen(name) > GROUP_LABEL_MAX)
		return refuse(why, REFUSE_PARAMS,
			      "[group %.45s]: a group's name has 1 to %d characters", name,
			      GROUP_LABEL_MAX);
	if (strcmp(key, row.key) != 0)
		return refuse(why, REFUSE_PARAMS, "unknown setting '%.60s' in [group %s]", key,
			      name);
	if (!g && t->n_groups == GROUPS_MAX)
		return refuse(why, REFUSE_LIMIT, "more than %d groups", GROUPS_MAX);
	if (!g) {
		g = &t->groups[t->n_groups++];
		*g = (struct group_setting) {0};
		snprintf(g->name, sizeof(g->name), "%s", name);
	}
	snprintf(section, sizeof(section), "group.%s", name);
	return setting_apply(&row, g, section, value, why);
}

/* The name of a group that is there, however it is written; else in small letters. */
static void group_name(const struct task_settings *t, const char *text, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)text[i]);
	out[n] = '\0';
	for (unsigned i = 0; i < t->n_groups; i++) {
		if (strcasecmp(t->groups[i].name, out) == 0)
			memcpy(out, t->groups[i].name, n + 1);
	}
}

static int read_variable(struct task_settings *t, const char *text, struct why *why)
{
	static const char suffix[] = "_PARALLEL";
	size_t n = strcspn(text, "=");
	char name[GROUP_LABEL_MAX + 1];
	struct why inner;

	if (n <= strlen(suffix) || n - strlen(suffix) > GROUP_LABEL_MAX ||
	    strncmp(text + n - strlen(suffix), suffix, strlen(suffix)) != 0)
		return refuse(why, REFUSE_PARAMS, "environment: KOINE_GROUP_%.*s names no setting",
			      (int)(n < 100 ? n : 100), text);
	group_name(t, text, n - strlen(suffix), name);
	if (group_settings_set(t, name, row.key, text[n] ? text + n + 1 : "", &inner) == 0)
		return 0;
	return refuse(why, REFUSE_PARAMS, "environment: %s", inner.text);
}

int group_settings_read_environment(struct task_settings *t, struct why *why)
{
	static const char prefix[] = "KOINE_GROUP_";

	for (char **entry = environ; entry && *entry; entry++) {
		int r = 0;

		if (strncmp(*entry, prefix, strlen(prefix)) == 0)
			r = read_variable(t, *entry + strlen(prefix), why);
		if (r != 0)
			return r;
	}
	return 0;
}

void group_settings_write(const struct task_settings *t, FILE *out)
{
	for (unsigned i = 0; i < t->n_groups; i++) {
		fprintf(out, "\n[group %s]\n", t->groups[i].name);
		setting_write(&row, &t->groups[i], out);
	}
}
