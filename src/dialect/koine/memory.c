/* What memory offers beyond ash's methods: one memory in full, changes, counts, export and
 * import. */
#include <errno.h>
#include <stdio.h>

#include "call/call.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "dialect/koine/memory_in.h"
#include "engine/memory/memory.h"

/* Parameters of all methods of this file. */
struct entry_in {
	struct text memory_id;
	struct memory_who_in who;
	const struct value *at;
	int64_t limit;
	struct text content;
	struct text category;
	double importance;
	const struct value *metadata;
	struct text cursor;
	const struct value *entries;
	struct text path;
};

static struct done reply_rows(struct call *c, int r, const struct memory *rows, unsigned n)
{
	if (r != 0)
		return call_fail(c, r);
	memory_wire_rows(c, rows, n, memory_entry_members);
	return call_reply(c);
}

static struct done reply_one(struct call *c, int r, const struct memory *m)
{
	if (r != 0)
		return call_fail(c, r);
	memory_entry_write(call_result(c), m);
	return call_reply(c);
}

static struct done handle_get(struct call *c)
{
	const struct entry_in *in = c->in;
	const struct memory_asker by = memory_asker_of(&in->who);
	struct memory memory;
	int64_t at_ms = 0;
	int r = memory_wire_time(c, "at", in->at, &at_ms)
			?: memory_get_at(call_memories(c), c->lane, &c->arena, &by, in->memory_id,
					 at_ms, &memory, &c->error);

	return reply_one(c, r, &memory);
}

static struct done handle_history(struct call *c)
{
	const struct entry_in *in = c->in;
	const struct memory_asker by = memory_asker_of(&in->who);
	struct memory *rows;
	unsigned n;
	int r = memory_history(call_memories(c), c->lane, &c->arena, &by, in->memory_id, &rows, &n,
			       &c->error);

	return reply_rows(c, r, rows, n);
}

static struct done handle_review(struct call *c)
{
	const struct entry_in *in = c->in;
	const struct memory_asker by = memory_asker_of(&in->who);
	struct memory *rows;
	unsigned n;
	int r = memory_review(call_memories(c), c->lane, &c->arena, &by, in->limit, &rows, &n,
			      &c->error);

	return reply_rows(c, r, rows, n);
}

static struct done handle_deleted(struct call *c)
{
	const struct entry_in *in = c->in;
	const struct memory_asker by = memory_asker_of(&in->who);
	struct memory *rows;
	unsigned n;
	int r = memory_list_deleted(call_memories(c), c->lane, &c->arena, &by, in->limit, &rows, &n,
				    &c->error);

	return reply_rows(c, r, rows, n);
}

static struct done handle_restore(struct call *c)
{
	const struct entry_in *in = c->in;
	const struct memory_asker by = memory_asker_of(&in->who);
	struct memory memory;
	int r = memory_restore(call_memories(c), &c->arena, &by, in->memory_id, &memory, &c->error);

	return reply_one(c, r, &memory);
}

static struct done handle_accept(struct call *c)
{
	const struct entry_in *in = c->in;
	const struct memory_asker by = memory_asker_of(&in->who);
	struct memory memory;
	int r = memory_accept(call_memories(c), &c->arena, &by, in->memory_id, in->content, &memory,
			      &c->error);

	return reply_one(c, r, &memory);
}

static struct done handle_update(struct call *c)
{
	const struct entry_in *in = c->in;
	const struct memory_asker by = memory_asker_of(&in->who);
	struct memory_change_in change = {
		.content = in->content,
		.category = in->category,
		.importance = in->importance,
	};
	struct memory memory;
	int r = in->metadata ? json_compact(&c->arena, in->metadata, &change.metadata) : 0;

	if (r == 0)
		r = memory_update(call_memories(c), &c->arena, &by, in->memory_id, &change, &memory,
				  &c->error);
	return reply_one(c, r, &memory);
}

static struct done handle_stats(struct call *c)
{
	const struct entry_in *in = c->in;
	const struct memory_asker by = memory_asker_of(&in->who);
	struct memory_counts n;
	struct json *j;
	int r = memory_stats(call_memories(c), c->lane, &by, &n);

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_member_int(j, "total", n.memories.all);
	json_member_int(j, "personal", n.memories.personal);
	json_member_int(j, "group", n.memories.group);
	json_member_int(j, "project", n.memories.project);
	json_member_int(j, "common", n.memories.common);
	json_member_int(j, "expired", n.memories.expired);
	json_member_int(j, "owners", n.memories.owners);
	json_member_uint(j, "indexes", n.n_indexes);
	json_member_uint(j, "index_bytes", n.index_bytes);
	json_member_int(j, "index_files", n.index_files);
	json_member_int(j, "index_file_bytes", n.index_file_bytes);
	json_member_str(j, "embedding", !n.model.data ? "off" : n.model_fails ? "failing" : "ok");
	json_member_int(j, "vectors", n.vectors);
	json_member_int(j, "vectors_pending", n.pending);
	json_member_text(j, "words_file", n.words_file);
	json_member_uint(j, "words", n.words);
	return call_reply_object(c);
}

/* A cursor is the "TIME/NUMBER" of the last row. Clients treat it as an opaque string. */
static bool read_cursor(struct text t, struct memory_page *page)
{
	char copy[64];
	long long ms;
	long long seq;
	int used = 0;

	if (t.len == 0)
		return true;
	if (t.len >= sizeof(copy))
		return false;
	memcpy(copy, t.data, t.len);
	copy[t.len] = '\0';
	if (sscanf(copy, "%lld/%lld%n", &ms, &seq, &used) != 2 || (size_t)used != t.len)
		return false;
	page->before_ms = ms;
	page->before_seq = seq;
	return true;
}

static void write_page(struct call *c, const struct memory *rows, unsigned n,
		       const struct memory_page *next)
{
	struct json *j = call_object(c);
	char cursor[64];

	json_member_array(j, "entries");
	for (unsigned i = 0; i < n; i++)
		memory_entry_write(j, &rows[i]);
	json_end_array(j);
	json_key(j, "cursor");
	if (n > 0) {
		snprintf(cursor, sizeof(cursor), "%lld/%lld", (long long)next->before_ms,
			 (long long)next->before_seq);
		json_str(j, cursor);
	} else {
		json_null(j);
	}
	json_end_object(j);
}

static struct done handle_export(struct call *c)
{
	const struct entry_in *in = c->in;
	const struct memory_asker by = memory_asker_of(&in->who);
	struct memory_page page = {.limit = in->limit};
	struct memory_page next;
	struct memory *rows;
	unsigned n;
	int r = 0;

	if (!read_cursor(in->cursor, &page))
		r = refuse_field(&c->error, "cursor",
				 "invalid cursor: use the cursor of the previous page");
	if (r == 0)
		r = memory_export(call_memories(c), c->lane, &c->arena, &by, &page, &rows, &n,
				  &next);
	if (r != 0)
		return call_fail(c, r);
	write_page(c, rows, n, &next);
	return call_reply(c);
}

/* All entries or none: a call that fails leaves nothing behind. */
static struct done handle_import(struct call *c)
{
	const struct entry_in *in = c->in;
	const struct memory_asker by = memory_asker_of(&in->who);
	int64_t n = 0;
	unsigned at = 0;

	value_each (entry, in->entries) {
		int r = memory_entry_import(call_memories(c), &c->arena, entry, &by, &n, &c->error);

		if (r > 0) {
			struct error inner = c->error;

			r = refuse_field(&c->error, "entries", "entry %u: %.150s", at, inner.text);
		}
		if (r != 0)
			return call_fail(c, r);
		at++;
	}
	return call_answer(c, 0, NULL, PAIRS(JSON_INT("imported", n)));
}

static struct done handle_backup(struct call *c)
{
	const struct entry_in *in = c->in;
	struct error error = {0};
	char *path = arena_copy(&c->arena, in->path.data, in->path.len);
	int r;

	if (!path)
		return call_fail(c, -ENOMEM);
	if (path[0] != '/' || strlen(path) != in->path.len)
		return call_fail(c, refuse_field(&c->error, "path",
						 "path must be an absolute path, not '%.*s'",
						 TEXT_ARGS(text_cut(in->path, 200))));
	r = engine_backup(call_engine(c), path, &error);
	/* A folder that is missing or full is not an internal error. */
	if (r != 0 && error.text[0])
		r = refuse(&c->error, r > 0 ? error.code : REFUSE_UNAVAILABLE, "%s", error.text);
	return call_answer(c, r, NULL, PAIRS(JSON_STR("path", path)));
}

#define MEMORY_ID(in)                                                                              \
	FIELD(STRING, in, memory_id, "Id of the memory, or a unique prefix of the id",             \
	      .required = true)

static const struct field get_fields[] = {
	MEMORY_ID(entry_in),
	MEMORY_ASKER(entry_in),
	MEMORY_AT(entry_in, at),
};

static const struct field history_fields[] = {
	MEMORY_ID(entry_in),
	MEMORY_ASKER(entry_in),
};

static const struct field review_fields[] = {
	FIELD(INT, entry_in, limit, "Maximum number of memories, up to 1000; 0 or less means 20",
	      .default_number = 20),
	MEMORY_ASKER(entry_in),
};

static const struct field accept_fields[] = {
	MEMORY_ID(entry_in),
	FIELD(STRING, entry_in, content, "New content; default: unchanged"),
	MEMORY_ASKER(entry_in),
};

static const struct field update_fields[] = {
	MEMORY_ID(entry_in),
	FIELD(STRING, entry_in, content, "New content; default: unchanged"),
	FIELD(STRING, entry_in, category, "Category: preference, decision, fact, entity or other"),
	FIELD(NUMBER, entry_in, importance, "Importance, 0 to 1; default: unchanged",
	      .default_number = -1),
	FIELD(OBJECT, entry_in, metadata, "JSON object that koine stores unchanged"),
	MEMORY_ASKER(entry_in),
};

static const struct field stats_fields[] = {MEMORY_ASKER(entry_in)};

static const struct field export_fields[] = {
	FIELD(STRING, entry_in, cursor,
	      "Cursor of the previous page; default: start with the newest memory"),
	FIELD(INT, entry_in, limit, "Maximum number of memories, up to 1000",
	      .default_number = 1000),
	MEMORY_ASKER(entry_in),
};

static const struct field import_fields[] = {
	FIELD(ARRAY, entry_in, entries,
	      "Memories as returned by memory.export, or entities and relations of the MCP memory "
	      "server",
	      .required = true),
	MEMORY_ASKER(entry_in),
};

static const struct field backup_fields[] = {
	FIELD(STRING, entry_in, path,
	      "Absolute path of the new file on the daemon's machine; the file must not exist",
	      .required = true),
};

static const struct method table[] = {
	{"memory.get", "Return one memory in full", "object", FIELDS(get_fields, entry_in),
	 .handle = handle_get, .where = READER},
	{"memory.history", "List versions of a memory, newest first", "[object]",
	 FIELDS(history_fields, entry_in), .handle = handle_history, .where = READER},
	{"memory.review", "List extracted memories that need review, newest first", "[object]",
	 FIELDS(review_fields, entry_in), .handle = handle_review, .where = READER},
	{"memory.accept", "Accept an extracted memory; to reject it, use memory.delete", "object",
	 FIELDS(accept_fields, entry_in), .handle = handle_accept, .where = WRITER},
	{"memory.deleted",
	 "List deleted memories, most recently deleted first; updated_at is the time of "
	 "deletion",
	 "[object]", FIELDS(review_fields, entry_in), .handle = handle_deleted, .where = READER},
	{"memory.restore", "Restore a deleted memory", "object", FIELDS(history_fields, entry_in),
	 .handle = handle_restore, .where = WRITER},
	{"memory.update", "Change a memory", "object", FIELDS(update_fields, entry_in),
	 .handle = handle_update, .where = WRITER},
	{"memory.stats", "Return the number of memories, indexes and vectors", "object",
	 FIELDS(stats_fields, entry_in), .handle = handle_stats, .where = READER},
	{"memory.export", "Export complete memories in pages, newest first",
	 "{entries:array cursor:string|null}", FIELDS(export_fields, entry_in),
	 .handle = handle_export, .where = READER},
	{"memory.import", "Import memories; if one of them is invalid, import none",
	 "{imported:integer}", FIELDS(import_fields, entry_in), .handle = handle_import,
	 .where = WRITER},
	{"store.backup", "Back up the store to a new file", "{path:string}",
	 FIELDS(backup_fields, entry_in), .handle = handle_backup, .where = READER},
};

const struct method_table koine_memory_methods = METHOD_TABLE(table);
