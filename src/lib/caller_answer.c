/* One message from the server: an answer, or a notification. */
#include "lib/caller.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

void koine_answer_free(struct koine_answer *a)
{
	if (!a)
		return;
	doc_done(&a->doc);
	free(a);
}

/* A member that is null counts as absent: some servers always send both "result" and "error". A
 * result is the exception: it may be null. */
static const struct value *find_member(const struct value *v, const char *key)
{
	const struct value *found = value_find(v, key);

	return found && found->kind != VALUE_NULL ? found : NULL;
}

int answer_read(const char *text, size_t len, struct koine_answer **ret_answer, struct error *error)
{
	CLEANUP(freep) struct koine_answer *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	r = doc_read(&a->doc, text, len, error);
	if (r != 0)
		return r;
	a->id = find_member(a->doc.root, "id");
	a->method = find_member(a->doc.root, "method");
	a->result = value_find(a->doc.root, "result");
	a->error = find_member(a->doc.root, "error");
	*ret_answer = TAKE(a);
	return 0;
}

int answer_sort(struct koine_answer *a)
{
	if (!a->error)
		return a->result ? 0 : -EBADMSG;
	a->result = NULL;
	return value_int(value_find(a->error, "code"), &a->code) ? KOINE_ERROR_ANSWER : -EBADMSG;
}

const struct koine_value *koine_answer_result(const struct koine_answer *a)
{
	return a ? value_public(a->result) : NULL;
}

int64_t koine_answer_error_code(const struct koine_answer *a)
{
	return a ? a->code : 0;
}

const char *koine_answer_error_message(const struct koine_answer *a, size_t *ret_len)
{
	const struct value *message = a ? value_find(a->error, "message") : NULL;

	return koine_value_text(value_public(message), ret_len);
}

const struct koine_value *koine_answer_error_data(const struct koine_answer *a)
{
	return a ? value_public(value_find(a->error, "data")) : NULL;
}

const struct koine_value *koine_answer_whole(const struct koine_answer *a)
{
	return a ? value_public(a->doc.root) : NULL;
}
