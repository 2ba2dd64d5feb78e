#include "cli/child/koined.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/child/child.h"

static bool find_beside(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	if (n < 0)
		return false;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash - path) + sizeof("/koined") > PATH_MAX)
		return false;
	strcpy(slash, "/koined");
	return access(path, X_OK) == 0;
}

bool koined_find(char path[PATH_MAX])
{
	struct text rest = text_of(getenv("PATH"));
	struct text folder;

	if (find_beside(path))
		return true;
	while (text_next(&rest, ':', &folder)) {
		int n = snprintf(path, PATH_MAX, "%.*s/koined", TEXT_ARGS(folder));

		if (folder.len > 0 && folder.data[0] == '/' && n < PATH_MAX &&
		    access(path, X_OK) == 0)
			return true;
	}
	return false;
}

bool koined_dialects(const char *program, unsigned patience_ms, struct buf *said,
		     struct koine_doc **ret_doc)
{
	const char *argv[] = {program, "--service", "--dialects", NULL};

	return child_output(argv, true, patience_ms, said) == 0 &&
	       koine_doc_parse(said->data, said->len, ret_doc, NULL, 0) == 0;
}
