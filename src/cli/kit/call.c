#include "cli/kit/call.h"

#include <errno.h>

#include "base/cleanup.h"
#include "cli/kit/print.h"
#include "cli/kit/talk.h"

void answer_freep(struct koine_answer **a)
{
	koine_answer_free(*a);
}

void json_freep(struct koine_json **j)
{
	koine_json_free(*j);
}

void client_freep(struct koine_client **c)
{
	koine_client_free(*c);
}

/* ---- parameters ---- */

struct koine_json *params_new(void)
{
	struct koine_json *j = NULL;

	if (koine_json_new(&j) != 0)
		return NULL;
	koine_json_begin_object(j);
	return j;
}

static bool begin_member(struct koine_json *j, const char *key)
{
	if (j)
		koine_json_key(j, key);
	return j != NULL;
}

void params_add_text(struct koine_json *j, const char *key, struct text text)
{
	if (text.data && begin_member(j, key))
		koine_json_text_n(j, text.data, text.len);
}

void params_add(struct koine_json *j, const char *key, const char *text)
{
	params_add_text(j, key, text_of(text));
}

void params_add_list(struct koine_json *j, const char *key, const struct option_list *list)
{
	if (list->n == 0 || !begin_member(j, key))
		return;
	koine_json_begin_array(j);
	for (unsigned i = 0; i < list->n; i++)
		koine_json_string(j, list->values[i]);
	koine_json_end_array(j);
}

void params_add_int(struct koine_json *j, const char *key, int64_t n)
{
	if (begin_member(j, key))
		koine_json_int(j, n);
}

void params_add_double(struct koine_json *j, const char *key, double d)
{
	if (begin_member(j, key))
		koine_json_double(j, d);
}

void params_add_bool(struct koine_json *j, const char *key, bool b)
{
	if (begin_member(j, key))
		koine_json_bool(j, b);
}

const char *params_end(struct koine_json *j)
{
	if (!j)
		return NULL;
	koine_json_end_object(j);
	return koine_json_text(j, NULL);
}

/* ---- calls ---- */

int call_ask(struct cli *cli, const char *method, struct koine_json *params,
	     struct koine_answer **ret_answer)
{
	const char *text = params_end(params);
	int r = text ? koine_client_call(cli->client, method, text, ret_answer) : -ENOMEM;

	koine_json_free(params);
	return r;
}

int call_async(struct koine_client *c, const char *method, struct koine_json *params,
	       koine_answer_cb cb, void *arg, int64_t *ret_id)
{
	const char *text = params_end(params);
	int r = text ? koine_client_call_async(c, method, text, cb, arg, ret_id) : -ENOMEM;

	koine_json_free(params);
	return r;
}

int call_plain(struct cli *cli, const char *method, const char *params,
	       struct koine_answer **ret_answer)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = talk_connect(cli);
	int code;

	if (r != 0)
		return r;
	r = koine_client_call(cli->client, method, params, &a);
	if (r == 0) {
		*ret_answer = TAKE(a);
		return 0;
	}
	code = talk_failed(cli->client, method, r, a);
	if (r == KOINE_ERROR_ANSWER && cli->command->hint)
		cli->command->hint(cli, a);
	return code;
}

int call_send(struct cli *cli, const char *method, struct koine_json *params,
	      struct koine_answer **ret_answer)
{
	const char *text = params_end(params);
	int r = text ? call_plain(cli, method, text, ret_answer) : out_of_memory();

	koine_json_free(params);
	return r;
}

int call_with(struct cli *cli, const char *method, const char *key, const char *value,
	      struct koine_answer **ret_answer)
{
	struct koine_json *j = params_new();

	params_add(j, key, value);
	return call_send(cli, method, j, ret_answer);
}

int call_print_result(const struct cli *cli, const struct koine_answer *a, const char *member,
		      print_fn print)
{
	const struct koine_value *result = koine_answer_result(a);

	if (member)
		result = koine_value_get(result, member);
	if (!cli->options.json)
		return print(cli, result);
	print_json_compact(stdout, result);
	return 0;
}

int call_print(struct cli *cli, const char *method, struct koine_json *params, const char *member,
	       print_fn print)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_send(cli, method, params, &a);

	return r != 0 ? r : call_print_result(cli, a, member, print);
}

void call_say(const struct cli *cli, const struct koine_answer *a, struct text name,
	      const char *did)
{
	if (cli->options.json) {
		print_json_compact(stdout, koine_answer_result(a));
		return;
	}
	print_text(stdout, name);
	printf(" %s\n", did);
}

int call_each(struct cli *cli, int (*one)(struct cli *cli, const char *arg))
{
	int first = 0;
	int r = talk_connect(cli);

	if (r != 0)
		return r;
	for (int i = 0; i < cli->n_args && r != EX_UNAVAILABLE; i++) {
		r = one(cli, cli->args[i]);
		first = first ? first : r;
	}
	return first;
}
