#include "request.h"

static const char ping_small[] = "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":$ID}";
static const char ping_10k[] =
	"{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"params\":$PAD,\"id\":$ID}";
static const char ping_resp[] = "PING";
static const char http_head[] = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
				"Content-Type: application/json\r\n";

enum { PAD_SIZE = 10 * 1024, REQUEST_MAX = 64 * 1024 };

/*
 * Looks like what agents send: objects with short text, numbers, a list, some
 * escapes. One long string would only measure memchr.
 */
static void add_pad(struct buf *out)
{
	size_t goal = out->len + PAD_SIZE - 200;

	buf_add_str(out, "{\"items\":[");
	for (unsigned i = 0; out->len < goal; i++)
		buf_printf(out,
			   "%s{\"name\":\"item-%u\",\"score\":%u.%02u,\"done\":%s,"
			   "\"tags\":[\"north\",\"t%u\",null],\"at\":\"2026-11-15T07:47:17Z\","
			   "\"note\":\"said \\\"yes\\\" at line %u,\\nthen left the caf\xc3\xa9\"}",
			   i ? "," : "", i, i % 10, i % 100, i % 2 ? "true" : "false", i % 7, i);
	buf_add_str(out, "]}");
}

static void add_form(struct buf *out, const char *form, size_t len)
{
	const char *pad = memmem(form, len, "$PAD", 4);

	if (!pad) {
		buf_add(out, form, len);
		return;
	}
	buf_add(out, form, (size_t)(pad - form));
	add_pad(out);
	buf_add(out, pad + 4, len - 4 - (size_t)(pad - form));
}

static const char *default_form(enum framing framing, bool is_10k)
{
	if (framing == FRAMING_RESP)
		return ping_resp;
	return is_10k ? ping_10k : ping_small;
}

int request_init(struct request *r, enum framing framing, const char *form, bool is_10k)
{
	const char *hole;

	if (!form)
		form = default_form(framing, is_10k);
	hole = strstr(form, "$ID");
	r->framing = framing;
	r->has_id = hole != NULL;
	buf_init(&r->before, REQUEST_MAX);
	buf_init(&r->after, REQUEST_MAX);
	buf_init(&r->body, REQUEST_MAX);
	add_form(&r->before, form, hole ? (size_t)(hole - form) : strlen(form));
	if (hole)
		add_form(&r->after, hole + 3, strlen(hole + 3));
	return r->before.err ? r->before.err : r->after.err;
}

void request_done(struct request *r)
{
	buf_done(&r->before);
	buf_done(&r->after);
	buf_done(&r->body);
}

void request_add(struct request *r, uint64_t id, struct buf *out)
{
	buf_clear(&r->body);
	buf_add(&r->body, r->before.data, r->before.len);
	if (r->has_id)
		buf_add_uint(&r->body, id);
	buf_add(&r->body, r->after.data, r->after.len);
	message_add(out, r->framing, http_head,
		    (struct text) {.data = r->body.data, .len = r->body.len});
}
