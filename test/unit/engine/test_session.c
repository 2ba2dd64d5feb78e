/*
 * Agent sessions as the daemon runs them: a loop, the workers' threads, a real store, real children
 * (a shell script in the place of claude), and the recall agent.
 */
#include "stage.h"
#include "steps.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "agent/recall/recall.h"
#include "base/pack.h"
#include "io/process/tree.h"
#include "engine/chat/chat.h"
#include "engine/event/event.h"
#include "engine/session/session.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/hld/hld.h"
#include "engine/session/inner.h"
#include "engine/task/task.h"
#include "store/session.h"
#include "store/store.h"
#include "wire/json.h"

struct world {
	struct stage stage;
	struct tree_keeper *keeper;
	char program[200];
	char folder[200];
	char tasks[200];
	char work[200];
	const char *words;  /* the program that is set; NULL: the script */
	const char *runner; /* NULL: not said */
	int64_t keep_bytes;
	unsigned interrupt_ms; /* 0: 200 */
	struct event_subscriber *listener;
	char told[8192]; /* "old>new" and event types, in order */
};

/* ---- the world ---- */

/* What it does is in its query, which is its last argument and run by sh. */
static void write_program(struct world *w)
{
	FILE *f;

	snprintf(w->program, sizeof(w->program), "%s/agent", w->stage.f->dir);
	f = fopen(w->program, "w");
	assert_non_null(f);
	fprintf(f,
		"#!/bin/sh\n"
		"id() { echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"'$1'\"}'; "
		"}\n"
		"say() { echo '{\"type\":\"assistant\",\"message\":{\"role\":\"assistant\","
		"\"content\":[{\"type\":\"text\",\"text\":\"'\"$1\"'\"}]},\"session_id\":\"c1\"}'; "
		"}\n"
		"call() { echo '{\"type\":\"assistant\",\"message\":{\"role\":\"assistant\","
		"\"content\":[{\"type\":\"tool_use\",\"id\":\"'$1'\",\"name\":\"'$2'\",\"input\":"
		"{\"command\":\"ls\"}}]},\"session_id\":\"c1\"}'; }\n"
		"back() { echo '{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":"
		"[{\"type\":\"tool_result\",\"tool_use_id\":\"'$1'\",\"content\":\"'\"$2\"'\"}]},"
		"\"session_id\":\"c1\"}'; }\n"
		"end() { echo "
		"'{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":'${2:-false}',"
		"\"result\":\"'\"$1\"'\",\"total_cost_usd\":0.25,\"duration_ms\":1200,"
		"\"num_turns\":3,\"usage\":{\"input_tokens\":10,\"output_tokens\":5},"
		"\"session_id\":\"c1\"}'; }\n"
		"all=\"$*\"\n"
		"for last; do :; done\n"
		"eval \"$last\"\n");
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(w->program, 0700), 0);
}

static void start_chat(struct world *w)
{
	const struct recall_opts recall = {
		.name = "recall", .budget = 8000, .reserve = 2000, .rank = chat_rank};
	struct agent *agents[1];
	const struct chat_opts opts = {.store = w->stage.f->engine->store,
				       .events = w->stage.f->engine->events,
				       .memories = w->stage.f->engine->memories,
				       .loop = w->stage.loop,
				       .workers = stage_workers(&w->stage),
				       .agents = agents,
				       .n_agents = 1,
				       .agent = "recall",
				       .system = ""};
	struct error error;

	assert_int_equal(recall_new(w->stage.loop, &recall, &agents[0]), 0);
	assert_int_equal(chat_start(&opts, &w->stage.f->engine->chat, &error), 0);
}

static int to_json(struct arena *a, const struct value *v, struct text *ret_text)
{
	struct buf out;
	struct json j;

	buf_init(&out, 1 << 20);
	j = json_writer(&out);
	json_value(&j, v);
	ret_text->data = arena_copy(a, out.data, out.len);
	ret_text->len = out.len;
	buf_done(&out);
	return ret_text->data ? 0 : -ENOMEM;
}

static void note(struct world *w, const char *format, struct text one, struct text two)
{
	size_t n = strlen(w->told);

	snprintf(w->told + n, sizeof(w->told) - n, format, TEXT_ARGS(one), TEXT_ARGS(two));
}

static int on_event(void *arg, const struct event *e)
{
	struct world *w = arg;

	assert_non_null(e->session.data);
	if (text_is(e->type, "session.status"))
		note(w, "%.*s>%.*s ", packed_text(packed_find(e->data, "old_status")),
		     packed_text(packed_find(e->data, "new_status")));
	else if (text_is(e->type, "session.event"))
		note(w, "%.*s%.*s ", packed_text(packed_find(e->data, "event_type")), TEXT(""));
	return 0;
}

static int on_gone(void *arg, int64_t n)
{
	fail();
	return 0;
}

static void world_open(struct world *w)
{
	struct engine *s = w->stage.f->engine;
	struct workers *workers = stage_workers(&w->stage);
	const struct events_opts events = {
		.store = s->store, .loop = w->stage.loop, .workers = workers};
	struct tasks_opts tasks = {
		.loop = w->stage.loop,
		.workers = workers,
		.output_folder = w->tasks,
		.wording = &aiwg_task_wording,
	};
	struct sessions_opts opts = {
		.store = s->store,
		.loop = w->stage.loop,
		.workers = workers,
		.folder = w->folder,
		.program = w->words ? w->words : w->program,
		.runner = w->runner,
		.parallel = 3,
		.interrupt_ms = w->interrupt_ms ? w->interrupt_ms : 200,
		.terminate_ms = 200,
		.keep_bytes = w->keep_bytes,
		.wording = &hld_session_wording,
		.to_json = to_json,
	};
	const struct event_sink sink = {.on_event = on_event, .on_gone = on_gone, .arg = w};
	const struct text type = TEXT("session.*");
	const struct event_filter filter = {.types = &type, .n_types = 1};
	struct error error = {0};

	assert_int_equal(events_start(&events, &s->events), 0);
	start_chat(w);
	tasks.store = s->store;
	tasks.events = s->events;
	tasks.chat = s->chat;
	assert_int_equal(tasks_start(&tasks, &s->tasks, &error), 0);
	opts.events = s->events;
	opts.chat = s->chat;
	assert_int_equal(sessions_start(&opts, &s->sessions), 0);
	stage_open(&w->stage);
	assert_int_equal(event_subscribe(s->events, &filter, -1, &sink, &w->listener), 0);
}

static int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct fixture *f;

	if (setup((void **)&f) != 0)
		return -1;
	stage_make(&w->stage, f);
	assert_int_equal(tree_keeper_new(w->stage.loop, &w->keeper), 0);
	snprintf(w->folder, sizeof(w->folder), "%s/sessions", f->dir);
	snprintf(w->tasks, sizeof(w->tasks), "%s/tasks", f->dir);
	snprintf(w->work, sizeof(w->work), "%s/work", f->dir);
	assert_int_equal(mkdir(w->work, 0700), 0);
	write_program(w);
	world_open(w);
	*state = w;
	return 0;
}

static void world_close(struct world *w)
{
	stage_close(&w->stage);
	engine_close(w->stage.f->engine);
	w->stage.f->engine = NULL;
}

static int world_teardown(void **state)
{
	struct world *w = *state;
	struct fixture *f = w->stage.f;

	world_close(w);
	fixture_open(f, 1 << 20);
	teardown((void **)&f);
	tree_keeper_free(w->keeper);
	timer_free(w->stage.tick);
	loop_free(w->stage.loop);
	free(w);
	return 0;
}

FIXTURE(world_setup, world_teardown);

static void world_reopen(struct world *w)
{
	world_close(w);
	fixture_open(w->stage.f, 64 << 20);
	world_open(w);
}

/* ---- what tests ask ---- */

struct launched {
	bool done;
	int result;
	char id[64];
	char run[64];
	char parent[64];
	struct error error;
};

static void on_launched(void *arg, int result, const struct session_launched *l,
			const struct error *error)
{
	struct launched *to = arg;

	assert_false(to->done);
	to->done = true;
	to->result = result;
	if (error)
		to->error = *error;
	if (!l)
		return;
	snprintf(to->id, sizeof(to->id), "%.*s", TEXT_ARGS(l->id));
	snprintf(to->run, sizeof(to->run), "%.*s", TEXT_ARGS(l->run));
	snprintf(to->parent, sizeof(to->parent), "%.*s", TEXT_ARGS(l->parent));
}

/* What a function that takes a callback has returned: if it refuses, it does not call that. */
static void note_refusal(int result, bool *done, int *to)
{
	if (result == 0)
		return;
	*done = true;
	*to = result;
}

static struct launched try_new(struct world *w, const struct session_new *in)
{
	struct launched l = {0};

	note_refusal(session_launch(w->stage.f->engine->sessions, in, on_launched, &l, &l.error),
		     &l.done, &l.result);
	stage_until(&w->stage, l.done);
	return l;
}

static struct launched launch(struct world *w, const char *query)
{
	const struct session_new in = {.query = text_of(query), .working_dir = text_of(w->work)};
	struct launched l = try_new(w, &in);

	if (l.result != 0)
		fail_msg("%s", l.error.text);
	return l;
}

static struct session get(struct world *w, struct arena *a, const char *id)
{
	struct session row;
	struct error error;

	if (session_get(w->stage.f->engine->sessions, N_READERS - 1, a, text_of(id), false, &row,
			&error))
		fail_msg("%s", error.text);
	return row;
}

static bool has_status(struct world *w, const char *id, enum session_status status)
{
	struct arena a;
	bool has;

	arena_init(&a, 1 << 24);
	has = get(w, &a, id).status == status;
	arena_done(&a);
	return has;
}

static void until(struct world *w, const char *id, enum session_status status)
{
	stage_until(&w->stage, has_status(w, id, status));
}

static struct session_page read_page(struct world *w, struct arena *a,
				     struct session_events_query q)
{
	struct session_page page;

	q.limit = q.limit ? q.limit : SESSION_EVENTS_MAX;
	q.max_bytes = q.max_bytes ? q.max_bytes : 1 << 24;
	assert_int_equal(session_events(w->stage.f->engine->sessions, N_READERS - 1, a, &q, &page),
			 0);
	return page;
}

#define READ(w, a, ...) read_page(w, a, (struct session_events_query) {__VA_ARGS__})

/* "message user query|tool_call Bash|…" */
static void conversation(struct world *w, const char *id, bool chain, char *out, size_t size)
{
	struct session_page page;
	struct session_event *e;
	struct arena a;
	size_t at = 0;

	arena_init(&a, 1 << 26);
	page = READ(w, &a, .session = text_of(id), .chain = chain, .raw = true);
	assert_false(page.more);
	e = page.events;
	*out = '\0';
	for (unsigned i = 0; i < page.n && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s %.*s%.*s%.30s", i > 0 ? "|" : "",
				       session_event_type_name(e[i].type), TEXT_ARGS(e[i].role),
				       TEXT_ARGS(e[i].tool_name),
				       e[i].content.data ? e[i].content.data : "");
	arena_done(&a);
}

struct asked {
	bool done;
	int result;
	struct error error;
};

static void on_asked(void *arg, int result, const struct error *error)
{
	struct asked *a = arg;

	a->done = true;
	a->result = result;
	if (error)
		a->error = *error;
}

static struct asked interrupt(struct world *w, const char *id)
{
	struct asked a = {0};

	note_refusal(session_interrupt(w->stage.f->engine->sessions, text_of(id), on_asked, &a,
				       &a.error),
		     &a.done, &a.result);
	stage_until(&w->stage, a.done);
	return a;
}

static struct launched go_on(struct world *w, const char *id, const char *query)
{
	const struct session_new in = {.query = text_of(query)};
	struct launched l = {0};

	note_refusal(session_continue(w->stage.f->engine->sessions, text_of(id), &in, on_launched,
				      &l, &l.error),
		     &l.done, &l.result);
	stage_until(&w->stage, l.done);
	return l;
}

/* ---- tests ---- */

TEST(a_session_says_what_its_program_prints)
{
	struct world *w = *state;
	struct launched l = launch(w, "id c1; say hello; call t1 Bash; back t1 done; end fine");
	struct session row;
	struct arena a;
	char said[1000];

	until(w, l.id, SESSION_COMPLETED);
	conversation(w, l.id, false, said, sizeof(said));
	assert_string_equal(said,
			    "message userid c1; say hello; call t1 Bash|message assistanthello|"
			    "tool_call assistantBash|tool_result userdone");
	arena_init(&a, 1 << 20);
	row = get(w, &a, l.id);
	assert_true(text_is(row.agent_session, "c1"));
	assert_true(text_is(row.result, "fine"));
	assert_true(text_is(row.runner, "claude"));
	assert_true(row.cost_usd == 0.25);
	assert_int_equal(row.duration_ms, 1200);
	assert_int_equal(row.turns, 3);
	assert_int_equal(row.input_tokens + row.output_tokens, 15);
	assert_true(row.ended_ms >= row.created_ms);
	arena_done(&a);
	stage_until(&w->stage, strstr(w->told, "running>completed"));
	assert_string_equal(w->told, "starting>running message message tool_call tool_result "
				     "running>completed ");
}

TEST(its_flags_are_in_order)
{
	struct world *w = *state;
	const struct text tools[] = {TEXT("Read"), TEXT("Bash")};
	struct session_new in = {
		.query = TEXT("id c1; printf '%s' \"$all\" > args; env > env; pwd > cwd"),
		.working_dir = text_of(w->work),
		.model = TEXT("opus"),
		.max_turns = 7,
		.system_prompt = TEXT("be brief"),
		.append_system_prompt = TEXT("-x"),
		.permission_prompt_tool = TEXT("ask"),
		.allowed_tools = {tools, 2},
		.disallowed_tools = {tools, 1},
	};
	struct launched l = try_new(w, &in);
	char path[300];
	char text[1000] = "";
	FILE *f;

	assert_int_equal(l.result, 0);
	until(w, l.id, SESSION_COMPLETED);
	snprintf(path, sizeof(path), "%s/args", w->work);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	assert_memory_equal(text,
			    "--model opus --output-format stream-json --verbose "
			    "--permission-prompt-tool ask --max-turns 7 --system-prompt be brief "
			    "--append-system-prompt=-x --allowedTools Read,Bash "
			    "--disallowedTools Read --print -- id c1;",
			    198);
}

TEST(servers_are_told_whose_session_they_are_of)
{
	static const char given[] =
		"{\"mcpServers\":{\"a\":1,\"b\":{\"command\":\"x\",\"env\":{\"KEPT\":\"1\","
		"\"HUMANLAYER_RUN_ID\":\"theirs\",\"HUMANLAYER_DAEMON_SOCKET\":\"/s\"}},"
		"\"c\":{\"env\":[1]}},\"other\":2}";
	struct world *w = *state;
	struct session_new in = {
		.query = TEXT("id c1; for a in $all; do [ ! -f $a ] || cat $a > mcp; done"),
		.working_dir = text_of(w->work),
	};
	struct launched l;
	struct value *config;
	const struct value *servers, *env;
	char path[300], text[2000];
	FILE *f;
	size_t n;

	assert_int_equal(json_read(&w->stage.f->arena, given, strlen(given), &json_default_limits,
				   &config, NULL),
			 0);
	in.mcp_config.value = config;
	l = try_new(w, &in);
	assert_int_equal(l.result, 0);
	until(w, l.id, SESSION_COMPLETED);
	snprintf(path, sizeof(path), "%s/mcp", w->work);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	assert_int_equal(
		json_read(&w->stage.f->arena, text, n, &json_default_limits, &config, NULL), 0);
	servers = value_find(config, "mcpServers");
	assert_int_equal(servers->len, 3);
	assert_int_equal(value_find(config, "other")->kind, VALUE_NUMBER);
	assert_int_equal(value_find(servers, "a")->kind, VALUE_NUMBER);
	assert_true(text_is(value_text(value_find(value_find(servers, "b"), "command")), "x"));
	env = value_find(value_find(servers, "b"), "env");
	assert_int_equal(env->len, 4);
	assert_true(text_is(value_text(value_find(env, "KEPT")), "1"));
	assert_true(text_is(value_text(value_find(env, "HUMANLAYER_RUN_ID")), l.run));
	assert_true(text_is(value_text(value_find(env, "HUMANLAYER_SESSION_ID")), l.id));
	assert_true(text_is(value_text(value_find(env, "HUMANLAYER_DAEMON_SOCKET")), "/s"));
	env = value_find(value_find(servers, "c"), "env");
	assert_true(text_is(value_text(value_find(env, "HUMANLAYER_SESSION_ID")), l.id));
	assert_non_null(value_find(env, "HUMANLAYER_RUN_ID"));
}

TEST(a_folder_that_is_not_there)
{
	struct world *w = *state;
	const struct session_new in = {.query = TEXT("end x"),
				       .working_dir = TEXT("/nonexistent/dir")};
	struct launched l = try_new(w, &in);

	assert_int_equal(l.result, REFUSE_UNAVAILABLE);
	assert_string_equal(l.error.text, "chdir /nonexistent/dir: no such file or directory");
	until(w, l.id, SESSION_FAILED);
	stage_until(&w->stage, strstr(w->told, "starting>failed"));
}

TEST(bad_input_is_refused)
{
	struct world *w = *state;
	const struct text nul = {.data = "a\0b", .len = 3};
	struct session_new in = {.query = TEXT("")};
	struct launched l = try_new(w, &in);

	assert_int_equal(l.result, REFUSE_PARAMS);
	assert_string_equal(l.error.text, "query is required");
	in.query = nul;
	l = try_new(w, &in);
	assert_int_equal(l.result, REFUSE_PARAMS);
	assert_string_equal(l.error.field, "query");
	in = (struct session_new) {.query = TEXT("x"), .agent = TEXT("nobody")};
	l = try_new(w, &in);
	assert_int_equal(l.result, REFUSE_PARAMS);
	assert_string_equal(l.error.field, "agent");
}

TEST(launch_limits_are_exact_and_a_refusal_names_the_field)
{
	enum { PROMPT = 100 << 10 };
	static char name[SESSION_QUERY_MAX + 1];
	static struct text list[SESSION_TOOLS_MAX + 1];
	static const struct value array = {.kind = VALUE_ARRAY}, object = {.kind = VALUE_OBJECT};

	memset(name, '/', sizeof(name));
	for (unsigned i = 0; i <= SESSION_TOOLS_MAX; i++)
		list[i] = TEXT("/a");
	for (unsigned more = 0; more < 2; more++) {
		const struct text long_title = {name, SESSION_TITLE_MAX + more};
		const struct texts many = {list, SESSION_TOOLS_MAX + more}, one = {&long_title, 1};
		const struct text empty = TEXT("");
		const struct texts relative = {more ? &empty : list, 1};
		const struct {
			const char *field;
			struct session_new in;
		} rows[] = {
			{"query", {.query = {name, SESSION_QUERY_MAX + more}}},
			{"title", {.title = long_title}},
			{"model", {.model = long_title}},
			{"permission_prompt_tool", {.permission_prompt_tool = long_title}},
			{"working_dir", {.working_dir = {name, STORE_FOLDER_MAX + more}}},
			{"system_prompt", {.system_prompt = {name, PROMPT + more}}},
			{"append_system_prompt", {.append_system_prompt = {name, PROMPT + more}}},
			{"custom_instructions",
			 {.custom_instructions = {name, PROMPT - 1 + more},
			  .append_system_prompt = {name, 1}}},
			{"allowed_tools", {.allowed_tools = many}},
			{"disallowed_tools", {.disallowed_tools = many}},
			{"disallowed_tools", {.disallowed_tools = one}},
			{"additional_directories", {.additional_directories = many}},
			{"additional_directories", {.additional_directories = one}},
			{"additional_directories", {.additional_directories = relative}},
			{"max_turns", {.max_turns = (int64_t)INT32_MAX + more}},
			{"max_turns", {.max_turns = -(int64_t)more}},
			{"mcp_config", {.mcp_config.value = more ? &array : &object}},
		};

		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct session_new in = rows[i].in;
			struct error error = {0};

			if (in.query.len == 0)
				in.query = TEXT("x");
			assert_int_equal(session_check_new(&in, &error), more ? REFUSE_PARAMS : 0);
			assert_string_equal(error.field, more ? rows[i].field : "");
		}
	}
}

struct titling {
	struct work work;
	struct sessions *sessions;
	struct text id, title;
	struct error error;
	int result;
	bool done;
};

static int titling_run(struct work *w, int lane)
{
	struct titling *t = list_entry(w, struct titling, work);

	(void)lane;
	return session_set_title(t->sessions, t->id, t->title, &t->error);
}

static void titling_finished(struct work *w, int result)
{
	struct titling *t = list_entry(w, struct titling, work);

	t->result = result;
	t->done = true;
}

/* On the writer's thread, which may have other work. */
static int set_title(struct world *w, const char *id, const char *title, size_t n)
{
	struct titling t = {.work = {.run = titling_run, .finished = titling_finished},
			    .sessions = w->stage.f->engine->sessions,
			    .id = text_of(id),
			    .title = {title, n}};

	assert_int_equal(stage_submit(&w->stage, &t.work, true), 0);
	stage_until(&w->stage, t.done);
	return t.result;
}

TEST(title_has_a_limit_and_its_session)
{
	static char title[SESSION_TITLE_MAX + 1];
	struct world *w = *state;
	struct launched l = launch(w, "end x");
	struct arena a;

	until(w, l.id, SESSION_COMPLETED);
	memset(title, 't', sizeof(title));
	assert_int_equal(set_title(w, l.id, title, SESSION_TITLE_MAX + 1), REFUSE_PARAMS);
	assert_int_equal(set_title(w, "nobody", title, 1), REFUSE_NOT_FOUND);
	assert_int_equal(set_title(w, l.id, title, SESSION_TITLE_MAX), 0);
	arena_init(&a, 1 << 24);
	assert_int_equal(get(w, &a, l.id).title.len, SESSION_TITLE_MAX);
	arena_done(&a);
}

TEST(home_stands_for_itself_in_a_working_directory)
{
	static const char *const kept[] = {"~", "~/work", "~x"};
	struct world *w = *state;
	char *home = strdup(getenv("HOME") ?: "");
	char below[300];

	snprintf(below, sizeof(below), "%s/work", w->work);
	assert_int_equal(mkdir(below, 0700), 0);
	setenv("HOME", w->work, 1);
	for (unsigned i = 0; i < 3; i++) {
		const struct session_new in = {.query = TEXT("end x"),
					       .working_dir = text_of(kept[i])};
		struct launched l = try_new(w, &in);
		struct arena a;

		arena_init(&a, 1 << 24);
		if (l.result == 0) {
			stage_until(&w->stage, !has_status(w, l.id, SESSION_STARTING));
			assert_true(
				text_is(get(w, &a, l.id).working_dir, i == 0 ? w->work : below));
		}
		assert_int_equal(l.result != 0, i == 2);
		arena_done(&a);
	}
	setenv("HOME", home, 1);
	free(home);
}

TEST(how_it_fails_is_told)
{
	static const struct {
		const char *query, *error;
	} cases[] = {
		{"id c1; echo oops >&2; exit 3", "claude process failed: claude error: oops"},
		{"id c1; exit 130", "claude process failed: exit status 130"},
		{"id c1; end broken true", "broken"},
		{"id c1; end fine; echo oops >&2; exit 1", "claude process failed: exit status 1"},
	};
	struct world *w = *state;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct launched l = launch(w, cases[i].query);
		struct arena a;
		struct text error;

		until(w, l.id, SESSION_FAILED);
		arena_init(&a, 1 << 20);
		error = get(w, &a, l.id).error;
		if (!text_is(error, cases[i].error))
			fail_msg("%.*s", TEXT_ARGS(error));
		arena_done(&a);
	}
}

TEST(without_a_result_it_has_completed)
{
	struct world *w = *state;
	struct launched l = launch(w, "true");
	char said[300];

	until(w, l.id, SESSION_COMPLETED);
	conversation(w, l.id, false, said, sizeof(said));
	assert_string_equal(said, "message usertrue");
}

TEST(lines_nobody_understands_are_kept)
{
	struct world *w = *state;
	struct launched l =
		launch(w, "echo noise; id c1; printf 'half'; echo; echo '{\"type\":\"new\"}'; "
			  "printf '\\377\\376'; end fine");
	char said[1000];

	until(w, l.id, SESSION_COMPLETED);
	conversation(w, l.id, false, said, sizeof(said));
	assert_non_null(strstr(said, "raw noise|message user"));
	assert_non_null(strstr(said, "|raw half|raw {\"type\":\"new\"}|raw "));
}

TEST(an_interrupt_is_told_and_ends_it)
{
	struct world *w = *state;
	struct launched l = launch(w, "trap '' INT TERM; id c1; say ready; "
				      "while :; do sleep 0.05; done");
	struct asked a;

	stage_until(&w->stage, strstr(w->told, "message message"));
	a = interrupt(w, l.id);
	assert_int_equal(a.result, 0);
	assert_true(has_status(w, l.id, SESSION_COMPLETING));
	a = interrupt(w, l.id);
	assert_int_equal(a.result, REFUSE_CONFLICT);
	until(w, l.id, SESSION_INTERRUPTED);
	stage_until(&w->stage, strstr(w->told, "running>completing completing>interrupted"));
	a = interrupt(w, l.id);
	assert_string_equal(a.error.text,
			    "cannot interrupt session with status interrupted (must be running)");
	a = interrupt(w, "nope");
	assert_int_equal(a.result, REFUSE_NOT_FOUND);
	assert_string_equal(a.error.text, "session not found: nope");
}

TEST(a_session_goes_on_where_another_ended)
{
	struct world *w = *state;
	struct session_new in = {.query = TEXT("id c1; end one"),
				 .working_dir = text_of(w->work),
				 .model = TEXT("opus"),
				 .system_prompt = TEXT("be brief")};
	struct launched first = try_new(w, &in);
	struct launched second;
	struct arena a;
	char said[1000];

	until(w, first.id, SESSION_COMPLETED);
	second = go_on(w, first.id, "id c2; say \"$(echo \"$all\" | cut -c1-40)\"; end two");
	assert_int_equal(second.result, 0);
	assert_string_equal(second.parent, first.id);
	until(w, second.id, SESSION_COMPLETED);
	arena_init(&a, 1 << 20);
	assert_true(text_is(get(w, &a, second.id).model, "opus"));
	assert_true(text_is(get(w, &a, second.id).working_dir, w->work));
	arena_done(&a);
	conversation(w, second.id, true, said, sizeof(said));
	assert_memory_equal(said, "message userid c1; end one|message userid c2; say", 48);
	assert_non_null(strstr(said, "--resume c1 --model opus"));
}

TEST(one_that_runs_is_interrupted_first)
{
	struct world *w = *state;
	struct launched first = launch(w, "id c1; say ready; exec sleep 60");
	struct launched second;

	stage_until(&w->stage, strstr(w->told, "message message"));
	second = go_on(w, first.id, "id c2; end two");
	assert_int_equal(second.result, 0);
	assert_true(has_status(w, first.id, SESSION_INTERRUPTED));
	until(w, second.id, SESSION_COMPLETED);
}

TEST(failed_session_whose_agent_had_begun_is_continued)
{
	struct world *w = *state;
	struct launched failed = launch(w, "id c1; exit 1");
	struct launched second;

	until(w, failed.id, SESSION_FAILED);
	second = go_on(w, failed.id, "id c2; end two");
	assert_int_equal(second.result, 0);
	assert_string_equal(second.parent, failed.id);
	until(w, second.id, SESSION_COMPLETED);
}

TEST(what_cannot_be_continued)
{
	struct world *w = *state;
	struct launched failed = launch(w, "exit 1");
	struct launched nameless = launch(w, "true");
	struct launched l;

	until(w, failed.id, SESSION_FAILED);
	until(w, nameless.id, SESSION_COMPLETED);
	l = go_on(w, failed.id, "x");
	assert_int_equal(l.result, REFUSE_CONFLICT);
	assert_string_equal(l.error.text,
			    "parent session missing claude_session_id (cannot resume)");
	l = go_on(w, nameless.id, "x");
	assert_string_equal(l.error.text,
			    "parent session missing claude_session_id (cannot resume)");
	l = go_on(w, "nope", "x");
	assert_int_equal(l.result, REFUSE_NOT_FOUND);
	l = go_on(w, failed.id, "");
	assert_string_equal(l.error.text, "query is required");
}

TEST(approvals_make_it_wait)
{
	struct world *w = *state;
	struct engine *s = w->stage.f->engine;
	struct launched l = launch(w, "id c1; say ready; exec sleep 60");

	stage_until(&w->stage, strstr(w->told, "message message"));
	session_wait(s->sessions, text_of(l.id), 1);
	session_wait(s->sessions, text_of(l.id), 1);
	until(w, l.id, SESSION_WAITING);
	session_wait(s->sessions, text_of(l.id), -1);
	session_wait(s->sessions, text_of(l.id), -1);
	until(w, l.id, SESSION_RUNNING);
	session_wait(s->sessions, text_of(l.id), 1);
	/* One that waits can be interrupted as well. */
	assert_int_equal(interrupt(w, l.id).result, 0);
	until(w, l.id, SESSION_INTERRUPTED);
}

/* Its program runs, and may ask, before we hear of its start. */
TEST(an_approval_before_the_start_makes_it_wait)
{
	struct world *w = *state;
	struct sessions *s = w->stage.f->engine->sessions;
	const struct session_new in = {.query = TEXT("id c1; exec sleep 60"),
				       .working_dir = text_of(w->work)};
	struct launched l = {0};

	note_refusal(session_launch(s, &in, on_launched, &l, &l.error), &l.done, &l.result);
	assert_false(l.done);
	session_wait(s, list_entry(list_first(&s->live), struct live_session, link)->row.id, 1);
	stage_until(&w->stage, l.done);
	until(w, l.id, SESSION_WAITING);
	assert_int_equal(interrupt(w, l.id).result, 0);
	until(w, l.id, SESSION_INTERRUPTED);
}

TEST(without_a_program_nobody_runs_it)
{
	struct world *w = *state;
	const struct session_new in = {.query = TEXT("x"), .working_dir = text_of(w->work)};
	struct launched l;

	w->words = "no-such-program-anywhere";
	world_reopen(w);
	l = try_new(w, &in);
	assert_int_equal(l.result, REFUSE_UNAVAILABLE);
	assert_memory_equal(l.error.text, "no agent is configured: ", 24);
	assert_true(has_status(w, l.id, SESSION_FAILED));
}

TEST(an_agent_that_the_settings_name_answers)
{
	struct world *w = *state;
	struct launched l;
	struct launched again;
	char said[2000];

	w->words = "no-such-program-anywhere";
	w->runner = "recall";
	world_reopen(w);
	l = launch(w, "My name is Alice");
	until(w, l.id, SESSION_COMPLETED);
	again = go_on(w, l.id, "What is my name?");
	if (again.result != 0)
		fail_msg("%s", again.error.text);
	until(w, again.id, SESSION_COMPLETED);
	conversation(w, again.id, true, said, sizeof(said));
	assert_memory_equal(said, "message userMy name is Alice|message assistant", 45);
	assert_non_null(strstr(said, "|message userWhat is my name?|message assistant"));
}

TEST(a_crash_leaves_none_running)
{
	struct world *w = *state;
	struct launched l = launch(w, "id c1; say ready; exec sleep 60");
	struct arena a;

	stage_until(&w->stage, strstr(w->told, "message message"));
	world_reopen(w);
	assert_true(has_status(w, l.id, SESSION_FAILED));
	arena_init(&a, 1 << 20);
	assert_true(text_is(get(w, &a, l.id).error, "daemon restarted while session was active"));
	arena_done(&a);
}

static void on_stopped(void *arg)
{
	*(bool *)arg = true;
}

TEST(a_stop_ends_all)
{
	struct world *w = *state;
	struct engine *s = w->stage.f->engine;
	struct launched one = launch(w, "trap '' INT TERM; id c1; say ready; sleep 60; sleep 60");
	const struct session_new in = {.query = TEXT("x")};
	struct launched late;
	bool stopped = false;

	stage_until(&w->stage, strstr(w->told, "message message"));
	sessions_stop(s->sessions, 1, on_stopped, &stopped);
	late = try_new(w, &in);
	assert_int_equal(late.result, REFUSE_STOPPING);
	stage_until(&w->stage, stopped);
	assert_true(has_status(w, one.id, SESSION_FAILED));
}

TEST(a_stop_catches_what_is_on_its_way)
{
	struct world *w = *state;
	struct engine *s = w->stage.f->engine;
	const struct session_new in = {.query = TEXT("exec sleep 60"),
				       .working_dir = text_of(w->work)};
	struct launched l = {0};
	bool stopped = false;

	note_refusal(session_launch(s->sessions, &in, on_launched, &l, &l.error), &l.done,
		     &l.result);
	sessions_stop(s->sessions, 0, on_stopped, &stopped);
	stage_until(&w->stage, stopped);
	assert_true(l.done);
	assert_int_equal(l.result, REFUSE_UNAVAILABLE);
	assert_true(has_status(w, l.id, SESSION_FAILED));
}

TEST(too_many_are_refused)
{
	struct world *w = *state;
	const struct session_new in = {.query = TEXT("sleep 60"), .working_dir = text_of(w->work)};
	struct launched l;

	for (int i = 0; i < 3; i++)
		launch(w, "exec sleep 60");
	l = try_new(w, &in);
	assert_int_equal(l.result, REFUSE_LIMIT);
}

/* It counts until its end, and that comes before the next begins. */
TEST(at_the_limit_one_can_still_be_continued)
{
	struct world *w = *state;
	struct launched l = launch(w, "id c1; say ready; exec sleep 60");

	stage_until(&w->stage, strstr(w->told, "message message"));
	for (int i = 0; i < 2; i++)
		launch(w, "exec sleep 60");
	l = go_on(w, l.id, "id c2; exec sleep 60");
	assert_int_equal(l.result, 0);
	assert_int_equal(try_new(w, &(struct session_new) {.query = TEXT("x")}).result,
			 REFUSE_LIMIT);
}

TEST(one_that_ends_meanwhile_is_continued)
{
	struct world *w = *state;
	const struct session_new in = {.query = TEXT("id c2; end two")};
	struct launched next = {0};
	struct launched l = launch(w, "id c1; say ready; until [ -e go ]; do sleep 0.01; done");
	char path[300];

	stage_until(&w->stage, strstr(w->told, "message message"));
	w->stage.hold_reads = true;
	note_refusal(session_continue(w->stage.f->engine->sessions, text_of(l.id), &in, on_launched,
				      &next, &next.error),
		     &next.done, &next.result);
	snprintf(path, sizeof(path), "%s/go", w->work);
	assert_int_equal(mkdir(path, 0700), 0);
	stage_until(&w->stage, strstr(w->told, "running>completed"));
	for (int i = 0; i < 5; i++)
		stage_turn(&w->stage);
	/* What was read is not so any more. */
	w->stage.held->finished(w->stage.held, 0);
	stage_until(&w->stage, next.done);
	if (next.result != 0)
		fail_msg("%s", next.error.text);
	assert_string_equal(next.parent, l.id);
	until(w, next.id, SESSION_COMPLETED);
}

/* A full disk, and a program that does not stop talking when it is told to end. */
TEST(a_stop_ends_what_cannot_be_kept)
{
	struct world *w = *state;
	struct engine *s = w->stage.f->engine;
	bool stopped = false;
	char path[300];

	launch(w, "trap '' INT TERM; id c1; say ready; until [ -e go ]; do sleep 0.01; done; "
		  "long=$(head -c 100000 /dev/zero | tr '\\0' x); i=0; "
		  "while [ $i -lt 100 ]; do say $long; i=$((i+1)); done; : > said; sleep 60");
	stage_until(&w->stage, strstr(w->told, "message message"));
	w->stage.fail_writes = -ENOSPC;
	sessions_stop(s->sessions, 1, on_stopped, &stopped);
	snprintf(path, sizeof(path), "%s/go", w->work);
	assert_int_equal(mkdir(path, 0700), 0);
	stage_until(&w->stage, stopped);
	w->stage.fail_writes = 0;
}

TEST(on_a_full_disk_an_interrupt_is_answered)
{
	struct world *w = *state;
	struct engine *s = w->stage.f->engine;
	struct launched l = launch(w, "id c1; say ready; exec sleep 60");
	struct asked a;

	stage_until(&w->stage, strstr(w->told, "message message"));
	w->stage.fail_writes = -ENOSPC;
	session_wait(s->sessions, text_of(l.id), 1);
	a = interrupt(w, l.id);
	assert_int_equal(a.result, -ENOSPC);
	stage_until(&w->stage, session_live(s->sessions, text_of(l.id))->exited);
	w->stage.fail_writes = 0;
	until(w, l.id, SESSION_INTERRUPTED);
	stage_until(&w->stage, strstr(w->told, "completing>interrupted"));
	assert_non_null(strstr(w->told, "running>waiting_input waiting_input>completing "
					"completing>interrupted "));
}

/* The server has dropped their calls before the engine close. */
TEST(who_waits_when_all_closes_is_not_told)
{
	struct world *w = *state;
	const struct session_new in = {.query = TEXT("id c2")};
	struct launched next = {0};
	struct launched l;

	/* It ends by nothing but the closing. */
	w->interrupt_ms = 3600 * 1000;
	world_reopen(w);
	l = launch(w, "trap '' INT; id c1; say ready; sleep 60");
	stage_until(&w->stage, strstr(w->told, "message message"));
	note_refusal(session_continue(w->stage.f->engine->sessions, text_of(l.id), &in, on_launched,
				      &next, &next.error),
		     &next.done, &next.result);
	stage_until(&w->stage, strstr(w->told, "running>completing"));
	world_reopen(w);
	assert_false(next.done);
	assert_true(has_status(w, l.id, SESSION_FAILED));
}

/* Its servers' environment may have secrets. */
TEST(a_crash_leaves_no_file_with_servers)
{
	struct world *w = *state;
	char path[300];
	FILE *f;

	(void)mkdir(w->folder, 0700);
	snprintf(path, sizeof(path), "%s/mcp-0.json", w->folder);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fclose(f), 0);
	/* As a crash would, the close leaves the folder with what is in it. */
	world_reopen(w);
	assert_int_equal(access(path, F_OK), -1);
}

TEST(what_is_too_much_is_not_kept)
{
	struct world *w = *state;
	struct session_page page;
	struct launched l;
	struct arena a;

	w->keep_bytes = 100 << 10;
	world_reopen(w);
	l = launch(w, "id c1; i=0; while [ $i -lt 2000 ]; do say 'a line of some length, to fill'; "
		      "i=$((i+1)); done; end fine");
	until(w, l.id, SESSION_COMPLETED);
	arena_init(&a, 1 << 26);
	page = READ(w, &a, .session = text_of(l.id), .raw = true);
	assert_in_range(page.n, 100, 999);
	assert_int_equal(page.events[page.n - 1].type, SESSION_RAW);
	assert_true(text_is(get(w, &a, l.id).result, "fine"));
	arena_done(&a);
}

TEST(tool_input_counts_as_output)
{
	struct world *w = *state;
	struct session_page page;
	struct launched l;
	struct arena a;

	w->keep_bytes = 100 << 10;
	world_reopen(w);
	l = launch(w,
		   "id c1; long=$(head -c 30000 /dev/zero | tr '\\0' x); for i in 1 2 3 4 5 6; do "
		   "echo '{\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"content\":"
		   "[{\"type\":\"tool_use\",\"id\":\"t'$i'\",\"name\":\"Read\",\"input\":"
		   "{\"paths\":[\"'$long'\"]}}]},\"session_id\":\"c1\"}'; done; end fine");
	until(w, l.id, SESSION_COMPLETED);
	arena_init(&a, 1 << 26);
	page = READ(w, &a, .session = text_of(l.id), .raw = true);
	/* The query, 3 calls, and the notice. */
	assert_int_equal(page.n, 5);
	assert_int_equal(page.events[4].type, SESSION_RAW);
	arena_done(&a);
}

TEST(long_lines_come_whole)
{
	struct world *w = *state;
	struct launched l =
		launch(w, "id c1; say \"$(head -c 3000000 /dev/zero | tr '\\0' x)\"; end fine");
	struct session_page page;
	struct arena a;

	until(w, l.id, SESSION_COMPLETED);
	arena_init(&a, 1 << 26);
	page = READ(w, &a, .session = text_of(l.id));
	assert_int_equal(page.n, 2);
	assert_int_equal(page.events[1].content.len, 3000000);
	arena_done(&a);
}

/* ---- long chains ---- */

enum { LONG_CHAIN = 1200, SHORT_CHAIN = 20 };

/* "l0" to "l1199" go on from each other, and so do "s0" to "s19"; each said two things. */
static void add_chain(struct connection *c, const char *name, int n)
{
	char id[16], parent[16];

	for (int i = 0; i < n; i++) {
		struct session row = {.status = SESSION_COMPLETED,
				      .query = TEXT("q"),
				      .summary = TEXT("q"),
				      .working_dir = TEXT("/"),
				      .runner = TEXT("claude")};
		struct session_event said = {0};
		int64_t number;

		snprintf(id, sizeof(id), "%s%d", name, i);
		snprintf(parent, sizeof(parent), "%s%d", name, i - 1);
		row.id = row.run = said.session = said.content = text_of(id);
		row.parent = i > 0 ? text_of(parent) : (struct text) {0};
		assert_int_equal(store_session_add(c, &row, &number), 0);
		for (int k = 0; k < 2; k++)
			assert_int_equal(store_session_event_add(c, &said, &number, &number), 0);
	}
}

static void add_chains(struct world *w)
{
	struct store *store;

	world_close(w);
	fixture_open(w->stage.f, 64 << 20);
	store = w->stage.f->engine->store;
	assert_int_equal(store_begin(store), 0);
	add_chain(store_writer(store), "s", SHORT_CHAIN);
	add_chain(store_writer(store), "l", LONG_CHAIN);
	assert_int_equal(store_commit(store), 0);
	world_open(w);
}

TEST(a_long_chain_is_read_from_its_end)
{
	struct world *w = *state;
	struct connection *c;
	struct session_page page;
	int64_t steps[2];
	struct arena a;

	add_chains(w);
	c = store_reader(w->stage.f->engine->store, N_READERS - 1);
	arena_init(&a, 1 << 26);
	for (unsigned i = 0; i < 6; i++) {
		bool is_long = i & 1;

		(void)steps_taken(c);
		page = READ(w, &a, .session = is_long ? TEXT("l1199") : TEXT("s19"), .chain = true,
			    .newest = true, .limit = 5);
		steps[is_long] = steps_taken(c);
		assert_int_equal(page.n, 5);
		assert_true(page.more);
		assert_false(page.cut);
		assert_true(text_is(page.events[4].content, is_long ? "l1199" : "s19"));
		assert_true(text_is(page.events[0].content, is_long ? "l1197" : "s17"));
		page = READ(w, &a, .session = is_long ? TEXT("l1199") : TEXT("s19"), .chain = true,
			    .after_id = page.events[0].id, .limit = 2);
		steps[is_long] += steps_taken(c);
		assert_int_equal(page.n, 2);
		assert_true(text_is(page.events[0].content, is_long ? "l1198" : "s18"));
	}
	assert_true(steps[0] > 0);
	assert_in_range(steps[1], 1, steps[0] + 20);
	arena_done(&a);
}

TEST(a_chain_ends_at_its_limit_and_says_so)
{
	struct world *w = *state;
	struct session_page page;
	struct arena a;

	add_chains(w);
	arena_init(&a, 1 << 26);
	page = READ(w, &a, .session = TEXT("l1199"), .chain = true, .limit = 3);
	assert_true(page.cut);
	assert_true(page.more);
	assert_true(text_is(page.events[0].content, "l200"));
	page = READ(w, &a, .session = TEXT("l1199"), .chain = true, .newest = true, .limit = 5000);
	assert_true(page.cut);
	assert_false(page.more);
	assert_int_equal(page.n, 2 * SESSION_CHAIN_MAX);
	assert_true(text_is(page.events[0].content, "l200"));
	page = READ(w, &a, .session = TEXT("l999"), .chain = true, .newest = true, .limit = 5000);
	assert_false(page.cut);
	assert_int_equal(page.n, 2000);
	arena_done(&a);
}

TEST(summaries_are_short)
{
	struct world *w = *state;
	struct launched l =
		launch(w, ": '\n\n  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'");
	struct arena a;
	struct text s;

	until(w, l.id, SESSION_COMPLETED);
	arena_init(&a, 1 << 20);
	s = get(w, &a, l.id).summary;
	assert_int_equal(s.len, 50);
	assert_memory_equal(s.data, ": ' aaaa", 8);
	assert_memory_equal(s.data + 46, "a...", 4);
	arena_done(&a);
}
