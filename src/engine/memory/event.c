/*
 * What is told of memories, and what is heard from hosts that share the store.
 *
 * Of what they change, the indexes and lists here must know, too. Each of their events names a memory;
 * whatever the store has of it by then is applied at once, under the lock that our own commits
 * take (memories_committed). So a row that was read before our own change of it is applied before
 * that change; one of theirs that came after ours is heard of after ours was applied, since events
 * are told in the order of commits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pack.h"
#include "engine/event/event.h"
#include "engine/index/embedding.h"
#include "engine/index/indexes.h"
#include "engine/memory/inner.h"
#include "engine/memory/recent.h"
#include "store/memory.h"
#include "store/index/memory_vector.h"
#include "store/store.h"

#define MEMBER(kind, field) MEMBER_OF(struct memory, kind, field)

static const struct member members[] = {
	{"id", NULL, MEMBER(TEXT, id)},
	{"user", NULL, MEMBER(TEXT, owner), .absent = ABSENT_LEFT_OUT},
	{"chat", NULL, MEMBER(TEXT, chat), .absent = ABSENT_LEFT_OUT},
	{"project", NULL, MEMBER(TEXT, project), .absent = ABSENT_LEFT_OUT},
	{"category", NULL, MEMBER(TEXT, category)},
	{"tool_use_id", NULL, MEMBER(TEXT, tool_use_id), .absent = ABSENT_LEFT_OUT},
};

static const struct schema in_events = SCHEMA(struct memory, members);

/* ---- telling ---- */

int memory_publish(struct memories *m, const char *type, const struct memory *memory)
{
	struct event_new event = {.type = type};
	struct event_data data;

	if (!m->events)
		return 0;
	event_data_begin(&data);
	packer_members(&data.members, &in_events, (struct selection) {0}, memory, 0);
	/* What is gone can be removed from an index by its number alone. */
	if (m->shared &&
	    (strcmp(type, "memory.deleted") == 0 || strcmp(type, "memory.expired") == 0))
		packer_int(&data.members, "number", memory->seq);
	return event_add_data(m->events, &event, &data);
}

/* ---- hearing ---- */

static int64_t number_in(struct text packed)
{
	struct packed_reader reader = packed_reader(packed);
	struct packed_item item;
	char digits[24];

	if (!packed.data || packed_take(&reader, &item) != 0 || item.kind != VALUE_NUMBER ||
	    item.text.len >= sizeof(digits))
		return 0;
	snprintf(digits, sizeof(digits), "%.*s", TEXT_ARGS(item.text));
	return strtoll(digits, NULL, 10);
}

static struct text text_in(struct text data, const char *member)
{
	return packed_text(packed_find(data, member));
}

/* All that is left to know of a memory that is gone. */
static struct memory named_by(struct text data)
{
	return (struct memory) {
		.id = text_in(data, "id"),
		.seq = number_in(packed_find(data, "number")),
		.owner = text_in(data, "user"),
		.chat = text_in(data, "chat"),
		.project = text_in(data, "project"),
	};
}

/* Its vector as it is; where there is none, none. */
static int apply_vector(struct memories *m, int lane, struct arena *a, const struct memory *row)
{
	const struct store_model model = {.name = embedding_model(m->embedding),
					  .dim = embedding_dim(m->embedding)};
	struct memory_change change = {.kind = MEMORY_VECTOR, .memory = *row};
	struct store_owned_vector v;
	bool found = false;
	int r = 0;

	if (model.dim != 0)
		r = store_memory_own_vector(store_lane(m->store, lane), &model, row->seq, a, &v,
					    &found);
	if (r != 0 || (!found && !row->id.data))
		return r;
	if (found) {
		change.memory = (struct memory) {
			.seq = row->seq, .owner = v.owner, .chat = v.chat, .project = v.project};
		change.vector = (const int8_t *)v.bytes.data;
		change.dim = model.dim;
		change.scale = (float)v.scale;
	}
	memories_apply(m, &change, lane);
	if (!found)
		embedding_hear(m->embedding, row->seq);
	return 0;
}

/* The row as it is; where there is none, what the event says of it. */
static int apply_row(struct memories *m, int lane, struct arena *a, struct memory *row)
{
	const struct store_scope everything = {.everything = true};
	struct memory_change change = {.kind = MEMORY_GONE};
	bool found;
	int r = store_memory_find(store_lane(m->store, lane), &everything, row->id, a, row, &found);

	/* If it has gone since, an event follows that says its number. */
	if (r != 0 || row->seq == 0)
		return r;
	if (found && row->expires_ms != MEMORY_NEVER)
		atomic_store(&m->expires, true);
	if (found)
		memory_note_content(m, row->content);
	change.kind = found ? MEMORY_PUT : MEMORY_GONE;
	change.memory = *row;
	memories_apply(m, &change, lane);
	/* It may have been that of another text. */
	return found && m->embedding ? apply_vector(m, lane, a, row) : 0;
}

/* They have got vectors. */
static int apply_vectors(struct memories *m, int lane, struct arena *a, struct text numbers)
{
	struct text number;
	int r = 0;

	while (r == 0 && m->embedding && text_next(&numbers, ' ', &number)) {
		struct arena_mark mark = arena_mark(a);
		const struct memory row = {.seq = strtoll(number.data, NULL, 10)};

		r = apply_vector(m, lane, a, &row);
		arena_rewind(a, &mark);
	}
	return r;
}

static int apply_one(struct memories *m, int lane, struct arena *a,
		     const struct record_found *found)
{
	struct memory row = named_by(found->id);
	struct arena_mark mark = arena_mark(a);
	int r;

	pthread_mutex_lock(&m->apply_lock);
	if (row.id.data)
		r = apply_row(m, lane, a, &row);
	else
		r = apply_vectors(m, lane, a, text_in(found->id, "numbers"));
	pthread_mutex_unlock(&m->apply_lock);
	arena_rewind(a, &mark);
	return r;
}

/* One after another: each is applied under the lock of our own commits. */
static int apply(void *arg, int lane, struct arena *a, struct record_found *found, unsigned n)
{
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++)
		r = apply_one(arg, lane, a, &found[i]);
	return r;
}

/* The key is all that the event says. */
static bool memory_event_heard(void *arg, const struct event *e, struct text *ret_project,
			       struct text *ret_id)
{
	*ret_id = e->data;
	return true;
}

/* Indexes and lists are made from the store when they are asked for. */
static int memory_event_reload(void *arg)
{
	struct memories *m = arg;

	memory_indexes_forget(m->indexes);
	memory_recent_forget(m->recent);
	if (m->embedding)
		embedding_hear(m->embedding, 1);
	return 0;
}

int memories_follow(struct memories *m, struct loop *loop, struct workers *workers)
{
	static const struct text types[] = {{.data = "memory.*", .len = 8}};
	static const struct record_read_ops reads = {
		.types = types,
		.n_types = 1,
		.heard = memory_event_heard,
		.read = apply,
		.reload = memory_event_reload,
	};
	const struct records_opts opts = {
		.events = m->events,
		.loop = loop,
		.workers = workers,
		.name = "memory",
		.arg = m,
		.reads = &reads,
	};

	return m->shared && !m->off ? records_start(&m->records, &opts) : 0;
}
