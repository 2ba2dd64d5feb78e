#include "store/index/found.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/sets.h"

struct index_found {
	struct table_link link; /* by seq */
	struct list age;
	size_t size;
	struct store_scope scope;
	struct memory row;
	char bytes[]; /* of all texts */
};

struct found_memories {
	pthread_mutex_t lock;
	struct table table;
	struct list ages; /* the oldest first */
	size_t bytes, max_bytes;
	uint64_t n_forgotten;
};

int found_memories_new(size_t max_bytes, struct found_memories **ret_found)
{
	struct found_memories *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->max_bytes = max_bytes;
	list_init(&f->ages);
	pthread_mutex_init(&f->lock, NULL);
	*ret_found = f;
	return 0;
}

static void drop(struct found_memories *f, struct index_found *one)
{
	table_remove(&f->table, &one->link);
	list_remove(&one->age);
	f->bytes -= one->size;
	free(one);
}

static void drop_oldest(struct found_memories *f, size_t max_bytes)
{
	while (f->bytes > max_bytes)
		drop(f, list_entry(list_first(&f->ages), struct index_found, age));
}

void found_memories_free(struct found_memories *f)
{
	if (!f)
		return;
	drop_oldest(f, 0);
	table_done(&f->table);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

uint64_t found_memories_mark(struct found_memories *f)
{
	uint64_t mark;

	pthread_mutex_lock(&f->lock);
	mark = f->n_forgotten;
	pthread_mutex_unlock(&f->lock);
	return mark;
}

/* ---- one of them ---- */

static bool is_same_scope(const struct store_scope *a, const struct store_scope *b)
{
	if (a->everything || b->everything)
		return a->everything == b->everything;
	return a->learnt == b->learnt && a->without_common == b->without_common &&
	       text_equal(a->user, b->user) && text_equal(a->chat, b->chat) &&
	       text_equal(a->project, b->project);
}

static struct index_found *found_find(const struct found_memories *f,
				      const struct store_scope *scope, int64_t seq)
{
	struct table_link *at = table_find(&f->table, (uint64_t)seq);

	for (; at; at = table_next(at)) {
		struct index_found *one = list_entry(at, struct index_found, link);

		if (one->row.seq == seq && is_same_scope(&one->scope, scope))
			return one;
	}
	return NULL;
}

static void move(struct text *t, char **to)
{
	if (t->len > 0)
		memcpy(*to, t->data, t->len);
	t->data = t->data ? *to : NULL;
	*to += t->len;
}

static struct index_found *found_new(const struct store_scope *scope, const struct memory *row)
{
	size_t size = sizeof(struct index_found) + schema_bytes(&memory_schema, row) +
		      scope->user.len + scope->chat.len + scope->project.len;
	struct index_found *one = malloc(size);
	char *to;

	if (!one)
		return NULL;
	*one = (struct index_found) {.size = size, .scope = *scope, .row = *row};
	to = one->bytes;
	move(&one->scope.user, &to);
	move(&one->scope.chat, &to);
	move(&one->scope.project, &to);
	schema_each(m, &memory_schema)
	{
		struct text *t = member_bytes(m, &one->row);

		if (t)
			move(t, &to);
	}
	return one;
}

/* ---- all of them ---- */

static bool found_put(struct found_memories *f, struct index_found *one, uint64_t mark)
{
	if (f->n_forgotten != mark || one->size > f->max_bytes / 16 ||
	    found_find(f, &one->scope, one->row.seq))
		return false;
	drop_oldest(f, f->max_bytes - one->size);
	table_add(&f->table, &one->link, (uint64_t)one->row.seq);
	list_append(&f->ages, &one->age);
	f->bytes += one->size;
	return true;
}

void found_memories_put(struct found_memories *f, const struct store_scope *scope,
			const struct memory *row, uint64_t mark)
{
	struct index_found *one = found_new(scope, row);
	bool kept;

	if (!one)
		return;
	pthread_mutex_lock(&f->lock);
	kept = found_put(f, one, mark);
	pthread_mutex_unlock(&f->lock);
	if (!kept)
		free(one);
}

int found_memories_get(struct found_memories *f, const struct store_scope *scope, int64_t seq,
		       struct arena *arena, struct memory *ret_row, bool *ret_found)
{
	struct index_found *one;
	int r = 0;

	pthread_mutex_lock(&f->lock);
	one = found_find(f, scope, seq);
	if (one) {
		*ret_row = one->row;
		r = schema_copy(&memory_schema, arena, ret_row);
		list_remove(&one->age);
		list_append(&f->ages, &one->age);
	}
	pthread_mutex_unlock(&f->lock);
	*ret_found = one != NULL;
	return r;
}

void found_memories_forget(struct found_memories *f, int64_t seq)
{
	struct table_link *at;

	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->n_forgotten++;
	at = table_find(&f->table, (uint64_t)seq);
	while (at) {
		struct index_found *one = list_entry(at, struct index_found, link);

		at = table_next(at);
		if (one->row.seq == seq)
			drop(f, one);
	}
	pthread_mutex_unlock(&f->lock);
}
