/* Any text as a remote's URL, and as git's configuration: a plain name, or none. */
#include "../feed.h"

#include "base/buf.h"
#include "model/project.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_url(struct text url)
{
	char name[PROJECT_NAME_MAX + 1];
	size_t len;

	if (!project_of_url(url, name))
		return;
	len = strlen(name);
	/* It is never taken for a folder, and a name of its own. */
	FEED_CHECK(len > 2 && len <= PROJECT_NAME_MAX && name[0] != '/' && strchr(name, '/'));
	for (size_t i = 0; i < len; i++)
		FEED_CHECK((unsigned char)name[i] > ' ');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = malloc(size ? size : 1);
	struct text text = {.data = exact, .len = size};
	struct buf url;

	FEED_CHECK(exact);
	if (size > 0)
		memcpy(exact, data, size);
	check_url(text);
	buf_init(&url, PROJECT_NAME_MAX);
	if (project_origin(text, &url)) {
		FEED_CHECK(url.len > 0 && url.len <= size);
		check_url((struct text) {.data = url.data, .len = url.len});
	}
	buf_done(&url);
	free(exact);
	return 0;
}
