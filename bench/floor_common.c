#include "floor.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

enum { ANSWERS = 1024, ANSWERS_MAX = 64 << 20 };

static const char ping_answer[] = "{\"jsonrpc\":\"2.0\",\"result\":{\"pong\":true,\"timestamp\":"
				  "\"2026-11-15T07:47:17.177Z\"},\"id\":100000}";
static const char http_head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

int floor_opts_parse(int argc, char **argv, struct floor_opts *ret_opts)
{
	static const struct option names[] = {
		{"listen", required_argument, NULL, 'l'},
		{"framing", required_argument, NULL, 'f'},
		{"answer", required_argument, NULL, 'a'},
		{0},
	};
	struct floor_opts o = {.framing = FRAMING_LINE, .answer = TEXT(ping_answer)};
	int c, r = 0;

	while (r == 0 && (c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'l')
			o.listen = optarg;
		else if (c == 'a')
			o.answer = text_of(optarg);
		else
			r = c == 'f' ? framing_parse(optarg, &o.framing) : -EINVAL;
	}
	if (r != 0 || !o.listen) {
		fprintf(stderr,
			"usage: %s --listen unix:PATH|tcp:HOST:PORT"
			" [--framing line|length|http] [--answer TEXT]\n",
			argv[0]);
		return -EINVAL;
	}
	*ret_opts = o;
	return 0;
}

int answers_init(struct answers *a, const struct floor_opts *opts)
{
	buf_init(&a->repeated, ANSWERS_MAX);
	message_add(&a->repeated, opts->framing, http_head, opts->answer);
	a->one = a->repeated.len;
	a->n = ANSWERS;
	for (size_t i = 1; i < a->n; i++)
		message_add(&a->repeated, opts->framing, http_head, opts->answer);
	return a->repeated.err;
}

/* Counts whole messages; *ret_used is where the first unfinished one begins. */
static ssize_t count_messages(enum framing framing, const char *data, size_t len, size_t *ret_used)
{
	struct text body;
	size_t used = 0;
	ssize_t n = 0, r;

	while (used < len) {
		r = message_cut(framing, data + used, len - used, &body);
		if (r < 0)
			return r;
		if (r == 0)
			break;
		if (floor_check && floor_check(body) != 0)
			return -EPROTO;
		used += (size_t)r;
		n++;
	}
	*ret_used = used;
	return n;
}

ssize_t floor_feed(struct buf *carry, enum framing framing, const char *data, size_t len)
{
	size_t used;
	ssize_t n;

	if (carry->len == 0) {
		n = count_messages(framing, data, len, &used);
		if (n >= 0 && used < len)
			buf_add(carry, data + used, len - used);
	} else {
		buf_add(carry, data, len);
		n = count_messages(framing, carry->data, carry->len, &used);
		if (n >= 0)
			buf_consume(carry, used);
		if (carry->len == 0)
			buf_trim(carry, 0);
	}
	return carry->err ? carry->err : n;
}
