/* Purging a memory: an index that has had its words is built anew, and a file of it goes after the commit. */
#include <string.h>

#include "engine/index/file.h"
#include "engine/index/inner.h"
#include "engine/index/keeping.h"
#include "store/store.h"

static struct scope_name scope_of(const struct memory *m)
{
	if (m->owner.data)
		return (struct scope_name) {SCOPE_USER, m->owner};
	if (m->chat.data)
		return (struct scope_name) {SCOPE_CHAT, m->chat};
	if (m->project.data)
		return (struct scope_name) {SCOPE_PROJECT, m->project};
	return (struct scope_name) {SCOPE_COMMON, TEXT("")};
}

int memory_indexes_purge(struct memory_indexes *m, const struct memory *gone)
{
	const struct scope_name scope = scope_of(gone);
	char tokens[2][STORE_TOKEN_LEN + 1];
	unsigned n = 0;
	int r;

	m->purging.any = true;
	r = store_kept_drop_scope(store_writer(m->store), scope_kind_name(scope.kind), scope.name,
				  tokens, &n);
	for (unsigned i = 0; r == 0 && i < n && !m->purging.all; i++) {
		if (m->purging.n < INDEXES_PURGED_MAX)
			memcpy(m->purged[m->purging.n++], tokens[i], sizeof(tokens[i]));
		else
			m->purging.all = true;
	}
	return r;
}

void memory_indexes_mark(struct memory_indexes *m)
{
	m->purging_mark = m->purging;
}

void memory_indexes_undo(struct memory_indexes *m)
{
	m->purging = m->purging_mark;
}

void memory_indexes_dropped(struct memory_indexes *m)
{
	m->purging = m->purging_mark = (struct index_purging) {0};
}

/* What fails here is tried again after the next commit: housekeeping makes one every minute. */
void memory_indexes_clean_up(struct memory_indexes *m)
{
	for (unsigned i = 0; m->folder && i < m->purging.n; i++)
		index_file_remove(m->folder, m->purged[i]);
	m->sweep = m->sweep || m->purging.all;
	m->scrub = m->scrub || m->purging.any;
	if (m->sweep)
		m->sweep = index_keeping_sweep(m->keeping) != 0;
	if (m->scrub)
		m->scrub = !store_scrub(m->store);
}
