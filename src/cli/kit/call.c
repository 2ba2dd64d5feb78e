#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/kit/call.h"
#include "cli/kit/list.h"
#include "cli/kit/show.h"
#include "cli/kit/talk.h"

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

bool params_begin_object(struct koine_json *j, const char *key)
{
	if (begin_member(j, key))
		koine_json_begin_object(j);
	return j != NULL;
}

bool params_begin_array(struct koine_json *j, const char *key)
{
	if (begin_member(j, key))
		koine_json_begin_array(j);
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
	if (list->n == 0 || !params_begin_array(j, key))
		return;
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

void params_add_raw(struct koine_json *j, const char *key, struct text json)
{
	if (json.data && begin_member(j, key))
		koine_json_raw(j, json.data, json.len);
}

void params_add_value(struct koine_json *j, const char *key, const struct koine_value *v)
{
	if (v && begin_member(j, key))
		koine_json_value(j, v);
}

const char *params_end(struct koine_json *j)
{
	if (!j)
		return NULL;
	koine_json_end_object(j);
	return koine_json_text(j, NULL);
}

int params_print(struct koine_json *j)
{
	const char *text = params_end(j);

	return text ? (puts(text), 0) : out_of_memory();
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
	return print_if_json(cli, result) ? 0 : print(cli, result);
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
	if (!print_if_json(cli, koine_answer_result(a)))
		PRINT(stdout, name, TEXT(" "), text_of(did), TEXT("\n"));
}

/* ---- the call that a command's row describes ---- */

static const struct cli_request *request_of(const struct cli *cli)
{
	return cli->sub ? &cli->sub->request : &cli->command->request;
}

static void add_option(struct koine_json *j, const struct cli *cli, const struct option *o)
{
	union option_value v;
	bool given = o->param && option_value(cli, o, &v);

	if (o->param && o->json[0])
		params_add_raw(j, o->param, text_of(o->json[given ? 0 : 1]));
	else if (!given)
		return;
	else if (o->set == option_flag)
		params_add_bool(j, o->param, v.flag);
	else if (o->set == option_limit)
		params_add_int(j, o->param,
			       v.number +
				       (!cli->options.json && (o->max == 0 || v.number < o->max)));
	else if (o->set == option_number || o->set == option_span || o->set == option_seconds ||
		 o->set == option_days)
		params_add_int(j, o->param, v.number);
	else if (o->set == option_decimal)
		params_add_double(j, o->param, v.decimal);
	else if (o->set == option_list || o->set == option_texts)
		params_add_list(j, o->param, &v.list);
	else
		params_add(j, o->param, v.text);
}

static struct koine_json *kit_call_begin(const struct cli_request *q, const char *arg)
{
	struct koine_json *j = params_new();

	if (q->arg)
		params_add(j, q->arg, arg);
	params_add_raw(j, q->with[0], text_of(q->with[1]));
	return j;
}

struct koine_json *request_begin(const struct cli *cli, const char *arg)
{
	return kit_call_begin(request_of(cli), arg);
}

void request_options(const struct cli *cli, struct koine_json *params)
{
	const struct option *tables[OPTION_TABLES];

	if (cli->command->scope)
		cli->command->scope(cli, params);
	options_list(cli, tables);
	for (int i = 0; i < OPTION_TABLES; i++) {
		for (const struct option *o = tables[i]; o->name; o++)
			add_option(params, cli, o);
	}
}

int64_t request_limit(const struct cli *cli)
{
	const struct option *tables[OPTION_TABLES];
	union option_value v;

	options_list(cli, tables);
	for (int i = 0; i < OPTION_TABLES; i++) {
		for (const struct option *o = tables[i]; o->name; o++) {
			if (o->set == option_limit && option_value(cli, o, &v))
				return v.number;
		}
	}
	return 0;
}

static int send_as(struct cli *cli, const struct cli_request *q, struct koine_json *params,
		   struct koine_answer **ret_answer)
{
	request_options(cli, params);
	return call_send(cli, q->method, params, ret_answer);
}

int request_send(struct cli *cli, struct koine_json *params, struct koine_answer **ret_answer)
{
	return send_as(cli, request_of(cli), params, ret_answer);
}

static int print_table(const struct cli *cli, const struct cli_request *q,
		       const struct koine_value *rows)
{
	if (!q->none || koine_value_first(rows))
		return list_print(cli, q->columns, rows);
	fprintf(stderr, "%s\n", q->none);
	return 0;
}

static int print_for_people(const struct cli *cli, const struct cli_request *q,
			    const struct koine_value *result)
{
	if (q->columns)
		return print_table(cli, q, result);
	if (!q->form)
		return q->print(cli, result);
	show_print(cli, q->form, result);
	return 0;
}

static int print_result(const struct cli *cli, const struct cli_request *q,
			const struct koine_answer *a, const char *arg)
{
	const struct koine_value *result = koine_answer_result(a);

	if (q->did) {
		call_say(cli, a,
			 q->named ? member_text(result, q->named) : text_of(arg ? arg : q->unnamed),
			 q->did);
		return 0;
	}
	if (q->member)
		result = koine_value_get(result, q->member);
	return print_if_json(cli, result) ? 0 : print_for_people(cli, q, result);
}

int request_print(const struct cli *cli, const struct koine_answer *a, const char *arg)
{
	return print_result(cli, request_of(cli), a, arg);
}

static int kit_call_finish(struct cli *cli, const struct cli_request *q, struct koine_json *params,
			   const char *arg)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = send_as(cli, q, params, &a);

	return r != 0 ? r : print_result(cli, q, a, arg);
}

int request_finish(struct cli *cli, struct koine_json *params, const char *arg)
{
	return kit_call_finish(cli, request_of(cli), params, arg);
}

int request_run_as(struct cli *cli, const struct cli_request *q, const char *arg)
{
	char read[ARG_MAX_BYTES];

	if (arg && cli->command->read_arg) {
		if (!cli->command->read_arg(arg, read))
			return EX_USAGE;
		arg = read;
	}
	if (q->patient)
		talk_be_patient(cli);
	return kit_call_finish(cli, q, kit_call_begin(q, arg), arg);
}

int request_run_each(struct cli *cli, const struct cli_request *q)
{
	int first = 0;
	int r = talk_connect(cli);

	if (r != 0)
		return r;
	for (int i = 0; i < cli->n_args && r != EX_UNAVAILABLE; i++) {
		r = request_run_as(cli, q, cli->args[i]);
		first = first ? first : r;
	}
	return first;
}

int request_run(struct cli *cli)
{
	const struct cli_request *q = request_of(cli);

	return cli->n_args > 0 ? request_run_each(cli, q) : request_run_as(cli, q, NULL);
}
