/* Checks a framing against a vector: in one go, cut in two at every place, and
 * byte by byte, all with the same outcome. */
#pragma once

#include "check.h"

#include "../feed.h"

struct vector {
	const char *in;
	size_t len; /* 0: strlen(in) */
	bool eof;
	const char *out;
};

static inline void vector_run(const struct framing *framing, const struct framing_limits *limits,
			      const struct vector *v, size_t first, bool bytewise)
{
	size_t len = v->len ? v->len : strlen(v->in);
	static const unsigned char one[] = {0};
	struct feed f;

	feed_init(&f, framing, limits);
	feed_bytes(&f, v->in, first, false);
	feed_all(&f, v->in + first, len - first, one, bytewise ? 1 : 0, v->eof);
	buf_add_char(&f.out, '\0');
	assert_string_equal(f.out.data, v->out);
	feed_done(&f);
}

static inline void vector_check(const struct framing *framing, const struct framing_limits *limits,
				const struct vector *v)
{
	size_t len = v->len ? v->len : strlen(v->in);

	vector_run(framing, limits, v, 0, true);
	for (size_t cut = 0; cut <= len; cut++)
		vector_run(framing, limits, v, cut, false);
}

static inline void vectors_check(const struct framing *framing, const struct framing_limits *limits,
				 const struct vector *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		vector_check(framing, limits, &v[i]);
}

#define VECTORS_CHECK(framing, limits, vectors)                                                    \
	vectors_check(framing, limits, vectors, sizeof(vectors) / sizeof((vectors)[0]))
