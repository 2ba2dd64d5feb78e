/* Which task and which project the user means. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/task/task.h"

bool task_id(const char *typed, char id[TASK_ID_MAX])
{
	size_t len = strlen(typed);

	if (len == 0 || len >= TASK_ID_MAX)
		return false;
	if (strspn(typed, "0123456789") == len && len <= 15)
		snprintf(id, TASK_ID_MAX, "task-%04llu", strtoull(typed, NULL, 10));
	else
		memcpy(id, typed, len + 1);
	return true;
}

static bool has_aiwg(const char *folder)
{
	char path[PATH_MAX];
	struct stat st;

	return snprintf(path, sizeof(path), "%s/.aiwg", folder) < (int)sizeof(path) &&
	       stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool task_project_above(const char *folder, char project[PATH_MAX])
{
	if (!realpath(folder, project))
		return false;
	while (!has_aiwg(project)) {
		char *slash = strrchr(project, '/');

		if (project[1] == '\0')
			return false;
		/* The root keeps its slash. */
		slash[slash == project] = '\0';
	}
	return true;
}
