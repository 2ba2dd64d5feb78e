#include "cli/kit/request.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "cli/kit/list.h"
#include "cli/kit/print.h"
#include "cli/kit/show.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

static const struct request *request_of(const struct cli *cli)
{
	return cli->sub ? &cli->sub->request : &cli->command->request;
}

static void add_option(struct koine_json *j, const struct cli *cli, const struct option *o)
{
	union option_value v;

	if (!o->param || !option_value(cli, o, &v))
		return;
	if (o->set == option_flag)
		params_add_bool(j, o->param, v.flag);
	else if (o->set == option_number || o->set == option_span)
		params_add_int(j, o->param, v.number);
	else if (o->set == option_decimal)
		params_add_double(j, o->param, v.decimal);
	else if (o->set == option_list || o->set == option_texts)
		params_add_list(j, o->param, &v.list);
	else
		params_add(j, o->param, v.text);
}

static struct koine_json *begin(const struct request *q, const char *arg)
{
	struct koine_json *j = params_new();

	if (q->arg)
		params_add(j, q->arg, arg);
	if (q->with[0] && j) {
		koine_json_key(j, q->with[0]);
		koine_json_raw(j, q->with[1], strlen(q->with[1]));
	}
	return j;
}

struct koine_json *request_begin(const struct cli *cli, const char *arg)
{
	return begin(request_of(cli), arg);
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

static int send_as(struct cli *cli, const struct request *q, struct koine_json *params,
		   struct koine_answer **ret_answer)
{
	request_options(cli, params);
	return call_send(cli, q->method, params, ret_answer);
}

int request_send(struct cli *cli, struct koine_json *params, struct koine_answer **ret_answer)
{
	return send_as(cli, request_of(cli), params, ret_answer);
}

static int print_table(const struct cli *cli, const struct request *q,
		       const struct koine_value *rows)
{
	if (!q->none || !cli->terminal || koine_value_first(rows))
		return list_print(cli, q->columns, rows);
	fprintf(stderr, "%s\n", q->none);
	return 0;
}

static int print_for_people(const struct cli *cli, const struct request *q,
			    const struct koine_value *result)
{
	if (q->columns)
		return print_table(cli, q, result);
	if (!q->form)
		return q->print(cli, result);
	show_print(cli, q->form, result);
	return 0;
}

static int print_result(const struct cli *cli, const struct request *q,
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
	if (!cli->options.json)
		return print_for_people(cli, q, result);
	print_json_compact(stdout, result);
	return 0;
}

int request_print(const struct cli *cli, const struct koine_answer *a, const char *arg)
{
	return print_result(cli, request_of(cli), a, arg);
}

static int finish(struct cli *cli, const struct request *q, struct koine_json *params,
		  const char *arg)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = send_as(cli, q, params, &a);

	return r != 0 ? r : print_result(cli, q, a, arg);
}

int request_finish(struct cli *cli, struct koine_json *params, const char *arg)
{
	return finish(cli, request_of(cli), params, arg);
}

int request_run_as(struct cli *cli, const struct request *q, const char *arg)
{
	char read[ARG_MAX_BYTES];

	if (arg && cli->command->read_arg) {
		if (!cli->command->read_arg(arg, read))
			return EX_USAGE;
		arg = read;
	}
	if (q->patient)
		talk_be_patient(cli);
	return finish(cli, q, begin(q, arg), arg);
}

static int run_one(struct cli *cli, const char *arg)
{
	return request_run_as(cli, request_of(cli), arg);
}

int request_run(struct cli *cli)
{
	return cli->n_args > 0 ? call_each(cli, run_one) : run_one(cli, NULL);
}
