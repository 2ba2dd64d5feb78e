/* Methods that a host adds: copied, so that the host may free its own. */
#include "lib/host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const enum field_type types[] = {
	[KOINE_ANY] = FIELD_ANY,
	[KOINE_TYPE_STRING] = FIELD_STRING,
	[KOINE_TYPE_INT] = FIELD_INT,
	[KOINE_TYPE_NUMBER] = FIELD_NUMBER,
	[KOINE_TYPE_BOOL] = FIELD_BOOL,
	[KOINE_TYPE_OBJECT] = FIELD_OBJECT,
	[KOINE_TYPE_ARRAY] = FIELD_ARRAY,
	[KOINE_TYPE_STRINGS] = FIELD_ARRAY,
	[KOINE_TYPE_NUMBERS] = FIELD_ARRAY,
	[KOINE_TYPE_OBJECTS] = FIELD_ARRAY,
};

/* FIELD_ANY where the type does not say. */
static const enum field_type items[] = {
	[KOINE_TYPE_STRINGS] = FIELD_STRING,
	[KOINE_TYPE_NUMBERS] = FIELD_NUMBER,
	[KOINE_TYPE_OBJECTS] = FIELD_OBJECT,
};

enum { SLOT = 16 }; /* room for any decoded field */

static size_t text_size(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

static size_t all_text(const struct koine_method *m)
{
	size_t n = text_size(m->name) + text_size(m->doc);

	for (size_t i = 0; i < m->n_fields; i++)
		n += text_size(m->fields[i].name) + text_size(m->fields[i].doc);
	return n;
}

static const char *host_method_keep(char **at, const char *s)
{
	size_t n = text_size(s);
	char *copy = *at;

	if (!s)
		return NULL;
	memcpy(copy, s, n);
	*at += n;
	return copy;
}

static void copy_field(struct field *to, const struct koine_field *from, char **at, size_t i)
{
	*to = (struct field) {
		.name = host_method_keep(at, from->name),
		.doc = host_method_keep(at, from->doc),
		.type = types[from->type],
		.items = items[from->type],
		.required = from->required,
		.offset = i * SLOT,
	};
}

/* The second could never be given by name. */
static bool named_before(const struct koine_method *m, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(m->fields[k].name, m->fields[i].name) == 0)
			return true;
	return false;
}

static bool well_formed(const struct koine_method *m)
{
	if (!m->name || !m->name[0] || !m->handler || (m->n_fields > 0 && !m->fields))
		return false;
	if (m->n_fields > 1000)
		return false;
	for (size_t i = 0; i < m->n_fields; i++) {
		if (!m->fields[i].name || (unsigned)m->fields[i].type > KOINE_TYPE_OBJECTS ||
		    named_before(m, i))
			return false;
	}
	return true;
}

int host_method_new(const struct koine_method *m, struct host_method **ret_method)
{
	struct host_method *h;
	char *at;

	if (!well_formed(m))
		return -EINVAL;
	h = calloc(1, sizeof(*h) + m->n_fields * sizeof(h->fields[0]));
	if (!h)
		return -ENOMEM;
	h->text = malloc(all_text(m));
	if (!h->text) {
		free(h);
		return -ENOMEM;
	}
	at = h->text;
	h->handler = m->handler;
	h->arg = m->arg;
	for (size_t i = 0; i < m->n_fields; i++)
		copy_field(&h->fields[i], &m->fields[i], &at, i);
	h->row = (struct method) {
		.name = host_method_keep(&at, m->name),
		.doc = host_method_keep(&at, m->doc),
		.fields = h->fields,
		.n_fields = (unsigned)m->n_fields,
		.in_size = m->n_fields * SLOT,
		.handle = host_handle,
		.where = ON_LOOP,
		.flags = METHOD_LATER,
		.arg = h,
	};
	*ret_method = h;
	return 0;
}

void host_method_free(struct host_method *h)
{
	if (!h)
		return;
	free(h->text);
	free(h);
}
