/* Open addressing over a power of two, at most half full. */
#include "call/method.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct registry_slot {
	const struct method *method; /* NULL: free */
	size_t len;                  /* of its name */
};

struct registry {
	const struct method **rows; /* in order */
	unsigned n_rows;
	unsigned cap_rows;
	struct registry_slot *slots;
	unsigned n_slots; /* a power of two, or 0 */
};

int registry_new(struct registry **ret_registry)
{
	struct registry *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	*ret_registry = r;
	return 0;
}

void registry_free(struct registry *r)
{
	if (!r)
		return;
	free(r->rows);
	free(r->slots);
	free(r);
}

/* The length and three characters tell method names apart well enough and cost nothing; names
 * that collide are compared anyway. */
static unsigned hash(const char *name, size_t len)
{
	unsigned h = (unsigned)len * 31;

	if (len > 0)
		h += (unsigned char)name[0] * 7U + (unsigned char)name[len - 1] * 131U +
		     (unsigned char)name[len / 2] * 1031U;
	return h ^ h >> 7;
}

static void registry_insert(struct registry *r, const struct method *m)
{
	size_t len = strlen(m->name);
	unsigned at = hash(m->name, len);

	while (r->slots[at & (r->n_slots - 1)].method)
		at++;
	r->slots[at & (r->n_slots - 1)] = (struct registry_slot) {.method = m, .len = len};
}

static int rehash(struct registry *r, unsigned n_rows)
{
	unsigned n = 64;
	struct registry_slot *slots;

	while (n < n_rows * 2)
		n *= 2;
	if (n == r->n_slots)
		return 0;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(r->slots);
	r->slots = slots;
	r->n_slots = n;
	for (unsigned i = 0; i < r->n_rows; i++)
		registry_insert(r, r->rows[i]);
	return 0;
}

static int add_one(struct registry *r, const struct method *m)
{
	if (registry_find(r, text_of(m->name)))
		return -EEXIST;
	if (r->n_rows == r->cap_rows) {
		unsigned cap = r->cap_rows ? r->cap_rows * 2 : 32;
		const struct method **rows = realloc(r->rows, cap * sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		r->rows = rows;
		r->cap_rows = cap;
	}
	if (rehash(r, r->n_rows + 1) != 0)
		return -ENOMEM;
	r->rows[r->n_rows++] = m;
	registry_insert(r, m);
	return 0;
}

int registry_add(struct registry *r, const struct method *methods, unsigned n_methods)
{
	for (unsigned i = 0; i < n_methods; i++) {
		int e = add_one(r, &methods[i]);

		if (e != 0)
			return e;
	}
	return 0;
}

const struct method *registry_find(const struct registry *r, struct text name)
{
	const struct registry_slot *slot;
	unsigned at;

	if (r->n_slots == 0)
		return NULL;
	at = hash(name.data, name.len);
	while ((slot = &r->slots[at & (r->n_slots - 1)])->method) {
		if (slot->len == name.len && memcmp(slot->method->name, name.data, name.len) == 0)
			return slot->method;
		at++;
	}
	return NULL;
}

unsigned registry_count(const struct registry *r)
{
	return r->n_rows;
}

const struct method *registry_at(const struct registry *r, unsigned i)
{
	return r->rows[i];
}

const char *field_type_name(enum field_type type)
{
	static const char *const names[] = {
		[FIELD_ANY] = "any",       [FIELD_STRING] = "string", [FIELD_INT] = "integer",
		[FIELD_NUMBER] = "number", [FIELD_BOOL] = "boolean",  [FIELD_OBJECT] = "object",
		[FIELD_ARRAY] = "array",
	};

	return names[type];
}
