/*
 * A doubly linked list whose links live inside the members. An empty link
 * points at itself, so removing twice is harmless.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *prev;
	struct list *next;
};

#define list_entry(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

/* The body may remove the current member, but no other. */
#define list_for_each(at, following, head)                                                         \
	for (struct list *at = (head)->next, *following = at->next; at != (head);                  \
	     at = following, following = at->next)

static inline void list_init(struct list *l)
{
	l->prev = l;
	l->next = l;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_append(struct list *head, struct list *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

static inline void list_remove(struct list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

static inline struct list *list_first(const struct list *head)
{
	return list_empty(head) ? NULL : head->next;
}

/* Moves every member of `from` to the end of `to`; `from` is left empty. */
static inline void list_splice(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	from->prev->next = to;
	to->prev->next = from->next;
	to->prev = from->prev;
	list_init(from);
}
