/* Indexes that are kept in files: what is found is what the store has, whatever became of the file. */
#include "engine_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "engine/index/inner.h"
#include "engine/memory/inner.h"
#include "store/store.h"

enum { N = 5000, BYTES = 64 << 20, HITS = 200 };

static const struct scope_name ann = {SCOPE_USER, {"ann", 3}};

struct files {
	char folder[TEMPDIR_MAX + 20];
	char path[TEMPDIR_MAX + 100]; /* of the only file, or the last one */
	unsigned n;
};

static struct files files;

static int setup_files(void **state)
{
	struct fixture *f;

	if (setup(state) != 0)
		return -1;
	f = *state;
	files = (struct files) {0};
	snprintf(files.folder, sizeof(files.folder), "%s/koine.db-index", f->dir);
	f->folder = files.folder;
	fixture_memories(f, BYTES);
	return 0;
}

FIXTURE(setup_files, teardown);

static void count_files(void)
{
	DIR *dir = opendir(files.folder);
	const struct dirent *entry;

	files.n = 0;
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		files.n++;
		snprintf(files.path, sizeof(files.path), "%s/%.60s", files.folder, entry->d_name);
	}
	if (dir)
		closedir(dir);
}

/* ---- memories ---- */

static uint32_t random_below(uint32_t n)
{
	static uint32_t state = 7;

	state = state * 1664525 + 1013904223;
	return (state >> 8) % n;
}

static char (*ids)[40];
static unsigned n_ids;

/* In a batch. */
static void add_one(struct fixture *f, const char *user)
{
	char content[120], chat[8];
	struct memory_new in;
	struct memory m;

	snprintf(content, sizeof(content), "entry%u about topic%u and word%u", n_ids,
		 (unsigned)random_below(50), (unsigned)random_below(500));
	snprintf(chat, sizeof(chat), "c%u", (unsigned)random_below(5));
	in = plain(content, user);
	in.by.chat = text_of(chat);
	in.created_ms = 1000 + random_below(100000);
	if (random_below(20) == 0)
		in.expires_ms = 2; /* long ago: to be swept */
	assert_int_equal(memory_add(f->engine->memories, &f->arena, &in, &m, &f->error), 0);
	snprintf(ids[n_ids++], 40, "%.*s", TEXT_ARGS(m.id));
	arena_reset(&f->arena);
}

static void add_some(struct fixture *f, unsigned n)
{
	begin(f);
	for (unsigned i = 0; i < n; i++)
		add_one(f, random_below(10) ? "ann" : "bob");
	end(f);
}

static void fill(struct fixture *f)
{
	free(ids);
	ids = calloc(6 * N, sizeof(*ids));
	n_ids = 0;
	assert_non_null(ids);
	add_some(f, N + N / 4);
}

static void change_one(struct fixture *f)
{
	const struct memory_asker everybody = {0};
	struct text id = text_of(ids[random_below(n_ids)]);
	struct memory_change_in change = {.importance = -1};
	char content[80];
	struct memory m;
	bool deleted;

	if (random_below(2)) {
		(void)memory_delete(f->engine->memories, &f->arena, &everybody, id, false,
				    &(struct memory) {0}, &deleted, &f->error);
		return;
	}
	snprintf(content, sizeof(content), "changed%u about topic%u", (unsigned)random_below(99),
		 (unsigned)random_below(50));
	change.content = text_of(content);
	(void)memory_update(f->engine->memories, &f->arena, &everybody, id, &change, &m, &f->error);
}

static void change_some(struct fixture *f, unsigned n)
{
	bool more;

	begin(f);
	for (unsigned i = 0; i < n; i++) {
		if (random_below(3) == 0)
			add_one(f, random_below(2) ? "ann" : "bob");
		else
			change_one(f);
	}
	if (random_below(3) == 0)
		assert_int_equal(memory_sweep(f->engine->memories, &more), 0);
	end(f);
	arena_reset(&f->arena);
}

/* ---- starts and stops ---- */

/* As a daemon that was killed leaves it, after the step that was under way. */
static void start_again(struct fixture *f)
{
	memories_stop(f->engine->memories);
	while (run_next(f))
		;
	fixture_reopen(f, BYTES);
}

static void stop_and_start(struct fixture *f)
{
	memories_stop(f->engine->memories);
	while (run_next(f))
		;
	memories_finish(f->engine->memories);
	fixture_reopen(f, BYTES);
}

/* Where the index came from. */
static enum build_source source_of(struct fixture *f, const struct scope_name *scope)
{
	struct memory_indexes *m = f->engine->memories->indexes;
	const struct held_index *h;

	indexes_lock(m);
	h = index_find(m, scope);
	indexes_unlock(m);
	return h ? h->source : SOURCE_NONE;
}

struct answer {
	int64_t seqs[HITS];
	float similarities[HITS];
	unsigned n;
};

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a;
	int64_t y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void ask(struct fixture *f, const char *text, const char *user, struct answer *ret)
{
	const struct memory_query q = {
		.text = text_of(text), .by = asker(user, NULL), .limit = HITS};
	struct memory *hits;

	assert_int_equal(search_with(f, &q, &hits, &ret->n), 0);
	for (unsigned i = 0; i < ret->n; i++)
		ret->seqs[i] = hits[i].seq;
	qsort(ret->seqs, ret->n, sizeof(ret->seqs[0]), by_number);
	arena_reset(&f->arena);
}

/* What is found with the file is what is found without one. */
static void assert_true_to_store(struct fixture *f)
{
	static const char *const users[] = {"ann", "bob", NULL};
	static struct answer with[12], without[12];
	unsigned n = 0;

	for (unsigned i = 0; i < 12; i++) {
		char text[60];

		snprintf(text, sizeof(text), i % 4 == 3 ? "changed%u" : "topic%u word%u", i * 4,
			 i * 41);
		ask(f, text, users[i % 3], &with[i]);
		n += with[i].n;
	}
	assert_true(n > 100);
	f->folder = NULL;
	fixture_memories(f, BYTES);
	for (unsigned i = 0; i < 12; i++) {
		char text[60];

		snprintf(text, sizeof(text), i % 4 == 3 ? "changed%u" : "topic%u word%u", i * 4,
			 i * 41);
		ask(f, text, users[i % 3], &without[i]);
		assert_int_equal(with[i].n, without[i].n);
		/* More than fit may be cut at another place, where words of the dead still count. */
		if (with[i].n < HITS)
			assert_memory_equal(with[i].seqs, without[i].seqs,
					    with[i].n * sizeof(int64_t));
	}
	f->folder = files.folder;
	fixture_memories(f, BYTES);
}

/* Builds the index, which is then kept. */
static void keep(struct fixture *f)
{
	n_found(f, "topic7", "ann");
	assert_int_equal(source_of(f, &ann), SOURCE_STORE);
	while (run_next(f))
		;
	count_files();
	assert_int_equal(files.n, 1);
}

/* ---- the tests ---- */

TEST(a_large_index_is_read_from_its_file)
{
	struct fixture *f = *state;
	struct memory_counts counts;
	struct stat st;

	fill(f);
	keep(f);
	assert_int_equal(stat(files.folder, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(files.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(memory_stats(f->engine->memories, 0, &(struct memory_asker) {0}, &counts),
			 0);
	assert_int_equal(counts.index_files, 1);
	assert_int_equal(counts.index_file_bytes, st.st_size);
	start_again(f);
	assert_true(n_found(f, "topic7", "ann") > 0);
	assert_int_equal(source_of(f, &ann), SOURCE_CHANGES);
	assert_true_to_store(f);
}

TEST(a_small_one_has_no_file)
{
	struct fixture *f = *state;

	free(ids);
	ids = calloc(N, sizeof(*ids));
	n_ids = 0;
	add_some(f, 1000);
	n_found(f, "topic7", "ann");
	stop_and_start(f);
	count_files();
	assert_int_equal(files.n, 0);
}

TEST(what_changed_since_is_caught_up)
{
	struct fixture *f = *state;

	fill(f);
	keep(f);
	for (int i = 0; i < rounds(3, 12); i++) {
		start_again(f);
		/* Before the index is read, and after. */
		change_some(f, 60);
		n_found(f, "topic7", "ann");
		if (i % 2)
			n_found(f, "topic7", NULL);
		assert_int_equal(source_of(f, &ann), SOURCE_CHANGES);
		change_some(f, 60);
		assert_true_to_store(f);
		if (i % 3 == 2)
			stop_and_start(f);
	}
}

TEST(changes_while_it_is_read_are_in_it)
{
	struct fixture *f = *state;
	struct search s;
	const struct memory_query q = {
		.text = TEXT("changed7 topic3 newcomer"), .by = asker("ann", NULL), .limit = 1000};

	fill(f);
	keep(f);
	start_again(f);
	change_some(f, 100);
	search_start(f, &s, &q);
	while (!s.over && run_next(f)) {
		change_some(f, 3);
		add(f, "newcomer", "ann");
	}
	assert_int_equal(source_of(f, &ann), SOURCE_CHANGES);
	assert_int_equal(s.result, 0);
	assert_true(s.n > 0);
	assert_true_to_store(f);
}

TEST(changes_while_it_is_written_are_not_lost)
{
	struct fixture *f = *state;

	fill(f);
	n_found(f, "topic7", "ann");
	while (run_next(f))
		change_some(f, 20);
	start_again(f);
	n_found(f, "topic7", "ann");
	assert_int_equal(source_of(f, &ann), SOURCE_CHANGES);
	assert_true_to_store(f);
}

static int drop_one(void *arg, const struct store_kept *kept)
{
	memcpy(arg, kept->token, sizeof(kept->token));
	return 0;
}

static void drop_files(struct fixture *f)
{
	char token[STORE_TOKEN_LEN + 1] = "";
	struct connection *c = store_writer(f->engine->store);

	assert_int_equal(store_kept_each(c, drop_one, token), 0);
	assert_int_equal(store_kept_drop(c, token), 0);
}

static size_t n_named(struct fixture *f)
{
	struct memory_counts counts;

	assert_int_equal(memory_stats(f->engine->memories, 0, &(struct memory_asker) {0}, &counts),
			 0);
	return (size_t)counts.index_files;
}

/* Killed after each of the steps in which it is written: the next start has the old or the new. */
TEST(a_kill_at_any_point_leaves_named_files_only)
{
	struct fixture *f = *state;
	unsigned n_files = 0;
	bool all = false;

	fill(f);
	for (int steps = 0; !all; steps++) {
		struct search s;
		const struct memory_query q = {
			.text = TEXT("topic7"), .by = asker("ann", NULL), .limit = 10};

		search_start(f, &s, &q);
		while (!s.over)
			assert_true(run_next(f));
		all = true;
		for (int i = 0; i < steps; i++)
			all = run_next(f);
		if (steps > 0)
			change_some(f, 10);
		start_again(f);
		assert_true_to_store(f);
		start_again(f);
		/* Whatever was left over is removed by the next that runs. */
		memories_tick(f->engine->memories);
		while (run_next(f))
			;
		count_files();
		n_files += files.n;
		/* On a fast machine the index of all memories is kept, too. */
		assert_int_equal(files.n, n_named(f));
		/* And the next time there is none to begin with. */
		begin(f);
		drop_files(f);
		end(f);
	}
	assert_true(n_files > 0);
}

static void copy_file(const char *from, const char *to)
{
	char command[300];

	snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
	assert_int_equal(system(command), 0);
}

static void damage(size_t at)
{
	int fd = open(files.path, O_RDWR);
	unsigned char byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	close(fd);
}

/* Nothing is kept after the search. */
static unsigned search_alone(struct fixture *f)
{
	const struct memory_query q = {
		.text = TEXT("topic7"), .by = asker("ann", NULL), .limit = 1000};
	struct search s;

	search_start(f, &s, &q);
	while (!s.over)
		assert_true(run_next(f));
	assert_int_equal(s.result, 0);
	arena_reset(&f->arena);
	return s.n;
}

static void assert_not_used(struct fixture *f, unsigned n)
{
	start_again(f);
	assert_int_equal(search_alone(f), n);
	assert_int_equal(source_of(f, &ann), SOURCE_STORE);
	start_again(f);
}

TEST(a_damaged_file_is_not_used)
{
	struct fixture *f = *state;
	char good[TEMPDIR_MAX + 20];
	const int places = rounds(8, 32), ends = places / 4;
	struct stat st;
	unsigned n;

	fill(f);
	keep(f);
	n = n_found(f, "topic7", "ann");
	assert_int_equal(stat(files.path, &st), 0);
	snprintf(good, sizeof(good), "%s/good", f->dir);
	copy_file(files.path, good);
	for (int i = 0; i < places + ends; i++) {
		copy_file(good, files.path);
		if (i < places)
			damage((size_t)st.st_size * (size_t)i / (size_t)places + (size_t)i);
		else
			assert_int_equal(truncate(files.path, st.st_size * (i - places) / ends), 0);
		assert_not_used(f, n);
	}
	copy_file(good, files.path);
	assert_int_equal(search_alone(f), n);
	assert_int_equal(source_of(f, &ann), SOURCE_CHANGES);
}

TEST(what_somebody_put_there_is_not_used)
{
	struct fixture *f = *state;
	char other[TEMPDIR_MAX + 20];
	unsigned n;

	fill(f);
	keep(f);
	n = n_found(f, "topic7", "ann");
	snprintf(other, sizeof(other), "%s/elsewhere", f->dir);
	assert_int_equal(rename(files.path, other), 0);
	assert_int_equal(symlink(other, files.path), 0);
	assert_not_used(f, n);
	assert_int_equal(unlink(files.path), 0);
	assert_int_equal(mkfifo(files.path, 0600), 0);
	assert_not_used(f, n);
	assert_int_equal(unlink(files.path), 0);
	assert_int_equal(rename(other, files.path), 0);
	assert_int_equal(chmod(files.path, 0666), 0);
	assert_not_used(f, n);
	assert_int_equal(chmod(files.path, 0600), 0);
	assert_int_equal(chmod(files.folder, 0777), 0);
	assert_not_used(f, n);
	assert_int_equal(chmod(files.folder, 0700), 0);
	start_again(f);
	n_found(f, "topic7", "ann");
	assert_int_equal(source_of(f, &ann), SOURCE_CHANGES);
}

/* The file of another scope, under the name of this one's. */
TEST(another_file_is_not_used)
{
	struct fixture *f = *state;
	char first[sizeof(files.path)];
	const struct dirent *entry;
	unsigned n;
	DIR *dir;

	fill(f);
	keep(f);
	n = n_found(f, "topic7", "ann");
	memcpy(first, files.path, sizeof(first));
	start_again(f);
	n_found(f, "topic7", NULL);
	while (run_next(f))
		;
	count_files();
	assert_int_equal(files.n, 2);
	dir = opendir(files.folder);
	while ((entry = readdir(dir))) {
		snprintf(files.path, sizeof(files.path), "%s/%.60s", files.folder, entry->d_name);
		if (entry->d_name[0] != '.' && strcmp(files.path, first) != 0)
			break;
	}
	closedir(dir);
	assert_int_equal(rename(files.path, first), 0);
	assert_not_used(f, n);
}

/* The store as it was before: what came later is in the file, but not in the store. */
TEST(a_store_put_back_does_not_use_what_is_newer)
{
	struct fixture *f = *state;
	char store[TEMPDIR_MAX + 20], backup[TEMPDIR_MAX + 20];

	fill(f);
	snprintf(store, sizeof(store), "%s/koine.db", f->dir);
	snprintf(backup, sizeof(backup), "%s/backup.db", f->dir);
	engine_close(f->engine);
	copy_file(store, backup);
	fixture_open(f, BYTES);
	keep(f);
	change_some(f, 50);
	stop_and_start(f);
	engine_close(f->engine);
	copy_file(backup, store);
	fixture_open(f, BYTES);
	add_some(f, 100);
	assert_true(search_alone(f) > 0);
	assert_int_equal(source_of(f, &ann), SOURCE_STORE);
	/* And it goes. */
	start_again(f);
	memories_tick(f->engine->memories);
	while (run_next(f))
		;
	count_files();
	assert_int_equal(files.n, 0);
}

/* One that was written before the backup is as good as ever. */
TEST(a_store_put_back_uses_what_is_older)
{
	struct fixture *f = *state;
	char store[TEMPDIR_MAX + 20], backup[TEMPDIR_MAX + 20];

	fill(f);
	keep(f);
	change_some(f, 30);
	snprintf(store, sizeof(store), "%s/koine.db", f->dir);
	snprintf(backup, sizeof(backup), "%s/backup.db", f->dir);
	engine_close(f->engine);
	copy_file(store, backup);
	fixture_open(f, BYTES);
	change_some(f, 30);
	engine_close(f->engine);
	copy_file(backup, store);
	fixture_open(f, BYTES);
	change_some(f, 30);
	n_found(f, "topic7", "ann");
	assert_int_equal(source_of(f, &ann), SOURCE_CHANGES);
	assert_true_to_store(f);
}

TEST(without_room_there_is_no_file)
{
	struct fixture *f = *state;
	int fd;

	fill(f);
	fd = open(files.folder, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_true(n_found(f, "topic7", "ann") > 0);
	while (run_next(f))
		;
	stop_and_start(f);
	assert_true(n_found(f, "topic7", "ann") > 0);
	assert_int_equal(source_of(f, &ann), SOURCE_STORE);
}

TEST(a_scope_that_is_gone_leaves_no_file)
{
	const struct memory_asker everybody = {0};
	struct fixture *f = *state;
	bool deleted;

	fill(f);
	keep(f);
	begin(f);
	for (unsigned i = 0; i < n_ids; i++) {
		assert_int_equal(memory_delete(f->engine->memories, &f->arena, &everybody,
					       text_of(ids[i]), false, &(struct memory) {0},
					       &deleted, &f->error),
				 0);
		arena_reset(&f->arena);
	}
	end(f);
	start_again(f);
	memories_tick(f->engine->memories);
	while (run_next(f))
		;
	count_files();
	assert_int_equal(files.n, 0);
	assert_int_equal(n_found(f, "topic7", "ann"), 0);
}

TEST(a_stop_keeps_what_has_changed)
{
	struct fixture *f = *state;
	char first[sizeof(files.path)];

	fill(f);
	keep(f);
	memcpy(first, files.path, sizeof(first));
	add_some(f, 20);
	stop_and_start(f);
	count_files();
	assert_string_equal(files.path, first);
	n_found(f, "topic7", "ann");
	add_some(f, 400);
	stop_and_start(f);
	count_files();
	assert_int_equal(files.n, 1);
	assert_string_not_equal(files.path, first);
	n_found(f, "topic7", "ann");
	assert_int_equal(source_of(f, &ann), SOURCE_CHANGES);
	assert_true_to_store(f);
}

/* What others change must be passed over, and is noted for a while only. */
TEST(a_stop_keeps_what_others_have_left_behind)
{
	struct fixture *f = *state;
	char first[sizeof(files.path)];

	fill(f);
	keep(f);
	memcpy(first, files.path, sizeof(first));
	begin(f);
	for (int i = 0; i < 3000; i++)
		add_one(f, "carol");
	end(f);
	stop_and_start(f);
	count_files();
	assert_int_equal(files.n, 1);
	assert_string_not_equal(files.path, first);
}

TEST(a_file_that_is_gone_is_not_counted)
{
	struct fixture *f = *state;
	struct memory_counts counts;

	fill(f);
	keep(f);
	assert_int_equal(unlink(files.path), 0);
	start_again(f);
	memories_tick(f->engine->memories);
	while (run_next(f))
		;
	assert_int_equal(memory_stats(f->engine->memories, 0, &(struct memory_asker) {0}, &counts),
			 0);
	assert_int_equal(counts.index_files, 0);
}

/* A memory of a user of its own, and a file that the store names as that user's index. */
static void add_with_file(struct fixture *f, unsigned i, char *ret_id)
{
	struct store_kept kept = {.kind = scope_kind_name(SCOPE_USER), .bytes = 1};
	char user[8], path[sizeof(files.path)];
	struct memory_new in;
	struct memory m;
	int fd;

	snprintf(user, sizeof(user), "u%u", i);
	in = plain("a secret", user);
	assert_int_equal(memory_add(f->engine->memories, &f->arena, &in, &m, &f->error), 0);
	snprintf(ret_id, 40, "%.*s", TEXT_ARGS(m.id));
	kept.name = text_of(user);
	snprintf(kept.token, sizeof(kept.token), "%032x", i);
	assert_int_equal(store_kept_put(store_writer(f->engine->store), &kept), 0);
	snprintf(path, sizeof(path), "%s/%s.index", files.folder, kept.token);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void purge(struct fixture *f, const char *id)
{
	bool deleted = false;

	assert_int_equal(memory_delete(f->engine->memories, &f->arena, &(struct memory_asker) {0},
				       text_of(id), true, &(struct memory) {0}, &deleted,
				       &f->error),
			 0);
	assert_true(deleted);
}

TEST(a_purge_removes_the_files_of_all_scopes)
{
	enum { SCOPES = 84 };
	static char of[SCOPES][40];
	struct fixture *f = *state;

	assert_int_equal(mkdir(files.folder, 0700), 0);
	begin(f);
	for (unsigned i = 0; i < SCOPES; i++)
		add_with_file(f, i, of[i]);
	end(f);
	begin(f);
	for (unsigned i = 0; i < SCOPES - 1; i++)
		purge(f, of[i]);
	end(f);
	count_files();
	assert_int_equal(files.n, 1);
}

TEST(a_purge_that_is_undone_removes_no_file)
{
	struct fixture *f = *state;
	char kept[40], purged[40];

	assert_int_equal(mkdir(files.folder, 0700), 0);
	begin(f);
	add_with_file(f, 1, kept);
	add_with_file(f, 2, purged);
	end(f);
	begin(f);
	purge(f, purged);
	assert_int_equal(engine_leave(f->engine, true), 0);
	assert_int_equal(engine_enter(f->engine), 0);
	purge(f, kept);
	assert_int_equal(engine_leave(f->engine, false), 0);
	assert_int_equal(engine_commit(f->engine), 0);
	count_files();
	assert_int_equal(files.n, 1);
	assert_non_null(strstr(files.path, "00001.index"));
	/* Nor does one whose batch is. */
	begin(f);
	purge(f, kept);
	store_rollback(f->engine->store);
	begin(f);
	end(f);
	count_files();
	assert_int_equal(files.n, 1);
}

int main(void)
{
	int r = run_all_tests("tests");

	free(ids);
	return r;
}
