#include "cli/kit/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *absolute(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] == '/' ? value : NULL;
}

const char *place_variable(const char *place)
{
	char name[64];

	if (place[0] != '{')
		return NULL;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(place + 1, "|"), place + 1);
	return absolute(name);
}

bool place_path(const char *place, char path[PATH_MAX], char base[PATH_MAX])
{
	const char *value = place_variable(place);
	const char *from = value ? value : absolute("HOME");
	const char *home = strchr(place, '~') + 1;
	const char *end = strchr(place, '}');
	int n;

	if (!from || strlen(from) >= PATH_MAX)
		return false;
	if (base)
		strcpy(base, from);
	n = snprintf(path, PATH_MAX, "%s%.*s%s", from, value ? 0 : (int)strcspn(home, "}"), home,
		     end ? end + 1 : "");
	return n < PATH_MAX;
}
