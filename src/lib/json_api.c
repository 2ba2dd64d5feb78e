/* Writing JSON, as <koine/koine.h> has it: wire/json under public names. */
#include "lib/json_api.h"

#include <errno.h>
#include <stdlib.h>

/* Four times the largest message of any dialect. */
enum { TEXT_MAX = 64 << 20 };

int koine_json_new(struct koine_json **ret_json)
{
	struct koine_json *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	buf_init(&j->own, TEXT_MAX);
	j->out = &j->own;
	j->json = json_writer(j->out);
	*ret_json = j;
	return 0;
}

void koine_json_free(struct koine_json *j)
{
	if (!j)
		return;
	buf_done(&j->own);
	free(j);
}

const char *koine_json_text(struct koine_json *j, size_t *ret_len)
{
	if (buf_reserve(j->out, 1) != 0)
		return NULL;
	j->out->data[j->out->len] = '\0';
	if (ret_len)
		*ret_len = j->out->len;
	return j->out->data;
}

void koine_json_begin_object(struct koine_json *j)
{
	json_begin_object(&j->json);
}

void koine_json_end_object(struct koine_json *j)
{
	json_end_object(&j->json);
}

void koine_json_begin_array(struct koine_json *j)
{
	json_begin_array(&j->json);
}

void koine_json_end_array(struct koine_json *j)
{
	json_end_array(&j->json);
}

void koine_json_key(struct koine_json *j, const char *key)
{
	json_key(&j->json, key);
}

void koine_json_null(struct koine_json *j)
{
	json_null(&j->json);
}

void koine_json_bool(struct koine_json *j, bool b)
{
	json_bool(&j->json, b);
}

void koine_json_int(struct koine_json *j, int64_t n)
{
	json_int(&j->json, n);
}

void koine_json_double(struct koine_json *j, double d)
{
	json_double(&j->json, d);
}

void koine_json_string(struct koine_json *j, const char *s)
{
	json_str(&j->json, s);
}

void koine_json_text_n(struct koine_json *j, const char *s, size_t len)
{
	/* An empty text may come as NULL; it is not null. */
	json_text(&j->json, (struct text) {.data = s ? s : "", .len = s ? len : 0});
}

void koine_json_raw(struct koine_json *j, const char *json, size_t len)
{
	json_raw(&j->json, json, len);
}

void koine_json_value(struct koine_json *j, const struct koine_value *v)
{
	json_value(&j->json, (const struct value *)v);
}
