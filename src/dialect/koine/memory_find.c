/* The methods that koine shares with ash, with what only koine's own clients may ask for. */
#include "call/call.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "dialect/koine/memory_in.h"
#include "dialect/memory_search.h"

struct koine_memory_find_search_in {
	struct memory_search_in search;
	bool this_chat;
	struct memory_who_in who;
	struct memory_then_in then;
	bool duplicates;
	bool explain;
};

struct koine_memory_find_list_in {
	struct memory_list_in list;
	bool this_chat;
	struct memory_who_in who;
	struct memory_then_in then;
};

struct koine_memory_find_add_in {
	struct memory_add_in add;
	struct memory_who_in who;
	struct text replaces;
};

struct koine_memory_find_delete_in {
	struct text memory_id;
	bool purge;
	struct memory_who_in who;
};

/* Where the past is asked for, rows say when they were valid. */
static void write_valid(struct json *j, const struct memory *m)
{
	member_time(j, "valid_from", m->valid_from_ms != 0 ? m->valid_from_ms : m->created_ms);
	member_time(j, "valid_until", m->valid_until_ms);
}

static void write_part(struct json *j, const char *name, double part)
{
	json_key(j, name);
	json_double(j, part);
}

static void write_why(struct json *j, const struct memory_why *why)
{
	json_member_object(j, "why");
	write_part(j, "words", why->words);
	write_part(j, "alike", why->alike);
	write_part(j, "context", why->context);
	write_part(j, "names", why->names);
	write_part(j, "dates", why->dates);
	write_part(j, "kind", why->kind);
	json_member_array(j, "matched");
	for (unsigned i = 0; i < why->n_matched; i++)
		json_text(j, why->matched[i]);
	json_end_array(j);
	json_end_object(j);
}

static void write_hit(struct json *j, const struct memory *m)
{
	memory_wire_hit(j, m);
	member_time(j, "created_at", m->created_ms);
	if (m->why)
		write_why(j, m->why);
}

static void write_hit_then(struct json *j, const struct memory *m)
{
	write_hit(j, m);
	write_valid(j, m);
}

static void write_entry_then(struct json *j, const struct memory *m)
{
	memory_wire_entry(j, m);
	write_valid(j, m);
}

static void write_hit_more(struct json *j, const struct memory *m)
{
	write_hit_then(j, m);
	json_member_array(j, "duplicates");
	for (unsigned i = 0; i < m->duplicates.n; i++)
		json_text(j, m->duplicates.items[i]);
	json_end_array(j);
}

static bool asks_for_past(const struct memory_then_in *then, int64_t at_ms)
{
	return at_ms != 0 || then->include_replaced;
}

static void before_search(struct call *c)
{
	const struct koine_memory_find_search_in *in = c->in;

	search_begin(c, in->search.query);
}

static struct done handle_search(struct call *c)
{
	const struct koine_memory_find_search_in *in = c->in;
	struct memory_query q = {
		.text = in->search.query,
		.limit = in->search.limit,
		.by = memory_asker_of(&in->who),
		.include_replaced = in->then.include_replaced,
		.explain = in->explain,
	};
	struct memory *hits;
	unsigned n;
	int r = memory_wire_time(c, "at", in->then.at, &q.at_ms) ?: search_continue(c, &q);

	q.by.this_chat = in->this_chat;
	if (r == 0)
		r = memory_search(call_memories(c), c->lane, &c->arena, &q, &hits, &n, &c->error);
	if (r != 0)
		return call_fail(c, r);
	memory_wire_rows(c, hits, n,
			 in->duplicates                      ? write_hit_more
			 : asks_for_past(&in->then, q.at_ms) ? write_hit_then
							     : write_hit);
	return call_reply(c);
}

static int read_filter(struct call *c, struct memory_filter *ret)
{
	const struct koine_memory_find_list_in *in = c->in;

	*ret = (struct memory_filter) {
		.by = memory_asker_of(&in->who),
		.limit = in->list.limit,
		.include_expired = in->list.include_expired,
		.include_replaced = in->then.include_replaced,
	};
	ret->by.this_chat = in->this_chat;
	return memory_wire_time(c, "at", in->then.at, &ret->at_ms);
}

static bool list_at_once(struct call *c)
{
	struct memory_filter f;

	return read_filter(c, &f) == 0 && memory_wire_list_at_once(c, call_memories(c), &f);
}

static struct done koine_memory_find_handle_list(struct call *c)
{
	const struct koine_memory_find_list_in *in = c->in;
	struct memory_filter f;
	struct memory *rows;
	unsigned n;
	int r = read_filter(c, &f)
			?: memory_list(call_memories(c), c->lane, &c->arena, &f, &rows, &n,
				       &c->error);

	if (r != 0)
		return call_fail(c, r);
	memory_wire_rows(c, rows, n,
			 asks_for_past(&in->then, f.at_ms) ? write_entry_then : memory_wire_entry);
	return call_reply(c);
}

/* ---- add, delete ---- */

static const char *const scope_names[] = {
	[MEMORY_PERSONAL] = "personal",
	[MEMORY_GROUP] = "group",
	[MEMORY_PROJECT] = "project",
	[MEMORY_COMMON] = "common",
};

static void write_new(struct json *j, const struct memory *m)
{
	memory_wire_entry(j, m);
	json_member_str(j, "scope", scope_names[memory_scope_of(m)]);
}

static struct done handle_add(struct call *c)
{
	const struct koine_memory_find_add_in *in = c->in;
	struct memory_new new;
	struct memory memory;
	int r = memory_wire_new(c, &in->add, &new);

	new.by = memory_asker_of(&in->who);
	new.replaces = in->replaces;
	if (r == 0)
		r = memory_add(call_memories(c), &c->arena, &new, &memory, &c->error);
	if (r != 0)
		return call_fail(c, r);
	memory_wire_added(c, &memory, write_new);
	return call_reply(c);
}

static struct done handle_delete(struct call *c)
{
	const struct koine_memory_find_delete_in *in = c->in;
	const struct memory_asker by = memory_asker_of(&in->who);
	struct memory memory;
	bool deleted = false;
	int r = memory_delete(call_memories(c), &c->arena, &by, in->memory_id, in->purge, &memory,
			      &deleted, &c->error);

	return call_answer(c, r, NULL, PAIRS(JSON_BOOL("deleted", deleted)));
}

/* ---- the rows; they begin with ash's fields, for clients that give them in order ---- */

#define IN_PRIVATE "Type of the chat; group and supergroup exclude memories from private chats"

static const struct field search_fields[] = {
	MEMORY_SEARCH_FIELDS(koine_memory_find_search_in, search),
	MEMORY_THIS_CHAT(koine_memory_find_search_in, this_chat),
	MEMORY_CHAT_TYPE(koine_memory_find_search_in, who.chat_type, IN_PRIVATE),
	MEMORY_WHO(koine_memory_find_search_in),
	MEMORY_WHERE(koine_memory_find_search_in),
	MEMORY_THEN(koine_memory_find_search_in),
	FIELD(BOOL, koine_memory_find_search_in, duplicates,
	      "Add to each hit its validity period and the ids of its duplicates"),
	FIELD(BOOL, koine_memory_find_search_in, explain,
	      "Explain each hit: the parts of its score, and the matching words"),
};

static const struct field list_fields[] = {
	MEMORY_LIST_FIELDS(koine_memory_find_list_in, list),
	MEMORY_THIS_CHAT(koine_memory_find_list_in, this_chat),
	MEMORY_CHAT_TYPE(koine_memory_find_list_in, who.chat_type, IN_PRIVATE),
	MEMORY_WHO(koine_memory_find_list_in),
	MEMORY_WHERE(koine_memory_find_list_in),
	MEMORY_THEN(koine_memory_find_list_in),
};

static const struct field add_fields[] = {
	MEMORY_ADD_FIELDS(koine_memory_find_add_in, add,
			  "Store the memory for the chat or project instead of the user"),
	MEMORY_CHAT_TYPE(koine_memory_find_add_in, who.chat_type,
			 "Type of the chat: private, group or supergroup"),
	MEMORY_WHO(koine_memory_find_add_in),
	MEMORY_WHERE(koine_memory_find_add_in),
	FIELD(STRING, koine_memory_find_add_in, replaces,
	      "Id of the memory to replace, or a unique prefix of the id"),
};

static const struct field delete_fields[] = {
	FIELD(STRING, koine_memory_find_delete_in, memory_id,
	      "Id of the memory, or a unique prefix of the id", .required = true),
	MEMORY_ASKER(koine_memory_find_delete_in),
	FIELD(BOOL, koine_memory_find_delete_in, purge,
	      "Delete the memory permanently from the store, indexes and index files"),
};

static const struct method table[] = {
	{"memory.search", "Search memories, best match first", "[object]",
	 FIELDS(search_fields, koine_memory_find_search_in), .handle = handle_search,
	 .before = before_search, .where = READER},
	{"memory.add", "Add a memory", "object", FIELDS(add_fields, koine_memory_find_add_in),
	 .handle = handle_add, .where = WRITER},
	{"memory.list", "List memories, newest first", "[object]",
	 FIELDS(list_fields, koine_memory_find_list_in), .handle = koine_memory_find_handle_list,
	 .at_once = list_at_once, .where = READER},
	{"memory.delete", "Delete a memory; to restore it, use memory.restore", "{deleted:boolean}",
	 FIELDS(delete_fields, koine_memory_find_delete_in), .handle = handle_delete,
	 .where = WRITER},
};

const struct method_table koine_memory_find_methods = METHOD_TABLE(table);
