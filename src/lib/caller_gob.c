#include "lib/caller.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/json.h"

enum {
	DEPTH = 120, /* so that what wraps it still fits JSON's limit */
	ARENA_SLACK = 1 << 20,
	KEEP_BYTES = 64 * 1024,
	GROWS = 6, /* JSON repeats field names every time, and escapes */

	CODE_METHOD = -32601,
	CODE_PARAMS = -32602,
	CODE_ERROR = -32000,
};

/* ---- in ---- */

struct answers {
	struct netrpc_reader reader;
	struct arena arena;
	struct buf text; /* of the answer that was handed on last */
	bool is_gob;     /* as far as its first bytes can tell */
};

static void answers_init(void *state, const struct framing_limits *limits)
{
	struct answers *s = state;
	struct gob_limits gob = gob_default_limits;

	gob.message = limits->message;
	gob.depth = DEPTH;
	netrpc_reader_init(&s->reader, NETRPC_CLIENT, &gob);
	arena_init(&s->arena,
		   limits->message + ARENA_SLACK + gob.values * 2 * sizeof(struct gob_node));
	buf_init(&s->text, GROWS * limits->message + KEEP_BYTES);
}

static void answers_done(void *state)
{
	struct answers *s = state;

	netrpc_reader_done(&s->reader);
	arena_done(&s->arena);
	buf_done(&s->text);
}

static bool is_bytes(const struct answers *s, const struct value *v)
{
	const struct gob_type *type;

	if (v->kind != VALUE_STRING)
		return false;
	type = gob_type_find(&s->reader.gob.types, gob_node_of(v)->type);
	return type && (type->kind == GOB_BYTES || type->kind == GOB_OPAQUE);
}

static void write_bytes(struct buf *out, struct text bytes)
{
	static const char digits[] = "0123456789abcdef";

	buf_add_str(out, "{\"$bytes\":\"");
	if (buf_reserve(out, 2 * bytes.len) != 0)
		return;
	for (size_t i = 0; i < bytes.len; i++) {
		unsigned char byte = (unsigned char)bytes.data[i];

		out->data[out->len++] = digits[byte >> 4];
		out->data[out->len++] = digits[byte & 15];
	}
	buf_add_str(out, "\"}");
}

/* As deep as the reader lets a value become. */
static void write_value(struct answers *s, const struct value *v)
{
	bool is_object = v->kind == VALUE_OBJECT;
	struct json j = json_writer(&s->text);

	if (is_bytes(s, v)) {
		write_bytes(&s->text, value_text(v));
		return;
	}
	if (!is_object && v->kind != VALUE_ARRAY) {
		json_value(&j, v);
		return;
	}
	buf_add_char(&s->text, is_object ? '{' : '[');
	value_each (child, v) {
		struct json key = json_writer(&s->text);

		if (child != v->first)
			buf_add_char(&s->text, ',');
		if (is_object) {
			json_text(&key, (struct text) {.data = child->key, .len = child->key_len});
			buf_add_char(&s->text, ':');
		}
		write_value(s, child);
	}
	buf_add_char(&s->text, is_object ? '}' : ']');
}

static int code_of(struct text error)
{
	if (text_begins(error, TEXT("rpc: can't find ")) ||
	    text_begins(error, TEXT("rpc: service/method request ill-formed")))
		return CODE_METHOD;
	return text_begins(error, TEXT("gob: ")) ? CODE_PARAMS : CODE_ERROR;
}

static void write_answer(struct answers *s, const struct netrpc_message *m)
{
	struct json j = json_writer(&s->text);

	buf_trim(&s->text, KEEP_BYTES);
	json_begin_object(&j);
	json_member_uint(&j, "id", m->seq);
	if (m->error.len == 0 && m->body) {
		json_key(&j, "result");
		write_value(s, m->body);
		json_end_object(&j);
		return;
	}
	json_member_object(&j, "error");
	/* Without a code it is no answer of the server and is not taken for one. */
	if (m->error.len > 0)
		json_member_int(&j, "code", code_of(m->error));
	json_member_text(&j, "message", m->error.len > 0 ? m->error : text_of(m->body_error->text));
	json_end_object(&j);
	json_end_object(&j);
}

/* A JSON-RPC server complains about what we said; as gob that looks like the beginning of
 * something longer, and we would wait for the rest. */
static bool sniff_json(struct answers *s, const char *in, size_t len)
{
	if (s->is_gob || len < 2)
		return false;
	s->is_gob = memcmp(in, "{\"", 2) != 0;
	return !s->is_gob;
}

/* Leave eof to those who see that an answer has begun: they have the words for it. */
static enum frame_kind answers_next(void *state, const char *in, size_t len, bool eof,
				    size_t *ret_used, struct frame *ret)
{
	struct answers *s = state;
	struct netrpc_message m;

	if (sniff_json(s, in, len)) {
		*ret_used = len;
		refuse(&ret->error, REFUSE_PARSE,
		       "received JSON instead of gob; try framing 'line'");
		return FRAME_REFUSED;
	}
	switch (netrpc_next(&s->reader, &s->arena, in, len, false, ret_used, &m)) {
	case NETRPC_MORE:
		return FRAME_MORE;
	case NETRPC_REFUSED:
		ret->error = *m.body_error;
		return FRAME_REFUSED;
	case NETRPC_MESSAGE:
		break;
	}
	write_answer(s, &m);
	arena_reset(&s->arena);
	if (s->text.err != 0) {
		refuse(&ret->error, s->text.err == -ENOMEM ? REFUSE_INTERNAL : REFUSE_TOO_LARGE,
		       "%s", strerror(-s->text.err));
		return FRAME_REFUSED;
	}
	ret->data = s->text.data;
	ret->len = s->text.len;
	return FRAME_MESSAGE;
}

static bool answers_in_message(const void *state)
{
	const struct answers *s = state;

	return netrpc_in_message(&s->reader);
}

const struct framing framing_gob_answer = {
	.name = "gob",
	.state_size = sizeof(struct answers),
	.init = answers_init,
	.done = answers_done,
	.next = answers_next,
	.in_message = answers_in_message,
};

/* ---- out ---- */

int caller_gob_new(size_t max, struct caller_gob **ret_gob)
{
	struct caller_gob *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->max = max;
	netrpc_writer_init(&g->writer, max);
	gob_shapes_init(&g->shapes);
	*ret_gob = g;
	return 0;
}

void caller_gob_free(struct caller_gob *g)
{
	if (!g)
		return;
	netrpc_writer_done(&g->writer);
	gob_shapes_done(&g->shapes);
	free(g);
}

void caller_gob_restart(struct caller_gob *g)
{
	netrpc_writer_done(&g->writer);
	netrpc_writer_init(&g->writer, g->max);
}

void caller_gob_forget(struct caller_gob *g)
{
	caller_gob_restart(g);
	gob_shapes_done(&g->shapes);
}

void gob_call_done(struct gob_call *call)
{
	doc_done(&call->doc);
}

int gob_call_read(struct caller_gob *g, const char *params, struct gob_call *ret_call,
		  struct error *error)
{
	struct gob_call call = {.shape = &gob_shape_empty_struct};
	int r;

	r = doc_read(&call.doc, params ? params : "{}", params ? strlen(params) : 2, error);
	if (r != 0)
		return r;
	r = gob_params_read(&g->shapes, &call.doc.arena, call.doc.root, &call.shape, error);
	if (r != 0) {
		doc_done(&call.doc);
		return r;
	}
	*ret_call = call;
	return 0;
}

int caller_gob_write(struct caller_gob *g, const char *method, uint64_t seq,
		     const struct gob_call *call, struct buf *out)
{
	struct gob_encoder *e;
	int r;

	e = netrpc_call(&g->writer, out, text_of(method), seq, call->shape);
	/* What it puts fits, since the shape was made for it. */
	gob_put(e, call->shape, call->doc.root, NULL);
	r = netrpc_end(&g->writer, out);
	out->err = 0;
	return r;
}
