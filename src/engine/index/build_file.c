/*
 * Building an index from the file in which it was kept, and from what has changed since.
 *
 * The file has everything up to its position in the store. What came later is read from the store:
 * memories that were changed or deleted are named by its notes, new ones by their numbers. The
 * index is then what it would be if it had been built from the store alone.
 */
#include <string.h>

#include "base/log.h"
#include "base/error.h"
#include "engine/index/file.h"
#include "engine/index/inner.h"

enum {
	/* Each takes a few milliseconds at most. */
	SLICE_CHANGES = 128,
	SLICE_NUMBERS = 512,
	/* Reading past another scope's memory takes a tenth of what indexing one does: with more
	 * than these the store alone is as fast. */
	NUMBERS_MIN = 10000,
	NUMBERS_EACH = 8,
};

const char *scope_kind_name(enum scope_kind kind)
{
	switch (kind) {
	case SCOPE_USER:
		return "user";
	case SCOPE_CHAT:
		return "chat";
	case SCOPE_PROJECT:
		return "project";
	case SCOPE_COMMON:
		return "common";
	case SCOPE_ALL:
		break;
	}
	return "all";
}

static bool is_recent(const struct store_kept *kept, const struct store_position *now)
{
	return kept->position.change <= now->change &&
	       now->change - kept->position.change <= STORE_CHANGES_KEPT &&
	       now->seq - kept->position.seq <= NUMBERS_MIN + NUMBERS_EACH * kept->memories;
}

static void tell_of(const struct held_index *h, const char *what, int r)
{
	log_info(what, "scope=%s error=%s", scope_kind_name(h->scope.kind),
		 r > 0 ? "the index exceeds its size limit" : strerror(-r));
}

bool build_open_file(struct memory_indexes *m, struct held_index *h, struct connection *c,
		     struct search_scratch *scratch)
{
	const struct search_index_opts opts = {.max_bytes = m->max_bytes};
	struct store_kept kept;
	bool found = false;
	int r;

	if (!m->folder)
		return false;
	/* What is committed from here on is pending; so the position is read after that began. */
	r = store_kept_find(c, scope_kind_name(h->scope.kind), h->scope.name, &kept, &found);
	if (r == 0 && found)
		r = store_memory_position(c, &h->catch_up);
	if (r != 0 || !found || !is_recent(&kept, &h->catch_up))
		return false;
	r = index_reading_new(m->folder, &kept, indexes_fingerprint(m, scratch), &opts, &h->file);
	if (r != 0)
		tell_of(h, "could not use index file", r);
	h->caught_up = kept.position;
	h->n_behind = (uint64_t)(h->catch_up.change - kept.position.change);
	if (h->catch_up.seq > kept.position.seq)
		h->n_behind += (uint64_t)(h->catch_up.seq - kept.position.seq);
	return r == 0;
}

int build_read_file(struct memory_indexes *m, struct held_index *h)
{
	bool done;
	int r = index_reading_step(h->file, &done);

	if (r == 0 && !done)
		return 0;
	if (r != 0) {
		tell_of(h, "could not use index file", r);
		index_reading_free(h->file);
		h->file = NULL;
		h->source = SOURCE_NONE;
		return 0;
	}
	h->index = index_reading_take(h->file);
	h->file = NULL;
	h->source = SOURCE_CHANGES;
	h->walk = (struct store_walk) {.end = false};
	indexes_lock(m);
	index_set_sizes(m, h,
			&(struct index_sizes) {search_index_bytes(h->index), h->vector_bytes,
					       h->block_bytes});
	indexes_unlock(m);
	return 0;
}

struct catching_up {
	struct held_index *held;
	struct search_scratch *scratch;
};

static int apply_row(void *arg, const struct memory *row)
{
	const struct catching_up *c = arg;

	c->held->n_changes++;
	if (row->id.data)
		return index_put(c->held->index, c->scratch, row);
	search_index_remove(c->held->index, (uint64_t)row->seq);
	return 0;
}

int build_catch_up(struct held_index *h, struct connection *c, struct search_scratch *scratch)
{
	const struct store_scope scope = index_scope(h);
	struct catching_up arg = {h, scratch};
	int64_t to = h->caught_up.seq + SLICE_NUMBERS;
	bool end = true;
	int r;

	if (h->caught_up.change < h->catch_up.change)
		return store_memory_each_changed(c, &scope, &h->caught_up.change, SLICE_CHANGES,
						 apply_row, &arg, &end);
	if (to > h->catch_up.seq)
		to = h->catch_up.seq;
	r = store_memory_each_numbered(c, &scope, h->caught_up.seq, to, apply_row, &arg);
	h->caught_up.seq = to;
	h->walk.end = to >= h->catch_up.seq;
	return r;
}
