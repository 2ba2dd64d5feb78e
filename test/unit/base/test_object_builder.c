/* Trees that are built without JSON text, and trees as bytes. */
#include "check.h"

#include <errno.h>
#include <math.h>

#include "base/pack.h"
#include "base/object_builder.h"

struct fixture {
	struct arena arena;
	struct buf out;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	arena_init(&f->arena, 16 << 20);
	buf_init(&f->out, 16 << 20);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	arena_done(&f->arena);
	buf_done(&f->out);
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

static void assert_bytes(const struct buf *b, const char *want, size_t len)
{
	assert_int_equal(b->err, 0);
	assert_int_equal(b->len, len);
	assert_memory_equal(b->data, want, len);
}

#define ASSERT_BYTES(b, literal) assert_bytes(b, literal, sizeof(literal) - 1)

static void assert_string(const struct value *v, const char *want)
{
	assert_non_null(v);
	assert_int_equal(v->kind, VALUE_STRING);
	assert_true(text_is(value_text(v), want));
}

static void assert_number(const struct value *v, const char *want)
{
	assert_non_null(v);
	assert_int_equal(v->kind, VALUE_NUMBER);
	assert_int_equal(v->len, strlen(want));
	assert_memory_equal(v->text, want, v->len);
}

/* ---- records ---- */

TEST(a_record_has_its_members_in_order)
{
	static const char *const want[] = {"text", "none", "int", "double", "yes", "no", "null"};
	struct fixture *f = *state;
	char name[] = "mutable";
	unsigned i = 0;
	struct object_builder r;

	object_begin(&r, &f->arena);
	object_text(&r, "text", text_of(name));
	object_text(&r, "none", (struct text) {0});
	object_int(&r, "int", INT64_MIN);
	object_double(&r, "double", 0.1);
	object_bool(&r, "yes", true);
	object_bool(&r, "no", false);
	object_null(&r, "null");
	name[0] = 'M'; /* the text was copied */

	assert_int_equal(r.err, 0);
	assert_int_equal(r.root->kind, VALUE_OBJECT);
	assert_int_equal(r.root->len, 7);
	value_each (child, r.root) {
		assert_int_equal(child->key_len, strlen(want[i]));
		assert_memory_equal(child->key, want[i], child->key_len);
		i++;
	}
	assert_int_equal(i, 7);
	assert_string(value_find(r.root, "text"), "mutable");
	assert_int_equal(value_find(r.root, "none")->kind, VALUE_NULL);
	assert_number(value_find(r.root, "int"), "-9223372036854775808");
	assert_number(value_find(r.root, "double"), "0.1");
	assert_int_equal(value_find(r.root, "yes")->kind, VALUE_TRUE);
	assert_int_equal(value_find(r.root, "no")->kind, VALUE_FALSE);
	assert_int_equal(value_find(r.root, "null")->kind, VALUE_NULL);
}

TEST(an_empty_text_is_not_null)
{
	struct fixture *f = *state;
	struct object_builder r;

	object_begin(&r, &f->arena);
	object_text(&r, "a", TEXT(""));
	assert_string(value_find(r.root, "a"), "");
}

TEST(doubles_read_back_the_same)
{
	static const double some[] = {0.0, -0.0, 1.0 / 3, 1e300, 5e-324, -123456.789, 1e20, 0.3};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		struct object_builder r;
		double back;

		object_begin(&r, &f->arena);
		object_double(&r, "d", some[i]);
		assert_true(value_double(value_find(r.root, "d"), &back));
		assert_memory_equal(&back, &some[i], sizeof(back));
	}
}

TEST(what_is_no_number_is_null)
{
	struct fixture *f = *state;
	struct object_builder r;

	object_begin(&r, &f->arena);
	object_double(&r, "nan", NAN);
	object_double(&r, "inf", -INFINITY);
	assert_int_equal(value_find(r.root, "nan")->kind, VALUE_NULL);
	assert_int_equal(value_find(r.root, "inf")->kind, VALUE_NULL);
}

TEST(a_tree_is_shared_but_not_changed)
{
	struct fixture *f = *state;
	struct object_builder inner, outer;

	object_begin(&inner, &f->arena);
	object_int(&inner, "n", 1);
	object_text(&inner, "s", TEXT("x"));
	object_begin(&outer, &f->arena);
	object_value(&outer, "a", inner.root);
	object_value(&outer, "b", value_find(inner.root, "s"));
	object_value(&outer, "c", NULL);
	object_value(&outer, "d", inner.root);

	assert_int_equal(outer.err, 0);
	assert_int_equal(outer.root->len, 4);
	assert_number(value_find(value_find(outer.root, "a"), "n"), "1");
	assert_string(value_find(outer.root, "b"), "x");
	assert_int_equal(value_find(outer.root, "c")->kind, VALUE_NULL);
	assert_number(value_find(value_find(outer.root, "d"), "n"), "1");
	assert_null(inner.root->key);
	assert_null(inner.root->next);
	assert_null(value_find(inner.root, "s")->next);
	assert_int_equal(inner.root->len, 2);
}

TEST(want_of_memory_sticks)
{
	struct arena small;
	struct object_builder r;
	unsigned n = 0;

	arena_init(&small, 4096);
	object_begin(&r, &small);
	while (r.err == 0 && n++ < 10000)
		object_text(&r, "key", TEXT("some text or other"));
	assert_int_equal(r.err, -ENOMEM);
	n = r.root->len;
	object_null(&r, "more");
	object_int(&r, "more", 1);
	object_value(&r, "more", r.root);
	assert_int_equal(r.err, -ENOMEM);
	assert_int_equal(r.root->len, n);
	arena_done(&small);

	arena_init(&small, 0);
	object_begin(&r, &small);
	assert_null(r.root);
	assert_int_equal(r.err, -ENOMEM);
	object_bool(&r, "a", true);
	assert_int_equal(r.err, -ENOMEM);
	arena_done(&small);
}

/* ---- bytes ---- */

TEST(the_bytes_are_these)
{
	struct fixture *f = *state;
	struct value numbers[] = {
		{.kind = VALUE_NUMBER, .text = "-1.5e+3", .len = 7},
		{.kind = VALUE_NUMBER, .text = "0", .len = 1},
	};
	struct value array = {.kind = VALUE_ARRAY, .len = 2, .first = &numbers[0]};
	struct object_builder r;

	numbers[0].next = &numbers[1];
	value_pack(&f->out, NULL);
	ASSERT_BYTES(&f->out, "n");
	buf_clear(&f->out);
	object_begin(&r, &f->arena);
	object_text(&r, "t", (struct text) {"a\0b", 3});
	object_bool(&r, "", true);
	object_bool(&r, "no", false);
	object_null(&r, "0");
	object_value(&r, "list", &array);
	value_pack(&f->out, r.root);
	ASSERT_BYTES(&f->out, "{\x05"
			      "\x01t\"\x03"
			      "a\0b"
			      "\0t"
			      "\x02nof"
			      "\x01"
			      "0n"
			      "\x04list[\x02#\x07-1.5e+3#\x01"
			      "0");
}

TEST(members_pack_one_by_one_as_their_tree_does)
{
	struct fixture *f = *state;
	struct object_builder r, inner;
	struct packer p, q;
	struct buf tree;

	object_begin(&inner, &f->arena);
	object_int(&inner, "n", -7);
	object_begin(&r, &f->arena);
	object_text(&r, "t", TEXT("text"));
	object_text(&r, "none", (struct text) {0});
	object_value(&r, "inner", inner.root);
	object_value(&r, "again", inner.root);
	object_bool(&r, "yes", true);
	buf_init(&tree, 1 << 16);
	value_pack(&tree, r.root);

	packer_begin(&p, &f->out);
	packer_text(&p, "t", TEXT("text"));
	packer_text(&p, "none", (struct text) {0});
	packer_key(&p, "inner");
	packer_begin(&q, &f->out);
	packer_int(&q, "n", -7);
	packer_end(&q);
	packer_packed(&p, "again", TEXT("{\x01\x01n#\x02-7"));
	packer_bool(&p, "yes", true);
	packer_end(&p);
	assert_int_equal(f->out.err, 0);
	assert_bytes(&f->out, tree.data, tree.len);
	buf_done(&tree);

	buf_clear(&f->out);
	packer_begin(&p, &f->out);
	for (unsigned i = 0; i < 128; i++)
		packer_bool(&p, "b", false);
	packer_end(&p);
	assert_int_equal(f->out.err, -EMSGSIZE);
}

static int unpack(struct fixture *f, const char *bytes, size_t len, struct value **ret)
{
	/* In memory of exactly that size, so that one byte too far is seen. */
	char *copy = malloc(len ? len : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	r = value_unpack(&f->arena, (struct text) {copy, len}, ret);
	free(copy);
	return r;
}

TEST(a_tree_comes_back)
{
	struct fixture *f = *state;
	static char long_text[70000];
	struct object_builder r, inner;
	struct value *back;
	struct buf again;

	memset(long_text, 'x', sizeof(long_text));
	object_begin(&inner, &f->arena);
	object_double(&inner, "half", 0.5);
	object_begin(&r, &f->arena);
	object_text(&r, "long", (struct text) {long_text, sizeof(long_text)});
	object_text(&r, "empty", TEXT(""));
	object_int(&r, "n", -7);
	object_value(&r, "inner", inner.root);
	object_int(&r, "n", 8); /* the same key again stays as it is */
	value_pack(&f->out, r.root);
	assert_int_equal(f->out.err, 0);
	assert_int_equal(value_unpack(&f->arena, (struct text) {f->out.data, f->out.len}, &back),
			 0);
	assert_int_equal(back->kind, VALUE_OBJECT);
	assert_int_equal(back->len, 5);
	assert_null(back->key);
	assert_int_equal(value_text(value_find(back, "long")).len, sizeof(long_text));
	assert_string(value_find(back, "empty"), "");
	assert_non_null(value_text(value_find(back, "empty")).data);
	assert_number(value_find(back, "n"), "8");
	assert_number(value_find(value_find(back, "inner"), "half"), "0.5");
	/* The texts are those of the bytes. */
	assert_true(value_text(value_find(back, "long")).data > f->out.data);
	assert_true(value_text(value_find(back, "long")).data < f->out.data + f->out.len);

	buf_init(&again, 1 << 20);
	value_pack(&again, back);
	assert_bytes(&again, f->out.data, f->out.len);
	buf_done(&again);
}

#define REFUSED(f, literal)                                                                        \
	do {                                                                                       \
		struct value *v_ = NULL;                                                           \
		assert_int_equal(unpack(f, literal, sizeof(literal) - 1, &v_), -EBADMSG);          \
		assert_null(v_);                                                                   \
	} while (0)

TEST(what_was_not_packed_is_refused)
{
	struct fixture *f = *state;
	struct value *v = NULL;

	assert_int_equal(value_unpack(&f->arena, (struct text) {0}, &v), -EBADMSG);
	REFUSED(f, "");
	REFUSED(f, "x");
	REFUSED(f, "\0");
	REFUSED(f, "nn");                         /* something behind it */
	REFUSED(f, "\"");                         /* no length */
	REFUSED(f, "\"\x02x");                    /* too short */
	REFUSED(f, "\"\x81\0x");                  /* a length that is longer than needed */
	REFUSED(f, "\"\x80");                     /* ... and one that does not end */
	REFUSED(f, "\"\x80\x80\x80\x80\x80\x01"); /* ... and one too long */
	REFUSED(f, "\"\xff\xff\xff\xff\x1f");     /* ... and one too large */
	REFUSED(f, "[\x02n");                     /* an element is missing */
	REFUSED(f, "[\xff\xff\xff\xff\x0fn");     /* many are */
	REFUSED(f, "{\x01");                      /* no key */
	REFUSED(f, "{\x01\x01k");                 /* no value */
	REFUSED(f, "{\x01\x05kn");                /* a key too short */
	REFUSED(f, "{\x01\x01k[\x01");            /* deeper down */
}

TEST(a_number_that_json_would_not_write_is_refused)
{
	static const char *const bad[] = {"",   "-",   "01", "1.",  ".5",  "1e", "1e+", "+1",
					  "1 ", "0x1", "--", "NaN", "1.e", "1}", "1,2", "1e5x"};
	static const char *const good[] = {
		"0", "-0", "10", "1.5", "1e5", "1E-5", "-0.0e0", "123456789012345678901234567890"};
	struct fixture *f = *state;
	char bytes[64];
	struct value *v;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(bytes, sizeof(bytes), "#%c%s", (char)strlen(bad[i]), bad[i]);
		assert_int_equal(unpack(f, bytes, 2 + strlen(bad[i]), &v), -EBADMSG);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(bytes, sizeof(bytes), "#%c%s", (char)strlen(good[i]), good[i]);
		assert_int_equal(unpack(f, bytes, 2 + strlen(good[i]), &v), 0);
	}
}

TEST(nesting_is_bounded_both_ways)
{
	enum { DEEP = 1024, TOO_DEEP = 1200 };
	static struct value chain[TOO_DEEP];
	struct fixture *f = *state;
	static char bytes[2 * TOO_DEEP + 1];
	struct value *v;

	for (unsigned i = 0; i < TOO_DEEP; i++) {
		chain[i] = (struct value) {.kind = VALUE_ARRAY, .len = 1};
		chain[i].first = i + 1 < TOO_DEEP ? &chain[i + 1] : NULL;
		memcpy(bytes + 2 * i, "[\x01", 2);
	}
	chain[TOO_DEEP - 1].len = 0;
	value_pack(&f->out, &chain[TOO_DEEP - DEEP]); /* as deep as JSON may be */
	assert_int_equal(f->out.err, 0);
	assert_int_equal(unpack(f, f->out.data, f->out.len, &v), 0);
	value_pack(&f->out, &chain[0]);
	assert_int_equal(f->out.err, -EMSGSIZE);
	bytes[2 * TOO_DEEP] = 'n';
	assert_int_equal(unpack(f, bytes, sizeof(bytes), &v), -EBADMSG);
}

TEST(a_full_buffer_and_a_small_arena_are_told)
{
	struct fixture *f = *state;
	struct arena small;
	struct buf tiny;
	struct object_builder r;
	struct value *v;

	object_begin(&r, &f->arena);
	for (unsigned i = 0; i < 100; i++)
		object_text(&r, "key", TEXT("text"));
	buf_init(&tiny, 64);
	value_pack(&tiny, r.root);
	assert_int_equal(tiny.err, -EMSGSIZE);
	buf_done(&tiny);
	value_pack(&f->out, r.root);
	arena_init(&small, 4096);
	assert_int_equal(value_unpack(&small, (struct text) {f->out.data, f->out.len}, &v),
			 -ENOMEM);
	arena_done(&small);
}

TEST(a_list_has_its_elements_in_order)
{
	struct fixture *f = *state;
	struct object_builder list;
	struct object_builder r;

	object_begin(&r, &f->arena);
	list = object_list(&r, "words");
	object_text(&list, NULL, TEXT("one"));
	object_text(&list, NULL, TEXT("two"));
	object_bool(&r, "last", true);
	assert_int_equal(r.err, 0);
	assert_int_equal(list.err, 0);
	assert_int_equal(r.root->len, 2);
	assert_int_equal(r.root->first->kind, VALUE_ARRAY);
	assert_int_equal(r.root->first->len, 2);
	assert_null(r.root->first->first->key);
	assert_true(text_is(value_text(r.root->first->first->next), "two"));
	assert_string_equal(r.root->first->next->key, "last");
}
