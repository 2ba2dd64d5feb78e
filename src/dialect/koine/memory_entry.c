#include "dialect/koine/memory_in.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "wire/json.h"

void memory_entry_members(struct json *j, const struct memory *m)
{
	json_members(j, &memory_schema, (struct selection) {0}, m, 0);
}

void memory_entry_write(struct json *j, const struct memory *m)
{
	json_begin_object(j);
	memory_entry_members(j, m);
	json_end_object(j);
}

static int wrong(struct error *error, const char *member, const char *want)
{
	return refuse(error, REFUSE_PARAMS, "%s must be %s", member, want);
}

/* A member that is absent or null becomes {NULL, 0}. */
static int read_text(const struct value *entry, const char *member, struct text *ret,
		     struct error *error)
{
	const struct value *v = value_find(entry, member);

	*ret = (struct text) {0};
	if (!v || v->kind == VALUE_NULL)
		return 0;
	if (v->kind != VALUE_STRING)
		return wrong(error, member, "a string");
	*ret = value_text(v);
	return 0;
}

static int read_texts(struct arena *a, const struct value *entry, const char *member,
		      struct text **ret, unsigned *ret_n, struct error *error)
{
	const struct value *v = value_find(entry, member);
	unsigned n = 0;

	*ret = NULL;
	*ret_n = 0;
	if (!v || v->kind == VALUE_NULL)
		return 0;
	if (v->kind != VALUE_ARRAY)
		return wrong(error, member, "an array of strings");
	*ret = arena_alloc(a, (v->len + 1) * sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	value_each (item, v) {
		if (item->kind != VALUE_STRING)
			return wrong(error, member, "an array of strings");
		(*ret)[n++] = value_text(item);
	}
	*ret_n = n;
	return 0;
}

static int read_time(const struct value *entry, const char *member, int64_t *ret_ms,
		     struct error *error)
{
	struct text t;
	int r = read_text(entry, member, &t, error);

	if (r == 0 && t.data && !clock_parse_iso(t, ret_ms))
		return wrong(error, member, "a time like 2026-11-15T07:47:17Z");
	if (r == 0 && t.data && *ret_ms == 0)
		*ret_ms = 1; /* 0 would mean that no time is given */
	return r;
}

static int koine_memory_entry_add(struct memories *m, struct arena *a, const struct memory_new *new,
				  int64_t *n_added, struct error *error)
{
	struct memory memory;
	int r = memory_add(m, a, new, &memory, error);

	if (r == 0)
		(*n_added)++;
	return r;
}

static int read_details(struct arena *a, const struct value *entry, struct memory_new *new,
			struct error *error)
{
	const struct value *importance = value_find(entry, "importance");
	const struct value *metadata = value_find(entry, "metadata");
	const struct value *shared = value_find(entry, "shared");
	int r = read_time(entry, "created_at", &new->created_ms, error)
			?: read_time(entry, "expires_at", &new->expires_ms, error);

	if (r != 0)
		return r;
	new->importance = -1;
	if (importance && importance->kind != VALUE_NULL &&
	    !value_double(importance, &new->importance))
		return wrong(error, "importance", "a number");
	if (metadata && metadata->kind == VALUE_OBJECT)
		r = json_compact(a, metadata, &new->metadata);
	new->shared = shared && shared->kind == VALUE_TRUE;
	return r;
}

static int import_memory(struct memories *m, struct arena *a, const struct value *entry,
			 const struct memory_asker *by, int64_t *n_added, struct error *error)
{
	static const struct {
		const char *name;
		size_t offset;
	} texts[] = {
		{"content", offsetof(struct memory_new, content)},
		{"source", offsetof(struct memory_new, source)},
		{"category", offsetof(struct memory_new, category)},
		{"user_id", offsetof(struct memory_new, by.user)},
		{"chat_id", offsetof(struct memory_new, by.chat)},
		{"chat_type", offsetof(struct memory_new, by.chat_type)},
		{"project", offsetof(struct memory_new, by.project)},
	};
	struct memory_new new = {0};
	struct text *subjects;
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
		r = read_text(entry, texts[i].name, (void *)((char *)&new + texts[i].offset),
			      error);
	if (r == 0)
		r = read_texts(a, entry, "subjects", &subjects, &new.n_subjects, error);
	if (r == 0)
		r = read_details(a, entry, &new, error);
	if (r != 0)
		return r;
	new.subjects = subjects;
	if (!new.by.user.data && !new.by.chat.data && !new.by.project.data)
		new.by = *by;
	return koine_memory_entry_add(m, a, &new, n_added, error);
}

static struct text join3(struct arena *a, struct text one, struct text two, struct text three)
{
	const struct text parts[] = {one, TEXT(" "), two, TEXT(" "), three};
	char *out = arena_alloc(a, one.len + two.len + three.len + 2);
	size_t len = 0;

	if (!out)
		return (struct text) {0};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		memcpy(out + len, parts[i].data, parts[i].len);
		len += parts[i].len;
	}
	return (struct text) {.data = out, .len = len};
}

static int read_name(const struct value *entry, const char *member, struct text *ret,
		     struct error *error)
{
	int r = read_text(entry, member, ret, error);

	return r == 0 && ret->len == 0 ? wrong(error, member, "given") : r;
}

/* {"type":"entity","name":…,"entityType":…,"observations":[…]} */
static int import_entity(struct memories *m, struct arena *a, const struct value *entry,
			 const struct memory_asker *by, int64_t *n_added, struct error *error)
{
	struct memory_new new = {
		.source = TEXT("mcp"), .category = TEXT("entity"), .importance = -1};
	struct text *observations;
	struct text name;
	unsigned n;
	int r = read_name(entry, "name", &name, error)
			?: read_texts(a, entry, "observations", &observations, &n, error);

	new.by = *by;
	new.subjects = &name;
	new.n_subjects = 1;
	for (unsigned i = 0; r == 0 && i < n; i++) {
		new.content = observations[i];
		r = koine_memory_entry_add(m, a, &new, n_added, error);
	}
	return r;
}

/* {"type":"relation","from":…,"to":…,"relationType":…} */
static int import_relation(struct memories *m, struct arena *a, const struct value *entry,
			   const struct memory_asker *by, int64_t *n_added, struct error *error)
{
	struct memory_new new = {.source = TEXT("mcp"), .category = TEXT("fact"), .importance = -1};
	struct text ends[2];
	struct text relation;
	int r = read_name(entry, "from", &ends[0], error) ?: read_name(entry, "to", &ends[1], error) ?:
		read_name(entry, "relationType", &relation, error);

	if (r != 0)
		return r;
	new.by = *by;
	new.subjects = ends;
	new.n_subjects = 2;
	new.content = join3(a, ends[0], relation, ends[1]);
	return new.content.data ? koine_memory_entry_add(m, a, &new, n_added, error) : -ENOMEM;
}

int memory_entry_import(struct memories *m, struct arena *a, const struct value *entry,
			const struct memory_asker *by, int64_t *n_added, struct error *error)
{
	struct text type = value_text(value_find(entry, "type"));

	if (entry->kind != VALUE_OBJECT)
		return wrong(error, "an entry", "an object");
	if (text_is(type, "entity"))
		return import_entity(m, a, entry, by, n_added, error);
	if (text_is(type, "relation"))
		return import_relation(m, a, entry, by, n_added, error);
	return import_memory(m, a, entry, by, n_added, error);
}
