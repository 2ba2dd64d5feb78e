#include "wire/netrpc.h"

#include <errno.h>
#include <string.h>

#include "wire/gob/encode.h"
#include "wire/gob/type.h"

enum { PLAIN_MAX = 1024 }; /* bytes of a text in a short header */

#define FIELDS(list) .fields = (list), .n_fields = sizeof(list) / sizeof((list)[0])

static const struct gob_shape_field request_fields[] = {
	{"ServiceMethod", &gob_shape_string},
	{"Seq", &gob_shape_uint64},
};
static const struct gob_shape_field response_fields[] = {
	{"ServiceMethod", &gob_shape_string},
	{"Seq", &gob_shape_uint64},
	{"Error", &gob_shape_string},
};
static const struct gob_shape request = {
	.kind = GOB_STRUCT, .name = "Request", .go = "rpc.Request", FIELDS(request_fields)};
static const struct gob_shape response = {
	.kind = GOB_STRUCT, .name = "Response", .go = "rpc.Response", FIELDS(response_fields)};

/* ---- reading ---- */

void netrpc_reader_init(struct netrpc_reader *r, enum netrpc_side side,
			const struct gob_limits *limits)
{
	*r = (struct netrpc_reader) {.side = side};
	gob_decoder_init(&r->gob, limits);
}

void netrpc_reader_done(struct netrpc_reader *r)
{
	gob_decoder_done(&r->gob);
	error_free(r->broken);
}

bool netrpc_in_message(const struct netrpc_reader *r)
{
	return !r->broken && (r->has_header || gob_in_message(&r->gob));
}

static struct text text_or_empty(const struct value *v)
{
	return v ? value_text(v) : TEXT("");
}

/* It fits, so a number here is an unsigned one of at most 64 bits. */
static uint64_t read_seq(const struct value *v)
{
	uint64_t n = 0;

	for (uint32_t i = 0; v && i < v->len; i++)
		n = n * 10 + (unsigned)(v->text[i] - '0');
	return n;
}

/* Every header but the first of a connection has a known type, and Go's own always has the same
 * layout: those are read without a tree. */
static bool netrpc_is_plain(const struct gob_type *type, const struct gob_shape *shape)
{
	if (type->kind != GOB_STRUCT || type->n_fields != shape->n_fields)
		return false;
	for (unsigned i = 0; i < shape->n_fields; i++) {
		if (type->fields[i].id != (int32_t)shape->fields[i].shape->kind ||
		    !text_is(type->fields[i].name, shape->fields[i].name))
			return false;
	}
	return true;
}

static bool read_text(struct gob_in *in, struct text *ret)
{
	uint64_t n;

	if (gob_read_uint(in, &n) != GOB_NUMBER_OK || n > gob_left(in))
		return false;
	*ret = (struct text) {.data = (const char *)in->p, .len = n};
	in->p += n;
	return true;
}

/* The fields of a plain header, up to its end; false for anything else. */
static bool read_fields(struct gob_in *in, unsigned n_fields, struct netrpc_message *m)
{
	uint64_t field = 0;
	uint64_t step = 1;

	while (gob_read_uint(in, &step) == GOB_NUMBER_OK && step > 0) {
		bool ok = step <= n_fields - field;

		field += ok ? step : 0;
		if (ok && field == 2)
			ok = gob_read_uint(in, &m->seq) == GOB_NUMBER_OK;
		else if (ok)
			ok = read_text(in, field == 1 ? &m->method : &m->error);
		if (!ok)
			return false;
	}
	return step == 0 && gob_left(in) == 0;
}

static bool keep_text(struct arena *a, struct text *t)
{
	if (t->len > 0)
		t->data = arena_copy(a, t->data, t->len);
	return t->data != NULL;
}

/* False, with no header, unless it is complete and valid: the rest is for gob_next. */
static bool take_plain_header(struct netrpc_reader *r, struct arena *a, const char *bytes,
			      size_t len, size_t *ret_used)
{
	const unsigned char *start = (const unsigned char *)bytes;
	struct gob_in in = {.p = start, .end = start + len};
	struct netrpc_message *m = &r->message;
	uint64_t size, id;

	if (gob_read_uint(&in, &size) != GOB_NUMBER_OK || size > gob_left(&in) ||
	    size > r->gob.limits.message)
		return false;
	in.end = in.p + size;
	m->method = TEXT("");
	m->error = TEXT("");
	m->seq = 0;
	if (gob_read_uint(&in, &id) != GOB_NUMBER_OK || id != gob_int_to_uint(r->plain) ||
	    !read_fields(&in, r->side == NETRPC_SERVER ? 2 : 3, m) || !keep_text(a, &m->method) ||
	    !keep_text(a, &m->error))
		return false;
	r->has_header = true;
	*ret_used = (size_t)(in.end - start);
	return true;
}

static void take_header(struct netrpc_reader *r, const struct gob_value *header)
{
	const struct gob_shape *shape = r->side == NETRPC_SERVER ? &request : &response;
	const struct value *v = header->value;
	struct error error;

	if (gob_fit(&r->gob.types, header->type, v, shape, &error) != 0) {
		r->broken = error_keep(&error);
		return;
	}
	r->message = (struct netrpc_message) {
		.method = text_or_empty(value_find(v, "ServiceMethod")),
		.seq = read_seq(value_find(v, "Seq")),
		.error = text_or_empty(value_find(v, "Error")),
	};
	r->has_header = true;
	if (netrpc_is_plain(header->type, shape))
		r->plain = header->type->id;
}

static enum netrpc_kind refused(struct netrpc_reader *r, struct netrpc_message *ret)
{
	*ret = (struct netrpc_message) {
		.method = TEXT(""), .error = TEXT(""), .body_error = r->broken};
	return NETRPC_REFUSED;
}

static const struct error *copy_error(struct arena *a, const struct error *error)
{
	static const struct error no_memory = {.code = REFUSE_INTERNAL,
					       .text = "gob: out of memory"};
	struct error *copy = arena_alloc(a, sizeof(*copy));

	if (!copy)
		return &no_memory;
	*copy = *error;
	return copy;
}

static enum netrpc_kind end_message(struct netrpc_reader *r, struct arena *a,
				    const struct gob_value *body, struct netrpc_message *ret)
{
	*ret = r->message;
	ret->body = body->value;
	ret->body_type = body->type;
	ret->body_error = body->value ? NULL : copy_error(a, &body->error);
	r->has_header = false;
	return NETRPC_MESSAGE;
}

/* True: a message is there, or a reason why there will be none. */
static bool netrpc_take(struct netrpc_reader *r, enum gob_said said, const struct gob_value *value)
{
	if (said == GOB_BROKEN || (said == GOB_REFUSED && !r->has_header)) {
		r->broken = error_keep(&value->error);
		return true;
	}
	if (r->has_header)
		return true;
	take_header(r, value);
	return r->broken != NULL;
}

enum netrpc_kind netrpc_next(struct netrpc_reader *r, struct arena *a, const char *in, size_t len,
			     bool eof, size_t *ret_used, struct netrpc_message *ret)
{
	size_t used = 0;

	while (!r->broken) {
		struct gob_value value;
		enum gob_said said;
		size_t n = 0;

		if (!r->has_header && r->plain != 0 && !r->gob.value.arena && used < len &&
		    take_plain_header(r, a, in + used, len - used, &n))
			used += n;
		said = gob_next(&r->gob, a, in ? in + used : NULL, len - used, eof, &n, &value);
		used += n;
		if (said == GOB_MORE && eof && r->has_header) {
			refuse(&value.error, REFUSE_PARSE, "unexpected EOF");
			r->broken = error_keep(&value.error);
			break;
		}
		if (said == GOB_MORE) {
			*ret_used = used;
			return NETRPC_MORE;
		}
		if (netrpc_take(r, said, &value) && !r->broken) {
			*ret_used = used;
			return end_message(r, a, &value, ret);
		}
	}
	*ret_used = len;
	return refused(r, ret);
}

int netrpc_fit(struct netrpc_reader *r, const struct netrpc_message *m,
	       const struct gob_shape *shape, struct error *error)
{
	if (m->body)
		return gob_fit(&r->gob.types, m->body_type, m->body, shape, error);
	if (error)
		*error = *m->body_error;
	return m->body_error->code;
}

/* ---- names ---- */

static const char ILL_FORMED[] = "rpc: service/method request ill-formed: ";
static const char NO_SERVICE[] = "rpc: can't find service ";
static const char NO_METHOD[] = "rpc: can't find method ";

int netrpc_split(struct text method, struct text *ret_service, struct text *ret_name,
		 struct error *error)
{
	const char *dot = method.len > 0 ? memrchr(method.data, '.', method.len) : NULL;
	size_t n;

	if (!dot)
		return refuse_name(error, REFUSE_METHOD, ILL_FORMED, method);
	n = (size_t)(dot - method.data);
	*ret_service = (struct text) {.data = method.data, .len = n};
	*ret_name = (struct text) {.data = dot + 1, .len = method.len - n - 1};
	return 0;
}

int netrpc_no_service(struct text method, struct error *error)
{
	return refuse_name(error, REFUSE_METHOD, NO_SERVICE, method);
}

int netrpc_no_method(struct text method, struct error *error)
{
	return refuse_name(error, REFUSE_METHOD, NO_METHOD, method);
}

int netrpc_name_error(struct arena *a, const struct error *error, struct text method,
		      struct text *ret_error)
{
	static const char *const beginnings[] = {ILL_FORMED, NO_SERVICE, NO_METHOD};

	*ret_error = text_of(error->text);
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
		size_t n = strlen(beginnings[i]);
		char *whole;

		if (strncmp(error->text, beginnings[i], n) != 0 || method.len > NETRPC_NAME_MAX)
			continue;
		whole = arena_alloc(a, n + method.len);
		if (!whole)
			return -ENOMEM;
		memcpy(whole, beginnings[i], n);
		memcpy(whole + n, method.data, method.len);
		*ret_error = (struct text) {.data = whole, .len = n + method.len};
	}
	return 0;
}

/* ---- writing ---- */

void netrpc_writer_init(struct netrpc_writer *w, size_t max)
{
	*w = (struct netrpc_writer) {0};
	gob_encoder_init(&w->gob, max);
}

void netrpc_writer_done(struct netrpc_writer *w)
{
	gob_encoder_done(&w->gob);
}

/* What write_header writes when its type is known: most headers. */
static void write_plain_header(struct netrpc_writer *w, struct buf *out, struct text method,
			       uint64_t seq, struct text error)
{
	unsigned char id[GOB_UINT_MAX], name[GOB_UINT_MAX], number[GOB_UINT_MAX],
		said[GOB_UINT_MAX];
	size_t n_id = gob_format_uint(id, gob_int_to_uint(w->header_id));
	size_t n_name = gob_format_uint(name, method.len);
	size_t n_number = gob_format_uint(number, seq);
	size_t n_said = gob_format_uint(said, error.len);
	size_t size = n_id + 1 + n_name + method.len + 1 + n_number + 1;

	if (error.len > 0)
		size += 1 + n_said + error.len;
	gob_add_uint(out, size);
	buf_add(out, id, n_id);
	buf_add_char(out, 1);
	buf_add(out, name, n_name);
	buf_add(out, method.data, method.len);
	buf_add_char(out, 1);
	buf_add(out, number, n_number);
	if (error.len > 0) {
		buf_add_char(out, 1);
		buf_add(out, said, n_said);
		buf_add(out, error.data, error.len);
	}
	buf_add_char(out, 0);
	w->err = out->err;
}

static void write_header(struct netrpc_writer *w, struct buf *out, const struct gob_shape *shape,
			 struct text method, uint64_t seq, struct text error)
{
	gob_give_up(&w->gob);
	w->start = out->len;
	w->before = w->gob.known;
	/* Zeros are left out, and what is too large is refused elsewhere. */
	if (w->header == shape && w->header_id != 0 && method.len > 0 && seq > 0 &&
	    method.len < PLAIN_MAX && error.len < PLAIN_MAX) {
		write_plain_header(w, out, method, seq, error);
		return;
	}
	w->header = shape;
	w->header_id = 0;
	gob_begin(&w->gob, shape);
	gob_begin_struct(&w->gob);
	gob_field(&w->gob, 0);
	gob_text(&w->gob, method);
	gob_field(&w->gob, 1);
	gob_uint(&w->gob, seq);
	if (error.len > 0) {
		gob_field(&w->gob, 2);
		gob_text(&w->gob, error);
	}
	gob_end_struct(&w->gob);
	w->err = gob_end(&w->gob, out);
}

struct gob_encoder *netrpc_call(struct netrpc_writer *w, struct buf *out, struct text method,
				uint64_t seq, const struct gob_shape *args)
{
	write_header(w, out, &request, method, seq, TEXT(""));
	gob_begin(&w->gob, args);
	return &w->gob;
}

struct gob_encoder *netrpc_answer(struct netrpc_writer *w, struct buf *out, struct text method,
				  uint64_t seq, const struct gob_shape *reply)
{
	write_header(w, out, &response, method, seq, TEXT(""));
	gob_begin(&w->gob, reply);
	return &w->gob;
}

int netrpc_end(struct netrpc_writer *w, struct buf *out)
{
	int r = gob_end(&w->gob, out);

	if (w->err != 0)
		r = w->err;
	if (r != 0) {
		out->len = w->start;
		gob_take_back(&w->gob, w->before);
		return r;
	}
	if (w->header_id == 0)
		w->header_id = gob_need_type(&w->gob, w->header);
	return 0;
}

int netrpc_answer_again(struct netrpc_writer *w, struct buf *out, struct text method, uint64_t seq,
			struct text body)
{
	write_header(w, out, &response, method, seq, TEXT(""));
	if (w->err != 0)
		return w->err;
	buf_add(out, body.data, body.len);
	if (out->err != 0) {
		out->len = w->start;
		gob_take_back(&w->gob, w->before);
	}
	return out->err;
}

int netrpc_error(struct netrpc_writer *w, struct buf *out, struct text method, uint64_t seq,
		 struct text error)
{
	write_header(w, out, &response, method, seq, error);
	gob_begin(&w->gob, &gob_shape_empty_struct);
	gob_begin_struct(&w->gob);
	gob_end_struct(&w->gob);
	return netrpc_end(w, out);
}
