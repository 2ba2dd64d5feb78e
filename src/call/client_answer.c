#include "call/client.h"

#include <errno.h>

#include "base/log.h"
#include "call/http.h"
#include "call/inner.h"
#include "wire/framing.h"

/* Its parameters contain the client's environment, in which people have passwords and keys. */
static bool is_secret(const char *data, size_t len)
{
	static const char method[] = "daemon.restart";

	return memmem(data, len, method, sizeof(method) - 1) != NULL;
}

void client_log(const struct client *s, const char *way, const char *data, size_t len)
{
	struct text text = {.data = data, .len = len};

	if (len > 0 && is_secret(data, len))
		text = TEXT("(omitted)");
	log_debug("message", "connection=%llu dialect=%s direction=%s bytes=%zu text=%.*s",
		  (unsigned long long)s->number, s->endpoint->dialect->name, way, len,
		  TEXT_ARGS(text_cut(text, 800)));
}

void answer_send_text(struct client *s, int status, const char *data, size_t len)
{
	struct buf *out = conn_out(s->conn);
	size_t before = out->len;

	if (s->server->opts.log_messages)
		client_log(s, "out", data, len);
	if (s->framing == &framing_http)
		http_send(s, status, NULL, data, len);
	else
		s->framing->wrap(out, data, len);
	s->endpoint->bytes_out += out->len - before;
}

/* Long answers are handed over, not copied. */
static void give(struct client *s, struct buf *b)
{
	if (s->framing->flatten && b->len > 0)
		s->framing->flatten(b->data, b->len);
	buf_count(b, &s->server->room);
	conn_give(s->conn, b);
}

/* What precedes a message of this length; false: none of it is wanted. */
static bool send_lead(struct client *s, int status, size_t len)
{
	if (s->framing == &framing_http)
		return http_send_head(s, status, len);
	if (s->framing->lead)
		s->framing->lead(conn_out(s->conn), len);
	return true;
}

static void send_trail(struct client *s)
{
	if (s->framing->trail)
		s->framing->trail(conn_out(s->conn));
}

static void send_large(struct client *s, int status, struct buf *out)
{
	size_t before = conn_pending(s->conn);

	if (s->server->opts.log_messages)
		client_log(s, "out", out->data, out->len);
	if (send_lead(s, status, out->len)) {
		give(s, out);
		send_trail(s);
	}
	s->endpoint->bytes_out += conn_pending(s->conn) - before;
}

/* A notification needs no answer, but an HTTP request needs a response. */
void answer_send_silence(struct client *s)
{
	if (s->framing == &framing_http)
		http_send(s, s->endpoint->dialect->http_silent_status, NULL, "", 0);
}

/* Half an answer would be worse than none: there was no memory for it, or the id alone is larger
 * than an answer may be. */
void answer_send(struct client *s, int status, struct buf *out)
{
	if (out->err != 0)
		client_give_up(s);
	else if (out->len >= HANDED_OVER)
		send_large(s, status, out);
	else
		answer_send_text(s, status, out->data, out->len);
}

static void batch_fail(struct batch *b, int err)
{
	if (b->out.err == 0)
		b->out.err = err;
}

/* Behind what was handed over before. */
static void batch_give(struct batch *b, struct buf *from)
{
	struct room *room = b->out.room;
	size_t len = b->out.len + from->len;

	if (piece_append(&b->pieces, &b->out) != 0 || piece_append(&b->pieces, from) != 0)
		batch_fail(b, -ENOMEM);
	b->n_in_pieces += len;
	buf_count(&b->out, room);
}

void answer_batch(struct batch *b, struct call *c)
{
	if (c->request.silent)
		return;
	if (c->out.err != 0)
		batch_fail(b, c->out.err);
	if (b->n_in_pieces + b->out.len + c->out.len + 2 > b->out.max)
		batch_fail(b, -EMSGSIZE);
	buf_add_char(&b->out, b->any ? ',' : '[');
	b->any = true;
	if (b->out.err != 0)
		return;
	if (c->out.len >= HANDED_OVER)
		batch_give(b, &c->out);
	else
		buf_add(&b->out, c->out.data, c->out.len);
}

static void send_batch(struct client *s, struct batch *b)
{
	size_t len = b->n_in_pieces + b->out.len;
	size_t before = conn_pending(s->conn);
	struct piece *p;

	if (list_empty(&b->pieces)) {
		answer_send(s, 0, &b->out);
		return;
	}
	/* A client that posts a batch over HTTP wants a response. */
	(void)send_lead(s, 0, len);
	while ((p = piece_first(&b->pieces))) {
		give(s, &p->buf);
		piece_free(p);
	}
	give(s, &b->out);
	send_trail(s);
	s->endpoint->bytes_out += conn_pending(s->conn) - before;
}

static void refuse_batch(struct client *s, struct batch *b)
{
	bool full = b->out.err == -ENOBUFS;
	enum refusal code = full ? REFUSE_LIMIT : REFUSE_TOO_LARGE;
	const struct error_row *row = &s->endpoint->dialect->errors[code];
	struct json j = json_writer(&b->out);

	buf_clear(&b->out);
	jsonrpc_write_error(&s->endpoint->dialect->rules, &j, (struct text) {0}, row->code,
			    full ? TEXT("unsent responses exceed their size limit; try again later")
				 : TEXT("the responses to the batch exceed their size limit"),
			    (struct text) {0});
	answer_send(s, 0, &b->out);
}

void answer_finish_batch(struct client *s)
{
	struct batch *b = s->batch;

	s->batch = NULL;
	buf_add_char(&b->out, ']');
	if (!b->any) {
		answer_send_silence(s);
	} else if (b->out.err == 0) {
		send_batch(s, b);
	} else {
		refuse_batch(s, b);
	}
	batch_unref(b);
	client_release_held(s);
}
