/* The memory service's state: its indexes, its readers' scratch, the writer's changes. */
#include "engine/memory/service.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/list.h"
#include "engine/memory/change.h"
#include "engine/memory/indexes.h"
#include "store/memory.h"
#include "store/store.h"
#include "store/memory_vector.h"

struct memory_service {
	struct store *store;
	struct memory_indexes *indexes;
	unsigned n_readers;
	struct list changes;                /* of the batch under way */
	struct list *mark;                  /* the last one before the call under way began */
	atomic_bool expires;                /* there is something to sweep, now or later */
	struct search_scratch *scratches[]; /* a reader's each, then the writer's */
};

int memory_service_new(struct store *store, unsigned n_readers, size_t index_bytes,
		       struct memory_service **ret_service)
{
	struct memory_service *m =
		calloc(1, sizeof(*m) + (n_readers + 1) * sizeof(m->scratches[0]));
	bool expires = false;
	int r;

	if (!m)
		return -ENOMEM;
	m->store = store;
	m->n_readers = n_readers;
	list_init(&m->changes);
	m->mark = &m->changes;
	r = memory_indexes_new(index_bytes, &m->indexes);
	if (r == 0)
		r = store_memory_any_expires(store_writer(store), &expires);
	atomic_init(&m->expires, expires);
	for (unsigned i = 0; r == 0 && i <= n_readers; i++) {
		m->scratches[i] = search_scratch_new();
		if (!m->scratches[i])
			r = -ENOMEM;
	}
	if (r != 0) {
		memory_service_free(m);
		return r;
	}
	*ret_service = m;
	return 0;
}

void memory_service_free(struct memory_service *m)
{
	if (!m)
		return;
	memory_changes_free(&m->changes);
	for (unsigned i = 0; i <= m->n_readers; i++)
		search_scratch_free(m->scratches[i]);
	memory_indexes_free(m->indexes);
	free(m);
}

struct memory_indexes *memory_service_indexes(struct memory_service *m)
{
	return m->indexes;
}

struct search_scratch *memory_service_scratch(struct memory_service *m, int lane)
{
	return m->scratches[lane < 0 ? m->n_readers : (unsigned)lane];
}

static int change(struct memory_service *m, const struct memory_change *like)
{
	struct memory_change *c = memory_change_new(like);

	if (!c)
		return -ENOMEM;
	list_append(&m->changes, &c->link);
	return 0;
}

bool memory_service_expires(struct memory_service *m)
{
	return atomic_load(&m->expires);
}

int memory_changes_add(struct memory_service *m, const struct memory_row *row)
{
	if (row->expires_ms != MEMORY_NEVER)
		atomic_store(&m->expires, true);
	const struct memory_change put = {.kind = MEMORY_PUT, .row = *row};

	return change(m, &put);
}

int memory_changes_remove(struct memory_service *m, const struct memory_row *row)
{
	const struct memory_change gone = {.kind = MEMORY_GONE, .row = *row};

	return change(m, &gone);
}

int memory_changes_vector(struct memory_service *m, const struct store_bare_memory *memory,
			  const int8_t *bytes, unsigned dim, float scale)
{
	const struct memory_change vector = {
		.kind = MEMORY_VECTOR,
		.row = {.seq = memory->seq, .owner = memory->owner, .chat = memory->chat},
		.vector = bytes,
		.dim = dim,
		.scale = scale,
	};

	return change(m, &vector);
}

int memory_changes_no_vector(struct memory_service *m, const struct memory_row *row)
{
	const struct store_bare_memory memory = {
		.seq = row->seq, .owner = row->owner, .chat = row->chat};

	return memory_changes_vector(m, &memory, NULL, 0, 0);
}

void memory_changes_mark(struct memory_service *m)
{
	m->mark = m->changes.prev;
}

void memory_changes_undo(struct memory_service *m)
{
	while (m->changes.prev != m->mark) {
		struct list *last = m->changes.prev;

		list_remove(last);
		memory_change_free(list_entry(last, struct memory_change, link));
	}
}

void memory_changes_drop(struct memory_service *m)
{
	memory_changes_free(&m->changes);
	m->mark = &m->changes;
}

void memory_changes_apply(struct memory_service *m)
{
	struct search_scratch *scratch = memory_service_scratch(m, -1);

	list_for_each (at, following, &m->changes)
		memory_indexes_change(m->indexes, list_entry(at, struct memory_change, link),
				      scratch);
}
