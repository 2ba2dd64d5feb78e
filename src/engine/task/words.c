/*
 * What a dialect made of a task, kept as long as the task stays as it is: lists are asked for
 * again and again by those who look on, and little of them changes in between.
 *
 * Slots are few and short, and a task has its place among them by its number, so that the
 * newest ones, which lists begin with, do not drive each other out.
 */
#include <stdlib.h>

#include "engine/task/inner.h"

enum { SLOTS = 256, WORDS_MAX = 4 << 10 };

struct task_slot {
	uint64_t version; /* of the task; 0: none */
	const void *by;
	struct buf text;
};

struct buf *task_words(struct tasks *t, const struct task *task, const void *by)
{
	const struct live *l = list_entry(task, struct live, task);
	struct task_slot *slot;

	if (!t->words)
		t->words = calloc(SLOTS, sizeof(t->words[0]));
	if (!t->words)
		return NULL;
	slot = &t->words[(uint64_t)task->seq % SLOTS];
	if (slot->version == 0)
		buf_init(&slot->text, WORDS_MAX);
	if (slot->version != l->version || slot->by != by)
		buf_clear(&slot->text);
	slot->version = l->version;
	slot->by = by;
	return &slot->text;
}

void task_words_free(struct tasks *t)
{
	for (unsigned i = 0; t->words && i < SLOTS; i++)
		buf_done(&t->words[i].text);
	free(t->words);
}
