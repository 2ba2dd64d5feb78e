/* Memories that were found lately: who sees them, and when they are forgotten. */
#include "check.h"

#include "store/index/found.h"

enum { ROOM = 64 << 10 };

static const struct store_scope anns = {.user = TEXT("ann")};
static const struct store_scope bobs = {.user = TEXT("bob")};
static const struct store_scope alls = {.everything = true};

struct fixture {
	struct found_memories *found;
	struct arena arena;
};

static void make(struct fixture *f)
{
	arena_init(&f->arena, 1 << 20);
	assert_int_equal(found_memories_new(ROOM, &f->found), 0);
}

static void unmake(struct fixture *f)
{
	found_memories_free(f->found);
	arena_done(&f->arena);
}

static struct memory row_of(int64_t seq, const char *content)
{
	return (struct memory) {.seq = seq, .id = TEXT("id"), .content = text_of(content)};
}

static void put(struct fixture *f, const struct store_scope *scope, int64_t seq,
		const char *content)
{
	const struct memory row = row_of(seq, content);

	found_memories_put(f->found, scope, &row, found_memories_mark(f->found));
}

/* NULL: it is not at hand. */
static const char *get(struct fixture *f, const struct store_scope *scope, int64_t seq)
{
	struct memory row;
	bool found;
	char *copy;

	assert_int_equal(found_memories_get(f->found, scope, seq, &f->arena, &row, &found), 0);
	if (!found)
		return NULL;
	assert_int_equal(row.seq, seq);
	assert_true(text_is(row.id, "id"));
	assert_null(row.owner.data);
	copy = arena_alloc(&f->arena, row.content.len + 1);
	assert_non_null(copy);
	memcpy(copy, row.content.data, row.content.len);
	copy[row.content.len] = '\0';
	return copy;
}

TEST(each_scope_has_its_own)
{
	struct fixture f;

	make(&f);
	put(&f, &anns, 1, "runs");
	put(&f, &alls, 1, "runs, as all see it");
	assert_string_equal(get(&f, &anns, 1), "runs");
	assert_string_equal(get(&f, &alls, 1), "runs, as all see it");
	assert_null(get(&f, &bobs, 1));
	assert_null(get(&f, &anns, 2));
	unmake(&f);
}

TEST(what_changes_is_forgotten_in_every_scope)
{
	struct fixture f;

	make(&f);
	put(&f, &anns, 1, "runs");
	put(&f, &alls, 1, "runs");
	put(&f, &anns, 2, "swims");
	found_memories_forget(f.found, 1);
	assert_null(get(&f, &anns, 1));
	assert_null(get(&f, &alls, 1));
	assert_string_equal(get(&f, &anns, 2), "swims");
	found_memories_forget(NULL, 1);
	unmake(&f);
}

TEST(what_was_read_before_a_change_is_not_taken)
{
	const struct memory old = row_of(1, "runs");
	struct fixture f;
	uint64_t mark;

	make(&f);
	mark = found_memories_mark(f.found);
	found_memories_forget(f.found, 1);
	found_memories_put(f.found, &anns, &old, mark);
	assert_null(get(&f, &anns, 1));
	put(&f, &anns, 1, "walks");
	assert_string_equal(get(&f, &anns, 1), "walks");
	unmake(&f);
}

TEST(the_oldest_go_first)
{
	char text[1000];
	struct fixture f;

	make(&f);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int64_t i = 0; i < 200; i++) {
		put(&f, &anns, i, text);
		assert_non_null(get(&f, &anns, i));
		assert_non_null(get(&f, &anns, 0));
	}
	assert_null(get(&f, &anns, 1));
	assert_non_null(get(&f, &anns, 199));
	unmake(&f);
}

TEST(what_would_take_all_the_room_is_not_kept)
{
	static char text[ROOM / 8];
	struct fixture f;

	make(&f);
	memset(text, 'x', sizeof(text) - 1);
	put(&f, &anns, 1, text);
	assert_null(get(&f, &anns, 1));
	unmake(&f);
}
