/* The settings file: whatever is accepted is written as a file that says the same. */
#include <stdint.h>
#include <stdlib.h>

#include "../feed.h"
#include "daemon/settings/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const struct settings *s, size_t *ret_len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_len);

	FEED_CHECK(f);
	settings_write(s, f);
	FEED_CHECK(fclose(f) == 0);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct settings s, again;
	char *text = malloc(size ? size : 1);
	struct error error = {0};
	size_t len, len_again;
	char *out, *out_again;
	int r;

	FEED_CHECK(text);
	memcpy(text, data, size);
	settings_init(&s);
	r = settings_read_text(&s, "file", text, size, &error);
	FEED_CHECK(r == 0 || (r > 0 && error.text[0]));
	free(text);
	if (r != 0)
		return 0;
	out = written(&s, &len);
	settings_init(&again);
	r = settings_read_text(&again, "written", out, len, &error);
	if (r != 0)
		fprintf(stderr, "%s\n%s\n", error.text, out);
	FEED_CHECK(r == 0);
	FEED_CHECK(settings_check(&s, &error) == settings_check(&again, &error));
	out_again = written(&again, &len_again);
	FEED_CHECK(len == len_again && memcmp(out, out_again, len) == 0);
	free(out);
	free(out_again);
	return 0;
}
