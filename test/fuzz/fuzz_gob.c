/*
 * A gob stream, whole and in pieces: the same values, the same refusals. What was read is
 * compared with shapes, and written and read again.
 *
 * The input's first byte steers: its low three bits are the number of sizes that follow,
 * 0x08 asks for small limits, 0x10 and 0x20 for requests and answers of net/rpc, 0x40 for the
 * end of the stream behind its last byte.
 */
#include <stdint.h>

#include "../gob_feed.h"
#include "wire/gob/type.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct gob_limits small = {
	.message = 200, .types = 6, .type_bytes = 8192, .fields = 4, .depth = 4, .values = 20};

static const struct gob_shape narrow = {.kind = GOB_INT, .bits = 8, .name = "int8"};
static const struct gob_shape strings = {
	.kind = GOB_SLICE, .name = "[]string", .elem = &gob_shape_string};
static const struct gob_shape_field fields[] = {
	{"ServiceMethod", &gob_shape_string}, {"Limit", &narrow},          {"Extra13", &strings},
	{"Extra5", &gob_shape_interface},     {"Name", &gob_shape_string},
};
static const struct gob_shape shape = {
	.kind = GOB_STRUCT, .name = "T", .go = "main.T", .fields = fields, .n_fields = 5};

/* Written as an interface and read back, as JSON. False: it is too deep or too large. */
static bool again(const struct value *v, struct buf *ret_json, struct arena *a,
		  struct value **ret_value)
{
	struct gob_encoder e;
	struct gob_decoder d;
	struct gob_value back = {0};
	struct json j = json_writer(ret_json);
	struct buf out;
	size_t used;
	int r;

	gob_encoder_init(&e, 1 << 20);
	gob_decoder_init(&d, &gob_default_limits);
	buf_init(&out, 2 << 20);
	gob_begin(&e, &gob_shape_interface);
	gob_put_any(&e, v);
	r = gob_end(&e, &out);
	if (r == 0 && v->kind != VALUE_NULL) {
		GOB_CHECK(gob_next(&d, a, out.data, out.len, true, &used, &back) == GOB_VALUE);
		GOB_CHECK(used == out.len);
		json_value(&j, back.value);
		*ret_value = back.value;
	}
	gob_encoder_done(&e);
	gob_decoder_done(&d);
	buf_done(&out);
	return r == 0 && back.value;
}

static void use(struct gob_feed *f, const struct gob_type *type, const struct value *v)
{
	struct buf once, twice;
	struct value *back;
	struct arena a;
	struct error error;

	gob_fit(gob_feed_types(f), type, v, &shape, &error);
	gob_fit(gob_feed_types(f), type, v, &gob_shape_any_map, &error);
	gob_fit(gob_feed_types(f), type, v, &strings, &error);
	arena_init(&a, GOB_FEED_BYTES);
	buf_init(&once, GOB_FEED_BYTES);
	buf_init(&twice, GOB_FEED_BYTES);
	if (again(v, &once, &a, &back) && again(back, &twice, &a, &back))
		GOB_CHECK(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
	arena_done(&a);
	buf_done(&once);
	buf_done(&twice);
}

static void init(struct gob_feed *f, uint8_t steer)
{
	const struct gob_limits *limits = steer & 0x08 ? &small : &gob_default_limits;
	size_t bytes = steer & 0x08 ? 16384 : GOB_FEED_BYTES;

	if (steer & 0x30)
		gob_feed_init_rpc(f, steer & 0x10 ? NETRPC_SERVER : NETRPC_CLIENT, limits, bytes);
	else
		gob_feed_init(f, limits, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gob_feed whole, pieces;
	size_t n_sizes;
	const char *in;

	if (size == 0)
		return 0;
	n_sizes = data[0] & 7;
	if (size < 1 + n_sizes)
		return 0;
	in = (const char *)data + 1 + n_sizes;
	size -= 1 + n_sizes;
	init(&whole, data[0]);
	init(&pieces, data[0]);
	whole.each = use;
	gob_feed_all(&whole, in, size, NULL, 0, data[0] & 0x40);
	gob_feed_all(&pieces, in, size, data + 1, n_sizes, data[0] & 0x40);
	if (whole.stopped != pieces.stopped || whole.out.len != pieces.out.len ||
	    (whole.out.len > 0 && memcmp(whole.out.data, pieces.out.data, whole.out.len) != 0)) {
		fprintf(stderr, "whole:  %.*s\npieces: %.*s\n", (int)whole.out.len, whole.out.data,
			(int)pieces.out.len, pieces.out.data);
		abort();
	}
	gob_feed_done(&whole);
	gob_feed_done(&pieces);
	return 0;
}
