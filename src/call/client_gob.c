#include "call/inner.h"

#include "base/log.h"
#include "base/utf8.h"
#include "wire/netrpc.h"

enum { ARENA_MAX = 128 << 20, LOGGED_BYTES = 800, KEPT_BYTES = 512, OWN_MAX = 64 << 20 };

struct gob_side {
	struct netrpc_reader reader;
	struct netrpc_writer writer;
	struct arena arena; /* for the message being read */
	struct netrpc_message message;
	size_t bytes; /* of it */
	bool opened;  /* the first bytes were those of a gob stream */
	/* The last short answer, as text and as sent: a client that asks the same again and
	 * again, as monitors do, has it encoded once. */
	const struct gob_shape *shape;
	struct buf said;
	struct buf body;
};

/* Every gob connection has one for all its life: nothing in it may hold a struct error. */
_Static_assert(sizeof(struct gob_side) <= 1280, "an idle connection is small");

/* ---- the framing ---- */

static void side_init(void *state, const struct framing_limits *limits)
{
	struct gob_side *g = state;
	struct gob_limits bounds = gob_default_limits;

	bounds.message = limits->message;
	netrpc_reader_init(&g->reader, NETRPC_SERVER, &bounds);
	netrpc_writer_init(&g->writer, limits->message);
	arena_init(&g->arena, ARENA_MAX);
	buf_init(&g->said, KEPT_BYTES);
	buf_init(&g->body, KEPT_BYTES);
}

static void side_done(void *state)
{
	struct gob_side *g = state;

	netrpc_reader_done(&g->reader);
	netrpc_writer_done(&g->writer);
	arena_done(&g->arena);
	buf_done(&g->said);
	buf_done(&g->body);
}

/*
 * Text that came to the wrong socket is recognised by its first bytes: read as a count, "{"
 * would mean 123 bytes to wait for, which a short request never has.
 */
static enum frame_kind open_stream(struct gob_side *g, const char *in, size_t len,
				   struct frame *ret)
{
	enum sniffed what = sniff(in, len, false, g->reader.gob.limits.message);

	if (what == SNIFF_MORE)
		return FRAME_MORE;
	g->opened = what == SNIFF_GOB;
	if (g->opened)
		return FRAME_MESSAGE;
	*ret = (struct frame) {0};
	refuse(&ret->error, REFUSE_PARSE, "the received data is not a gob stream");
	return FRAME_REFUSED;
}

static enum frame_kind side_next(void *state, const char *in, size_t len, bool eof,
				 size_t *ret_used, struct frame *ret)
{
	struct gob_side *g = state;
	enum netrpc_kind kind;

	*ret_used = 0;
	if (!g->opened && !eof) {
		enum frame_kind opened = open_stream(g, in, len, ret);

		if (opened != FRAME_MESSAGE)
			return opened;
	}
	kind = netrpc_next(&g->reader, &g->arena, in, len, eof, ret_used, &g->message);
	g->bytes += *ret_used;
	switch (kind) {
	case NETRPC_MORE:
		/* A silent client holds no memory. */
		if (!netrpc_in_message(&g->reader))
			arena_done(&g->arena);
		return FRAME_MORE;
	case NETRPC_MESSAGE:
		/* While it waits it holds its tree. */
		*ret = (struct frame) {.len = g->arena.used, .netrpc = &g->message};
		return FRAME_MESSAGE;
	case NETRPC_REFUSED:
		break;
	}
	*ret = (struct frame) {.error = *g->message.body_error};
	return FRAME_REFUSED;
}

static bool side_in_message(const void *state)
{
	const struct gob_side *g = state;

	return netrpc_in_message(&g->reader);
}

static size_t side_held(const void *state)
{
	const struct gob_side *g = state;

	return netrpc_in_message(&g->reader) ? g->arena.used : 0;
}

static void side_drop(void *state)
{
	struct gob_side *g = state;

	arena_done(&g->arena);
}

const struct framing framing_gob = {
	.name = "gob",
	.state_size = sizeof(struct gob_side),
	.init = side_init,
	.done = side_done,
	.next = side_next,
	.wrap = NULL,
	.in_message = side_in_message,
	.held = side_held,
	.drop = side_drop,
};

/* ---- what came ---- */

static void log_way(const struct client *s, const char *way, size_t bytes, struct text method,
		    uint64_t seq, struct text said)
{
	log_debug(
		"message",
		"connection=%llu dialect=%s direction=%s bytes=%zu method=%.*s seq=%llu text=%.*s",
		(unsigned long long)s->number, s->endpoint->dialect->name, way, bytes,
		TEXT_ARGS(method), (unsigned long long)seq,
		(int)(said.len > LOGGED_BYTES ? LOGGED_BYTES : said.len), said.data);
}

/* As JSON, as far as there is room. */
static void log_in(const struct client *s, const struct gob_side *g)
{
	const struct netrpc_message *m = &g->message;
	char words[LOGGED_BYTES];
	struct buf text = {.data = words, .cap = sizeof(words), .max = sizeof(words)};
	struct json j = json_writer(&text);

	if (m->body)
		json_value(&j, m->body);
	else
		buf_add(&text, m->body_error->text, strlen(m->body_error->text));
	log_way(s, "in", g->bytes, m->method, m->seq,
		(struct text) {.data = words, .len = text.len});
}

/* Where the next byte is that belongs to no character; end: nowhere. */
static const char *skip_whole(const char *p, const char *end)
{
	while (p < end) {
		size_t n = (unsigned char)*p < 0x80 ? 1 : utf8_sequence(p, end);

		if (n == 0)
			break;
		p += n;
	}
	return p;
}

/* Go's strings are any bytes, ours are UTF-8: like Go's own printing, invalid bytes become
 * U+FFFD. */
static int clean_text(struct arena *a, const char **text, uint32_t *len)
{
	const char *p = *text;
	const char *end = p + *len;
	const char *bad = skip_whole(p, end);
	char *copy;
	char *to;

	if (bad == end)
		return 0;
	if (*len > UINT32_MAX / 3)
		return -EMSGSIZE;
	copy = to = arena_alloc(a, 3 * (size_t)*len);
	if (!copy)
		return -ENOMEM;
	while (p < end) {
		memcpy(to, p, (size_t)(bad - p));
		to += bad - p;
		p = bad;
		if (p < end) {
			to += utf8_encode(to, 0xfffd);
			p++;
		}
		bad = skip_whole(p, end);
	}
	*text = copy;
	*len = (uint32_t)(to - copy);
	return 0;
}

/* No deeper than gob_limits.depth. */
static int clean(struct arena *a, struct value *v)
{
	int r = v->key ? clean_text(a, &v->key, &v->key_len) : 0;

	if (r == 0 && v->kind == VALUE_STRING)
		return clean_text(a, &v->text, &v->len);
	if (v->kind != VALUE_ARRAY && v->kind != VALUE_OBJECT)
		return r;
	for (struct value *child = v->first; child && r == 0; child = child->next)
		r = clean(a, child);
	return r;
}

static bool is_service(const struct registry *r, struct text service)
{
	for (unsigned i = 0; i < registry_count(r); i++) {
		const struct method *m = registry_at(r, i);

		if (m->gob_args && strlen(m->name) > service.len &&
		    memcmp(m->name, service.data, service.len) == 0 && m->name[service.len] == '.')
			return true;
	}
	return false;
}

static int client_gob_find_row(struct call *c)
{
	const struct registry *r = c->endpoint->registry;
	const struct method *m = registry_find(r, c->request.method);
	struct text service, name;
	int e;

	if (m && m->gob_args) {
		c->method = m;
		return 0;
	}
	e = netrpc_split(c->request.method, &service, &name, &c->error);
	if (e != 0)
		return e;
	return is_service(r, service) ? netrpc_no_method(c->request.method, &c->error)
				      : netrpc_no_service(c->request.method, &c->error);
}

/* The call takes the arena that the message was read into and gives its own for the next
 * message. */
static void take_message(struct call *c, struct gob_side *g, size_t len)
{
	struct arena own = c->arena;

	c->arena = g->arena;
	g->arena = own;
	g->bytes = 0;
	c->netrpc = true;
	c->seq = g->message.seq;
	c->source = (struct text) {.len = len};
	c->pinned = true;
	c->request = (struct jsonrpc_request) {
		.method = g->message.method,
		.params = g->message.body,
	};
}

struct call *client_gob_read(struct client *s, const struct frame *frame)
{
	struct gob_side *g = s->framing_state;
	struct call *c;
	int r;

	if (s->server->opts.log_messages)
		log_in(s, g);
	c = dispatch_new_call(s);
	if (!c)
		return NULL;
	take_message(c, g, frame->len);
	r = client_gob_find_row(c)
		    ?: netrpc_fit(&g->reader, frame->netrpc, c->method->gob_args, &c->error);
	/* The types belong to the connection; from here on only the tree is needed. */
	c->tree = r == 0 ? (struct value *)frame->netrpc->body : NULL;
	if (c->tree && clean(&c->arena, c->tree) != 0) {
		refuse(&c->error, REFUSE_TOO_LARGE,
		       "the message needs more than %zu bytes of memory", c->arena.max);
		c->tree = NULL;
	}
	return c;
}

/* ---- answers ---- */

static struct text said_by(const struct call *c)
{
	return (struct text) {.data = c->out.data ? c->out.data : "", .len = c->out.len};
}

static bool said_before(const struct gob_side *g, const struct call *c, struct text said)
{
	return g->shape == c->method->gob_reply && g->said.len == said.len &&
	       memcmp(g->said.data, said.data, said.len) == 0;
}

static void keep_said(struct gob_side *g, const struct call *c, struct text said, struct text body)
{
	buf_clear(&g->said);
	buf_clear(&g->body);
	buf_add(&g->said, said.data, said.len);
	buf_add(&g->body, body.data, body.len);
	g->shape = g->said.err == 0 && g->body.err == 0 ? c->method->gob_reply : NULL;
}

/* On failure nothing was written. */
static int put_reply(struct gob_side *g, struct buf *out, struct call *c)
{
	struct netrpc_writer *w = &g->writer;
	struct text said = said_by(c);
	struct gob_encoder *e;
	struct value *v;
	size_t at;
	bool defines;
	int r, end;

	if (said_before(g, c, said))
		return netrpc_answer_again(w, out, c->request.method, c->seq, buf_bytes(&g->body));
	r = json_read(&c->arena, said.data, said.len, &json_default_limits, &v, &c->error);
	if (r != 0)
		return r;
	e = netrpc_answer(w, out, c->request.method, c->seq, c->method->gob_reply);
	at = out->len;
	r = gob_put(e, c->method->gob_reply, v, &c->error);
	defines = e->definitions.len > 0;
	/* After a refusal the value is incomplete; ending it removes it. */
	end = netrpc_end(w, out);
	if (r != 0)
		return r;
	if (end == -EMSGSIZE)
		return refuse(&c->error, REFUSE_TOO_LARGE, "the result is larger than %zu bytes",
			      w->gob.max);
	if (end == 0 && !defines)
		keep_said(g, c, said, (struct text) {.data = out->data + at, .len = out->len - at});
	return end;
}

static int put_error(struct netrpc_writer *w, struct buf *out, const struct call *c,
		     struct text words)
{
	/* To Go, an error without words is no error. */
	if (words.len == 0)
		words = TEXT("error");
	return netrpc_error(w, out, c->request.method, c->seq, words);
}

static int put_failure(struct gob_side *g, struct buf *out, struct call *c)
{
	struct text words = said_by(c);
	int r = c->method ? 0 : netrpc_name_error(&c->arena, &c->error, c->request.method, &words);

	return r == 0 ? put_error(&g->writer, out, c, words) : r;
}

static int send_said(struct client *s, struct call *c, struct buf *out)
{
	struct gob_side *g = s->framing_state;
	size_t before = out->len;
	int r;

	if (c->out.err != 0)
		return c->out.err;
	r = c->failed ? put_failure(g, out, c) : put_reply(g, out, c);
	if (r > 0) {
		log_caused(LOG_LEVEL_WARN, "could not send response",
			   "dialect=%s method=%.*s reason=%s", c->dialect->name,
			   TEXT_ARGS(c->request.method), c->error.text);
		s->endpoint->n_errors++;
		r = put_error(&g->writer, out, c, text_of(c->error.text));
	}
	if (r != 0)
		return r;
	s->endpoint->bytes_out += out->len - before;
	if (s->server->opts.log_messages)
		log_way(s, "out", out->len - before, c->request.method, c->seq, said_by(c));
	return 0;
}

void client_gob_answer(struct client *s, struct call *c)
{
	struct buf own;
	int r;

	if (c->out.len < HANDED_OVER) {
		r = send_said(s, c, conn_out(s->conn));
	} else {
		buf_init(&own, OWN_MAX);
		r = send_said(s, c, &own);
		buf_count(&own, &s->server->room);
		if (r == 0)
			conn_give(s->conn, &own);
		buf_done(&own);
	}
	if (r != 0)
		client_give_up(s);
}
