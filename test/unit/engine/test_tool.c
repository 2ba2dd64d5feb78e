/*
 * Tools as the daemon runs them: a loop, the workers' threads, a real store, real files. A policy
 * allows them all, unless the test asks a human.
 */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "base/pack.h"
#include "base/object_builder.h"
#include "engine/approval/approval.h"
#include "engine/event/event.h"
#include "engine/program/tool_inner.h"
#include "wire/json.h"

struct world {
	struct stage stage;
	struct tempdir_holder {
		char path[TEMPDIR_MAX];
	} folder, other;
	struct arena arena;
	int n_told;
	int result;
	char reason[ERROR_TEXT_MAX];
	const struct value *value; /* a copy */
	char text[256];
};

static struct engine *engine(struct world *w)
{
	return w->stage.f->engine;
}

/* ---- words ---- */

static void found(struct buf *out, struct text query, const struct memory *hits, unsigned n)
{
	buf_printf(out, "%.*s %u", TEXT_ARGS(query), n);
}

static void one(struct buf *out, const struct memory *m)
{
	buf_printf(out, "%.*s [%.*s] %.1f", TEXT_ARGS(m->content), TEXT_ARGS(m->category),
		   m->importance);
}

static void duplicate(struct buf *out, const struct memory *m)
{
	buf_add_str(out, "known");
}

/* ---- the world ---- */

static int world_make(void **state, bool allow)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct approval_rule rule = {.name = "all", .verdict = VERDICT_ALLOW};
	struct approvals_opts approvals = {.rules = &rule, .n_rules = allow ? 1 : 0};
	struct tools_opts tools = {.allowed = ~0U, .answers = {found, one, one, duplicate}};
	struct events_opts events = {0};
	void *fixture;
	struct error error = {0};

	if (!w || setup(&fixture) != 0)
		return -1;
	tempdir_make(w->folder.path);
	tempdir_make(w->other.path);
	stage_make(&w->stage, fixture);
	events.store = engine(w)->store;
	events.loop = approvals.loop = tools.loop = w->stage.loop;
	events.workers = approvals.workers = tools.workers = stage_workers(&w->stage);
	tools.folder = w->folder.path;
	arena_init(&w->arena, 1 << 20);
	assert_int_equal(events_start(&events, &engine(w)->events), 0);
	approvals.store = engine(w)->store;
	approvals.events = engine(w)->events;
	if (approvals_start(&approvals, &engine(w)->approvals, &error) != 0)
		fail_msg("%s", error.text);
	tools.memories = engine(w)->memories;
	tools.approvals = engine(w)->approvals;
	if (tools_new(&tools, &engine(w)->tools, &error) != 0)
		fail_msg("%s", error.text);
	stage_open(&w->stage);
	*state = w;
	return 0;
}

static int world_setup(void **state)
{
	return world_make(state, true);
}

static int asking_setup(void **state)
{
	return world_make(state, false);
}

static int world_teardown(void **state)
{
	struct world *w = *state;
	void *fixture = w->stage.f;

	tools_stop(engine(w)->tools);
	stage_close(&w->stage);
	assert_int_equal(teardown(&fixture), 0);
	timer_free(w->stage.tick);
	loop_free(w->stage.loop);
	arena_done(&w->arena);
	tempdir_remove(w->folder.path);
	tempdir_remove(w->other.path);
	free(w);
	return 0;
}

FIXTURE(world_setup, world_teardown);

static void on_result(void *arg, int result, const struct tool_result *got,
		      const struct error *error)
{
	struct world *w = arg;

	w->n_told++;
	w->result = result;
	snprintf(w->reason, sizeof(w->reason), "%s", result > 0 && error ? error->text : "");
	if (result != 0)
		return;
	if (got->value)
		assert_int_equal(value_copy(&w->arena, got->value, &w->value), 0);
	snprintf(w->text, sizeof(w->text), "%.*s", TEXT_ARGS(got->text));
}

static struct tool_run *start(struct world *w, enum tool_id id, const struct object_builder *input)
{
	const struct tool_ask ask = {.id = id, .input = input->root, .agent = TEXT("test")};
	struct tool_run *run = NULL;
	struct error error = {0};

	assert_int_equal(input->err, 0);
	w->n_told = 0;
	w->value = NULL;
	w->text[0] = '\0';
	if (tool_run(engine(w)->tools, &ask, on_result, w, &run, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(w->n_told, 0);
	return run;
}

static int run(struct world *w, enum tool_id id, const struct object_builder *input)
{
	(void)start(w, id, input);
	stage_until(&w->stage, w->n_told == 1);
	return w->result;
}

/* Of pairs, NULL-ended. */
static int use(struct world *w, enum tool_id id, ...) __attribute__((sentinel));
static int use(struct world *w, enum tool_id id, ...)
{
	struct object_builder input;
	const char *key;
	va_list list;

	object_begin(&input, &w->arena);
	va_start(list, id);
	while ((key = va_arg(list, const char *)))
		object_text(&input, key, text_of(va_arg(list, const char *)));
	va_end(list);
	return run(w, id, &input);
}

static const char *said(struct world *w, const char *key)
{
	struct text t = value_text(value_find(w->value, key));

	assert_non_null(t.data);
	return arena_copy(&w->arena, t.data, t.len);
}

static void put(const struct tempdir_holder *folder, const char *name, const char *data, size_t n)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder->path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), (ssize_t)n);
	close(fd);
}

static struct stat look(const struct tempdir_holder *folder, const char *name)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder->path, name);
	assert_int_equal(lstat(path, &st), 0);
	return st;
}

static void link_to(const struct world *w, const char *name, const char *target)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", w->folder.path, name);
	assert_int_equal(symlink(target, path), 0);
}

/* ---- files ---- */

TEST(paths_stay_in_the_folder)
{
	struct world *w = *state;
	char absolute[512], beside[512], long_name[400];
	const char *const outside[] = {
		"..",   "../x",     "a/../../x",   "/etc/passwd", "/",    "link",    "away/s",
		"away", "dangling", "inner/../..", absolute,      beside, long_name, "self/a"};

	put(&w->other, "s", "secret", 6);
	put(&w->folder, "a", "mine", 4);
	snprintf(absolute, sizeof(absolute), "%s/s", w->other.path);
	snprintf(beside, sizeof(beside), "%sx/a", w->folder.path);
	memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	link_to(w, "link", absolute);
	link_to(w, "away", w->other.path);
	link_to(w, "dangling", "nothing");
	link_to(w, "self", ".");
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		if (use(w, TOOL_READ, "path", outside[i], NULL) <= 0 ||
		    use(w, TOOL_WRITE, "path", outside[i], "content", "x", NULL) <= 0 ||
		    use(w, TOOL_EDIT, "path", outside[i], "oldText", "s", "newText", "", NULL) <= 0)
			fail_msg("%s is not refused: %d", outside[i], w->result);
	}
	assert_int_equal(look(&w->other, "s").st_size, 6);
	assert_true(S_ISLNK(look(&w->folder, "dangling").st_mode));
	/* And these are in it. */
	snprintf(absolute, sizeof(absolute), "%s//./a", w->folder.path);
	assert_int_equal(use(w, TOOL_READ, "path", absolute, NULL), 0);
	assert_string_equal(said(w, "content"), "mine");
}

TEST(what_is_no_file_is_refused)
{
	struct world *w = *state;
	char path[512];

	snprintf(path, sizeof(path), "%s/fifo", w->folder.path);
	assert_int_equal(mkfifo(path, 0600), 0);
	/* Nobody writes there: it must not wait. */
	assert_int_equal(use(w, TOOL_READ, "path", "fifo", NULL), REFUSE_FORBIDDEN);
	assert_int_equal(use(w, TOOL_WRITE, "path", "fifo", "content", "x", NULL),
			 REFUSE_FORBIDDEN);
	assert_int_equal(use(w, TOOL_READ, "path", ".", NULL), REFUSE_CONFLICT);
	assert_int_equal(use(w, TOOL_WRITE, "path", ".", "content", "x", NULL), REFUSE_CONFLICT);
	assert_int_equal(use(w, TOOL_WRITE, "path", "", "content", "x", NULL), REFUSE_PARAMS);
	assert_int_equal(use(w, TOOL_READ, "path", "none", NULL), REFUSE_NOT_FOUND);
	assert_int_equal(use(w, TOOL_WRITE, "path", "x", NULL), REFUSE_PARAMS);
	assert_string_equal(w->reason, "content is required");
}

TEST(read_is_bounded_and_knows_text)
{
	struct world *w = *state;
	char *large = calloc(1, TOOL_READ_MAX + 1);
	struct object_builder input;

	assert_non_null(large);
	memset(large, 'x', TOOL_READ_MAX + 1);
	put(&w->folder, "fits", large, TOOL_READ_MAX);
	put(&w->folder, "large", large, TOOL_READ_MAX + 1);
	free(large);
	assert_int_equal(use(w, TOOL_READ, "path", "fits", NULL), 0);
	assert_int_equal(use(w, TOOL_READ, "path", "large", NULL), REFUSE_TOO_LARGE);
	assert_string_equal(w->reason, "File too large (>50KB)");
	put(&w->folder, "binary", "a\0b", 3);
	assert_int_equal(use(w, TOOL_READ, "path", "binary", NULL), 0);
	assert_string_equal(said(w, "content"), "[binary file 3 B]");
	put(&w->folder, "broken", "a\xff", 2);
	assert_int_equal(use(w, TOOL_READ, "path", "broken", NULL), 0);
	assert_int_equal(value_find(w->value, "is_binary")->kind, VALUE_TRUE);
	put(&w->folder, "lines", "one\ntwo\nthree\n", 14);
	object_begin(&input, &w->arena);
	object_text(&input, "path", TEXT("lines"));
	object_int(&input, "offset", 2);
	object_int(&input, "limit", 1);
	assert_int_equal(run(w, TOOL_READ, &input), 0);
	assert_string_equal(said(w, "content"), "two");
	object_begin(&input, &w->arena);
	object_text(&input, "path", TEXT("lines"));
	object_int(&input, "offset", 9);
	assert_int_equal(run(w, TOOL_READ, &input), 0);
	assert_string_equal(said(w, "content"), "");
}

TEST(path_limits_are_exact)
{
	static char path[PATH_MAX + 2];
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(path) - 1; i++)
		path[i] = i % 2 ? '/' : '.';
	path[PATH_MAX - 1] = 'f';
	path[PATH_MAX - 2] = '/';
	path[PATH_MAX] = '\0';
	put(&w->folder, "f", "mine", 4);
	assert_int_equal(use(w, TOOL_READ, "path", path, NULL), 0);
	path[PATH_MAX] = '/';
	assert_int_equal(use(w, TOOL_READ, "path", path, NULL), REFUSE_PARAMS);
	memset(path, 'n', NAME_MAX + 1);
	path[NAME_MAX] = '\0';
	assert_int_equal(use(w, TOOL_READ, "path", path, NULL), REFUSE_NOT_FOUND);
	path[NAME_MAX] = 'n';
	path[NAME_MAX + 1] = '\0';
	assert_int_equal(use(w, TOOL_READ, "path", path, NULL), REFUSE_PARAMS);
	/* The folder itself, by its whole path. */
	assert_int_equal(use(w, TOOL_READ, "path", w->folder.path, NULL), REFUSE_CONFLICT);
}

TEST(lines_are_counted_from_one_and_keep_what_is_between_them)
{
	static const struct {
		int offset, limit;
		const char *want;
	} rows[] = {{0, 0, "one\n\ntwo"}, {1, 1, "one"},         {1, 2, "one\n"}, {2, 1, ""},
		    {2, 2, "\ntwo"},      {3, 1, "two"},         {3, 9, "two"},   {4, 1, ""},
		    {1, 3, "one\n\ntwo"}, {-1, -1, "one\n\ntwo"}};
	struct world *w = *state;

	put(&w->folder, "lines", "one\n\ntwo", 8);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct object_builder input;

		object_begin(&input, &w->arena);
		object_text(&input, "path", TEXT("lines"));
		object_int(&input, "offset", rows[i].offset);
		object_int(&input, "limit", rows[i].limit);
		assert_int_equal(run(w, TOOL_READ, &input), 0);
		assert_string_equal(said(w, "content"), rows[i].want);
	}
	put(&w->folder, "empty", "", 0);
	assert_int_equal(use(w, TOOL_READ, "path", "empty", NULL), 0);
	assert_string_equal(said(w, "content"), "");
	put(&w->folder, "latin", "\xc2\x80", 2);
	assert_int_equal(use(w, TOOL_READ, "path", "latin", NULL), 0);
	assert_string_equal(said(w, "content"), "\xc2\x80");
	put(&w->folder, "broken", "\x80", 1);
	assert_int_equal(use(w, TOOL_READ, "path", "broken", NULL), 0);
	assert_string_equal(said(w, "content"), "[binary file 1 B]");
}

TEST(write_makes_replaces_and_appends)
{
	struct world *w = *state;
	struct object_builder input;
	char path[512];

	assert_int_equal(use(w, TOOL_WRITE, "path", "x/y/z", "content", "1", NULL), 0);
	assert_int_equal(value_find(w->value, "created")->kind, VALUE_TRUE);
	snprintf(path, sizeof(path), "%s/x/y/z", w->folder.path);
	assert_int_equal(chmod(path, 0750), 0);
	assert_int_equal(use(w, TOOL_WRITE, "path", "x/y/z", "content", "22", NULL), 0);
	assert_null(value_find(w->value, "created"));
	assert_int_equal(look(&w->folder, "x/y/z").st_mode & 0777, 0750);
	object_begin(&input, &w->arena);
	object_text(&input, "path", TEXT("x/y/z"));
	object_text(&input, "content", TEXT("33"));
	object_bool(&input, "append", true);
	assert_int_equal(run(w, TOOL_WRITE, &input), 0);
	assert_int_equal(look(&w->folder, "x/y/z").st_size, 4);
	assert_int_equal(use(w, TOOL_WRITE, "path", "x/y", "content", "1", NULL), REFUSE_CONFLICT);
	assert_int_equal(use(w, TOOL_WRITE, "path", "x/y/z/in", "content", "1", NULL),
			 REFUSE_FORBIDDEN);
}

TEST(edit_wants_exactly_one)
{
	struct world *w = *state;

	put(&w->folder, "f", "a b a", 5);
	assert_int_equal(use(w, TOOL_EDIT, "path", "f", "oldText", "a", "newText", "c", NULL),
			 REFUSE_CONFLICT);
	assert_string_equal(w->reason, "oldText appears 2 times; include more context");
	assert_int_equal(use(w, TOOL_EDIT, "path", "f", "oldText", "x", "newText", "c", NULL),
			 REFUSE_CONFLICT);
	assert_int_equal(use(w, TOOL_EDIT, "path", "f", "oldText", "", "newText", "c", NULL),
			 REFUSE_PARAMS);
	assert_int_equal(use(w, TOOL_EDIT, "path", "f", "oldText", " b", "newText", "", NULL), 0);
	assert_int_equal(use(w, TOOL_READ, "path", "f", NULL), 0);
	assert_string_equal(said(w, "content"), "a a");
}

/* ---- what cannot be run ---- */

TEST(input_is_refused_for_a_member_of_the_wrong_kind)
{
	static const struct {
		enum tool_id id;
		const char *input, *reason; /* NULL: it runs */
	} rows[] = {
		{TOOL_READ, "{}", "path is required"},
		{TOOL_READ, "{\"path\":\"\"}", "path is required"},
		{TOOL_READ, "{\"path\":1}", "path must be a string, not number"},
		{TOOL_READ, "{\"path\":\"a\",\"limit\":\"1\"}",
		 "limit must be a number, not string"},
		{TOOL_READ, "{\"path\":\"a\",\"limit\":null}", NULL},
		{TOOL_READ, "{\"path\":\"a\",\"offset\":1e300,\"limit\":-1e300}", NULL},
		{TOOL_READ, "{\"path\":\"a\\u0000b\"}",
		 "path is longer than 4096 bytes or has a NUL byte"},
		{TOOL_WRITE, "{\"path\":\"a\",\"content\":null}", "content is required"},
		{TOOL_WRITE, "{\"path\":\"b\",\"content\":\"x\",\"append\":null}", NULL},
		{TOOL_WRITE, "{\"path\":\"b\",\"content\":\"x\",\"append\":\"yes\"}", NULL},
		{TOOL_EXEC, "{\"command\":\"a\\u0000b\"}", "command has a NUL byte"},
		{TOOL_EXEC, "{\"command\":\"true\",\"timeout\":\"1\"}",
		 "timeout must be a number, not string"},
		{TOOL_MEMORY_SEARCH, "{\"query\":\"a\",\"category\":[]}",
		 "category must be a string, not array"},
		{TOOL_MEMORY_SEARCH, "{\"query\":\"a\",\"minScore\":{}}",
		 "minScore must be a number, not object"},
		{TOOL_MEMORY_STORE, "{\"text\":\"a\",\"importance\":true}",
		 "importance must be a number, not boolean"},
	};
	struct world *w = *state;

	put(&w->folder, "a", "mine", 4);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct object_builder input = {.err = 0};
		struct value *v;

		assert_int_equal(json_read(&w->arena, rows[i].input, strlen(rows[i].input),
					   &json_default_limits, &v, NULL),
				 0);
		input.root = v;
		assert_int_equal(run(w, rows[i].id, &input), rows[i].reason ? REFUSE_PARAMS : 0);
		assert_string_equal(w->reason, rows[i].reason ?: "");
	}
	assert_int_equal(look(&w->folder, "b").st_size, 1);
}

TEST(tool_is_not_run_if_it_is_not_allowed_or_too_many_run)
{
	static const struct value array = {.kind = VALUE_ARRAY}, object = {.kind = VALUE_OBJECT};
	struct world *w = *state;
	struct tools *t = engine(w)->tools;
	struct tool_ask ask = {.id = TOOL_READ, .input = &object};
	struct tool_run *run = NULL;
	struct error error = {0};

	ask.input = NULL;
	assert_int_equal(tool_run(t, &ask, on_result, w, &run, &error), REFUSE_PARAMS);
	ask.input = &array;
	assert_int_equal(tool_run(t, &ask, on_result, w, &run, &error), REFUSE_PARAMS);
	ask.input = &object;
	t->opts.allowed = ~(1U << TOOL_READ);
	assert_int_equal(tool_run(t, &ask, on_result, w, &run, &error), REFUSE_FORBIDDEN);
	t->opts.allowed = ~0U;
	t->n_runs = TOOL_RUNS_MAX;
	assert_int_equal(tool_run(t, &ask, on_result, w, &run, &error), REFUSE_LIMIT);
	t->n_runs = TOOL_RUNS_MAX - 1;
	assert_int_equal(tool_run(t, &ask, on_result, w, &run, &error), 0);
	stage_until(&w->stage, w->n_told == 1);
	assert_int_equal(w->result, REFUSE_PARAMS);
	t->n_runs = 0;
	tools_stop(t);
	assert_int_equal(tool_run(t, &ask, on_result, w, &run, &error), REFUSE_STOPPING);
}

/* ---- memory ---- */

TEST(memory_has_its_defaults)
{
	struct world *w = *state;

	assert_int_equal(
		use(w, TOOL_MEMORY_STORE, "text", "the cat is Miso", "category", "entities", NULL),
		0);
	assert_string_equal(w->text, "the cat is Miso [entity] 0.7");
	assert_int_equal(use(w, TOOL_MEMORY_STORE, "text", " the cat is Miso ", NULL), 0);
	assert_string_equal(w->text, "known");
	assert_int_equal(use(w, TOOL_MEMORY_SEARCH, "query", "cat", "category", "", NULL), 0);
	assert_string_equal(w->text, "cat 1");
	assert_int_equal(use(w, TOOL_MEMORY_SEARCH, "query", "cat", "category", "fact", NULL), 0);
	assert_string_equal(w->text, "cat 0");
	assert_int_equal(use(w, TOOL_MEMORY_STORE, "text", "the cat is Miso's sister", NULL), 0);
	for (int limit = 0; limit < 3; limit++) {
		struct object_builder input;

		object_begin(&input, &w->arena);
		object_text(&input, "query", TEXT("cat"));
		object_int(&input, "limit", limit);
		assert_int_equal(run(w, TOOL_MEMORY_SEARCH, &input), 0);
		assert_string_equal(w->text, limit == 1 ? "cat 1" : "cat 2");
	}
	assert_int_equal(use(w, TOOL_MEMORY_SEARCH, "query", " ", NULL), REFUSE_PARAMS);
	assert_int_equal(use(w, TOOL_MEMORY_SEARCH, "query", "cat", "limit", "many", NULL),
			 REFUSE_PARAMS);
	assert_int_equal(use(w, TOOL_MEMORY_GET, "path", "nope", NULL), REFUSE_NOT_FOUND);
}

/* ---- who asks ---- */

TEST_WITH(nothing_happens_before_it_is_approved, asking_setup, world_teardown)
{
	struct world *w = *state;
	struct object_builder input;
	struct tool_run *waits;

	object_begin(&input, &w->arena);
	object_text(&input, "path", TEXT("f"));
	object_text(&input, "content", TEXT("x"));
	waits = start(w, TOOL_WRITE, &input);
	stage_until(&w->stage, approvals_pending(engine(w)->approvals) == 1);
	assert_int_equal(w->n_told, 0);
	/* Who leaves takes the question along. */
	tool_leave(waits);
	stage_until(&w->stage, approvals_pending(engine(w)->approvals) == 0);
	assert_int_equal(w->n_told, 0);
	assert_int_equal(use(w, TOOL_MEMORY_SEARCH, "query", "a", NULL), 0);
	(void)start(w, TOOL_WRITE, &input);
	stage_until(&w->stage, approvals_pending(engine(w)->approvals) == 1);
	tools_stop(engine(w)->tools);
	assert_int_equal(w->n_told, 1);
	assert_int_equal(w->result, REFUSE_STOPPING);
}

/* The question is on its way to the store, and nobody has its number yet. */
TEST(who_leaves_while_it_is_asked_leaves_no_question)
{
	struct world *w = *state;
	struct tool_run *waits;
	struct object_builder input;

	object_begin(&input, &w->arena);
	object_text(&input, "path", TEXT("f"));
	object_text(&input, "content", TEXT("x"));
	w->stage.hold_writes = true;
	waits = start(w, TOOL_WRITE, &input);
	stage_until(&w->stage, waits->consent.waiter && w->stage.held);
	assert_string_equal(waits->consent.id, "");
	tool_leave(waits);
	/* It stays until the question can be withdrawn. */
	assert_int_equal(engine(w)->tools->n_runs, 1);
	workers_write(w->stage.workers, w->stage.held);
	stage_until(&w->stage, engine(w)->tools->n_runs == 0);
	stage_until(&w->stage, approvals_pending(engine(w)->approvals) == 0);
	assert_int_equal(w->n_told, 0);
}

TEST(who_leaves_early_is_not_told)
{
	struct world *w = *state;
	struct object_builder input;

	object_begin(&input, &w->arena);
	object_text(&input, "text", TEXT("something"));
	tool_leave(start(w, TOOL_MEMORY_STORE, &input));
	tool_leave(NULL);
	assert_int_equal(use(w, TOOL_MEMORY_SEARCH, "query", "something", NULL), 0);
	assert_string_equal(w->text, "something 0");
	assert_int_equal(w->n_told, 1);
}

/* Who approves would read the one, and the other might run. */
TEST(an_input_with_a_key_twice_is_refused)
{
	struct world *w = *state;
	struct tool_ask ask = {.id = TOOL_EXEC, .agent = TEXT("test")};
	struct tool_run *run = NULL;
	struct error error = {0};
	struct object_builder input;

	object_begin(&input, &w->arena);
	object_text(&input, "command", TEXT("true"));
	object_text(&input, "command", TEXT("false"));
	ask.input = input.root;
	assert_int_equal(tool_run(engine(w)->tools, &ask, on_result, w, &run, &error),
			 REFUSE_PARAMS);
	assert_string_equal(error.text, "duplicate key 'command' in the tool's input");
	assert_null(run);
}
