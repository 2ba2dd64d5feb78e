/* Any expression, up to the first line's end, over any text: refused in words, or it answers. The same
 * bytes as a glob. */
#include "../feed.h"

#include "base/pattern/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
	size_t n = newline ? (size_t)(newline - data) : size;
	struct error error = {.text = ""};
	struct pattern *p = NULL;
	struct text expression, text;
	char *exact = malloc(n ? n : 1);
	int r;

	FEED_CHECK(exact);
	if (n > 0)
		memcpy(exact, data, n);
	expression = (struct text) {.data = exact, .len = n};
	text = (struct text) {.data = (const char *)data + n, .len = size - n};
	r = pattern_new(expression, &p, &error);
	FEED_CHECK(r == 0 || (r == REFUSE_PARAMS && error.text[0]));
	if (r == 0) {
		uint64_t steps = UINT64_MAX;

		(void)pattern_finds(p, text, &steps);
		/* Each place of the program once for taking a byte, and once for going on. */
		FEED_CHECK(UINT64_MAX - steps <= 2ULL * PATTERN_CODE_MAX * (text.len + 1));
	}
	pattern_free(p);
	FEED_CHECK(glob_fits(TEXT("*"), expression));
	(void)glob_fits(expression, text);
	free(exact);
	return 0;
}
