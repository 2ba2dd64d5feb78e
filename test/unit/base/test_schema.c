/* A noun's members, from its schema: as JSON, packed, moved to an arena. */
#include "check.h"

#include "base/cleanup.h"
#include "model/task.h"
#include "base/pack.h"
#include "wire/json.h"

enum mood { MOOD_NONE, MOOD_GOOD };

static const char *const moods[] = {NULL, "good"};

struct thing {
	int64_t seq;
	struct text name;
	struct text bytes;
	struct text lines;
	struct text object;
	struct text env;
	struct texts after;
	struct packed tree;
	int64_t count;
	int64_t at_ms;
	double cost;
	bool held;
	enum mood mood;
};

#define MEMBER(kind, field) MEMBER_OF(struct thing, kind, field)

static const struct member members[] = {
	{NULL, "seq", MEMBER(INT, seq)},
	{"name", "name", MEMBER(TEXT, name), MEMBER_LISTED | MEMBER_CUT},
	{"bytes", "bytes", MEMBER(BLOB, bytes), .absent = ABSENT_EMPTY},
	{"lines", "lines", MEMBER(LINES, lines)},
	{"object", "object", MEMBER(JSON, object), .absent = ABSENT_EMPTY},
	{"env", "env", MEMBER(ENV, env)},
	{"after", "n_after", MEMBER(TEXTS, after)},
	{"tree", "tree", MEMBER(PACKED, tree), .absent = ABSENT_EMPTY},
	{"count", "count", MEMBER(INT, count), MEMBER_LISTED, NONE_IS_NEGATIVE},
	{"at", "at_ms", MEMBER(TIME, at_ms), 0, NONE_IS_ZERO, ABSENT_LEFT_OUT},
	{"cost", "cost", MEMBER(REAL, cost), 0, NONE_IS_NEGATIVE},
	{"held", "held", MEMBER(BOOL, held)},
	{"mood", "mood", MEMBER(ENUM, mood), MEMBER_NAMES(moods)},
};

static const struct schema schema = SCHEMA(struct thing, members);

static const struct thing nothing = {.count = -1, .cost = -0.5};

static const struct text ids[] = {TEXT("a"), TEXT("b")};

static const struct thing full = {
	.seq = 7,
	.name = TEXT("caf\xc3\xa9"),
	.bytes = TEXT("x\0y"),
	.lines = TEXT("\none\n\ntwo words"),
	.object = TEXT("{\"k\":1}"),
	.env = TEXT("A=1\0B\0C=secret=2"),
	.after = {ids, 2},
	.count = 0,
	.at_ms = 1000,
	.cost = 0.5,
	.held = true,
	.mood = MOOD_GOOD,
};

static void assert_json(const struct thing *thing, struct selection s, size_t cut, const char *want)
{
	CLEANUP(buf_donep) struct buf out;
	struct json j = json_writer(&out);

	buf_init(&out, 4096);
	json_begin_object(&j);
	json_members(&j, &schema, s, thing, cut);
	json_end_object(&j);
	buf_add(&out, "", 1);
	assert_int_equal(out.err, 0);
	assert_string_equal(out.data, want);
}

TEST(members_are_written_in_their_order)
{
	assert_json(&full, (struct selection) {0}, 0,
		    "{\"name\":\"caf\xc3\xa9\",\"bytes\":\"x\\u0000y\","
		    "\"lines\":[\"one\",\"two words\"],"
		    "\"object\":{\"k\":1},\"env\":[\"A\",\"B\",\"C\"],"
		    "\"after\":[\"a\",\"b\"],\"tree\":{},\"count\":0,"
		    "\"at\":\"1970-01-01T00:00:01.000Z\",\"cost\":0.5,\"held\":true,"
		    "\"mood\":\"good\"}");
}

TEST(what_is_none_is_written_as_it_says)
{
	assert_json(&nothing, (struct selection) {0}, 0,
		    "{\"name\":null,\"bytes\":\"\",\"lines\":[],\"object\":{},\"env\":[],"
		    "\"after\":[],\"tree\":{},"
		    "\"count\":null,\"cost\":null,\"held\":false,\"mood\":null}");
}

TEST(a_selection_has_some_of_them)
{
	assert_json(&full, (struct selection) {.with = MEMBER_LISTED}, 4,
		    "{\"name\":\"caf\",\"count\":0}");
	assert_json(&full, (struct selection) {.with = MEMBER_LISTED, .without = MEMBER_CUT}, 4,
		    "{\"count\":0}");
}

static void assert_packed(const struct thing *thing, size_t cut, const char *want)
{
	CLEANUP(buf_donep) struct buf packed;
	CLEANUP(buf_donep) struct buf out;
	struct json j = json_writer(&out);
	struct packer p;

	buf_init(&packed, 4096);
	buf_init(&out, 4096);
	packer_begin(&p, &packed);
	packer_members(&p, &schema, (struct selection) {0}, thing, cut);
	packer_end(&p);
	json_packed(&j, (struct text) {packed.data, packed.len});
	buf_add(&out, "", 1);
	assert_int_equal(packed.err, 0);
	assert_string_equal(out.data, want);
}

/* But for what is never packed. */
TEST(packed_it_has_the_same)
{
	struct thing tree = full;
	const struct value list = {.kind = VALUE_ARRAY};

	assert_packed(&full, 4,
		      "{\"name\":\"caf\",\"bytes\":\"x\\u0000y\",\"after\":[\"a\",\"b\"],"
		      "\"tree\":{},\"count\":0,\"at\":\"1970-01-01T00:00:01.000Z\",\"held\":true,"
		      "\"mood\":\"good\"}");
	tree.tree.value = &list;
	assert_packed(&tree, 0,
		      "{\"name\":\"caf\xc3\xa9\",\"bytes\":\"x\\u0000y\",\"after\":[\"a\",\"b\"],"
		      "\"tree\":[],\"count\":0,\"at\":\"1970-01-01T00:00:01.000Z\",\"held\":true,"
		      "\"mood\":\"good\"}");
	assert_packed(&nothing, 0,
		      "{\"name\":null,\"bytes\":\"\",\"after\":null,\"tree\":{},\"count\":null,"
		      "\"held\":false,\"mood\":null}");
}

TEST(bytes_move_to_an_arena)
{
	struct thing copy = full;
	struct arena arena;

	arena_init(&arena, 1 << 20);
	assert_int_equal(schema_bytes(&schema, &full), full.name.len + full.bytes.len +
							       full.lines.len + full.object.len +
							       full.env.len);
	assert_int_equal(schema_copy(&schema, &arena, &copy), 0);
	assert_ptr_not_equal(copy.name.data, full.name.data);
	assert_true(text_equal(copy.env, full.env));
	assert_null(copy.tree.bytes.data);
	arena_done(&arena);
}

/* What is kept or shown twice under one name would be found only in one place. */
TEST(names_and_columns_are_unique)
{
	schema_each(a, &task_schema)
	{
		assert_true(a->name || a->column);
		assert_true(a->offset < task_schema.size);
		for (const struct member *b = task_schema.members; b < a; b++) {
			assert_int_not_equal(a->offset, b->offset);
			assert_true(!a->name || !b->name || strcmp(a->name, b->name) != 0);
			assert_true(!a->column || !b->column || strcmp(a->column, b->column) != 0);
		}
	}
}

TEST(states_have_names)
{
	enum task_state found;

	for (unsigned i = 0; i < N_TASK_STATES; i++) {
		assert_true(task_state_parse(text_of(task_state_name((enum task_state)i)), &found));
		assert_int_equal(found, i);
	}
	assert_false(task_state_parse(TEXT("nosuch"), &found));
	assert_false(task_state_parse((struct text) {0}, &found));
}
