/* Go's gob: every vector at every cut, what is refused and why, what is written. */
#include "gob_vectors.h"

#include <errno.h>

#include "gob_shapes.h"
#include "wire/gob/type.h"

static struct gob_vectors vectors;

static int read_vectors(void **state)
{
	gob_vectors_read(&vectors);
	return 0;
}

static int drop_vectors(void **state)
{
	gob_vectors_done(&vectors);
	return 0;
}

GROUP_FIXTURE(read_vectors, drop_vectors);

/* ---- reading ---- */

/* The values that a vector holds, in order: a header before each body, or bodies alone. */
struct awaited {
	const struct value *entry;
	bool header_seen;
	unsigned n;
};

static const struct value *await(struct awaited *w)
{
	const struct value *header = w->entry ? value_find(w->entry, "header") : NULL;
	const struct value *value;

	if (!w->entry)
		return NULL;
	w->n++;
	if (header && !w->header_seen) {
		w->header_seen = true;
		return header;
	}
	value = value_find(w->entry, "body");
	w->entry = w->entry->next;
	w->header_seen = false;
	return value;
}

static void compare(struct gob_feed *f, const struct gob_type *type, const struct value *v)
{
	const struct value *want = await(f->arg);
	struct gob_compare c = {.arena = &f->arena, .types = gob_feed_types(f)};

	assert_non_null(want);
	assert_non_null(type);
	if (gob_same(&c, want, v))
		return;
	f->quiet = false;
	f->each = NULL;
	gob_feed_note(f, type, v);
	fail_msg("want %.*s\ngot %.*s", (int)want->raw_len, want->raw, (int)f->out.len,
		 f->out.data);
}

static void decode_cut(const struct value *vector, struct text bytes, size_t cut, bool bytewise)
{
	static const unsigned char one[] = {0};
	struct awaited awaited = {.entry = value_find(vector, "decoded")->first};
	struct gob_feed f;

	gob_feed_init(&f, &gob_default_limits, GOB_FEED_BYTES);
	f.each = compare;
	f.quiet = true;
	f.arg = &awaited;
	gob_feed_bytes(&f, bytes.data, cut, false);
	gob_feed_all(&f, bytes.data + cut, bytes.len - cut, one, bytewise ? 1 : 0, true);
	assert_null(awaited.entry);
	assert_true(awaited.n > 0);
	assert_false(f.stopped);
	gob_feed_done(&f);
}

TEST(every_vector_decodes_at_every_cut)
{
	static const char *const versions[] = {"hex", "hex_go1_23"};

	value_each (vector, vectors.list) {
		if (!value_find(vector, "decoded"))
			continue;
		for (size_t i = 0; i < 2; i++) {
			struct text bytes = gob_vector_bytes(&vectors, vector, versions[i]);

			if (!bytes.data)
				continue;
			decode_cut(vector, bytes, 0, true);
			/* the same bytes but for their ids: some of the places will do */
			for (size_t cut = 0; cut <= bytes.len; cut += 1 + 6 * i)
				decode_cut(vector, bytes, cut, false);
		}
	}
}

/* Feeds it at once, and returns what was written down. */
static const char *read_all(struct gob_feed *f, struct text bytes, const struct gob_limits *limits,
			    size_t max, bool eof)
{
	gob_feed_init(f, limits, max);
	gob_feed_all(f, bytes.data, bytes.len, NULL, 0, eof);
	buf_add_char(&f->out, '\0');
	return f->out.data;
}

/* Messages in hex, each behind its count. */
static struct text stream_of(const char *const *messages)
{
	struct text bytes;
	struct buf out;

	buf_init(&out, 1 << 20);
	for (; *messages; messages++) {
		bytes = gob_from_hex(&vectors.arena, text_of(*messages));
		gob_add_uint(&out, bytes.len);
		buf_add(&out, bytes.data, bytes.len);
	}
	bytes = (struct text) {arena_copy(&vectors.arena, out.data, out.len), out.len};
	assert_non_null(bytes.data);
	buf_done(&out);
	return bytes;
}

#define STREAM(...) stream_of((const char *const[]) {__VA_ARGS__, NULL})

/* Definitions: type 65 is []string, a struct like Request, []int, type 66 is struct{}. */
#define STRINGS "ff81020102ff8200010c0000"
#define REQUEST                                                                                    \
	"ff81030101075265717565737401ff82000102010d536572766963654d6574686f64010c0001035365710106" \
	"00"                                                                                       \
	"0000"
#define INTS  "ff81020102ff820001040000"
#define EMPTY "ff83030102ff84000000"
#define THREE "040006"

static void says(struct text bytes, const struct gob_limits *limits, const char *want)
{
	struct gob_feed f;
	const char *got = read_all(&f, bytes, limits, 1 << 20, true);

	assert_string_equal(got, want);
	gob_feed_done(&f);
}

TEST(hostile_streams_are_refused_with_words)
{
	static const struct {
		const char *name;
		const char *says;
	} cases[] = {
		{"neg.truncated-typedef", "broken 1 unexpected EOF\n"},
		{"neg.count-byte-f7", "broken 1 gob: encoded unsigned integer out of range\n"},
		{"neg.count-1g", "broken 9 gob: value larger than 10485760 bytes\n"},
		{"neg.undefined-typeid", "refused 1 gob: unknown type id or corrupted data\n"
					 "broken 1 gob: empty message\n"},
		{"neg.builtin-redefinition", "refused 1 gob: duplicate type received\n"},
		{"neg.field-delta-out-of-range",
		 "refused 1 gob: bad data: field numbers out of bounds\n"
		 "broken 1 gob: empty message\n"},
		{"neg.header-not-struct", "3 int\n"},
		{"neg.self-referential-slice",
		 "{\"ServiceMethod\":\"Agent.Stats\"} Request = struct "
		 "{ ServiceMethod string; Seq uint; }\n"
		 "[[[]]] [][][][][][][][]...\n"},
		{"neg.json", "broken 1 unexpected EOF\n"},
	};
	size_t n = 0;

	value_each (vector, vectors.list) {
		n += gob_vector_is(vector, "neg.");
	}
	assert_int_equal(n, sizeof(cases) / sizeof(cases[0]));
	for (size_t i = 0; i < n; i++) {
		const struct value *vector = gob_vector_find(&vectors, cases[i].name);
		struct gob_feed f;

		assert_string_equal(read_all(&f, gob_vector_bytes(&vectors, vector, "hex"),
					     &gob_default_limits, 1 << 20, true),
				    cases[i].says);
		assert_true(f.gob.types.arena.used < 16384 && f.gob.scratch.used < 16384);
		gob_feed_done(&f);
	}
}

TEST(malformed_values_are_refused_and_the_stream_goes_on)
{
	static const struct {
		const char *messages[3];
		const char *reason;
	} cases[] = {
		{{"0c00"}, "gob: a message ends inside a value"},
		{{"0c000568"}, "gob: invalid string length 5: exceeds input size 1"},
		{{"040106"}, "gob: decode: corrupted data: non-zero delta for singleton"},
		{{"0000"}, "gob: unknown type id or corrupted data"},
		{{"0400f7"}, "gob: encoded unsigned integer out of range"},
		/* a definition with something behind it, without any type, of two types */
		{{STRINGS "00"}, "extra data in buffer"},
		{{"ff8100"}, "gob: a definition must define one type"},
		{{"ff81020102ff8200010c00010102ff82000000"},
		 "gob: a definition must define one type"},
		{{STRINGS, STRINGS}, "gob: duplicate type received"},
		/* ids beyond what Go can have */
		{{"fbffffffffff0200"}, "gob: type id out of range"},
		{{"f8ffffffffffffffff"}, "gob: type id out of range"},
		{{"fbfffffffffe00"}, "gob: unknown type id or corrupted data"},
		/* of an element that was never defined; an array of another length */
		{{"ff81020102ff820001ff860000", "ff8200010101"},
		 "gob: unknown type id or corrupted data"},
		{{"ff81010102ff8200010401040000", "ff8200010101"},
		 "gob: length mismatch in decodeArray"},
		{{REQUEST, "ff82f8ffffffffffffffff00"},
		 "gob: bad data: field numbers out of bounds"},
		{{REQUEST, "ff8201014102020200"}, "gob: bad data: field numbers out of bounds"},
	};
	char want[300];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const messages[] = {cases[i].messages[0],
						cases[i].messages[1] ? cases[i].messages[1] : THREE,
						cases[i].messages[1] ? THREE : NULL, NULL};

		snprintf(want, sizeof(want), "refused 1 %s\n3 int\n", cases[i].reason);
		says(stream_of(messages), &gob_default_limits, want);
	}
}

TEST(empty_message_breaks_the_stream)
{
	struct gob_value value;
	struct gob_decoder d;
	struct arena a;
	size_t used;

	arena_init(&a, 4096);
	gob_decoder_init(&d, &gob_default_limits);
	assert_int_equal(gob_next(&d, &a, "\0\3\4\0\6", 5, false, &used, &value), GOB_BROKEN);
	assert_int_equal(used, 5);
	assert_int_equal(gob_next(&d, &a, "\3\4\0\6", 4, false, &used, &value), GOB_BROKEN);
	assert_int_equal(value.error.code, REFUSE_PARSE);
	gob_decoder_done(&d);
	arena_done(&a);
}

/* A struct whose end is missing at the end of its message, as Go forgives it. */
TEST(last_struct_may_lack_its_end)
{
	says(STREAM(REQUEST, "ff82010141", THREE), &gob_default_limits,
	     "{\"ServiceMethod\":\"A\"} Request = struct { ServiceMethod string; Seq uint; }\n"
	     "3 int\n");
}

TEST(claimed_counts_cost_nothing)
{
	/* []struct{}, [2^62]struct{}, map[struct{}]struct{}, each with a count and hardly more */
	static const char *const streams[][4] = {
		{EMPTY, "ff81020102ff820001ff840000", "ff8200f84000000000000000000000"},
		{EMPTY, "ff81010102ff820001ff8401f880000000000000000000",
		 "ff8200f84000000000000000000000"},
		{EMPTY, "ff81040102ff820001ff8401ff840000", "ff8200f8400000000000000000000000"},
	};

	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		struct gob_feed f;
		const char *got =
			read_all(&f, stream_of(streams[i]), &gob_default_limits, 1 << 20, false);

		assert_string_equal(got, "refused 1 gob: decoding array or slice: length exceeds "
					 "input size (4611686018427387904 elements)\n");
		assert_true(f.arena.used < 8192);
		gob_feed_done(&f);
	}
}

TEST(nesting_is_bounded)
{
	struct buf bytes;

	buf_init(&bytes, 1 << 20);
	/* type S []S, then S of S of S ... */
	buf_add(&bytes, STREAM("ff81020102ff820001ff820000").data, 14);
	gob_add_uint(&bytes, 3 + 200000);
	buf_add(&bytes, "\xff\x82\0", 3);
	for (int i = 0; i < 200000; i++)
		buf_add_char(&bytes, 1);
	says((struct text) {bytes.data, bytes.len}, &gob_default_limits,
	     "refused 9 gob: nested deeper than 128 levels\n");
	buf_done(&bytes);
}

/* Interfaces in interfaces are not nested in the tree, and may be any number. */
TEST(interfaces_in_interfaces_are_read_in_place)
{
	struct buf value, bytes;

	buf_init(&value, 1 << 20);
	buf_init(&bytes, 1 << 20);
	buf_add(&value, "\x10\0", 2);
	for (int i = 0; i < 10000; i++)
		buf_add(&value, "\1x\x10\0\0", 5);
	buf_add_char(&value, 0);
	gob_add_uint(&bytes, value.len);
	buf_add(&bytes, value.data, value.len);
	says((struct text) {bytes.data, bytes.len}, &gob_default_limits, "null interface\n");
	buf_done(&value);
	buf_done(&bytes);
}

TEST(limits_are_kept)
{
	struct gob_limits l = gob_default_limits;

	l.message = 6;
	says(STREAM(THREE, "04000600000000"), &l,
	     "3 int\nbroken 9 gob: value larger than 6 bytes\n");
	l = gob_default_limits;
	l.types = 1;
	says(STREAM(STRINGS, EMPTY, THREE), &l, "refused 9 gob: more than 1 types\n3 int\n");
	l = gob_default_limits;
	l.type_bytes = 100;
	says(STREAM(REQUEST, THREE), &l,
	     "refused 9 gob: type definitions larger than 100 bytes\n3 int\n");
	l = gob_default_limits;
	l.fields = 1;
	says(STREAM(REQUEST, THREE), &l, "refused 9 gob: type has more than 1 fields\n3 int\n");
	l = gob_default_limits;
	l.values = 5;
	says(STREAM("040006", INTS, "ff820005020202020202", THREE), &l,
	     "3 int\nrefused 9 gob: more than 5 values\n3 int\n");
}

/* Messages that go on and on, without ever ending their value, count as one. */
TEST(value_over_many_messages_is_bounded)
{
	struct gob_limits l = gob_default_limits;
	struct buf bytes;

	l.message = 100;
	buf_init(&bytes, 1 << 20);
	/* an interface that holds an interface, whose type is in the next message */
	buf_add(&bytes, "\4\x10\0\1x", 5);
	for (int i = 0; i < 100; i++)
		buf_add(&bytes, "\5\x10\0\0\1x", 6);
	says((struct text) {bytes.data, bytes.len}, &l,
	     "broken 9 gob: value larger than 100 bytes\n");
	buf_done(&bytes);
}

TEST(arena_bounds_a_value)
{
	struct gob_feed f;
	struct buf bytes;

	buf_init(&bytes, 1 << 20);
	buf_add(&bytes, STREAM(STRINGS).data, 13);
	gob_add_uint(&bytes, 6 + 10000);
	buf_add(&bytes, "\xff\x82\0\xfe\x27\x10", 6);
	for (int i = 0; i < 10000; i++)
		buf_add_char(&bytes, 0);
	assert_string_equal(read_all(&f, (struct text) {bytes.data, bytes.len}, &gob_default_limits,
				     65536, true),
			    "refused 9 gob: value needs more than 65536 bytes\n");
	gob_feed_done(&f);
	buf_done(&bytes);
}

TEST(keys_that_are_no_strings_are_put_into_words)
{
	says(STREAM("ff81040102ff8200010201040000", "ff82000201020004"), &gob_default_limits,
	     "{\"true\":1,\"false\":2} map[bool]int\n");
	says(STREAM("ff81040102ff8200010801040000", "ff820002fee03f02fef07f04"),
	     &gob_default_limits, "{\"0.5\":1,\"+Inf\":2} map[float]int\n");
	says(STREAM("ff83020102ff840001040000", "ff81040102ff820001ff8401040000",
		    "ff8200010202040"
		    "2"),
	     &gob_default_limits, "{\"[1,2]\":1} map[[]int]int\n");
	says(STREAM("ff81040102ff8200011001040000", "ff820003"
						    "03696e7404020006"
						    "02"
						    "06737472696e670c03000178"
						    "04"
						    "00"
						    "06"),
	     &gob_default_limits, "{\"3\":1,\"x\":2,\"null\":3} map[interface]int\n");
}

TEST(long_keys_in_words_are_refused)
{
	struct buf value, bytes;

	buf_init(&value, 1 << 20);
	buf_init(&bytes, 1 << 20);
	/* map[[]int]int with a key of 5000 numbers */
	buf_add(&value, "\xff\x82\0\1\xfe\x13\x88", 7);
	for (int i = 0; i < 5000; i++)
		buf_add_char(&value, 2);
	buf_add_char(&value, 2);
	buf_add(&bytes, STREAM("ff83020102ff840001040000", "ff81040102ff820001ff8401040000").data,
		29);
	gob_add_uint(&bytes, value.len);
	buf_add(&bytes, value.data, value.len);
	says((struct text) {bytes.data, bytes.len}, &gob_default_limits,
	     "refused 9 gob: map key longer than 4096 bytes\n");
	buf_done(&value);
	buf_done(&bytes);
}

/* ---- fitting ---- */

static const struct gob_shape int8_shape = {.kind = GOB_INT, .bits = 8, .name = "int8"};
static const struct gob_shape uint16_shape = {.kind = GOB_UINT, .bits = 16, .name = "uint16"};
static const struct gob_shape float32_shape = {.kind = GOB_FLOAT, .bits = 32, .name = "float32"};
static const struct gob_shape int8s_shape = {
	.kind = GOB_SLICE, .name = "[]int8", .elem = &int8_shape};
static const struct gob_shape strings_shape = {
	.kind = GOB_SLICE, .name = "[]string", .elem = &gob_shape_string};
static const struct gob_shape names_shape = {.kind = GOB_MAP,
					     .name = "map[int]string",
					     .key = &gob_shape_int,
					     .elem = &gob_shape_string};
static const struct gob_shape_field narrow_fields[] = {{"Limit", &int8_shape}};
static const struct gob_shape narrow_shape = {
	.kind = GOB_STRUCT, .name = "Narrow", .go = "main.Narrow", GOB_FIELDS(narrow_fields)};
static const struct gob_shape_field limits_fields[] = {{"Limit", &strings_shape}};
static const struct gob_shape limits_shape = {
	.kind = GOB_STRUCT, .name = "Limits", .go = "main.Limits", GOB_FIELDS(limits_fields)};

struct fit {
	const struct gob_shape *shape;
	char words[ERROR_TEXT_MAX]; /* of the last value */
};

static void try_fit(struct gob_feed *f, const struct gob_type *type, const struct value *v)
{
	struct fit *fit = f->arg;
	struct error error = {0};

	/* twice, because what fits is remembered */
	for (int i = 0; i < 2; i++) {
		int r = gob_fit(gob_feed_types(f), type, v, fit->shape, &error);

		snprintf(fit->words, sizeof(fit->words), "%s", r == 0 ? "fits" : error.text);
		assert_true(r == 0 || r == REFUSE_PARAMS);
	}
}

static void fits(struct text bytes, const struct gob_shape *shape, const char *want)
{
	struct fit fit = {.shape = shape};
	struct gob_feed f;

	gob_feed_init(&f, &gob_default_limits, 1 << 20);
	f.each = try_fit;
	f.arg = &fit;
	gob_feed_all(&f, bytes.data, bytes.len, NULL, 0, true);
	assert_string_equal(fit.words, want);
	gob_feed_done(&f);
}

static void vector_fits(const char *name, const struct gob_shape *shape, const char *want)
{
	fits(gob_vector_bytes(&vectors, gob_vector_find(&vectors, name), "hex"), shape, want);
}

TEST(arguments_fit_by_name_and_kind)
{
	vector_fits("req.MemorySearch.full", &search_args, "fits");
	vector_fits("robust.MemorySearch.other-type-name", &search_args, "fits");
	vector_fits("robust.MemorySearch.v2-struct", &search_args, "fits");
	vector_fits("robust.Chat.trimmed-args-map", &chat_args, "fits");
	vector_fits("req.Chat.toolresult-many", &chat_args, "fits");
	vector_fits("req.Chat.tools-schema-deep", &chat_args, "fits");
	vector_fits("req.Stats.Agent", &gob_shape_empty_struct, "fits");
	vector_fits("req.Stats.Agent", &search_args, "fits");
	vector_fits("req.MemorySearch.full", &gob_shape_empty_struct, "fits");
	vector_fits("prim.strings", &strings_shape, "fits");
	vector_fits("prim.map.int-string", &names_shape, "fits");
}

TEST(what_does_not_fit_is_said_as_go_does)
{
	vector_fits("robust.MemorySearch.limit-string", &search_args,
		    "gob: wrong type (int) for received field badLimitString.Limit");
	vector_fits("robust.MemorySearch.limit-float", &search_args,
		    "gob: wrong type (int) for received field badLimitFloat.Limit");
	vector_fits("robust.MemorySearch.limit-string", &limits_shape,
		    "gob: wrong type ([]string) for received field badLimitString.Limit");
	vector_fits("req.MemorySearch.full", &get_args,
		    "gob: type mismatch: no fields matched compiling decoder for MemoryGetArgs");
	vector_fits("robust.MemoryGet.string-arg", &get_args,
		    "gob: type mismatch in decoder: want struct type rpcproto.MemoryGetArgs; got "
		    "non-struct");
	vector_fits("robust.Stats.map-arg", &gob_shape_empty_struct,
		    "gob: type mismatch in decoder: want struct type struct {}; got non-struct");
	vector_fits("neg.self-referential-slice", &gob_shape_empty_struct,
		    "gob: type mismatch in decoder: want struct type struct {}; got non-struct");
	vector_fits("prim.strings", &int8s_shape,
		    "gob: decoding into local type []int8, received remote type []string");
	vector_fits("prim.int.64", &gob_shape_string,
		    "gob: decoding into local type string, received remote type int");
	vector_fits("prim.int.64", &gob_shape_interface,
		    "gob: local interface type interface {} can only be decoded from remote "
		    "interface type; received concrete type int");
	vector_fits("prim.time", &get_args,
		    "gob: type mismatch in decoder: want struct type rpcproto.MemoryGetArgs; got "
		    "non-struct");
}

TEST(numbers_must_fit_their_width)
{
	vector_fits("prim.int.64", &int8_shape, "fits");
	vector_fits("prim.int.128", &int8_shape, "value for \"int8\" out of range");
	vector_fits("prim.int.-129", &int8_shape, "value for \"int8\" out of range");
	vector_fits("prim.uint.65535", &uint16_shape, "fits");
	vector_fits("prim.uint.4294967295", &uint16_shape, "value for \"uint16\" out of range");
	vector_fits("prim.uint.18446744073709551615", &uint16_shape,
		    "value for \"uint16\" out of range");
	vector_fits("prim.float.-Inf", &float32_shape, "fits");
	vector_fits("prim.float.1e-300", &float32_shape, "fits");
	vector_fits("req.MemorySearch.full", &narrow_shape, "fits");
	vector_fits("req.MemorySearch.min-limit", &narrow_shape,
		    "value for \"Limit\" out of range");
	/* []int{1, 300} */
	fits(STREAM(INTS, "ff82000202fe0258"), &int8s_shape,
	     "value for \"element of []int8\" out of range");
}

static const struct gob_shape tree_shape;
static const struct gob_shape_field tree_fields[] = {{"Left", &tree_shape}, {"Right", &tree_shape}};
static const struct gob_shape tree_shape = {
	.kind = GOB_STRUCT, .name = "Tree", .go = "main.Tree", GOB_FIELDS(tree_fields)};

/* Each type has the next one twice: 2^60 ways through them. */
TEST(fitting_ends_whatever_the_types)
{
	struct gob_shape_field chain_fields[61][2];
	struct gob_shape chain[61];
	struct gob_encoder e;
	struct buf out;

	memset(chain, 0, sizeof(chain));
	for (int i = 0; i < 61; i++) {
		chain[i].kind = GOB_STRUCT;
		chain[i].name = "T";
		chain[i].fields = chain_fields[i];
		chain[i].n_fields = i < 60 ? 2 : 0;
		chain_fields[i][0] = (struct gob_shape_field) {"Left", &chain[i + (i < 60)]};
		chain_fields[i][1] = (struct gob_shape_field) {"Right", &chain[i + (i < 60)]};
	}
	buf_init(&out, 1 << 20);
	gob_encoder_init(&e, 1 << 20);
	gob_begin(&e, &chain[0]);
	gob_begin_struct(&e);
	gob_end_struct(&e);
	assert_int_equal(gob_end(&e, &out), 0);
	fits((struct text) {out.data, out.len}, &tree_shape, "gob: invalid nesting depth");
	gob_encoder_done(&e);
	buf_done(&out);
}

/* ---- writing ---- */

static void written_is(const struct buf *out, const char *vector)
{
	struct text want = gob_vector_bytes(&vectors, gob_vector_find(&vectors, vector), "hex");

	assert_int_equal(out->len, want.len);
	assert_memory_equal(out->data, want.data, want.len);
}

TEST(numbers_are_written_as_go_does)
{
	value_each (vector, vectors.list) {
		struct text name = gob_vector_name(vector);
		char digits[40];
		struct gob_encoder e;
		struct buf out;

		if (!gob_vector_is(vector, "prim.int.") && !gob_vector_is(vector, "prim.uint.") &&
		    !gob_vector_is(vector, "prim.float."))
			continue;
		snprintf(digits, sizeof(digits), "%.*s", TEXT_ARGS(name));
		buf_init(&out, 100);
		gob_encoder_init(&e, 100);
		if (gob_vector_is(vector, "prim.int.")) {
			gob_begin(&e, &gob_shape_int);
			gob_int(&e, strtoll(digits + 9, NULL, 10));
		} else if (gob_vector_is(vector, "prim.uint.")) {
			gob_begin(&e, &gob_shape_uint);
			gob_uint(&e, strtoull(digits + 10, NULL, 10));
		} else {
			/* Go's NaN has a bit of its own */
			double d = text_is(name, "prim.float.NaN") ? __builtin_nan("1")
								   : strtod(digits + 11, NULL);

			gob_begin(&e, &gob_shape_float64);
			gob_float(&e, d);
		}
		assert_int_equal(gob_end(&e, &out), 0);
		written_is(&out, digits);
		gob_encoder_done(&e);
		buf_done(&out);
	}
}

TEST(lists_and_maps_are_written_as_go_does)
{
	static const struct gob_shape plain_strings = {
		.kind = GOB_SLICE, .name = "", .elem = &gob_shape_string};
	static const struct gob_shape plain_names = {
		.kind = GOB_MAP, .name = "", .key = &gob_shape_int, .elem = &gob_shape_string};
	struct gob_encoder e;
	struct buf out;

	buf_init(&out, 100);
	gob_encoder_init(&e, 100);
	gob_begin(&e, &plain_strings);
	gob_begin_list(&e, 2);
	gob_text(&e, TEXT(""));
	gob_text(&e, TEXT("x"));
	gob_end_list(&e);
	assert_int_equal(gob_end(&e, &out), 0);
	written_is(&out, "prim.strings");
	gob_encoder_done(&e);

	buf_clear(&out);
	gob_encoder_init(&e, 100);
	gob_begin(&e, &plain_names);
	gob_begin_map(&e, 1);
	gob_int(&e, -1);
	gob_text(&e, TEXT("neg"));
	gob_end_map(&e);
	assert_int_equal(gob_end(&e, &out), 0);
	written_is(&out, "prim.map.int-string");
	gob_encoder_done(&e);
	buf_done(&out);
}

static struct value *tree_of(const char *json)
{
	struct value *v;

	assert_int_equal(
		json_read(&vectors.arena, json, strlen(json), &json_default_limits, &v, NULL), 0);
	return v;
}

/* Written as the shape, and read again. */
static void comes_back(struct gob_encoder *e, const struct gob_shape *shape, const char *json,
		       const char *want)
{
	struct error error = {0};
	struct gob_feed f;
	struct buf out;
	int r;

	buf_init(&out, 1 << 20);
	gob_begin(e, shape);
	r = gob_put(e, shape, tree_of(json), &error);
	if (r == 0)
		r = gob_end(e, &out);
	if (r != 0) {
		assert_string_equal(error.text, want);
	} else {
		gob_feed_init(&f, &gob_default_limits, 1 << 20);
		gob_feed_all(&f, out.data, out.len, NULL, 0, true);
		buf_add_char(&f.out, '\0');
		assert_non_null(strchr(f.out.data, '\n'));
		assert_memory_equal(f.out.data, want, strlen(want));
		gob_feed_done(&f);
	}
	buf_done(&out);
}

static void puts_tree(const struct gob_shape *shape, const char *json, const char *want)
{
	struct gob_encoder e;

	gob_encoder_init(&e, 1 << 20);
	comes_back(&e, shape, json, want);
	gob_encoder_done(&e);
}

TEST(trees_are_written_as_their_shape_wants)
{
	puts_tree(&search_args,
		  "{\"Query\":\"q\",\"Limit\":-3,\"MinScore\":0.7,\"Other\":1,\"Category\":null}",
		  "{\"Query\":\"q\",\"Limit\":-3,\"MinScore\":0.7} ");
	puts_tree(&search_args, "{\"Query\":\"\",\"Limit\":0,\"MinScore\":0}", "{} ");
	puts_tree(&stats_reply, "{\"Stats\":{\"a\":1,\"b\":0}}", "{\"Stats\":{\"a\":1,\"b\":0}} ");
	puts_tree(&stats_reply, "{\"Stats\":{}}", "{\"Stats\":{}} ");
	puts_tree(&strings_shape, "[\"a\",null,\"\"]", "[\"a\",\"\",\"\"] []string");
	puts_tree(&chat_args,
		  "{\"Messages\":[{\"Role\":\"tool\",\"ToolExecutionResults\":[{\"Result\":"
		  "{\"a\":[1,2.5,\"x\",true,null,{}]}},{\"Result\":null},{\"Result\":[[]]}]}]}",
		  "{\"Messages\":[{\"Role\":\"tool\",\"ToolExecutionResults\":[{\"Result\":"
		  "{\"a\":[1,2.5,\"x\",true,null,{}]}},{},{\"Result\":[[]]}]}]} ");
	puts_tree(&search_args, "{\"Limit\":\"5\"}", "Limit: expected int, got string");
	puts_tree(&search_args, "{\"Limit\":5.5}", "Limit: expected int, got number");
	puts_tree(&search_args, "[1]", "value: expected rpcproto.MemorySearchArgs, got array");
}

TEST(types_are_defined_once)
{
	struct gob_encoder e;
	struct buf out;
	size_t first, second;

	buf_init(&out, 1 << 20);
	gob_encoder_init(&e, 1 << 20);
	for (int i = 0; i < 2; i++) {
		gob_begin(&e, &gob_shape_interface);
		gob_put_any(&e, tree_of("{\"a\":[1]}"));
		assert_int_equal(gob_end(&e, &out), 0);
		if (i == 0)
			first = out.len;
	}
	second = out.len - first;
	assert_int_equal(e.known.n_sent, 2);
	assert_true(second < first);
	assert_memory_equal(out.data + out.len - second, out.data + first - second, second);
	gob_encoder_done(&e);
	buf_done(&out);
}

TEST(what_failed_was_not_sent)
{
	struct gob_encoder e;
	struct buf out, tiny;
	struct error error;

	buf_init(&out, 1 << 20);
	buf_init(&tiny, 10);
	gob_encoder_init(&e, 1 << 20);
	/* given up in the middle, refused by the output, ended too early */
	gob_begin(&e, &search_args);
	assert_int_equal(gob_put(&e, &search_args, tree_of("{\"Limit\":\"\"}"), &error),
			 REFUSE_PARAMS);
	gob_begin(&e, &search_args);
	assert_int_equal(gob_put(&e, &search_args, tree_of("{\"Limit\":1}"), &error), 0);
	assert_int_equal(gob_end(&e, &tiny), -EMSGSIZE);
	assert_int_equal(tiny.len, 0);
	gob_begin(&e, &search_args);
	gob_begin_struct(&e);
	assert_int_equal(gob_end(&e, &out), -EINVAL);
	assert_int_equal(out.len, 0);
	assert_int_equal(e.known.n_sent, 0);
	comes_back(&e, &search_args, "{\"Limit\":1}", "{\"Limit\":1} MemorySearchArgs");
	gob_encoder_done(&e);
	buf_done(&tiny);
	buf_done(&out);
}

TEST(what_the_shape_does_not_have_is_not_written)
{
	struct gob_encoder e;
	struct buf out;

	buf_init(&out, 1000);
	gob_encoder_init(&e, 1000);
	gob_begin(&e, &gob_shape_int);
	gob_text(&e, TEXT("x"));
	assert_int_equal(gob_end(&e, &out), -EINVAL);
	gob_begin(&e, &gob_shape_int);
	gob_int(&e, 1);
	gob_int(&e, 2);
	assert_int_equal(gob_end(&e, &out), -EINVAL);
	gob_begin(&e, &strings_shape);
	gob_begin_list(&e, 2);
	gob_text(&e, TEXT("x"));
	gob_end_list(&e);
	assert_int_equal(gob_end(&e, &out), -EINVAL);
	gob_begin(&e, &search_args);
	gob_begin_struct(&e);
	gob_field(&e, 2);
	gob_int(&e, 1);
	gob_field(&e, 1);
	gob_text(&e, TEXT("x"));
	gob_end_struct(&e);
	assert_int_equal(gob_end(&e, &out), -EINVAL);
	gob_begin(&e, &gob_shape_string);
	gob_text(&e, (struct text) {(const char *)vectors.text, 2000});
	assert_int_equal(gob_end(&e, &out), -EMSGSIZE);
	assert_int_equal(out.len, 0);
	gob_encoder_done(&e);
	buf_done(&out);
}
