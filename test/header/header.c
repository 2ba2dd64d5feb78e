/*
 * <koine/koine.h> as others compile it: strict C99, and C++. Uses every function
 * of the talking half, so that one that the shared library hides shows here.
 */
#include <koine/koine.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int use_values(void)
{
	static const char text[] = "{\"a\":[1,true,\"x\"]}";
	struct koine_doc *doc = NULL;
	const struct koine_value *root, *first, *list;
	size_t len = 0;
	int64_t n = 0;
	double d = 0;
	bool b = false;
	int wrong = 0;

	if (koine_doc_parse(text, sizeof(text) - 1, &doc, NULL, 0) != 0)
		return 1;
	root = koine_doc_root(doc);
	list = koine_value_get(root, "a");
	first = koine_value_first(list);
	wrong += koine_value_kind(list) != KOINE_ARRAY || koine_value_count(list) != 3;
	wrong += !koine_value_int(first, &n) || n != 1 || !koine_value_double(first, &d);
	wrong += !koine_value_bool(koine_value_next(first), &b) || !b;
	wrong += !koine_value_key(list, &len) || !koine_value_text(first, &len);
	wrong += !koine_value_raw(root, &len) || len != sizeof(text) - 1;
	koine_doc_free(doc);
	return wrong;
}

static int use_json(void)
{
	struct koine_json *j = NULL;
	size_t len = 0;
	int wrong;

	if (koine_json_new(&j) != 0)
		return 1;
	koine_json_begin_object(j);
	koine_json_key(j, "a");
	koine_json_begin_array(j);
	koine_json_null(j);
	koine_json_bool(j, true);
	koine_json_int(j, 1);
	koine_json_double(j, 0.5);
	koine_json_string(j, "s");
	koine_json_text_n(j, "t", 1);
	koine_json_raw(j, "{}", 2);
	koine_json_value(j, NULL);
	koine_json_end_array(j);
	koine_json_end_object(j);
	wrong = strcmp(koine_json_text(j, &len), "{\"a\":[null,true,1,0.5,\"s\",\"t\",{},null]}");
	koine_json_free(j);
	return wrong != 0;
}

static int use_client(void)
{
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct koine_client *c = NULL;
	struct koine_answer *a = NULL;

	opts.timeout_ms = 1000;
	if (koine_dial("unix:/nowhere/at/all", &opts, &c) != -ENOENT || c)
		return 1;
	if (c) {
		koine_client_on_notification(c, NULL, NULL);
		koine_client_call(c, "m", NULL, &a);
		koine_client_call_async(c, "m", NULL, NULL, NULL, NULL);
		koine_client_notify(c, "m", NULL);
		koine_client_wait(c, koine_client_timeout_ms(c));
		koine_client_step(c);
		puts(koine_client_error(c));
		return koine_client_fd(c) + koine_client_events(c);
	}
	koine_client_free(c);
	koine_answer_free(a);
	return koine_answer_result(a) || koine_answer_error_code(a) != 0 ||
	       koine_answer_error_message(a, NULL) || koine_answer_error_data(a) ||
	       koine_answer_whole(a);
}

int main(void)
{
	return use_values() + use_json() + use_client() + (strlen(koine_version()) < 5);
}
