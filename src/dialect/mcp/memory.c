/* Tools about memory. What they find and add belongs to the client's project unless they say
 * otherwise. */
#include <errno.h>

#include "base/clock.h"
#include "model/project.h"
#include "dialect/engine.h"
#include "dialect/mcp/server.h"
#include "dialect/memory_search.h"
#include "dialect/memory_wire.h"
#include "engine/memory/lenient.h"
#include "engine/index/wait.h"

enum { ADD_EXPIRES_DAYS = 4 }; /* among the fields of memory_add */

enum {
	CONTENT_SHOWN = 16 << 10, /* bytes of a memory in a tool's answer, which a model reads */
	SIMILAR_SHOWN = 512,      /* of one that says nearly the same as a new one */
	DAY_LEN = 10,             /* of 2026-11-15T07:47:17.123Z */
	SECONDS_LEN = 19,
};

static const unsigned group = GROUP_MEMORY;

/* Parameters of all tools of this file. */
struct tool_in {
	struct text query;
	int64_t limit;
	struct text project;
	struct text content;
	const struct value *subjects;
	struct text category;
	double importance;
	int64_t expires_days;
	bool common;
	struct text id;
};

/* ---- whose ---- */

static int name_project(struct call *c, struct text project, struct text *ret_name)
{
	char name[PROJECT_NAME_MAX + 1];
	char word[PROJECT_NAME_MAX + 1];

	if (project.len > PROJECT_NAME_MAX || memchr(project.data, '\0', project.len) ||
	    project.data[0] == '.')
		return refuse_field(
			&c->error, "project",
			"project must be a project name or an absolute path, of at most %d bytes",
			PROJECT_NAME_MAX);
	memcpy(word, project.data, project.len);
	word[project.len] = '\0';
	if (project_of_word(word, name) != 0)
		return refuse_field(&c->error, "project", "project: folder not found: '%.100s'",
				    word);
	return arena_copy_text(&c->arena, text_of(name), ret_name);
}

/* A folder that is not there is no project. */
static int name_root(struct call *c, struct text root, struct text *ret_name)
{
	char name[PROJECT_NAME_MAX + 1];

	if (project_of_folder(root.data, name) != 0)
		return 0;
	return arena_copy_text(&c->arena, text_of(name), ret_name);
}

/* A client that belongs to no project sees what is common: it has said nothing that would entitle
 * it to more. "*" is for those who ask for everything by name. */
int mcp_asker(struct call *c, struct text project, struct memory_asker *ret_asker)
{
	const struct side *side = call_side(c);
	int r = 0;

	*ret_asker = (struct memory_asker) {0};
	if (project.len == 0)
		project = side->asked;
	if (text_is(project, "*"))
		return 0;
	if (project.len > 0)
		return name_project(c, project, &ret_asker->project);
	if (side->project.len > 0 || side->root.len == 0)
		ret_asker->project = side->project;
	else
		r = name_root(c, side->root, &ret_asker->project);
	ret_asker->common = ret_asker->project.len == 0;
	return r;
}

/* ---- answers ---- */

static void write_subjects(struct json *j, struct text rest)
{
	struct text subject;

	json_member_array(j, "subjects");
	while (member_next_line(&rest, &subject))
		json_text(j, subject);
	json_end_array(j);
}

static void mcp_memory_write_time(struct json *j, int64_t ms)
{
	char time[ISO_LEN + 1];

	/* To the second: "2026-11-15T07:47:17Z". */
	clock_format_iso(ms, time);
	strcpy(time + SECONDS_LEN, "Z");
	json_member_str(j, "created_at", time);
}

/* What is at its default, or what the client knows anyway, is left out: a model reads all of it. */
static void write_members(struct json *j, const struct memory *m, size_t cut, struct text project)
{
	bool is_cut = cut > 0 && m->content.len > cut;

	json_member_text(j, "id", m->id);
	json_member_text(j, "content", is_cut ? text_cut(m->content, cut) : m->content);
	if (is_cut)
		json_member_bool(j, "cut", true);
	mcp_memory_write_time(j, m->created_ms);
	if (m->category.data && !text_is(m->category, "other"))
		json_member_text(j, "category", m->category);
	if (m->subjects.len > 0)
		write_subjects(j, m->subjects);
	if (m->project.len > 0 && !text_equal(m->project, project))
		json_member_text(j, "project", m->project);
	if (m->similarity > 0) {
		json_key(j, "similarity");
		json_double(j, (double)(int)(m->similarity * 100 + 0.5) / 100);
	}
}

void mcp_write_memory(struct json *j, const struct memory *m, size_t cut, struct text project)
{
	json_begin_object(j);
	write_members(j, m, cut, project);
	json_end_object(j);
}

static struct done reply_rows(struct call *c, const struct memory *rows, unsigned n,
			      struct text project)
{
	struct json *j = call_object(c);

	json_member_array(j, "memories");
	for (unsigned i = 0; i < n; i++)
		mcp_write_memory(j, &rows[i], CONTENT_SHOWN, project);
	json_end_array(j);
	return call_reply_object(c);
}

static struct done reply_one(struct call *c, const struct memory *m)
{
	mcp_write_memory(call_result(c), m, CONTENT_SHOWN, (struct text) {0});
	return call_reply(c);
}

/* ---- handlers ---- */

static void begin_search(struct call *c)
{
	const struct tool_in *in = c->in;

	search_begin(c, in->query);
}

static void before_search(struct call *c)
{
	side_before_with(c, begin_search);
}

static struct done handle_search(struct call *c)
{
	const struct tool_in *in = c->in;
	struct memory_query q = {.text = in->query, .limit = in->limit};
	struct memory *hits;
	unsigned n;
	int r = search_continue(c, &q) ?: mcp_asker(c, in->project, &q.by) ?:
		memory_search(call_memories(c), c->lane, &c->arena, &q, &hits, &n, &c->error);

	return r != 0 ? call_fail(c, r) : reply_rows(c, hits, n, q.by.project);
}

static struct done mcp_memory_handle_list(struct call *c)
{
	const struct tool_in *in = c->in;
	struct memory_filter f = {.limit = in->limit};
	struct memory *rows;
	unsigned n;
	int r = mcp_asker(c, in->project, &f.by)
			?: memory_list(call_memories(c), c->lane, &c->arena, &f, &rows, &n,
				       &c->error);

	return r != 0 ? call_fail(c, r) : reply_rows(c, rows, n, f.by.project);
}

/* ---- adding one ---- */

/* In c->state, passed from thread to thread. */
struct adding {
	struct memory_wait wait;
	struct memory_asker by;
	struct memory memory;
	struct memory *similar; /* what says nearly the same already */
	unsigned n_similar;
};

/* On a reader's thread. */
static int find_similar(struct call *c)
{
	const struct tool_in *in = c->in;
	struct adding *s = c->state;

	return memory_lenient_alike(call_memories(c), c->lane, &c->arena, in->content, &s->by,
				    &s->wait, &s->similar, &s->n_similar, &c->error);
}

/* On the writer's thread. */
static int mcp_memory_add(struct call *c)
{
	const struct tool_in *in = c->in;
	struct adding *s = c->state;
	const struct memory_add_in plain = {
		.content = in->content,
		.source = TEXT("mcp"),
		.subjects = in->subjects,
		.category = in->category,
		.importance = in->importance,
		.expires_days = c->given[ADD_EXPIRES_DAYS],
	};
	struct memory_new new;
	int r = memory_wire_new(c, &plain, &new);

	new.by = s->by;
	if (in->common)
		new.by = (struct memory_asker) {0};
	new.by.tool_use_id = side_tool_use(c);
	return r != 0 ? r : memory_add(call_memories(c), &c->arena, &new, &s->memory, &c->error);
}

static void write_similar(struct json *j, const struct adding *s)
{
	char created[ISO_LEN + 1];
	bool begun = false;

	for (unsigned i = 0; i < s->n_similar; i++) {
		const struct memory *m = &s->similar[i];

		if (text_equal(m->id, s->memory.id))
			continue;
		if (!begun)
			json_member_array(j, "similar");
		begun = true;
		json_begin_object(j);
		json_member_text(j, "id", m->id);
		json_member_text(j, "content", text_cut(m->content, SIMILAR_SHOWN));
		clock_format_iso(m->created_ms, created);
		json_key(j, "created");
		json_text(j, (struct text) {created, DAY_LEN});
		json_end_object(j);
	}
	if (begun)
		json_end_array(j);
}

static struct done added(struct call *c, int r)
{
	const struct adding *s = c->state;
	struct json *j;

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	write_members(j, &s->memory, CONTENT_SHOWN, (struct text) {0});
	write_similar(j, s);
	return call_reply_object(c);
}

static struct done fail_cancelled(struct call *c)
{
	return call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

/* What cannot be searched is added all the same. */
static struct done found_similar(struct call *c, int r)
{
	struct adding *s = c->state;

	if (atomic_load(&c->cancelled))
		return fail_cancelled(c);
	if (r != 0)
		s->n_similar = 0;
	return call_work(c, WRITER, mcp_memory_add, added);
}

static void begin_add(struct call *c)
{
	struct adding *s = c->state;
	int r = mcp_asker(c, (struct text) {0}, &s->by);

	/* It may have been cancelled while its client was asked for its folder. */
	if (r == 0 && atomic_load(&c->cancelled)) {
		(void)fail_cancelled(c);
		return;
	}
	if (r != 0) {
		(void)call_fail(c, r);
		return;
	}
	memory_wait_init(&s->wait, call_memories(c));
	call_may_wait(c, &s->wait.as);
	(void)call_work(c, READER, find_similar, found_similar);
}

static struct done handle_add(struct call *c)
{
	c->state = arena_zalloc(&c->arena, sizeof(struct adding));
	if (!c->state)
		return call_fail(c, -ENOMEM);
	side_before_with(c, begin_add);
	return call_settled(c);
}

enum { ID_CHARS_MIN = 8 };

/* A short beginning is more often a mistake than meant. A client changes what belongs to its project
 * and what is common. */
static int changer(struct call *c, struct text id, struct memory_asker *ret_asker)
{
	int r = mcp_asker(c, (struct text) {0}, ret_asker);

	ret_asker->changes_common = true;
	ret_asker->tool_use_id = side_tool_use(c);
	if (r == 0 && id.len < ID_CHARS_MIN)
		return refuse_field(&c->error, "id",
				    "id must be a memory id, or at least its first %d characters",
				    ID_CHARS_MIN);
	return r;
}

static struct done handle_update(struct call *c)
{
	const struct tool_in *in = c->in;
	struct memory_asker by;
	const struct memory_change_in change = {
		.content = in->content,
		.category = in->category,
		.importance = in->importance,
	};
	struct memory memory;
	int r = changer(c, in->id, &by)
			?: memory_update(call_memories(c), &c->arena, &by, in->id, &change, &memory,
					 &c->error);

	return r != 0 ? call_fail(c, r) : reply_one(c, &memory);
}

static struct done handle_delete(struct call *c)
{
	const struct tool_in *in = c->in;
	struct memory_asker by;
	struct memory memory = {0};
	bool deleted = false;
	int r = changer(c, in->id, &by)
			?: memory_delete(call_memories(c), &c->arena, &by, in->id, false, &memory,
					 &deleted, &c->error);

	if (r == 0 && !deleted)
		r = refuse_name(&c->error, REFUSE_NOT_FOUND, "memory not found: ", in->id);
	return call_answer(c, r, NULL,
			   PAIRS(JSON_TEXT("deleted", memory.id),
				 JSON_TEXT("content", text_cut(memory.content, CONTENT_SHOWN))));
}

/* ---- the tools ---- */

static const char *const categories[] = {"preference", "decision", "fact", "entity", "other", NULL};

#define PROJECT(in)                                                                                \
	FIELD(STRING, in, project,                                                                 \
	      "Name or absolute path of another project; \"*\" for all projects")
#define ID(in)                                                                                     \
	FIELD(STRING, in, id, "Id from memory_search, or at least its first 8 characters",         \
	      .required = true)
#define CATEGORY(in) FIELD(STRING, in, category, "Category of the memory", .words = categories)
#define IMPORTANCE(in)                                                                             \
	FIELD(NUMBER, in, importance, "Importance, 0 to 1; default 0.5", .default_number = -1)

static const struct field search_fields[] = {
	FIELD(STRING, tool_in, query, "Search query; a full question works best", .required = true),
	FIELD(INT, tool_in, limit, "Maximum number of memories, up to 1000", .default_number = 10),
	PROJECT(tool_in),
};

static const struct field list_fields[] = {
	FIELD(INT, tool_in, limit, "Maximum number of memories, up to 1000", .default_number = 20),
	PROJECT(tool_in),
};

static const struct field add_fields[] = {
	FIELD(STRING, tool_in, content,
	      "One fact in a self-contained sentence, with names and dates instead of 'he' and "
	      "'yesterday'",
	      .required = true),
	FIELD(ARRAY, tool_in, subjects, "Names of the people or things that the memory is about",
	      .items = FIELD_STRING),
	CATEGORY(tool_in),
	IMPORTANCE(tool_in),
	[ADD_EXPIRES_DAYS] =
		FIELD(INT, tool_in, expires_days, "Days until the memory expires; default: never"),
	FIELD(BOOL, tool_in, common, "Share the memory with all projects, not only this project"),
};

static const struct field update_fields[] = {
	ID(tool_in),
	FIELD(STRING, tool_in, content, "New content; default: unchanged"),
	CATEGORY(tool_in),
	IMPORTANCE(tool_in),
};

static const struct field delete_fields[] = {ID(tool_in)};

#define STRING_SCHEMA "{\"type\":\"string\"}"
/* The members of a memory; those behind created_at are left out at their defaults. */
#define MEMORY_PROPERTIES                                                                          \
	"\"id\":" STRING_SCHEMA ",\"content\":" STRING_SCHEMA ",\"created_at\":" STRING_SCHEMA     \
	",\"cut\":{\"type\":\"boolean\"},\"category\":" STRING_SCHEMA                              \
	",\"subjects\":{\"type\":\"array\",\"items\":" STRING_SCHEMA                               \
	"},\"project\":" STRING_SCHEMA ",\"similarity\":{\"type\":\"number\"}"
#define MEMORY_REQUIRED "\"required\":[\"id\",\"content\",\"created_at\"]"
#define A_MEMORY        "{\"type\":\"object\",\"properties\":{" MEMORY_PROPERTIES "}," MEMORY_REQUIRED "}"
#define ADDED                                                                                      \
	"{\"type\":\"object\",\"properties\":{" MEMORY_PROPERTIES                                  \
	",\"similar\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"         \
	"\"id\":" STRING_SCHEMA ",\"content\":" STRING_SCHEMA ",\"created\":" STRING_SCHEMA        \
	"},\"required\":[\"id\",\"content\",\"created\"]}}}," MEMORY_REQUIRED "}"
#define MEMORIES                                                                                   \
	"{\"type\":\"object\",\"properties\":{\"memories\":{\"type\":\"array\","                   \
	"\"items\":" A_MEMORY "}},\"required\":[\"memories\"]}"

static const struct mcp_tool tools[] = {
	{.row = {"memory_search",
		 "Search the memories of this project and the memories shared by all projects, "
		 "best match first. Use this tool before you rely on earlier decisions, and before "
		 "you ask the user a question that may have been answered already.",
		 FIELDS(search_fields, tool_in), .handle = handle_search, .before = before_search,
		 .where = READER, .arg = &group},
	 .title = "Search memory",
	 .output_schema = MEMORIES,
	 .hints = MCP_READ_ONLY | MCP_CLOSED},
	{.row = {"memory_add",
		 "Store a memory for later conversations of this and other agents: a "
		 "decision and its reason, a preference, how something works, an approach "
		 "that failed. Do not store secrets. `similar` in the result lists near "
		 "duplicates: update or delete outdated memories.",
		 FIELDS(add_fields, tool_in), .handle = handle_add, .flags = METHOD_LATER,
		 .arg = &group},
	 .title = "Remember",
	 .output_schema = ADDED,
	 .hints = MCP_HARMLESS | MCP_CLOSED},
	{.row = {"memory_list", "List memories, newest first.", FIELDS(list_fields, tool_in),
		 .handle = mcp_memory_handle_list, .before = side_before, .where = READER,
		 .arg = &group},
	 .title = "List memories",
	 .output_schema = MEMORIES,
	 .hints = MCP_READ_ONLY | MCP_CLOSED},
	{.row = {"memory_update",
		 "Update an outdated memory. koine keeps the previous content as history.",
		 FIELDS(update_fields, tool_in), .handle = handle_update, .before = side_before,
		 .where = WRITER, .arg = &group},
	 .title = "Change a memory",
	 .output_schema = A_MEMORY,
	 .hints = MCP_HARMLESS | MCP_IDEMPOTENT | MCP_CLOSED},
	{.row = {"memory_delete",
		 "Delete a memory. If the memory is only outdated, update the memory "
		 "instead.",
		 FIELDS(delete_fields, tool_in), .handle = handle_delete, .before = side_before,
		 .where = WRITER, .arg = &group},
	 .title = "Forget",
	 .output_schema = "{\"type\":\"object\",\"properties\":{\"deleted\":{\"type\":\"string\"},"
			  "\"content\":{\"type\":\"string\"}}}",
	 .hints = MCP_CLOSED},
};

const struct mcp_tools mcp_memory_tools = {tools, sizeof(tools) / sizeof(tools[0])};
