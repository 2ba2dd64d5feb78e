#include "engine/memory/recent.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/sets.h"

enum {
	LISTS_MAX = 4096,
	ROWS_MAX = 32,
	LIST_BYTES = 16 << 10,
	TOTAL_BYTES = 8 << 20,
	KEY_BYTES = 512, /* longer names are not worth it */
	NUMBERS = 1024,
};

/* The first two are for everybody. */
enum { NUMBER_ALL, NUMBER_COMMON, NUMBER_FIRST_NAMED };

struct key_bytes {
	char bytes[KEY_BYTES];
	size_t len;
};

struct recent_list {
	struct table_link link;
	struct list used; /* in memory_recent.lists, the least recently used first */
	unsigned refs;    /* the table's is one of them */
	struct recent_mark mark;
	int64_t expires_ms; /* the first of its memories */
	size_t bytes;
	struct key_bytes key;
	unsigned n;
	struct memory rows[];
};

struct memory_recent {
	pthread_mutex_t lock; /* guards all but the numbers */
	struct table table;
	struct list lists;
	size_t n;
	size_t bytes;
	_Atomic uint64_t numbers[NUMBERS];
};

int memory_recent_new(struct memory_recent **ret_recent)
{
	struct memory_recent *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	pthread_mutex_init(&r->lock, NULL);
	list_init(&r->lists);
	*ret_recent = r;
	return 0;
}

static void unref(struct recent_list *l)
{
	if (--l->refs == 0)
		free(l);
}

static void drop(struct memory_recent *r, struct recent_list *l)
{
	table_remove(&r->table, &l->link);
	list_remove(&l->used);
	r->n--;
	r->bytes -= l->bytes;
	unref(l);
}

void memory_recent_free(struct memory_recent *r)
{
	struct list *first;

	if (!r)
		return;
	while ((first = list_first(&r->lists)))
		drop(r, list_entry(first, struct recent_list, used));
	table_done(&r->table);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* ---- numbers ---- */

static unsigned number_of(char kind, struct text name)
{
	uint64_t hash = table_hash(name) + (unsigned char)kind;

	return NUMBER_FIRST_NAMED + (unsigned)(hash % (NUMBERS - NUMBER_FIRST_NAMED));
}

/* Which numbers a list depends on; the others are 0. */
static struct recent_mark read_numbers(const struct memory_recent *r,
				       const struct store_scope *scope)
{
	struct recent_mark mark = {{0}};
	unsigned n = 0;

	if (scope->everything) {
		mark.numbers[0] = atomic_load(&r->numbers[NUMBER_ALL]);
		return mark;
	}
	if (scope->user.data)
		mark.numbers[n++] = atomic_load(&r->numbers[number_of('u', scope->user)]);
	if (scope->chat.data)
		mark.numbers[n++] = atomic_load(&r->numbers[number_of('c', scope->chat)]);
	if (scope->project.data)
		mark.numbers[n++] = atomic_load(&r->numbers[number_of('p', scope->project)]);
	if (!scope->without_common)
		mark.numbers[n] = atomic_load(&r->numbers[NUMBER_COMMON]);
	return mark;
}

struct recent_mark memory_recent_mark(const struct memory_recent *r, const struct recent_key *key)
{
	return read_numbers(r, &key->scope);
}

void memory_recent_changed(struct memory_recent *r, const struct memory *m)
{
	unsigned number = NUMBER_COMMON;

	if (m->owner.data)
		number = number_of('u', m->owner);
	else if (m->chat.data)
		number = number_of('c', m->chat);
	else if (m->project.data)
		number = number_of('p', m->project);
	atomic_fetch_add(&r->numbers[number], 1);
	atomic_fetch_add(&r->numbers[NUMBER_ALL], 1);
}

void memory_recent_forget(struct memory_recent *r)
{
	for (unsigned i = 0; i < sizeof(r->numbers) / sizeof(r->numbers[0]); i++)
		atomic_fetch_add(&r->numbers[i], 1);
}

/* ---- lists ---- */

static bool add_bytes(struct key_bytes *k, const void *data, size_t len)
{
	if (len > sizeof(k->bytes) - k->len)
		return false;
	if (len > 0)
		memcpy(k->bytes + k->len, data, len);
	k->len += len;
	return true;
}

static bool add_name(struct key_bytes *k, struct text name)
{
	size_t len = name.data ? name.len + 1 : 0;

	return add_bytes(k, &len, sizeof(len)) && add_bytes(k, name.data, name.len);
}

/* False: it is too long. */
static bool make_key(const struct recent_key *key, struct key_bytes *ret)
{
	const struct store_scope *s = &key->scope;
	const unsigned char flags[4] = {(unsigned char)s->learnt, s->without_common, s->everything,
					key->include_expired};

	ret->len = 0;
	return add_bytes(ret, flags, sizeof(flags)) &&
	       add_bytes(ret, &key->limit, sizeof(key->limit)) && add_name(ret, s->user) &&
	       add_name(ret, s->chat) && add_name(ret, s->project);
}

static struct recent_list *memory_recent_find(struct memory_recent *r, const struct key_bytes *key)
{
	uint64_t hash = table_hash((struct text) {key->bytes, key->len});

	for (struct table_link *at = table_find(&r->table, hash); at; at = table_next(at)) {
		struct recent_list *l = list_entry(at, struct recent_list, link);

		if (l->key.len == key->len && memcmp(l->key.bytes, key->bytes, key->len) == 0)
			return l;
	}
	return NULL;
}

struct recent_list *memory_recent_hold(struct memory_recent *r, const struct recent_key *key,
				       int64_t now_ms)
{
	const struct recent_mark now = read_numbers(r, &key->scope);
	struct recent_list *l;
	struct key_bytes k;

	if (!make_key(key, &k))
		return NULL;
	pthread_mutex_lock(&r->lock);
	l = memory_recent_find(r, &k);
	if (l && (memcmp(&l->mark, &now, sizeof(now)) != 0 || now_ms >= l->expires_ms)) {
		drop(r, l);
		l = NULL;
	}
	if (l) {
		l->refs++;
		list_remove(&l->used);
		list_append(&r->lists, &l->used);
	}
	pthread_mutex_unlock(&r->lock);
	return l;
}

const struct memory *recent_rows(const struct recent_list *l, unsigned *ret_n)
{
	*ret_n = l->n;
	return l->rows;
}

void memory_recent_release(struct memory_recent *r, struct recent_list *l)
{
	pthread_mutex_lock(&r->lock);
	unref(l);
	pthread_mutex_unlock(&r->lock);
}

/* ---- keeping one ---- */

static struct text copy_text(char **at, struct text t)
{
	struct text copy = {*at, t.len};

	if (!t.data)
		return t;
	if (t.len > 0)
		memcpy(*at, t.data, t.len);
	*at += t.len;
	return copy;
}

/* NULL: it is too long, or there is no memory for it. */
static struct recent_list *copy_list(const struct memory *rows, unsigned n)
{
	struct recent_list *l;
	size_t bytes = sizeof(*l) + n * sizeof(l->rows[0]);
	char *at;

	for (unsigned i = 0; i < n; i++)
		bytes += rows[i].id.len + rows[i].content.len + rows[i].source.len;
	if (bytes > LIST_BYTES)
		return NULL;
	l = calloc(1, bytes);
	if (!l)
		return NULL;
	l->bytes = bytes;
	l->n = n;
	l->expires_ms = INT64_MAX;
	at = (char *)&l->rows[n];
	for (unsigned i = 0; i < n; i++) {
		l->rows[i] = (struct memory) {
			.seq = rows[i].seq,
			.id = copy_text(&at, rows[i].id),
			.content = copy_text(&at, rows[i].content),
			.source = copy_text(&at, rows[i].source),
			.created_ms = rows[i].created_ms,
			.expires_ms = rows[i].expires_ms,
		};
		if (rows[i].expires_ms < l->expires_ms)
			l->expires_ms = rows[i].expires_ms;
	}
	return l;
}

void memory_recent_put(struct memory_recent *r, const struct recent_key *key,
		       const struct recent_mark *mark, const struct memory *rows, unsigned n)
{
	struct recent_list *l = n <= ROWS_MAX ? copy_list(rows, n) : NULL;
	struct recent_list *was;

	if (!l || !make_key(key, &l->key)) {
		free(l);
		return;
	}
	l->mark = *mark;
	l->refs = 1;
	if (key->include_expired)
		l->expires_ms = INT64_MAX;
	pthread_mutex_lock(&r->lock);
	was = memory_recent_find(r, &l->key);
	if (was)
		drop(r, was);
	while (r->n >= LISTS_MAX || r->bytes + l->bytes > TOTAL_BYTES)
		drop(r, list_entry(list_first(&r->lists), struct recent_list, used));
	table_add(&r->table, &l->link, table_hash((struct text) {l->key.bytes, l->key.len}));
	list_append(&r->lists, &l->used);
	r->n++;
	r->bytes += l->bytes;
	pthread_mutex_unlock(&r->lock);
}

size_t memory_recent_count(struct memory_recent *r)
{
	size_t n;

	pthread_mutex_lock(&r->lock);
	n = r->n;
	pthread_mutex_unlock(&r->lock);
	return n;
}
