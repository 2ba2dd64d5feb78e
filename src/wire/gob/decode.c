/* The stream: messages are cut from it and go to the value being read. */
#include "wire/gob/decode.h"

#include <errno.h>

/* A definition's tree is larger than the type it becomes: a node is 64 bytes. */
enum { SCRATCH_MAX = 4 << 20 };

void gob_decoder_init(struct gob_decoder *d, const struct gob_limits *limits)
{
	*d = (struct gob_decoder) {.limits = *limits};
	gob_types_init(&d->types, limits);
	arena_init(&d->scratch, SCRATCH_MAX);
}

void gob_decoder_done(struct gob_decoder *d)
{
	gob_reading_done(&d->value);
	gob_reading_done(&d->definition);
	arena_done(&d->scratch);
	gob_types_done(&d->types);
	error_free(d->broken);
}

bool gob_in_message(const struct gob_decoder *d)
{
	return d->begun && !d->broken;
}

static enum gob_said broken(struct gob_decoder *d, size_t len, size_t *ret_used,
			    struct gob_value *ret)
{
	*ret_used = len;
	ret->value = NULL;
	ret->type = NULL;
	ret->error = *d->broken;
	return GOB_BROKEN;
}

/* Whether a whole message is there; if so, it is d->in. A refusal means a broken stream. */
static int cut_message(struct gob_decoder *d, const char *in, size_t len, bool *ret_whole,
		       struct error *error)
{
	struct gob_in all = {.p = (const unsigned char *)in,
			     .end = (const unsigned char *)in + len};
	uint64_t size = 0;

	*ret_whole = false;
	switch (gob_read_uint(&all, &size)) {
	case GOB_NUMBER_SHORT:
		return 0;
	case GOB_NUMBER_BAD:
		return refuse(error, REFUSE_PARSE, "gob: encoded unsigned integer out of range");
	case GOB_NUMBER_OK:
		break;
	}
	if (size > d->limits.message - d->bytes)
		return refuse(error, REFUSE_TOO_LARGE, "gob: value larger than %zu bytes",
			      d->limits.message);
	if (size == 0)
		return refuse(error, REFUSE_PARSE, "gob: empty message");
	if (size > gob_left(&all))
		return 0;
	d->in = (struct gob_in) {.p = all.p, .end = all.p + size};
	*ret_whole = true;
	return 0;
}

static enum gob_said end_value(struct gob_decoder *d, int r, struct error *error,
			       struct gob_value *ret)
{
	struct gob_node *root = d->value.root;

	d->bytes = 0;
	d->begun = false;
	d->value.root = NULL;
	d->value.arena = NULL;
	if (r == 0) {
		ret->value = &root->value;
		ret->type = d->value.type;
		return GOB_VALUE;
	}
	if (r < 0)
		refuse(error, REFUSE_INTERNAL, "gob: out of memory");
	ret->value = NULL;
	ret->type = NULL;
	ret->error = *error;
	return GOB_REFUSED;
}

static int read_message(struct gob_decoder *d, struct arena *a, struct error *error)
{
	if (!d->value.arena)
		gob_reading_begin(&d->value, a);
	d->bytes += gob_left(&d->in);
	return gob_read_on(d, &d->value, error);
}

enum gob_said gob_next(struct gob_decoder *d, struct arena *a, const char *in, size_t len, bool eof,
		       size_t *ret_used, struct gob_value *ret)
{
	size_t used = 0;

	if (!in)
		in = ""; /* nothing was read; C11 defines no NULL + 0 */
	while (!d->broken) {
		struct error error; /* long, and mostly there is none */
		bool whole;
		int r;

		error.code = 0;
		error.text[0] = '\0';
		error.field[0] = '\0';
		d->begun = used < len || d->value.arena;
		r = cut_message(d, in + used, len - used, &whole, &error);
		if (r == 0 && !whole && !(eof && d->begun)) {
			*ret_used = used;
			return GOB_MORE;
		}
		if (r == 0 && !whole)
			r = refuse(&error, REFUSE_PARSE, "unexpected EOF");
		if (r != 0) {
			d->broken = error_keep(&error);
			break;
		}
		used = (size_t)((const char *)d->in.end - in);
		r = read_message(d, a, &error);
		if (r != GOB_WAIT) {
			*ret_used = used;
			return end_value(d, r, &error, ret);
		}
	}
	return broken(d, len, ret_used, ret);
}
