/*
 * A dialect's rendering of a task, cached as long as the task does not change: watchers
 * request lists again and again, and little changes in between.
 *
 * Slots are few and short. A task's number determines its slot, so that the newest ones, which
 * lists start with, do not evict each other.
 */
#include <stdlib.h>

#include "engine/task/inner.h"

enum { SLOTS = 256, TEXT_MAX = 4 << 10 };

struct rendered {
	uint64_t version; /* of the task; 0: none */
	const void *by;
	struct buf text;
};

struct buf *task_rendered(struct tasks *t, const struct task *task, const void *by)
{
	const struct live *l = list_entry(task, struct live, task);
	struct rendered *slot;

	if (!t->rendered)
		t->rendered = calloc(SLOTS, sizeof(t->rendered[0]));
	if (!t->rendered)
		return NULL;
	slot = &t->rendered[(uint64_t)task->seq % SLOTS];
	if (slot->version == 0)
		buf_init(&slot->text, TEXT_MAX);
	if (slot->version != l->version || slot->by != by)
		buf_clear(&slot->text);
	slot->version = l->version;
	slot->by = by;
	return &slot->text;
}

void task_rendered_free(struct tasks *t)
{
	for (unsigned i = 0; t->rendered && i < SLOTS; i++)
		buf_done(&t->rendered[i].text);
	free(t->rendered);
}
