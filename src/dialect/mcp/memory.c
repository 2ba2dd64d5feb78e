/* Tools about memory. What they find and add belongs to the client's project unless they say
 * otherwise. */
#include <errno.h>

#include "base/clock.h"
#include "base/project/project.h"
#include "dialect/engine.h"
#include "dialect/mcp/server.h"
#include "dialect/memory_search.h"
#include "dialect/memory_wire.h"

enum { CONTENT_SHOWN = 16 << 10 }; /* bytes of a memory in a tool's answer, which a model reads */

static const unsigned group = GROUP_MEMORY;

struct search_in {
	struct text query;
	int64_t limit;
	struct text project;
};

struct list_in {
	int64_t limit;
	struct text project;
};

struct add_in {
	struct text content;
	const struct value *subjects;
	struct text category;
	double importance;
	const struct value *expires_days;
	bool common;
};

struct update_in {
	struct text id;
	struct text content;
	struct text category;
	double importance;
};

struct delete_in {
	struct text id;
};

/* ---- whose ---- */

static int name_project(struct call *c, struct text project, struct text *ret_name)
{
	char name[PROJECT_NAME_MAX + 1];
	char word[PROJECT_NAME_MAX + 1];

	if (project.len > PROJECT_NAME_MAX || memchr(project.data, '\0', project.len) ||
	    project.data[0] == '.')
		return refuse_field(&c->why, "project",
				    "project must be a project's name or an absolute folder, "
				    "of at most %d bytes",
				    PROJECT_NAME_MAX);
	memcpy(word, project.data, project.len);
	word[project.len] = '\0';
	if (project_of_word(word, name) != 0)
		return refuse_field(&c->why, "project", "project: there is no folder '%.100s'",
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

	json_key(j, "subjects");
	json_begin_array(j);
	while (member_next_line(&rest, &subject))
		json_text(j, subject);
	json_end_array(j);
}

void mcp_write_memory(struct json *j, const struct memory *m, size_t cut)
{
	bool is_cut = cut > 0 && m->content.len > cut;
	char time[ISO_LEN + 1];

	json_begin_object(j);
	json_member_text(j, "id", m->id);
	json_member_text(j, "content", is_cut ? text_cut(m->content, cut) : m->content);
	if (is_cut)
		json_member_bool(j, "cut", true);
	clock_format_iso(m->created_ms, time);
	json_member_str(j, "created_at", time);
	if (m->category.data)
		json_member_text(j, "category", m->category);
	if (m->subjects.len > 0)
		write_subjects(j, m->subjects);
	if (m->project.data)
		json_member_text(j, "project", m->project);
	if (m->similarity > 0) {
		json_key(j, "similarity");
		json_double(j, m->similarity);
	}
	json_end_object(j);
}

static struct done reply_rows(struct call *c, const struct memory *rows, unsigned n)
{
	struct json *j = call_result(c);

	json_begin_object(j);
	json_key(j, "memories");
	json_begin_array(j);
	for (unsigned i = 0; i < n; i++)
		mcp_write_memory(j, &rows[i], CONTENT_SHOWN);
	json_end_array(j);
	json_end_object(j);
	return call_reply(c);
}

static struct done reply_one(struct call *c, const struct memory *m)
{
	mcp_write_memory(call_result(c), m, CONTENT_SHOWN);
	return call_reply(c);
}

/* ---- handlers ---- */

static void begin_search(struct call *c)
{
	const struct search_in *in = c->in;

	search_begin(c, in->query);
}

static void before_search(struct call *c)
{
	side_before_with(c, begin_search);
}

static struct done handle_search(struct call *c)
{
	const struct search_in *in = c->in;
	struct memory_query q = {.text = in->query, .limit = in->limit};
	struct memory *hits;
	unsigned n;
	int r = search_continue(c, &q) ?: mcp_asker(c, in->project, &q.by);

	if (r == 0)
		r = memory_search(call_memories(c), c->lane, &c->arena, &q, &hits, &n, &c->why);
	return r != 0 ? call_fail(c, r) : reply_rows(c, hits, n);
}

static struct done handle_list(struct call *c)
{
	const struct list_in *in = c->in;
	struct memory_filter f = {.limit = in->limit};
	struct memory *rows;
	unsigned n;
	int r = mcp_asker(c, in->project, &f.by);

	if (r == 0)
		r = memory_list(call_memories(c), c->lane, &c->arena, &f, &rows, &n, &c->why);
	return r != 0 ? call_fail(c, r) : reply_rows(c, rows, n);
}

static struct done handle_add(struct call *c)
{
	const struct add_in *in = c->in;
	const struct memory_add_in plain = {
		.content = in->content,
		.source = TEXT("mcp"),
		.subjects = in->subjects,
		.category = in->category,
		.importance = in->importance,
		.expires_days = in->expires_days,
	};
	struct memory_new new;
	struct memory memory;
	int r = memory_wire_new(c, &plain, &new) ?: mcp_asker(c, (struct text) {0}, &new.by);

	if (in->common)
		new.by = (struct memory_asker) {0};
	new.by.tool_use_id = side_tool_use(c);
	if (r == 0)
		r = memory_add(call_memories(c), &c->arena, &new, &memory, &c->why);
	return r != 0 ? call_fail(c, r) : reply_one(c, &memory);
}

/* Whatever a client can find by its id, it may change. */
static struct done handle_update(struct call *c)
{
	const struct update_in *in = c->in;
	const struct memory_asker anybody = {.tool_use_id = side_tool_use(c)};
	const struct memory_change_in change = {
		.content = in->content,
		.category = in->category,
		.importance = in->importance,
	};
	struct memory memory;
	int r = memory_update(call_memories(c), &c->arena, &anybody, in->id, &change, &memory,
			      &c->why);

	return r != 0 ? call_fail(c, r) : reply_one(c, &memory);
}

static struct done handle_delete(struct call *c)
{
	const struct delete_in *in = c->in;
	const struct memory_asker anybody = {.tool_use_id = side_tool_use(c)};
	struct json *j;
	bool deleted;
	int r = memory_delete(call_memories(c), &c->arena, &anybody, in->id, &deleted, &c->why);

	if (r == 0 && !deleted)
		r = refuse_name(&c->why, REFUSE_NOT_FOUND, "no single memory has the id ", in->id);
	if (r != 0)
		return call_fail(c, r);
	j = call_result(c);
	json_begin_object(j);
	json_member_text(j, "deleted", in->id);
	json_end_object(j);
	return call_reply(c);
}

/* ---- the tools ---- */

#define PROJECT(in)                                                                                \
	{                                                                                          \
		.name = "project", .type = FIELD_STRING,                                           \
		.doc = "Another project than this one: its name or absolute folder; \"*\" for "    \
		       "all",                                                                      \
		.offset = offsetof(in, project)                                                    \
	}
#define ID(in)                                                                                     \
	{                                                                                          \
		.name = "id", .type = FIELD_STRING, .required = true,                              \
		.doc = "The memory's id, as memory_search gives it, or its beginning",             \
		.offset = offsetof(in, id)                                                         \
	}
#define CATEGORY(in)                                                                               \
	{                                                                                          \
		.name = "category", .type = FIELD_STRING,                                          \
		.doc = "preference, decision, fact, entity or other",                              \
		.offset = offsetof(in, category)                                                   \
	}
#define IMPORTANCE(in)                                                                             \
	{                                                                                          \
		.name = "importance", .type = FIELD_NUMBER, .default_number = -1,                  \
		.doc = "0 to 1; 0.5 if left out", .offset = offsetof(in, importance)               \
	}

static const struct field search_fields[] = {
	{.name = "query",
	 .type = FIELD_STRING,
	 .required = true,
	 .doc = "What you want to know, in plain words; a whole question is best",
	 .offset = offsetof(struct search_in, query)},
	{.name = "limit",
	 .type = FIELD_INT,
	 .default_number = 10,
	 .doc = "How many at most, up to 1000",
	 .offset = offsetof(struct search_in, limit)},
	PROJECT(struct search_in),
};

static const struct field list_fields[] = {
	{.name = "limit",
	 .type = FIELD_INT,
	 .default_number = 20,
	 .doc = "How many at most, up to 1000",
	 .offset = offsetof(struct list_in, limit)},
	PROJECT(struct list_in),
};

static const struct field add_fields[] = {
	{.name = "content",
	 .type = FIELD_STRING,
	 .required = true,
	 .doc = "What to remember: one fact in a sentence that makes sense by itself, with names "
		"and dates instead of 'he' and 'yesterday'",
	 .offset = offsetof(struct add_in, content)},
	{.name = "subjects",
	 .type = FIELD_ARRAY,
	 .doc = "Names of whom or what it is about",
	 .offset = offsetof(struct add_in, subjects)},
	CATEGORY(struct add_in),
	IMPORTANCE(struct add_in),
	{.name = "expires_days",
	 .type = FIELD_ANY,
	 .doc = "After how many days it may be forgotten; never if left out",
	 .offset = offsetof(struct add_in, expires_days)},
	{.name = "common",
	 .type = FIELD_BOOL,
	 .doc = "It is of use in every project, not only in this one",
	 .offset = offsetof(struct add_in, common)},
};

static const struct field update_fields[] = {
	ID(struct update_in),
	{.name = "content",
	 .type = FIELD_STRING,
	 .doc = "What to remember instead",
	 .offset = offsetof(struct update_in, content)},
	CATEGORY(struct update_in),
	IMPORTANCE(struct update_in),
};

static const struct field delete_fields[] = {ID(struct delete_in)};

#define A_MEMORY                                                                                   \
	"{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},"                       \
	"\"content\":{\"type\":\"string\"},\"cut\":{\"type\":\"boolean\"},\"created_at\":{"        \
	"\"type\":\"string\"},"                                                                    \
	"\"category\":{\"type\":\"string\"},"                                                      \
	"\"subjects\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"                       \
	"\"project\":{\"type\":\"string\"},\"similarity\":{\"type\":\"number\"}},"                 \
	"\"required\":[\"id\",\"content\",\"created_at\"]}"
#define MEMORIES                                                                                   \
	"{\"type\":\"object\",\"properties\":{\"memories\":{\"type\":\"array\","                   \
	"\"items\":" A_MEMORY "}},\"required\":[\"memories\"]}"

static const struct mcp_tool tools[] = {
	{.row = {.name = "memory_search",
		 .doc = "Finds what is remembered about this project, and what is common, best "
			"first. Use it before you answer from what was said or decided earlier, "
			"and before you ask the user something they may have said already.",
		 FIELDS(search_fields),
		 .in_size = sizeof(struct search_in),
		 .handle = handle_search,
		 .before = before_search,
		 .where = READER,
		 .arg = &group},
	 .title = "Search memory",
	 .output_schema = MEMORIES,
	 .hints = MCP_READ_ONLY | MCP_CLOSED},
	{.row = {.name = "memory_add",
		 .doc = "Remembers something for later conversations, of this and other agents: a "
			"decision and its reason, a preference, how something works, what was "
			"tried and failed. Do not store secrets.",
		 FIELDS(add_fields),
		 .in_size = sizeof(struct add_in),
		 .handle = handle_add,
		 .before = side_before,
		 .where = WRITER,
		 .arg = &group},
	 .title = "Remember",
	 .output_schema = A_MEMORY,
	 .hints = MCP_HARMLESS | MCP_CLOSED},
	{.row = {.name = "memory_list",
		 .doc = "Lists what was remembered last, newest first.",
		 FIELDS(list_fields),
		 .in_size = sizeof(struct list_in),
		 .handle = handle_list,
		 .before = side_before,
		 .where = READER,
		 .arg = &group},
	 .title = "List memories",
	 .output_schema = MEMORIES,
	 .hints = MCP_READ_ONLY | MCP_CLOSED},
	{.row = {.name = "memory_update",
		 .doc = "Changes a memory that is no longer right. What it said before is kept as "
			"its history.",
		 FIELDS(update_fields),
		 .in_size = sizeof(struct update_in),
		 .handle = handle_update,
		 .where = WRITER,
		 .arg = &group},
	 .title = "Change a memory",
	 .output_schema = A_MEMORY,
	 .hints = MCP_HARMLESS | MCP_IDEMPOTENT | MCP_CLOSED},
	{.row = {.name = "memory_delete",
		 .doc = "Forgets a memory for good. If it was only outdated, change it instead.",
		 FIELDS(delete_fields),
		 .in_size = sizeof(struct delete_in),
		 .handle = handle_delete,
		 .where = WRITER,
		 .arg = &group},
	 .title = "Forget",
	 .output_schema =
		 "{\"type\":\"object\",\"properties\":{\"deleted\":{\"type\":\"string\"}}}",
	 .hints = MCP_CLOSED},
};

int mcp_add_memory(struct mcp *m)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(tools) / sizeof(tools[0]); i++)
		r = mcp_add_tool(m, &tools[i]);
	return r;
}
