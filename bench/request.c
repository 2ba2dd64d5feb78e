#include "request.h"

#include <errno.h>

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

static const struct {
	const char *name;
	enum hole hole;
} holes[] = {{"$ID", HOLE_ID},
	     {"$CONNECTION", HOLE_CONNECTION},
	     {"$SERIES", HOLE_SERIES},
	     {"$TEXT", HOLE_TEXT},
	     {"$QUESTION", HOLE_QUESTION}};

/* The first hole of the form and where it is; at the end there is none. */
static const char *find_hole(const char *form, enum hole *ret_hole, size_t *ret_len)
{
	const char *first = form + strlen(form);

	*ret_hole = HOLE_NONE;
	*ret_len = 0;
	for (size_t i = 0; i < sizeof(holes) / sizeof(holes[0]); i++) {
		const char *at = strstr(form, holes[i].name);

		if (!at || at >= first)
			continue;
		first = at;
		*ret_hole = holes[i].hole;
		*ret_len = strlen(holes[i].name);
	}
	return first;
}

int request_init(struct request *r, enum framing framing, const char *form, bool is_10k)
{
	struct piece *piece;

	if (framing == FRAMING_GOB) {
		r->framing = framing;
		return gob_form_init(&r->gob, form);
	}
	if (!form)
		form = default_form(framing, is_10k);
	r->framing = framing;
	r->n_pieces = 0;
	buf_init(&r->body, REQUEST_MAX);
	do {
		const char *hole;
		size_t len;

		if (r->n_pieces == PIECES_MAX)
			return -EINVAL;
		piece = &r->pieces[r->n_pieces++];
		buf_init(&piece->text, REQUEST_MAX);
		hole = find_hole(form, &piece->hole, &len);
		add_form(&piece->text, form, (size_t)(hole - form));
		if (piece->text.err)
			return piece->text.err;
		form = hole + len;
	} while (piece->hole != HOLE_NONE);
	return 0;
}

void request_done(struct request *r)
{
	for (unsigned i = 0; i < r->n_pieces; i++)
		buf_done(&r->pieces[i].text);
	buf_done(&r->body);
	gob_form_done(&r->gob);
}

void request_add_prologue(const struct request *r, struct buf *out)
{
	if (r->framing == FRAMING_GOB)
		buf_add(out, r->gob.prologue.data, r->gob.prologue.len);
}

static void fill_hole(struct request *r, enum hole hole, unsigned connection, uint64_t id)
{
	struct made made;

	switch (hole) {
	case HOLE_NONE:
		return;
	case HOLE_ID:
		buf_add_uint(&r->body, id);
		return;
	case HOLE_CONNECTION:
		buf_add_uint(&r->body, connection);
		return;
	case HOLE_SERIES:
		buf_add_uint(&r->body, id / SERIES);
		return;
	case HOLE_TEXT:
		/* The number as well: two short ones may be the same by chance. */
		made_memory(&r->set, r->n_made, &made);
		buf_add(&r->body, made.text, made.len);
		buf_add_str(&r->body, ", note ");
		buf_add_uint(&r->body, r->n_made++);
		return;
	case HOLE_QUESTION:
		made_question(&r->set, r->n_made++, &made);
		buf_add(&r->body, made.text, made.len);
		return;
	}
}

void request_add(struct request *r, unsigned connection, uint64_t id, struct buf *out)
{
	if (r->framing == FRAMING_GOB) {
		gob_add_call(&r->gob, id, out);
		return;
	}
	buf_clear(&r->body);
	for (unsigned i = 0; i < r->n_pieces; i++) {
		buf_add(&r->body, r->pieces[i].text.data, r->pieces[i].text.len);
		fill_hole(r, r->pieces[i].hole, connection, id);
	}
	message_add(out, r->framing, http_head,
		    (struct text) {.data = r->body.data, .len = r->body.len});
}
