/* Which files keep whose index, and what has changed since. */
#include "store_rows.h"

#include "store/index/kept.h"

static int64_t add(struct fixture *f, const char *id, const char *owner)
{
	struct memory row = plain_row(text_of(id), text_of(id));
	int64_t seq = 0;

	row.owner = text_of(owner);
	begin(f);
	assert_int_equal(store_memory_add(writer(f), &row, &seq), 0);
	commit(f);
	return seq;
}

static void update(struct fixture *f, const char *id, const char *content)
{
	struct memory row = plain_row(text_of(id), text_of(content));
	bool found;

	begin(f);
	assert_int_equal(store_memory_update(writer(f), &row, &found), 0);
	assert_true(found);
	commit(f);
}

static void forget(struct fixture *f, const char *id)
{
	bool found;

	begin(f);
	assert_int_equal(store_memory_delete(writer(f), &EVERYTHING, text_of(id), &found), 0);
	assert_true(found);
	commit(f);
}

static struct store_position position(struct fixture *f)
{
	struct store_position p;

	assert_int_equal(store_memory_position(reader(f), &p), 0);
	return p;
}

/* What was told, as "SEQ=CONTENT " or "SEQ " of those that are not seen. */
struct told {
	char text[512];
};

static int tell(void *arg, const struct memory *m)
{
	struct told *told = arg;
	size_t len = strlen(told->text);

	if (m->id.data)
		snprintf(told->text + len, sizeof(told->text) - len, "%lld=%.*s ",
			 (long long)m->seq, TEXT_ARGS(m->content));
	else
		snprintf(told->text + len, sizeof(told->text) - len, "%lld ", (long long)m->seq);
	return 0;
}

FIXTURE(setup, teardown);

TEST(what_changed_is_told_as_it_is_now)
{
	const struct store_scope ann = {.user = TEXT("ann"), .without_common = true};
	struct fixture *f = *state;
	struct told told = {""}, all = {""};
	struct store_position p;
	int64_t after;
	bool end;

	add(f, "one", "ann");
	add(f, "two", "ann");
	add(f, "three", "bob");
	p = position(f);
	assert_int_equal(p.seq, 3);
	assert_int_equal(p.change, 0);
	update(f, "one", "once");
	update(f, "three", "thrice");
	forget(f, "two");
	update(f, "one", "at last");
	after = p.change;
	assert_int_equal(store_memory_each_changed(reader(f), &ann, &after, 100, tell, &told, &end),
			 0);
	assert_string_equal(told.text, "1=at last 3 2 1=at last ");
	assert_true(end);
	assert_int_equal(after, position(f).change);
	/* In pieces, and of everything. */
	after = p.change;
	assert_int_equal(
		store_memory_each_changed(reader(f), &EVERYTHING, &after, 2, tell, &all, &end), 0);
	assert_string_equal(all.text, "1=at last 3=thrice ");
	assert_false(end);
}

TEST(what_is_new_is_found_by_its_number)
{
	const struct store_scope ann = {.user = TEXT("ann"), .without_common = true};
	struct fixture *f = *state;
	struct told told = {""};

	add(f, "one", "ann");
	add(f, "two", "bob");
	add(f, "three", "ann");
	add(f, "four", "ann");
	assert_int_equal(store_memory_each_numbered(reader(f), &ann, 1, 3, tell, &told), 0);
	assert_string_equal(told.text, "3=three ");
}

TEST(whoever_changes_a_memory_is_noted)
{
	struct fixture *f = *state;

	add(f, "one", "ann");
	add(f, "two", "ann");
	fixture_close(f);
	change_file(f, "UPDATE memory SET content = 'x' WHERE id = 'two';"
		       "DELETE FROM memory WHERE id = 'one'");
	fixture_open(f);
	assert_int_equal(position(f).change, 2);
	assert_int_equal(number(f, "SELECT seq FROM memory_change WHERE number = 2"), 1);
}

TEST(old_notes_go)
{
	struct fixture *f = *state;

	add(f, "one", "ann");
	fixture_close(f);
	change_file(f, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
		       " WHERE i < 70000) INSERT INTO memory_change (seq) SELECT 1 FROM n");
	fixture_open(f);
	assert_int_equal(number(f, "SELECT count(*) FROM memory_change"), STORE_CHANGES_KEPT);
	assert_int_equal(position(f).change, 70000);
	update(f, "one", "x");
	assert_int_equal(number(f, "SELECT min(number) FROM memory_change"),
			 70001 - STORE_CHANGES_KEPT + 1);
}

static struct store_kept kept(char letter, const char *kind, const char *name)
{
	struct store_kept k = {.kind = kind,
			       .name = text_of(name),
			       .position = {7, 8},
			       .memories = 9,
			       .bytes = 100};

	memset(k.token, letter, STORE_TOKEN_LEN);
	return k;
}

static void put(struct fixture *f, const struct store_kept *k)
{
	begin(f);
	assert_int_equal(store_kept_put(writer(f), k), 0);
	commit(f);
}

TEST(a_scope_has_one_file)
{
	struct fixture *f = *state;
	const struct store_kept first = kept('a', "user", "ann");
	const struct store_kept second = kept('b', "user", "ann");
	const struct store_kept other = kept('c', "chat", "ann");
	struct store_kept found;
	int64_t n, bytes;
	bool is;

	put(f, &first);
	put(f, &other);
	put(f, &second);
	assert_int_equal(store_kept_find(reader(f), "user", TEXT("ann"), &found, &is), 0);
	assert_true(is);
	assert_string_equal(found.token, second.token);
	assert_int_equal(found.position.seq, 7);
	assert_int_equal(found.position.change, 8);
	assert_int_equal(found.memories, 9);
	assert_int_equal(store_kept_count(reader(f), &n, &bytes), 0);
	assert_int_equal(n, 2);
	assert_int_equal(bytes, 200);
	begin(f);
	assert_int_equal(store_kept_drop(writer(f), second.token), 0);
	commit(f);
	assert_int_equal(store_kept_find(reader(f), "user", TEXT("ann"), &found, &is), 0);
	assert_false(is);
	assert_int_equal(store_kept_find(reader(f), "chat", TEXT("ann"), &found, &is), 0);
	assert_true(is);
}

TEST(a_file_of_version_13_gets_the_tables)
{
	struct fixture *f = *state;

	become_version(f, 13);
	fixture_open(f);
	update(f, "one", "x");
	assert_int_equal(position(f).change, 1);
}
