/* What every call about sessions says, and how its answers are looked at. */
#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/session/session.h"

struct koine_json *session_params(void)
{
	struct koine_json *j = NULL;

	if (koine_json_new(&j) != 0) {
		complain("out of memory");
		return NULL;
	}
	koine_json_begin_object(j);
	return j;
}

void session_add_text(struct koine_json *j, const char *key, const char *text)
{
	if (!text)
		return;
	koine_json_key(j, key);
	koine_json_string(j, text);
}

int session_ask(struct koine_client *c, const char *method, struct koine_json *params,
		struct koine_answer **ret_answer)
{
	const char *text;
	int r = -ENOMEM;

	koine_json_end_object(params);
	text = koine_json_text(params, NULL);
	if (text)
		r = koine_client_call(c, method, text, ret_answer);
	koine_json_free(params);
	return r;
}

int session_send(struct koine_client *c, const char *method, struct koine_json *params,
		 struct koine_answer **ret_answer)
{
	struct koine_answer *a = NULL;
	int r = session_ask(c, method, params, &a);

	if (r == -ENOMEM) {
		complain("out of memory");
		return EX_SOFTWARE;
	}
	if (r != 0)
		return talk_failed(c, method, r, a);
	*ret_answer = a;
	return 0;
}

int session_send_id(struct koine_client *c, const char *method, const char *id,
		    struct koine_answer **ret_answer)
{
	struct koine_json *j = session_params();

	if (!j)
		return EX_SOFTWARE;
	session_add_text(j, "id", id);
	return session_send(c, method, j, ret_answer);
}

void session_member(const struct koine_value *v, const char *key, char *out, size_t size)
{
	size_t len = 0;
	const char *text = koine_value_text(koine_value_get(v, key), &len);

	if (len >= size)
		len = utf8_whole(text, size - 1);
	if (text)
		memcpy(out, text, len);
	out[text ? len : 0] = '\0';
}
