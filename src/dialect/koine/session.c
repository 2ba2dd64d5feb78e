/* Agent sessions: starting, looking, ending. */
#include <errno.h>

#include "call/call.h"
#include "dialect/koine/koine.h"
#include "dialect/engine.h"
#include "engine/session/observed.h"

enum { PATHS_MAX = 1000 };

/* Parameters of the methods about one session. */
struct koine_session_one_in {
	struct text id;
	bool archived;
	struct text title;
	int64_t after;
	int64_t before;
	bool newest;
	int64_t limit;
	bool raw;
	bool chain;
};

struct launch_in {
	struct text id; /* session.continue: the parent's id */
	struct text query;
	struct text title;
	struct text model;
	struct text working_dir;
	struct text agent;
	int64_t max_turns;
	struct text system_prompt;
	struct text append_system_prompt;
	const struct value *allowed_tools;
	const struct value *disallowed_tools;
	const struct value *mcp_config;
	struct text permission_prompt_tool;
	struct text custom_instructions;
};

struct koine_session_list_in {
	struct text archived;
	struct text status;
	bool leaves;
	int64_t limit;
};

struct paths_in {
	int64_t limit;
};

/* ---- finding a session by what the client gave ---- */

struct koine_session_found {
	struct session row;
	struct session_new new;
};

static int koine_session_find(struct call *c, struct text id, struct session *ret_row)
{
	struct error error = {0};
	bool found = false;
	int r = session_get(call_sessions(c), c->lane, &c->arena, id, true, ret_row, &error);

	if (r == REFUSE_NOT_FOUND) {
		r = session_get_observed(call_sessions(c), c->lane, &c->arena, id, ret_row, &found,
					 &c->error);
		if (r != 0 || found)
			return r;
		r = REFUSE_NOT_FOUND;
	}
	if (r > 0)
		c->error = error;
	return r;
}

static int koine_session_begin(struct call *c, struct koine_session_found **ret)
{
	c->state = *ret = arena_zalloc(&c->arena, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static int find_work(struct call *c)
{
	const struct koine_session_one_in *in = c->in;
	struct koine_session_found *f = c->state;

	return koine_session_find(c, in->id, &f->row);
}

static int find_parent_work(struct call *c)
{
	const struct launch_in *in = c->in;
	struct koine_session_found *f = c->state;

	return koine_session_find(c, in->id, &f->row);
}

/* ---- starting ---- */

static int read_tools(const struct value *list, const char *field, struct arena *a,
		      struct texts *ret_tools, struct error *error)
{
	struct text *tools;
	unsigned n = 0;

	if (!list)
		return 0;
	if (list->len > SESSION_TOOLS_MAX)
		return refuse_field(error, field, "%s must have at most %d entries, not %u", field,
				    SESSION_TOOLS_MAX, (unsigned)list->len);
	tools = arena_alloc(a, (list->len + 1) * sizeof(tools[0]));
	if (!tools)
		return -ENOMEM;
	value_each (tool, list) {
		if (tool->kind != VALUE_STRING || tool->len == 0)
			return refuse_field(error, field, "%s[%u] must be a tool name", field, n);
		tools[n++] = value_text(tool);
	}
	*ret_tools = (struct texts) {.items = tools, .n = n};
	return 0;
}

static int read_launch(const struct launch_in *in, struct arena *a, struct session_new *ret,
		       struct error *error)
{
	int r;

	*ret = (struct session_new) {
		.query = in->query,
		.title = in->title,
		.model = in->model,
		.mcp_config.value = in->mcp_config,
		.permission_prompt_tool = in->permission_prompt_tool,
		.working_dir = in->working_dir,
		.max_turns = in->max_turns,
		.system_prompt = in->system_prompt,
		.append_system_prompt = in->append_system_prompt,
		.custom_instructions = in->custom_instructions,
		.agent = in->agent,
	};
	r = read_tools(in->allowed_tools, "allowed_tools", a, &ret->allowed_tools, error)
		    ?: read_tools(in->disallowed_tools, "disallowed_tools", a,
				  &ret->disallowed_tools, error);
	return r;
}

static void write_launched(struct json *j, const struct session_launched *l)
{
	json_begin_object(j);
	json_member_text(j, "id", l->id);
	json_member_text(j, "run_id", l->run);
	json_member_text(j, "parent_session_id", l->parent);
	json_end_object(j);
}

/* A session was kept, and it says what failed: the error carries it. */
static void fail_launched(struct call *c, const struct session_launched *l,
			  const struct error *error)
{
	struct buf data;
	struct json j;

	buf_init(&data, 4096);
	j = json_writer(&data);
	json_begin_object(&j);
	json_key(&j, "session");
	write_launched(&j, l);
	json_end_object(&j);
	(void)call_fail_with(c, c->dialect->errors[REFUSE_UNAVAILABLE].code, text_of(error->text),
			     (struct text) {.data = data.err ? NULL : data.data,
					    .len = data.err ? 0 : data.len});
	buf_done(&data);
}

static void on_launched(void *arg, int r, const struct session_launched *l,
			const struct error *error)
{
	struct call *c = arg;

	if (r == REFUSE_UNAVAILABLE && l) {
		fail_launched(c, l, error);
		return;
	}
	if (r != 0) {
		(void)call_fail_for(c, r, error);
		return;
	}
	write_launched(call_result(c), l);
	(void)call_reply(c);
}

static struct done handle_launch(struct call *c)
{
	struct session_new new;
	int r = read_launch(c->in, &c->arena, &new, &c->error);

	if (r != 0)
		return call_fail(c, r);
	/* Launching cannot be cancelled. Once the session runs, session.interrupt ends it. */
	return call_await(c, session_launch(call_sessions(c), &new, on_launched, c, &c->error));
}

static struct done continue_then(struct call *c, int r)
{
	struct koine_session_found *f = c->state;

	if (r == 0)
		r = session_must_be_ours(&f->row, "continued", &c->error);
	if (r != 0)
		return call_fail(c, r);
	return call_await(c, session_continue(call_sessions(c), f->row.id, &f->new, on_launched, c,
					      &c->error));
}

static struct done handle_continue(struct call *c)
{
	struct koine_session_found *f;
	int r = koine_session_begin(c, &f) ?: read_launch(c->in, &c->arena, &f->new, &c->error);

	return r != 0 ? call_fail(c, r) : call_work(c, READER, find_parent_work, continue_then);
}

/* ---- ending ---- */

static void on_interrupted(void *arg, int r, const struct error *error)
{
	struct call *c = arg;
	const struct koine_session_found *f = c->state;

	(void)call_answer(c, r, error,
			  PAIRS(JSON_TEXT("id", f->row.id),
				JSON_STR("status", session_status_name(SESSION_COMPLETING))));
}

static struct done interrupt_then(struct call *c, int r)
{
	const struct koine_session_found *f = c->state;

	if (r == 0)
		r = session_must_be_ours(&f->row, "interrupted", &c->error);
	if (r != 0)
		return call_fail(c, r);
	return call_await(
		c, session_interrupt(call_sessions(c), f->row.id, on_interrupted, c, &c->error));
}

static struct done handle_interrupt(struct call *c)
{
	struct koine_session_found *f;
	int r = koine_session_begin(c, &f);

	return r != 0 ? call_fail(c, r) : call_work(c, READER, find_work, interrupt_then);
}

/* ---- archiving, titles: a reader finds the session, the writer changes it ---- */

static int change_work(struct call *c)
{
	const struct koine_session_one_in *in = c->in;
	const struct koine_session_found *f = c->state;

	if (in->title.data)
		return session_set_title(call_sessions(c), f->row.id, in->title, &c->error);
	return session_set_archived(call_sessions(c), f->row.id, in->archived, &c->error);
}

static struct done changed(struct call *c, int r)
{
	const struct koine_session_one_in *in = c->in;
	const struct koine_session_found *f = c->state;
	struct json *j;

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_member_text(j, "id", f->row.id);
	if (in->title.data)
		json_member_text(j, "title", in->title);
	else
		json_member_bool(j, "archived", in->archived);
	return call_reply_object(c);
}

static struct done change_then(struct call *c, int r)
{
	const struct koine_session_found *f = c->state;

	if (r == 0)
		r = session_must_be_ours(&f->row, "changed", &c->error);
	return r != 0 ? call_fail(c, r) : call_work(c, WRITER, change_work, changed);
}

/* Only session.rename has a title. */
static struct done handle_change(struct call *c)
{
	const struct koine_session_one_in *in = c->in;
	struct koine_session_found *f;
	int r = koine_session_begin(c, &f);

	if (r == 0 && in->title.len > SESSION_TITLE_MAX)
		r = refuse_field(&c->error, "title", "title must not be longer than %d bytes",
				 SESSION_TITLE_MAX);
	return r != 0 ? call_fail(c, r) : call_work(c, READER, find_work, change_then);
}

/* ---- looking, on a reader's thread ---- */

static struct done koine_session_handle_list(struct call *c)
{
	const struct koine_session_list_in *in = c->in;
	enum session_status status;
	const struct session_filter filter = {
		.status = session_status_parse(in->status, &status) ? (int)status : -1,
		.archived = text_is(in->archived, "only")  ? ARCHIVED_ONLY
			    : text_is(in->archived, "any") ? ARCHIVED_ANY
							   : ARCHIVED_NO,
		.leaves = in->leaves,
		.limit = in->limit,
		.brief = true,
		.observed = true,
	};
	struct session *rows = NULL;
	unsigned n = 0;
	struct json *j;
	int r = session_list(call_sessions(c), c->lane, &c->arena, &filter, &rows, &n);

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_member_array(j, "sessions");
	for (unsigned i = 0; i < n; i++)
		session_json_write_short(j, &rows[i]);
	json_end_array(j);
	return call_reply_object(c);
}

static struct done handle_get(struct call *c)
{
	const struct koine_session_one_in *in = c->in;
	struct session row;
	int r = koine_session_find(c, in->id, &row);

	if (r != 0)
		return call_fail(c, r);
	session_json_write(call_result(c), &c->arena, &row);
	return call_reply(c);
}

/* ---- what was said ---- */

/* Where nothing was found, both ends are where it was looked for. */
static void write_page(struct json *j, const struct session_page *page, int64_t at)
{
	json_begin_object(j);
	json_member_array(j, "events");
	for (unsigned i = 0; i < page->n; i++)
		session_json_write_event(j, &page->events[i]);
	json_end_array(j);
	json_member_bool(j, "more", page->more);
	json_member_int(j, "first", page->n > 0 ? page->events[0].id : at);
	json_member_int(j, "last", page->n > 0 ? page->events[page->n - 1].id : at);
	if (page->cut)
		json_member_bool(j, "truncated", true);
	json_end_object(j);
}

static struct done handle_events(struct call *c)
{
	const struct koine_session_one_in *in = c->in;
	struct session_events_query q = {
		.chain = in->chain,
		.raw = in->raw,
		.after_id = in->after,
		.before_id = in->before,
		.newest = in->newest,
		.limit = (unsigned)in->limit,
		.max_bytes = SESSION_PAGE_BYTES,
	};
	struct session_page page;
	struct session row;
	int r;

	r = koine_session_find(c, in->id, &row)
		    ?: session_must_be_ours(&row, "followed", &c->error);
	if (r != 0)
		return call_fail(c, r);
	q.session = row.id;
	r = session_events(call_sessions(c), c->lane, &c->arena, &q, &page);
	if (r != 0)
		return call_fail(c, r);
	write_page(call_result(c), &page, in->newest ? in->before : in->after);
	return call_reply(c);
}

static struct done handle_paths(struct call *c)
{
	const struct paths_in *in = c->in;
	struct session_path *paths = NULL;
	unsigned n = 0;
	struct json *j;
	int r = session_paths(call_sessions(c), c->lane, &c->arena, in->limit, &paths, &n);
	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_member_array(j, "paths");
	for (unsigned i = 0; i < n; i++) {
		json_begin_object(j);
		json_member_text(j, "path", paths[i].path);
		member_time(j, "used_at", paths[i].used_ms);
		json_member_int(j, "count", paths[i].n);
		json_end_object(j);
	}
	json_end_array(j);
	return call_reply_object(c);
}

/* ---- the method table ---- */

/* The first is the parent's id, which session.launch does not take. */
static const struct field launch_fields[] = {
	FIELD(STRING, launch_in, id, "Id of the session to continue, or a unique prefix of the id",
	      .required = true),
	FIELD(STRING, launch_in, query, "Prompt for the agent", .required = true),
	FIELD(STRING, launch_in, title, "Title of the session"),
	FIELD(STRING, launch_in, model,
	      "Model to pass to the program; default: the program's default model"),
	FIELD(STRING, launch_in, working_dir,
	      "Working directory; default: the daemon's working directory", .for_humans = HUMANS),
	FIELD(STRING, launch_in, agent,
	      "Name of an agent in koine.conf, or \"claude\"; default: session.runner",
	      .for_humans = HUMANS),
	FIELD(INT, launch_in, max_turns, "Maximum number of turns", AT_LEAST(0)),
	FIELD(STRING, launch_in, system_prompt, "Text that replaces the agent's system prompt"),
	FIELD(STRING, launch_in, append_system_prompt,
	      "Text to append to the agent's system prompt"),
	FIELD(ARRAY, launch_in, allowed_tools, "Tools to allow without approval",
	      .for_humans = HUMANS),
	FIELD(ARRAY, launch_in, disallowed_tools, "Tools to forbid"),
	FIELD(OBJECT, launch_in, mcp_config,
	      "MCP servers: {\"mcpServers\":{NAME:{\"command\",\"args\",\"env\"}}}",
	      .for_humans = HUMANS),
	FIELD(STRING, launch_in, permission_prompt_tool,
	      "MCP tool that decides permission requests", .for_humans = HUMANS),
	FIELD(STRING, launch_in, custom_instructions,
	      "Instructions to append to the system prompt, after append_system_prompt"),
};

#define AN_ID                                                                                      \
	FIELD(STRING, koine_session_one_in, id, "Id of the session, or a unique prefix of the id", \
	      .required = true)

static const struct field id_fields[] = {AN_ID};

static const struct field archive_fields[] = {
	AN_ID,
	FIELD(BOOL, koine_session_one_in, archived,
	      "true archives the session, false unarchives it", .default_number = 1),
};

static const struct field rename_fields[] = {
	AN_ID,
	FIELD(STRING, koine_session_one_in, title, "New title; \"\" removes the title",
	      .required = true),
};

static const struct field events_fields[] = {
	AN_ID,
	FIELD(INT, koine_session_one_in, after, "Return events after this event id", AT_LEAST(0)),
	FIELD(INT, koine_session_one_in, before,
	      "Return events before this event id; 0 means no limit", AT_LEAST(0)),
	FIELD(BOOL, koine_session_one_in, newest,
	      "Return the last events of the range instead of the first events"),
	FIELD(INT, koine_session_one_in, limit, "Maximum number of events, up to 1000",
	      .default_number = 200, RANGE(1, SESSION_EVENTS_MAX)),
	FIELD(BOOL, koine_session_one_in, raw, "Include output lines that koined cannot parse"),
	FIELD(BOOL, koine_session_one_in, chain,
	      "Include the events of the sessions that this session continues"),
};

static const struct field list_fields[] = {
	FIELD(STRING, koine_session_list_in, archived,
	      "Archived sessions: no (omit them), only (omit all other "
	      "sessions) or any (include them)",
	      .default_text = "no", WORDS("no", "only", "any")),
	FIELD(STRING, koine_session_list_in, status,
	      "Status: starting, running, waiting_input, completing, completed, failed or "
	      "interrupted; default: any",
	      WORDS("starting", "running", "waiting_input", "completing", "completed", "failed",
		    "interrupted")),
	FIELD(BOOL, koine_session_list_in, leaves,
	      "List only sessions that no other session continues"),
	FIELD(INT, koine_session_list_in, limit, "Maximum number of sessions, up to 1000",
	      .default_number = 100, RANGE(1, SESSION_LIST_MAX)),
};

static const struct field paths_fields[] = {
	FIELD(INT, paths_in, limit, "Maximum number of folders, up to 1000", .default_number = 20,
	      RANGE(1, PATHS_MAX)),
};

#define LAUNCHED "{id:string run_id:string parent_session_id:string|null}"

static const struct method table[] = {
	{"session.launch", "Start a session; return when the agent's program is running", LAUNCHED,
	 .fields = launch_fields + 1,
	 .n_fields = sizeof(launch_fields) / sizeof(launch_fields[0]) - 1,
	 .in_size = sizeof(struct launch_in), .handle = handle_launch, .flags = METHOD_LATER},
	{"session.continue",
	 "Continue a session; omitted parameters keep the values of that session", LAUNCHED,
	 FIELDS(launch_fields, launch_in), .handle = handle_continue, .flags = METHOD_LATER},
	{"session.list", "List sessions, most recently active first", "{sessions:[object]}",
	 FIELDS(list_fields, koine_session_list_in), .handle = koine_session_handle_list,
	 .where = READER},
	{"session.get", "Return one session in full", "object",
	 FIELDS(id_fields, koine_session_one_in), .handle = handle_get, .where = READER},
	{"session.events", "List events of a session, oldest first",
	 "{events:[object] more:boolean first:integer last:integer truncated:boolean}",
	 FIELDS(events_fields, koine_session_one_in), .handle = handle_events, .where = READER},
	{"session.interrupt", "Interrupt a running session", "{id:string status:completing}",
	 FIELDS(id_fields, koine_session_one_in), .handle = handle_interrupt,
	 .flags = METHOD_LATER},
	{"session.archive", "Archive or unarchive a session", "{id:string archived:boolean}",
	 FIELDS(archive_fields, koine_session_one_in), .handle = handle_change,
	 .flags = METHOD_LATER},
	{"session.rename", "Set the title of a session", "{id:string title:string}",
	 FIELDS(rename_fields, koine_session_one_in), .handle = handle_change,
	 .flags = METHOD_LATER},
	{"session.paths", "List working directories, most recently used first", "{paths:[object]}",
	 FIELDS(paths_fields, paths_in), .handle = handle_paths, .where = READER},
};

const struct method_table koine_session_methods = METHOD_TABLE(table);
