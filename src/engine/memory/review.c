/* Memories that an agent has made: somebody looks at them, and accepts them or deletes them. */
#include "base/clock.h"
#include "engine/memory/access.h"
#include "engine/memory/inner.h"
#include "store/memory.h"
#include "store/store.h"

enum { REVIEW_DEFAULT = 20 };

int memory_review(struct memories *m, int lane, struct arena *a, const struct memory_asker *by,
		  int64_t limit, struct memory **ret_rows, unsigned *ret_n, struct why *why)
{
	const struct store_scope scope = memory_changed_by(by);
	return memory_check_on(m, why)
		       ?: store_memory_list_review(store_lane(m->store, lane), &scope,
						   memory_limit(limit, REVIEW_DEFAULT),
						   MEMORY_PAGE_BYTES, a, ret_rows, ret_n);
}

int memory_accept(struct memories *m, struct arena *a, const struct memory_asker *by,
		  struct text id, struct text content, struct memory *ret_memory, struct why *why)
{
	const struct memory_change_in change = {
		.content = content, .importance = -1, .accept = true};

	return memory_update(m, a, by, id, &change, ret_memory, why);
}
