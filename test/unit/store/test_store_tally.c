/* Kept counts: as a recount has them, whatever was done; and asked without a walk. */
#include "store_rows.h"

#include <signal.h>

#include "store/chat.h"
#include "store/index/memory_vector.h"
#include "store/session.h"
#include "store/task.h"

enum { FEW_STEPS = 5000, CHANGES = 250, NOW = 5000, DIM = 4 };

#define NONE ((struct text) {0})

static const char *const projects[] = {"", "p", "q"};
static const char *const groups[] = {NULL, "g", "h", ""};
static const char *const owners[] = {NULL, "ann", "bob", "eve"};
static const char *const chats[] = {NULL, "x", "y"};
static const char *const chat_types[] = {NULL, "private", "group"};
static const char *const ids[] = {"a", "b", "c", "d"};
static const char *const folders[] = {"", "/a", "/b"};
static const struct store_model models[] = {{{"small", 5}, DIM}, {{"other", 5}, DIM}};

static unsigned seed = 1;

static unsigned pick(unsigned n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % n;
}

#define ANY(list) ((list)[pick(sizeof(list) / sizeof((list)[0]))])

/* ---- a recount ---- */

static int64_t recount(struct fixture *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int64_t recount(struct fixture *f, const char *format, ...)
{
	char sql[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(sql, sizeof(sql), format, args);
	va_end(args);
	return number(f, sql);
}

static void assert_tasks(struct fixture *f, const struct task_tally *tallies, unsigned n,
			 const char *column, const char *where)
{
	assert_int_equal(n,
			 recount(f, "SELECT count(DISTINCT %s) FROM task WHERE %s", column, where));
	for (unsigned i = 0; i < n; i++) {
		for (int s = 0; s < N_TASK_STATES; s++)
			assert_int_equal(
				tallies[i].n[s],
				recount(f,
					"SELECT count(*) FROM task WHERE %s AND %s = '%.*s'"
					" AND state = %d",
					where, column, TEXT_ARGS(tallies[i].name), s));
	}
}

static void tasks_are_as_counted(struct fixture *f)
{
	struct task_tally *tallies;
	unsigned n;

	assert_int_equal(store_task_count(reader(f), &f->arena, &tallies, &n), 0);
	assert_tasks(f, tallies, n, "project", "true");
	assert_int_equal(store_task_groups(reader(f), NONE, &f->arena, &tallies, &n), 0);
	assert_tasks(f, tallies, n, "group_name", "group_name IS NOT NULL");
	assert_int_equal(store_task_groups(reader(f), TEXT("p"), &f->arena, &tallies, &n), 0);
	assert_tasks(f, tallies, n, "group_name", "group_name IS NOT NULL AND project = 'p'");
}

static void assert_memories(struct fixture *f, const struct store_scope *scope, const char *where)
{
	struct memory_totals got;
	int64_t vectors, bare;

	assert_int_equal(store_memory_count(reader(f), scope, NOW, &got), 0);
	assert_int_equal(got.all, recount(f, "SELECT count(*) FROM memory WHERE %s", where));
	assert_int_equal(got.expired, recount(f,
					      "SELECT count(*) FROM memory WHERE (%s)"
					      " AND expires_ms <= %d",
					      where, NOW));
	assert_int_equal(got.personal,
			 recount(f, "SELECT count(owner) FROM memory WHERE %s", where));
	assert_int_equal(got.group, recount(f,
					    "SELECT count(chat) FROM memory WHERE (%s)"
					    " AND owner IS NULL",
					    where));
	assert_int_equal(got.common, got.all - got.personal - got.group);
	assert_int_equal(got.owners,
			 recount(f, "SELECT count(DISTINCT owner) FROM memory WHERE %s", where));
	assert_int_equal(
		store_memory_count_vectors(reader(f), scope, &models[0], NOW, &vectors, &bare), 0);
	assert_int_equal(vectors, recount(f,
					  "SELECT count(*) FROM memory JOIN memory_vector"
					  " USING (seq) WHERE (%s) AND model = 'small'",
					  where));
	assert_int_equal(bare, recount(f,
				       "SELECT count(*) FROM memory WHERE (%s) AND (expires_ms IS"
				       " NULL OR expires_ms > %d) AND NOT EXISTS (SELECT 1 FROM"
				       " memory_vector AS v WHERE v.seq = memory.seq AND"
				       " v.model = 'small')",
				       where, NOW));
}

static void memories_are_as_counted(struct fixture *f)
{
	const struct store_scope nobody = {0}, ann = {.user = TEXT("ann")};
	const struct store_scope ann_in_x = {.user = TEXT("ann"), .chat = TEXT("x")};
	const struct store_scope openly = {
		.user = TEXT("ann"), .chat = TEXT("x"), .learnt = LEARNT_OPENLY};
	const struct store_scope here = {.user = TEXT("ann"),
					 .chat = TEXT("x"),
					 .learnt = LEARNT_HERE,
					 .without_common = true};
	const struct store_scope in_y = {.chat = TEXT("y")};

	assert_memories(f, &EVERYTHING, "true");
	assert_memories(f, &nobody, "owner IS NULL AND chat IS NULL");
	assert_memories(f, &ann, "owner = 'ann' OR (owner IS NULL AND chat IS NULL)");
	assert_memories(f, &ann_in_x,
			"owner = 'ann' OR (owner IS NULL AND (chat IS NULL OR chat = 'x'))");
	assert_memories(f, &openly,
			"(owner = 'ann' AND (chat = 'x' OR chat_type <> 'private'))"
			" OR (owner IS NULL AND (chat IS NULL OR chat = 'x'))");
	assert_memories(f, &here, "chat = 'x' AND (owner = 'ann' OR owner IS NULL)");
	assert_memories(f, &in_y, "owner IS NULL AND (chat IS NULL OR chat = 'y')");
}

static void conversations_are_as_counted(struct fixture *f)
{
	struct store_chat_totals totals;
	struct conversation *rows;
	int64_t total;
	unsigned n;

	assert_int_equal(store_chat_totals(reader(f), &totals), 0);
	assert_int_equal(totals.n_conversations,
			 number(f, "SELECT count(*) FROM conversation WHERE ended_ms IS NULL"));
	assert_int_equal(totals.n_messages,
			 number(f, "SELECT coalesce(sum(n_messages), 0) FROM conversation"
				   " WHERE ended_ms IS NULL"));
	assert_int_equal(totals.n_calls, number(f, "SELECT count(*) FROM message_call"));
	assert_int_equal(store_conversation_list(reader(f), 0, 50, &f->arena, &rows, &n, &total),
			 0);
	assert_int_equal(total, totals.n_conversations);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(rows[i].n_children,
				 recount(f,
					 "SELECT count(*) FROM conversation WHERE ended_ms IS NULL"
					 " AND parent = '%.*s'",
					 TEXT_ARGS(rows[i].id)));
	assert_int_equal(
		store_conversation_list_ended(reader(f), NONE, 0, 1, &f->arena, &rows, &n, &total),
		0);
	assert_int_equal(total, number(f, "SELECT count(*) FROM conversation WHERE ended_ms > 0"));
	assert_int_equal(store_conversation_list_ended(reader(f), TEXT("b"), 0, 1, &f->arena, &rows,
						       &n, &total),
			 0);
	assert_int_equal(
		total,
		number(f, "SELECT count(*) FROM conversation WHERE ended_ms > 0 AND id = 'b'"));
}

static void sessions_are_as_counted(struct fixture *f)
{
	struct session_path *paths;
	unsigned n;

	assert_int_equal(store_session_paths(reader(f), 0, &f->arena, &paths, &n), 0);
	assert_int_equal(n, number(f, "SELECT count(DISTINCT working_dir) FROM session"
				      " WHERE working_dir <> ''"));
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(paths[i].n,
				 recount(f,
					 "SELECT count(*) FROM session WHERE working_dir = '%.*s'",
					 TEXT_ARGS(paths[i].path)));
}

static void all_is_as_counted(struct fixture *f)
{
	tasks_are_as_counted(f);
	memories_are_as_counted(f);
	conversations_are_as_counted(f);
	sessions_are_as_counted(f);
	assert_int_equal(number(f, "SELECT count(*) FROM tally WHERE n < 0"), 0);
	arena_reset(&f->arena);
}

/* ---- changes at random ---- */

static void add_task(struct fixture *f)
{
	const struct task row = {.project = text_of(ANY(projects)),
				 .group = text_of(ANY(groups)),
				 .prompt = TEXT("x"),
				 .state = (enum task_state)pick(N_TASK_STATES),
				 .completed_ms = (int64_t)pick(1000)};
	struct text id;
	int64_t seq;

	assert_int_equal(store_task_add(writer(f), &f->arena, &row, &seq, &id), 0);
}

static void change_task(struct fixture *f)
{
	const struct store_task_query q = {
		.state = -1, .limit = 1, .before = 1 + (int64_t)pick(1500)};
	struct store_task_kept kept;
	struct task *rows;
	unsigned n;

	assert_int_equal(store_task_list(writer(f), &q, &f->arena, &rows, &n), 0);
	if (n == 0)
		return;
	rows[0].state = (enum task_state)pick(N_TASK_STATES);
	assert_int_equal(store_task_update(writer(f), &rows[0],
					   &(struct store_task_guard) {.version = rows[0].version},
					   &kept),
			 0);
}

static void sweep_tasks(struct fixture *f)
{
	struct task *rows;
	unsigned n;

	assert_int_equal(store_task_sweep(writer(f), (int64_t)pick(500), 3, &f->arena, &rows, &n),
			 0);
}

static void add_memory(struct fixture *f)
{
	char id[UUID_LEN + 1];
	struct memory row;
	int64_t seq;

	assert_int_equal(uuid4(id), 0);
	row = plain_row(text_of(id), text_of(id));
	row.owner = text_of(ANY(owners));
	row.chat = text_of(ANY(chats));
	row.chat_type = row.chat.data ? text_of(ANY(chat_types)) : NONE;
	if (pick(10) == 0)
		row.expires_ms = (int64_t)pick(2 * NOW);
	assert_int_equal(store_memory_add(writer(f), &row, &seq), 0);
}

static void give_vector(struct fixture *f)
{
	const struct store_bare_opts opts = {.model = ANY(models),
					     .after = (int64_t)pick(1500),
					     .limit = 1,
					     .max_bytes = 1000,
					     .max_chars = 100};
	const int8_t bytes[DIM] = {1};
	const float numbers[DIM] = {1};
	struct store_vector v = {.scale = 1, .bytes = bytes, .numbers = numbers};
	struct store_bare_memory *bare;
	bool end, found;
	int64_t after;
	unsigned n;

	assert_int_equal(
		store_memory_find_bare(writer(f), &opts, &f->arena, &bare, &n, &after, &end), 0);
	if (n == 0)
		return;
	v.seq = bare[0].seq;
	v.hash = bare[0].hash;
	assert_int_equal(store_memory_put_vector(writer(f), &opts.model, &v, &found), 0);
	assert_true(found);
	if (pick(4) == 0)
		assert_int_equal(store_memory_drop_vector(writer(f), v.seq), 0);
}

static void delete_memory(struct fixture *f)
{
	struct memory row;
	bool found;

	assert_int_equal(store_memory_find_seq(writer(f), &EVERYTHING, (int64_t)pick(1500),
					       &f->arena, &row, &found),
			 0);
	if (found)
		assert_int_equal(store_memory_delete(writer(f), &EVERYTHING, row.id, &found), 0);
}

static int swept(void *arg, const struct memory *row)
{
	return 0;
}

static void sweep_memories(struct fixture *f)
{
	assert_int_equal(store_memory_sweep(writer(f), NOW / 2, 2, swept, NULL), 0);
}

static void talk(struct fixture *f)
{
	const struct tool_call calls[] = {{TEXT("c"), TEXT("t"), TEXT("{}")},
					  {TEXT("d"), TEXT("t"), TEXT("{}")}};
	struct conversation row;
	struct message said = {.role = MESSAGE_ASSISTANT, .calls = calls, .n_calls = pick(3)};
	struct turn turn = {.agent = TEXT("x"), .request_id = TEXT("r"), .state = TURN_DONE};
	struct text id = text_of(ANY(ids));
	int64_t seq;
	bool found;

	assert_int_equal(store_conversation_find(writer(f), id, &f->arena, &row, &found), 0);
	if (!found) {
		row = (struct conversation) {.id = id};
		if (pick(2))
			row.bounds.parent = text_of(ANY(ids));
		assert_int_equal(store_conversation_add(writer(f), &row, &row.seq), 0);
	}
	turn.conversation = row.seq;
	assert_int_equal(store_turn_add(writer(f), &turn, &said.turn), 0);
	assert_int_equal(store_message_add(writer(f), &said, &seq), 0);
}

static void end_talk(struct fixture *f)
{
	bool found;

	assert_int_equal(store_conversation_end(writer(f), text_of(ANY(ids)),
						1 + (int64_t)pick(100), &found),
			 0);
}

static void purge_talk(struct fixture *f)
{
	int64_t seq;
	unsigned n;
	bool more;

	assert_int_equal(store_conversation_oldest_ended(writer(f), pick(50), &seq), 0);
	if (seq > 0)
		assert_int_equal(store_conversation_purge(writer(f), seq, 2, &n, &more), 0);
}

static void add_session(struct fixture *f)
{
	char id[UUID_LEN + 1];
	struct session row = {.status = SESSION_COMPLETED, .query = TEXT("x")};
	int64_t seq;

	assert_int_equal(uuid4(id), 0);
	row.id = row.run = text_of(id);
	row.working_dir = text_of(ANY(folders));
	row.ended_ms = 1 + (int64_t)pick(1000);
	assert_int_equal(store_session_add(writer(f), &row, &seq), 0);
}

static void sweep_sessions(struct fixture *f)
{
	unsigned n;

	assert_int_equal(store_session_sweep(writer(f), (int64_t)pick(300), 2, &n), 0);
}

static void change_something(struct fixture *f)
{
	static void (*const changes[])(struct fixture *) = {
		add_task,       add_task,    add_task,    change_task,    change_task, sweep_tasks,
		add_memory,     add_memory,  add_memory,  delete_memory,  give_vector, give_vector,
		sweep_memories, talk,        talk,        talk,           end_talk,    purge_talk,
		add_session,    add_session, add_session, sweep_sessions,
	};

	ANY(changes)(f);
}

/* Now and then one is undone, as a call that fails is. */
static void change_much(struct fixture *f, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(store_savepoint(f->store), 0);
		change_something(f);
		assert_int_equal(
			pick(8) == 0 ? store_rollback_to(f->store) : store_release(f->store), 0);
	}
}

FIXTURE(setup, teardown);

TEST(counts_are_those_of_a_recount)
{
	struct fixture *f = *state;

	for (int i = 0; i < rounds(6, 12); i++) {
		begin(f);
		/* Many at once, so that marks are passed. */
		for (int k = 0; k < 120; k++) {
			add_task(f);
			add_memory(f);
			add_session(f);
		}
		change_much(f, CHANGES);
		if (i % 5 == 4)
			store_rollback(f->store);
		else
			commit(f);
		/* A recount takes a server seconds. */
		if (!on_server() || i % 3 == 2)
			all_is_as_counted(f);
	}
	/* Where others write, too, it takes three steps. */
	assert_true(on_server() || number(f, "SELECT min(seq) FROM tally_mark WHERE name IN"
					     " ('task', 'memory', 'session')") >= 512);
}

/* ---- others who write ---- */

static void use(struct fixture *f, struct store **other)
{
	struct store *s = f->store;

	f->store = *other;
	*other = s;
}

static struct store *open_other(struct fixture *f)
{
	struct store *mine = f->store, *other;

	fixture_open(f);
	other = f->store;
	f->store = mine;
	return other;
}

static int64_t memory_mark(struct fixture *f)
{
	return number(f, "SELECT seq FROM tally_mark WHERE name = 'memory'");
}

static void add_in_batches(struct fixture *f, int n)
{
	for (int i = 0; i < n; i++) {
		begin(f);
		for (int k = 0; k < 600; k++)
			add_memory(f);
		commit(f);
		arena_reset(&f->arena);
	}
}

TEST(a_row_that_comes_late_is_counted)
{
	struct fixture *f = *state;
	struct store *other;
	int64_t first;

	only_on_a_server();
	other = open_other(f);
	add_in_batches(f, 6);
	first = number(f, "SELECT max(seq) FROM memory");
	assert_true(memory_mark(f) > 600);
	use(f, &other);
	begin(f);
	add_memory(f);
	assert_int_equal(query_settle(writer(f)), 0);
	use(f, &other);
	add_in_batches(f, 6);
	assert_true(memory_mark(f) <= first);
	use(f, &other);
	commit(f);
	use(f, &other);
	all_is_as_counted(f);
	add_in_batches(f, 6);
	assert_true(memory_mark(f) > first);
	all_is_as_counted(f);
	store_close(other);
}

static void add_some(struct fixture *f)
{
	for (int k = 0; k < 90; k++) {
		add_task(f);
		add_memory(f);
		add_session(f);
	}
}

/* Nothing for which who adds would have to wait. */
static void change_old(struct fixture *f, unsigned n)
{
	static void (*const changes[])(struct fixture *) = {
		change_task, change_task,    change_task, sweep_tasks, delete_memory,
		give_vector, sweep_memories, talk,        end_talk};

	while (n-- > 0)
		ANY(changes)(f);
}

static int64_t lowest_mark(struct fixture *f)
{
	return number(f, "SELECT min(seq) FROM tally_mark WHERE name IN"
			 " ('task', 'memory', 'session')");
}

/* One changes what there is while the other adds, and marks move; they end in any order. */
TEST(what_several_change_at_once_is_counted)
{
	struct fixture *f = *state;
	struct store *other;

	only_on_a_server();
	other = open_other(f);
	begin(f);
	add_some(f);
	change_much(f, CHANGES);
	commit(f);
	for (int i = 0; i < rounds(10, 60); i++) {
		bool early = pick(2) == 0;

		begin(f);
		change_old(f, CHANGES / 5);
		use(f, &other);
		for (unsigned k = 1 + pick(2); k > 0; k--) {
			begin(f);
			add_some(f);
			commit(f);
		}
		use(f, &other);
		if (!early)
			change_old(f, CHANGES / 5);
		commit(f);
		if (i % 5 == 4)
			all_is_as_counted(f);
		use(f, &other);
	}
	/* Open transactions of other programs on the server hold the marks back. */
	for (int i = 0; i < 500 && lowest_mark(f) < 512; i++) {
		begin(f);
		add_some(f);
		commit(f);
		arena_reset(&f->arena);
	}
	assert_true(lowest_mark(f) >= 512);
	store_close(other);
}

TEST(what_a_killed_writer_began_is_not_counted)
{
	struct fixture *f = *state;
	int status;
	pid_t pid;

	begin(f);
	change_much(f, 600);
	commit(f);
	fixture_close(f);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		fixture_open(f);
		begin(f);
		change_much(f, 600);
		commit(f);
		begin(f);
		change_much(f, 600);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	fixture_open(f);
	all_is_as_counted(f);
}

/* ---- much, put there by others ---- */

#define COUNT "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) "

static const char fill[] =
	"INSERT INTO task (project, id, state, priority, created_ms, started_ms, completed_ms, pid,"
	" pid_started, exit_status, signal, output_bytes, timeout_ms, attempts, max_attempts,"
	" retry_ms, not_before_ms, n_after, group_name, prompt) " COUNT
	"SELECT substr('pq', i % 3, 1), 'x' || i, 2 + i % 2, 0, i, i, i, 0, 0, 0, 0, 0, 0, 1, 1, 0,"
	" 0, 0, CASE WHEN i % 3 = 0 THEN 'g' || (i % 7) END, 'x' FROM n;"
	"INSERT INTO memory (id, content_hash, source, category, importance, owner, chat, shared,"
	" created_ms, updated_ms, stored_ms, subjects, metadata, content, chat_type) " COUNT
	"SELECT 'm' || i, i, 'test', 'fact', 0.5, CASE WHEN i % 3 <> 0 THEN 'ann' WHEN i % 5 <> 0 "
	"THEN"
	" 'user' || i END, CASE WHEN i % 2 <> 0 THEN 'x' END, 0, i, i, i, '[]', '{}', 'x',"
	" CASE WHEN i % 4 = 1 THEN 'group' END FROM n;"
	"INSERT INTO memory_vector (seq, model, dim, scale) SELECT seq, 'small', 4, 1 FROM memory"
	" WHERE seq % 3 > 0;"
	"INSERT INTO conversation (id, created_ms, updated_ms, ended_ms, n_messages, answered,"
	" summary_tokens, summary_turn, parent) " COUNT
	"SELECT CASE WHEN i % 2 <> 0 THEN 'b' ELSE 'c' || i END, i, i, CASE WHEN i % 2 <> 0 THEN i "
	"END, 2, 1,"
	" 0, 0, CASE WHEN i % 3 <> 0 THEN 'c2' END FROM n;"
	"INSERT INTO turn (conversation, request_id, agent, state, started_ms)"
	" VALUES (1, 'r', 'x', 1, 1);"
	"INSERT INTO message (conversation, turn, role, tokens, created_ms, failed, n_calls, text)"
	" VALUES (1, 1, 1, 1, 1, 0, 1, 'x');"
	"INSERT INTO message_call (message, id, name, arguments) " COUNT
	"SELECT 1, 'c', 't', '{}' FROM n;"
	"INSERT INTO session (id, run, status, archived, created_ms, active_ms, ended_ms, cost_usd,"
	" input_tokens, output_tokens, duration_ms, turns, runner, working_dir, summary) " COUNT
	"SELECT 's' || i, 'r' || i, 4, i % 2, i, i, i, 0, 1, 1, 1, 1, 'x', '/d' || (i % 9), 'x'"
	" FROM n;";

TEST(an_older_file_is_counted)
{
	struct fixture *f = *state;

	become_version(f, 11);
	change_file(f, fill);
	fixture_open(f);
	all_is_as_counted(f);
	begin(f);
	change_much(f, 300);
	commit(f);
	all_is_as_counted(f);
}

TEST(what_others_change_is_counted)
{
	struct fixture *f = *state;

	/* FIXME: a server keeps each version of a row that one transaction changes, so 10,000 rows
	 * that are deleted at once take minutes there. The engine deletes in small steps. */
	only_in_a_file();
	fixture_close(f);
	change_file(f, fill);
	fixture_open(f);
	all_is_as_counted(f);
	fixture_close(f);
	change_file(f, "PRAGMA foreign_keys = ON;"
		       "UPDATE task SET state = 4 WHERE seq % 7 = 0;"
		       "DELETE FROM task WHERE seq % 5 = 0 OR group_name = 'g3';"
		       "DELETE FROM memory WHERE owner = 'ann' AND seq % 2;"
		       "DELETE FROM memory WHERE owner LIKE 'user%';"
		       "UPDATE memory_vector SET model = 'other' WHERE seq % 2 = 0;"
		       "UPDATE conversation SET ended_ms = 5 WHERE seq % 10 = 0;"
		       "DELETE FROM conversation WHERE seq > 1 AND seq % 3 = 0;"
		       "DELETE FROM message_call WHERE seq % 3 = 0;"
		       "DELETE FROM session WHERE working_dir = '/d4' OR seq % 4 = 0;");
	fixture_open(f);
	all_is_as_counted(f);
}

/* ---- without a walk ---- */

/* What the connection's statements have done since the last time. */
static int64_t steps(struct connection *c)
{
	int64_t n = 0;

	for (unsigned i = 0; i < c->n_statements; i++) {
		if (c->statements[i].handle)
			n += sqlite3_stmt_status(c->statements[i].handle, SQLITE_STMTSTATUS_VM_STEP,
						 1);
	}
	return n;
}

static void assert_few(struct fixture *f, const char *what)
{
	int64_t n = steps(reader(f));

	if (n > FEW_STEPS)
		fail_msg("%s took %lld steps", what, (long long)n);
	arena_reset(&f->arena);
}

static void list_tasks(struct fixture *f, const char *project, const char *group, int task_state)
{
	const struct store_task_query q = {.project = text_of(project),
					   .group = text_of(group),
					   .state = task_state,
					   .limit = 20,
					   .cut = 80,
					   .brief = true};
	struct task *rows;
	unsigned n;

	assert_int_equal(store_task_list(reader(f), &q, &f->arena, &rows, &n), 0);
}

static void ask_for_tasks(struct fixture *f)
{
	struct task_tally *tallies;
	unsigned n;

	assert_int_equal(store_task_count(reader(f), &f->arena, &tallies, &n), 0);
	assert_few(f, "counting tasks");
	assert_int_equal(store_task_groups(reader(f), NONE, &f->arena, &tallies, &n), 0);
	assert_few(f, "groups");
	assert_int_equal(store_task_groups(reader(f), TEXT("p"), &f->arena, &tallies, &n), 0);
	assert_few(f, "a project's groups");
	for (int s = -1; s < N_TASK_STATES; s++) {
		list_tasks(f, NULL, NULL, s);
		assert_few(f, "a state");
		list_tasks(f, "p", NULL, s);
		assert_few(f, "a project's state");
		list_tasks(f, NULL, "g3", s);
		assert_few(f, "a group's state");
	}
}

static void ask_for_memories(struct fixture *f)
{
	const struct store_scope ann = {.user = TEXT("ann"), .chat = TEXT("x")};
	const struct store_scope openly = {
		.user = TEXT("ann"), .chat = TEXT("x"), .learnt = LEARNT_OPENLY};
	const struct store_scope *const scopes[] = {&EVERYTHING, &ann, &openly};
	struct memory_totals totals;
	int64_t vectors, bare;

	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		assert_int_equal(store_memory_count(reader(f), scopes[i], NOW, &totals), 0);
		assert_few(f, "counting memories");
		assert_int_equal(store_memory_count_vectors(reader(f), scopes[i], &models[0], NOW,
							    &vectors, &bare),
				 0);
		assert_few(f, "counting vectors");
	}
}

static void ask_for_conversations(struct fixture *f)
{
	struct store_chat_totals totals;
	struct conversation *rows;
	int64_t total;
	unsigned n;

	assert_int_equal(store_chat_totals(reader(f), &totals), 0);
	assert_few(f, "counting what was said");
	assert_int_equal(store_conversation_list(reader(f), 0, 20, &f->arena, &rows, &n, &total),
			 0);
	assert_few(f, "conversations");
	assert_int_equal(
		store_conversation_list_ended(reader(f), NONE, 0, 20, &f->arena, &rows, &n, &total),
		0);
	assert_few(f, "ended conversations");
	assert_int_equal(store_conversation_list_ended(reader(f), TEXT("c4"), 0, 20, &f->arena,
						       &rows, &n, &total),
			 0);
	assert_few(f, "those ended under an id");
}

TEST(a_question_for_a_number_is_no_walk)
{
	struct fixture *f = *state;
	struct session_path *paths;
	unsigned n;

	fixture_close(f);
	change_file(f, fill);
	change_file(f, "UPDATE memory SET expires_ms = 9 WHERE seq = 7;");
	fixture_open(f);
	ask_for_tasks(f);
	ask_for_memories(f);
	ask_for_conversations(f);
	assert_int_equal(store_session_paths(reader(f), 5, &f->arena, &paths, &n), 0);
	assert_few(f, "folders");
}

static int64_t highest(struct fixture *f)
{
	int64_t n;

	assert_int_equal(store_conversation_highest(reader(f), TEXT("talk-"), &n), 0);
	assert_few(f, "the highest number");
	return n;
}

TEST(the_highest_number_is_found_without_a_walk)
{
	static const char *const names[] = {"talk-", "talk-x9", "talk-99x", "talk-1234567890123456",
					    "talks-77"};
	struct fixture *f = *state;
	struct conversation row = {0};
	bool found;

	fixture_close(f);
	change_file(f, fill);
	fixture_open(f);
	begin(f);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		row.id = text_of(names[i]);
		assert_int_equal(store_conversation_add(writer(f), &row, &row.seq), 0);
	}
	commit(f);
	assert_int_equal(highest(f), 0);
	begin(f);
	row.id = TEXT("talk-10");
	assert_int_equal(store_conversation_add(writer(f), &row, &row.seq), 0);
	row.id = TEXT("talk-9");
	assert_int_equal(store_conversation_add(writer(f), &row, &row.seq), 0);
	commit(f);
	assert_int_equal(highest(f), 10);
	begin(f);
	assert_int_equal(store_conversation_end(writer(f), TEXT("talk-10"), 1, &found), 0);
	commit(f);
	assert_int_equal(highest(f), 10);
}

TEST(rows_are_counted_as_they_come)
{
	struct fixture *f = *state;
	struct memory_totals totals;

	for (int i = 0; i < 3; i++) {
		begin(f);
		for (int k = 0; k < 600; k++)
			add_memory(f);
		commit(f);
		arena_reset(&f->arena);
		assert_true(on_server() ||
			    number(f, "SELECT max(memory.seq) - max(tally_mark.seq) FROM memory,"
				      " tally_mark WHERE name = 'memory'") < 512);
		assert_int_equal(store_memory_count(reader(f), &EVERYTHING, NOW, &totals), 0);
		assert_int_equal(totals.all, 600 * (i + 1));
	}
}
