#include "sse.h"

#include <string.h>

static enum sse_found read_line(const char *line, size_t len, struct text *ret_text)
{
	static const char data[] = "data: ", end[] = "data: [DONE]", http[] = "HTTP/1.1 ",
			  content[] = "\"content\":\"";
	const char *at, *stop;

	if (len >= sizeof(http) + 2 && memcmp(line, http, sizeof(http) - 1) == 0)
		return memcmp(line + sizeof(http) - 1, "200", 3) == 0 ? SSE_NOTHING : SSE_REFUSED;
	if (len < sizeof(data) - 1 || memcmp(line, data, sizeof(data) - 1) != 0)
		return SSE_NOTHING;
	if (len == sizeof(end) - 1 && memcmp(line, end, sizeof(end) - 1) == 0)
		return SSE_END;
	at = memmem(line, len, content, sizeof(content) - 1);
	if (!at)
		return SSE_NOTHING;
	at += sizeof(content) - 1;
	stop = memchr(at, '"', len - (size_t)(at - line));
	if (!stop || stop == at)
		return SSE_NOTHING;
	*ret_text = (struct text) {.data = at, .len = (size_t)(stop - at)};
	return SSE_TEXT;
}

enum sse_found sse_next(const char *data, size_t len, size_t *used, struct text *ret_text)
{
	while (*used < len) {
		const char *line = data + *used;
		const char *end = memchr(line, '\n', len - *used);
		enum sse_found found;

		if (!end)
			break;
		*used += (size_t)(end - line) + 1;
		found = read_line(line, (size_t)(end - line), ret_text);
		if (found != SSE_NOTHING)
			return found;
	}
	return SSE_NOTHING;
}
