#include "cli/kit/value.h"

#include "base/clock.h"

struct text text_of_value(const struct koine_value *v)
{
	struct text t = {0};

	t.data = koine_value_text(v, &t.len);
	return t.data ? t : (struct text) {0};
}

struct text text_of_raw(const struct koine_value *v)
{
	struct text t = {0};

	t.data = koine_value_raw(v, &t.len);
	return t;
}

struct text text_of_any(const struct koine_value *v)
{
	struct text t = text_of_value(v);

	return t.data ? t : text_of_raw(v);
}

struct text text_of_key(const struct koine_value *v)
{
	struct text key = {0};

	key.data = koine_value_key(v, &key.len);
	return key;
}

bool value_is(const struct koine_value *v, const char *text)
{
	struct text t = text_of_value(v);

	return t.data && text_is(t, text);
}

bool value_has(const struct koine_value *list, struct text word)
{
	const struct koine_value *v = koine_value_first(list);

	while (v && !text_equal(text_of_value(v), word))
		v = koine_value_next(v);
	return v != NULL;
}

struct koine_doc *doc_of_value(const struct koine_value *v)
{
	struct text raw = text_of_raw(v);
	struct koine_doc *doc = NULL;

	return koine_doc_parse(raw.data, raw.len, &doc, NULL, 0) == 0 ? doc : NULL;
}

struct text member_text(const struct koine_value *v, const char *key)
{
	return text_of_value(koine_value_get(v, key));
}

struct text member_string(const struct koine_value *v, const char *key)
{
	const struct koine_value *m = koine_value_get(v, key);

	return koine_value_kind(m) == KOINE_STRING ? text_of_value(m) : (struct text) {0};
}

bool member_is(const struct koine_value *v, const char *key, const char *text)
{
	return value_is(koine_value_get(v, key), text);
}

bool member_flag(const struct koine_value *v, const char *key)
{
	bool flag = false;

	koine_value_bool(koine_value_get(v, key), &flag);
	return flag;
}

int64_t member_number(const struct koine_value *v, const char *key)
{
	int64_t n = 0;

	koine_value_int(koine_value_get(v, key), &n);
	return n;
}

int64_t member_time(const struct koine_value *v, const char *key)
{
	struct text iso = member_text(v, key);
	int64_t ms = 0;

	return iso.data && clock_parse_iso(iso, &ms) ? ms : 0;
}

const struct koine_value *member_first(const struct koine_value *v, const char *key)
{
	return koine_value_first(koine_value_get(v, key));
}

const struct koine_value *member_find(const struct koine_value *first, const char *key,
				      const char *text)
{
	while (first && !member_is(first, key, text))
		first = koine_value_next(first);
	return first;
}

void member_copy(const struct koine_value *v, const char *key, char *out, size_t size)
{
	struct text t = text_cut(member_text(v, key), size - 1);

	if (t.len > 0)
		memcpy(out, t.data, t.len);
	out[t.len] = '\0';
}

struct text buf_text(const struct buf *b)
{
	return (struct text) {.data = b->len > 0 ? b->data : "", .len = b->len};
}

bool text_among(struct text t, const char *words)
{
	struct text rest = text_of(words);
	struct text one;

	while (text_next(&rest, '|', &one)) {
		if (text_equal(one, t))
			return true;
	}
	return false;
}

struct text text_tail(struct text t, int64_t n)
{
	size_t at = t.len;

	/* The newline that ends the last line does not start another. */
	at -= at > 0 && t.data[at - 1] == '\n';
	while (at > 0 && !(t.data[at - 1] == '\n' && --n <= 0))
		at--;
	return text_skip(t, at);
}

struct text text_without_newlines(struct text t)
{
	while (t.len > 0 && t.data[t.len - 1] == '\n')
		t.len--;
	return t;
}

struct text text_base_name(struct text path)
{
	size_t from = path.len;

	while (from > 0 && path.data[from - 1] != '/')
		from--;
	return (struct text) {.data = path.data ? path.data + from : "", .len = path.len - from};
}
