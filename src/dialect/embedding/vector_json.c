/* A vector as JSON, in the two forms that OpenAI's clients ask for. */
#include <stdio.h>

#include "dialect/embedding/embedding.h"

void vector_write(struct json *j, const float *numbers, unsigned dim)
{
	char text[32];

	json_begin_array(j);
	for (unsigned i = 0; i < dim; i++) {
		/* Nine digits are enough for any float; as a double it would take seventeen. */
		int n = snprintf(text, sizeof(text), "%.9g", (double)numbers[i]);

		json_raw(j, text, (size_t)n);
	}
	json_end_array(j);
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

struct base64 {
	struct buf *out;
	uint32_t bits;
	unsigned n; /* bytes in it */
};

static void embedding_vector_json_flush(struct base64 *b)
{
	char group[4] = {'=', '=', '=', '='};

	for (unsigned i = 0; b->n > 0 && i <= b->n; i++)
		group[i] = digits[b->bits >> (18 - 6 * i) & 63];
	buf_add(b->out, group, b->n > 0 ? 4 : 0);
	b->bits = 0;
	b->n = 0;
}

static void embedding_vector_json_put(struct base64 *b, unsigned char byte)
{
	b->bits |= (uint32_t)byte << (16 - 8 * b->n);
	if (++b->n == 3)
		embedding_vector_json_flush(b);
}

void vector_write_base64(struct json *j, const float *numbers, unsigned dim)
{
	struct base64 b = {.out = j->out};

	json_raw(j, "\"", 1);
	for (unsigned i = 0; i < dim; i++) {
		uint32_t bits;

		memcpy(&bits, &numbers[i], sizeof(bits));
		for (unsigned shift = 0; shift < 32; shift += 8)
			embedding_vector_json_put(&b, (unsigned char)(bits >> shift));
	}
	embedding_vector_json_flush(&b);
	buf_add_char(j->out, '"');
}
