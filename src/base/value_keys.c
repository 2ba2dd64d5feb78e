/* Keys that a reader may take for one another. Go's reader, for example, ignores case. */
#include <errno.h>
#include <stdlib.h>

#include "base/value.h"

/* The next byte of a key, case-folded. Two letters outside ASCII fold to ASCII. */
static int next_folded(struct text *t)
{
	static const struct {
		char bytes[4];
		unsigned n;
		char is;
	} letters[] = {{"\xc5\xbf", 2, 's'}, {"\xe2\x84\xaa", 3, 'k'}};
	unsigned n = 1;
	int c;

	if (t->len == 0)
		return -1;
	c = (unsigned char)t->data[0];
	if (c >= 'A' && c <= 'Z')
		c += 'a' - 'A';
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
		if (t->len >= letters[i].n &&
		    memcmp(t->data, letters[i].bytes, letters[i].n) == 0) {
			c = (unsigned char)letters[i].is;
			n = letters[i].n;
		}
	}
	t->data += n;
	t->len -= n;
	return c;
}

static int compare(struct text a, struct text b)
{
	int x, y;

	do {
		x = next_folded(&a);
		y = next_folded(&b);
	} while (x == y && x >= 0);
	return x - y;
}

bool value_same_key(struct text a, struct text b)
{
	return compare(a, b) == 0;
}

static int compare_keys(const void *a, const void *b)
{
	return compare(*(const struct text *)a, *(const struct text *)b);
}

/* Sort them, since there may be as many as fit into a message. */
static int find_in_object(struct arena *a, const struct value *v, struct text *ret_key)
{
	struct text *keys = arena_alloc(a, v->len * sizeof(keys[0]));
	size_t n = 0;

	if (!keys)
		return -ENOMEM;
	value_each (child, v)
		keys[n++] = (struct text) {.data = child->key, .len = child->key_len};
	qsort(keys, n, sizeof(keys[0]), compare_keys);
	for (size_t i = 1; i < n; i++) {
		if (value_same_key(keys[i - 1], keys[i]))
			*ret_key = keys[i];
	}
	return 0;
}

static int find_twice(struct arena *a, const struct value *v, struct text *ret_key)
{
	int r = 0;

	if (v->kind != VALUE_ARRAY && v->kind != VALUE_OBJECT)
		return 0;
	if (v->kind == VALUE_OBJECT && v->len > 1)
		r = find_in_object(a, v, ret_key);
	for (const struct value *child = v->first; r == 0 && !ret_key->data && child;
	     child = child->next)
		r = find_twice(a, child, ret_key);
	return r;
}

int value_find_twice(struct arena *a, const struct value *v, struct text *ret_key)
{
	*ret_key = (struct text) {0};
	return find_twice(a, v, ret_key);
}
