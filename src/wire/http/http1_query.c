#include "wire/http/http1.h"

#include "base/utf8.h"

static struct text before(struct text t, const char *at)
{
	return (struct text) {.data = t.data, .len = (size_t)(at - t.data)};
}

static struct text behind(struct text t, const char *at)
{
	return (struct text) {.data = at + 1, .len = (size_t)(t.data + t.len - at - 1)};
}

static const char *http1_query_find(struct text t, char c)
{
	return t.len > 0 ? memchr(t.data, c, t.len) : NULL;
}

void http_target_split(struct text target, struct text *ret_path, struct text *ret_query)
{
	const char *mark = http1_query_find(target, '?');

	*ret_path = mark ? before(target, mark) : target;
	/* "http://HOST?x=1" */
	if (ret_path->len == 0)
		*ret_path = TEXT("/");
	*ret_query = mark ? behind(target, mark) : (struct text) {0};
}

bool http_query_next(struct text *rest, struct http_pair *ret_pair)
{
	struct text pair;
	const char *at;

	do {
		if (rest->len == 0)
			return false;
		at = http1_query_find(*rest, '&');
		pair = at ? before(*rest, at) : *rest;
		*rest = at ? behind(*rest, at) : (struct text) {0};
	} while (pair.len == 0);
	at = http1_query_find(pair, '=');
	ret_pair->name = at ? before(pair, at) : pair;
	ret_pair->value = at ? behind(pair, at) : TEXT("");
	return true;
}

bool http_query_decode(struct text t, char *out, size_t *ret_len)
{
	size_t n = 0;

	for (size_t i = 0; i < t.len; i++) {
		int high;
		int low;

		if (t.data[i] != '%') {
			out[n++] = t.data[i];
			if (t.data[i] == '+')
				out[n - 1] = ' ';
			continue;
		}
		high = t.len - i > 2 ? hex_digit(t.data[i + 1]) : -1;
		low = high >= 0 ? hex_digit(t.data[i + 2]) : -1;
		if (low < 0)
			return false;
		out[n++] = (char)(high << 4 | low);
		i += 2;
	}
	*ret_len = n;
	return utf8_is_valid(out, n);
}
