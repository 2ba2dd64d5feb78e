/*
 * The life of a call in a real server: parameters, order, threads, answers that
 * come later or to nobody, limits, batches and notifications.
 */
#include "talk.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/un.h>

#include "base/log.h"
#include "tempdir.h"

/* ---- the methods ---- */

static sem_t held; /* posted by a "hold" that runs */
static sem_t go;   /* lets it end */
static struct call *waiting_call;
static unsigned n_cancels;
static int commit_result;

struct all_in {
	struct text string;
	int64_t integer;
	double number;
	bool boolean;
	const struct value *object;
	const struct value *array;
	const struct value *any;
};

#define IN(member) offsetof(struct all_in, member)

static const struct field all_fields[] = {
	{.name = "string", .type = FIELD_STRING, .default_text = "none", .offset = IN(string)},
	{.name = "integer", .type = FIELD_INT, .default_number = -7, .offset = IN(integer)},
	{.name = "number", .type = FIELD_NUMBER, .default_number = 2, .offset = IN(number)},
	{.name = "boolean", .type = FIELD_BOOL, .default_number = 1, .offset = IN(boolean)},
	{.name = "object", .type = FIELD_OBJECT, .offset = IN(object)},
	{.name = "array", .type = FIELD_ARRAY, .offset = IN(array)},
	{.name = "any", .type = FIELD_ANY, .offset = IN(any)},
};

static struct done handle_all(struct call *c)
{
	const struct all_in *in = c->in;
	struct json *j = call_result(c);

	json_begin_array(j);
	json_text(j, in->string);
	json_int(j, in->integer);
	json_double(j, in->number);
	json_bool(j, in->boolean);
	json_value(j, in->object);
	json_value(j, in->array);
	json_value(j, in->any);
	json_end_array(j);
	return call_reply(c);
}

struct one_in {
	int64_t n;
	struct text text;
};

static const struct field one_fields[] = {
	{.name = "n", .type = FIELD_INT, .required = true, .offset = offsetof(struct one_in, n)},
	{.name = "text", .type = FIELD_STRING, .offset = offsetof(struct one_in, text)},
};

static const struct field bounded_fields[] = {
	FIELD_AS("from", INT, one_in, n, NULL, AT_LEAST(0)),
	FIELD(INT, one_in, n, NULL, RANGE(2, 5)),
	FIELD(STRING, one_in, text, NULL, WORDS("ash", "oak", "elm")),
};

static const struct field swapped_fields[] = {
	{.name = "text", .type = FIELD_STRING, .offset = offsetof(struct one_in, text)},
	{.name = "n", .type = FIELD_INT, .required = true, .offset = offsetof(struct one_in, n)},
};

static struct done handle_ping(struct call *c)
{
	json_str(call_result(c), "pong");
	return call_reply(c);
}

static struct done handle_one(struct call *c)
{
	const struct one_in *in = c->in;

	json_int(call_result(c), in->n);
	return call_reply(c);
}

static struct done handle_hold(struct call *c)
{
	sem_post(&held);
	sem_wait(&go);
	json_str(call_result(c), "let go");
	return call_reply(c);
}

static void on_cancel(struct call *c, void *arg)
{
	n_cancels++;
	waiting_call = NULL;
	(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

static struct done handle_later(struct call *c)
{
	waiting_call = c;
	return call_later(c, on_cancel, NULL);
}

static void on_cancel_stop(struct call *c, void *arg)
{
	server_stop(c->server);
	server_stop(c->server);
	on_cancel(c, arg);
}

static struct done handle_stop_if_cancelled(struct call *c)
{
	return call_later(c, on_cancel_stop, NULL);
}

static struct done handle_for_ever(struct call *c)
{
	return call_later(c, NULL, NULL);
}

static struct done handle_at_once(struct call *c)
{
	(void)call_later(c, on_cancel, NULL);
	json_str(call_result(c), "already");
	return call_reply(c);
}

static struct done over(struct call *c)
{
	json_str(call_result(c), "slept");
	return call_reply(c);
}

static struct done handle_sleep(struct call *c)
{
	const struct one_in *in = c->in;

	return call_after(c, (uint64_t)in->n, over);
}

static struct done handle_big(struct call *c)
{
	const struct one_in *in = c->in;
	struct json *j = call_result(c);

	json_begin_array(j);
	for (int64_t i = 0; i < in->n; i++)
		json_int(j, 1);
	json_end_array(j);
	return call_reply(c);
}

static struct done handle_refuse(struct call *c)
{
	const struct one_in *in = c->in;

	if (in->n < 0)
		return call_fail(c, (int)in->n);
	return call_fail(c, refuse(&c->error, (enum refusal)in->n, "%.*s", TEXT_ARGS(in->text)));
}

static struct done handle_bare(struct call *c)
{
	return call_fail(c, REFUSE_CONFLICT);
}

static struct done handle_own_error(struct call *c)
{
	json_str(call_result(c), "thrown away");
	return call_fail_with(c, 42, TEXT("mine"), TEXT("{\"a\":1}"));
}

static struct done handle_nothing(struct call *c)
{
	return call_reply(c);
}

static struct done handle_begun(struct call *c)
{
	(void)call_result(c);
	return call_reply(c);
}

static struct done handle_shout(struct call *c)
{
	server_notify_all(c->server, TEXT("shout"), TEXT("[1]"), NULL);
	json_str(call_result(c), "shouted");
	return call_reply(c);
}

static struct done handle_place(struct call *c)
{
	if (c->path_name.data)
		json_text(call_result(c), c->path_name);
	return call_reply(c);
}

static struct done handle_hold_place(struct call *c)
{
	sem_post(&held);
	sem_wait(&go);
	return handle_place(c);
}

/* How far call_work has come, and on which thread. */
static atomic_int work_at;
static pthread_t work_thread;

static int work(struct call *c)
{
	const struct one_in *in = c->in;

	work_thread = pthread_self();
	work_at = c->lane;
	return (int)in->n;
}

static struct done after_work(struct call *c, int r)
{
	assert_int_equal(c->lane, -1);
	if (r != 0)
		return call_fail(c, r);
	json_bool(call_result(c), pthread_equal(work_thread, pthread_self()));
	return call_reply(c);
}

static struct done handle_work(struct call *c)
{
	return call_work(c, WRITER, work, after_work);
}

static struct done handle_work_reader(struct call *c)
{
	return call_work(c, READER, work, after_work);
}

static struct done handle_unlisten(struct call *c)
{
	json_bool(call_result(c), server_unlisten(c->server, c->client->endpoint));
	return call_reply(c);
}

static struct done handle_stop(struct call *c)
{
	server_stop(c->server);
	return call_reply(c);
}

#define ONE .fields = one_fields, .n_fields = 2, .in_size = sizeof(struct one_in)

static const struct method methods[] = {
	{.name = "all",
	 .fields = all_fields,
	 .n_fields = 7,
	 .in_size = sizeof(struct all_in),
	 .handle = handle_all},
	{.name = "ping",
	 .result = "{id:string|null at:time ok:true all:[{n:integer is:on}] any:any last:end|null}",
	 .handle = handle_ping},
	{.name = "one", .handle = handle_one, ONE},
	{.name = "bounded", FIELDS(bounded_fields, one_in), .handle = handle_one},
	{.name = "swapped",
	 .handle = handle_one,
	 .fields = swapped_fields,
	 .n_fields = 2,
	 .in_size = sizeof(struct one_in)},
	{.name = "read", .handle = handle_one, ONE, .where = READER},
	{.name = "write", .handle = handle_one, ONE, .where = WRITER},
	{.name = "hold", .handle = handle_hold, .where = READER},
	{.name = "hold_writer", .handle = handle_hold, .where = WRITER},
	{.name = "later", .handle = handle_later, .flags = METHOD_LATER},
	{.name = "for_ever", .handle = handle_for_ever, .flags = METHOD_LATER},
	{.name = "at_once", .handle = handle_at_once, .flags = METHOD_LATER},
	{.name = "sleep", .handle = handle_sleep, ONE, .flags = METHOD_LATER},
	{.name = "big", .handle = handle_big, ONE},
	{.name = "refuse", .handle = handle_refuse, ONE},
	{.name = "read_refuse", .handle = handle_refuse, ONE, .where = READER},
	{.name = "bare", .handle = handle_bare},
	{.name = "own_error", .handle = handle_own_error},
	{.name = "nothing", .handle = handle_nothing},
	{.name = "begun", .handle = handle_begun},
	{.name = "shout", .handle = handle_shout},
	{.name = "stop", .handle = handle_stop},
	{.name = "stop_if_cancelled", .handle = handle_stop_if_cancelled, .flags = METHOD_LATER},
	{.name = "place", .handle = handle_place},
	{.name = "hold_place", .handle = handle_hold_place, .where = READER},
	{.name = "work", .handle = handle_work, ONE, .flags = METHOD_LATER},
	{.name = "work_reader", .handle = handle_work_reader, ONE, .flags = METHOD_LATER},
	{.name = "unlisten", .handle = handle_unlisten},
};

/* ---- the dialects ---- */

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {-32700, "Parse error", WORDS_ONLY, 400},
	[REFUSE_REQUEST] = {-32600, "Invalid Request", WORDS_ONLY, 400},
	[REFUSE_METHOD] = {-32601, "Method not found", WORDS_ONLY, 0},
	[REFUSE_PARAMS] = {-32602, "Invalid params", WORDS_BOTH, 0},
	[REFUSE_INTERNAL] = {-32603, "Internal error", WORDS_BOTH, 500},
	[REFUSE_NOT_FOUND] = {-32001, "Not found", WORDS_TEXT, 0},
	[REFUSE_CONFLICT] = {-32002, "Conflict", WORDS_BOTH, 0},
	[REFUSE_LIMIT] = {-32003, "Limit", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {-32004, "Too large", WORDS_BOTH, 0},
	[REFUSE_UNAVAILABLE] = {-32005, "Unavailable", WORDS_TEXT, 0},
	[REFUSE_FORBIDDEN] = {-32006, "Forbidden", WORDS_ONLY, 0},
	[REFUSE_TIMEOUT] = {-32007, "Timed out", WORDS_TEXT, 0},
	[REFUSE_STOPPING] = {-32008, "Stopping", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {-32800, "Cancelled", WORDS_ONLY, 0},
};

static const char *const paths[] = {"/", "/rpc", NULL};

#define DIALECT                                                                                    \
	.name = "test", .message_max = 1 << 20, .errors = errors, .methods = methods,              \
	.n_methods = sizeof(methods) / sizeof(methods[0]), .http_paths = paths,                    \
	.http_silent_status = 202

static const struct dialect sequential = {DIALECT, .framing = SPEAKS_LINE};
static const struct dialect concurrent = {DIALECT, .framing = SPEAKS_LINE, .concurrent = true};
static const struct dialect any = {DIALECT, .framing = SPEAKS_ANY};
static const struct dialect http = {DIALECT, .framing = SPEAKS_HTTP};
static const struct dialect no_batch = {DIALECT, .framing = SPEAKS_LINE,
					.rules = {.flags = JSONRPC_NO_BATCH}};
static const struct dialect id_second = {DIALECT, .framing = SPEAKS_LINE,
					 .rules = {.flags = JSONRPC_ID_SECOND}};

static void plain_error(struct buf *body, int status, const char *text)
{
	buf_printf(body, "{\"error\":\"%s\",\"status\":%d}", text, status);
}

static const struct dialect hooked = {DIALECT, .framing = SPEAKS_HTTP, .http_error = plain_error,
				      .http_timeout_status = 400};

static int own_words(const struct field *f, const struct value *v, struct error *error)
{
	return refuse_field(error, f->name, "%s? %s!", f->name, v ? value_kind_name(v) : "none");
}

static const struct dialect worded = {DIALECT, .framing = SPEAKS_LINE, .plain_errors = true,
				      .explain_field = own_words};

static const char *const place_paths[] = {"/", "/place/*", NULL};

static const struct dialect places = {
	.name = "places",
	.message_max = 1 << 20,
	.framing = SPEAKS_HTTP,
	.errors = errors,
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.http_paths = place_paths,
	.http_silent_status = 200,
};

/* ---- one test's world ---- */

static int commit(void *arg)
{
	return commit_result;
}

static void on_stopped(void *arg)
{
	struct fixture *f = arg;

	f->stopped = true;
}

static void start_with(struct fixture *f, const struct dialect *d, const struct limits *limits)
{
	const struct server_opts opts = {
		.limits = *limits,
		.workers = {.n_readers = 2, .commit = commit},
		.on_stopped = on_stopped,
		.arg = f,
		.version = "1",
	};

	f->stopped = false;
	waiting_call = NULL;
	n_cancels = 0;
	commit_result = 0;
	assert_int_equal(sem_init(&held, 0, 0), 0);
	assert_int_equal(sem_init(&go, 0, 0), 0);
	assert_int_equal(world_init(&f->world, d, &opts), 0);
	assert_int_equal(dialer_init(&f->client, &f->world), 0);
}

static void start(struct fixture *f, const struct dialect *d)
{
	start_with(f, d, &default_limits);
}

static void finish(struct fixture *f)
{
	dialer_done(&f->client);
	world_done(&f->world);
	sem_destroy(&held);
	sem_destroy(&go);
}

#define REQUEST(method, params, id)                                                                \
	"{'jsonrpc':'2.0','method':'" method "','params':" params ",'id':" id "}"
#define CALL(method, params, id) REQUEST(method, params, id) "\n"
#define RESULT(result, id)       "{'jsonrpc':'2.0','result':" result ",'id':" id "}\n"
#define ERROR(code, message, id)                                                                   \
	"{'jsonrpc':'2.0','error':{'code':" code ",'message':'" message "'},'id':" id "}\n"
#define FIELD_ERROR(message, field, id)                                                            \
	"{'jsonrpc':'2.0','error':{'code':-32602,'message':'Invalid params: " message              \
	"','data':{'field':'" field "'}},'id':" id "}\n"

static void exchange(struct fixture *f, const char *text, const char *expected)
{
	say(f, text);
	hear(f, expected);
}

static const struct client *only_client(const struct fixture *f)
{
	return list_entry(list_first(&f->world.server->clients), struct client, link);
}

/* ---- parameters ---- */

TEST(fields_of_every_type_are_decoded)
{
	struct fixture f;

	start(&f, &sequential);
	exchange(&f,
		 CALL("all",
		      "{'string':'s\\u00e9','integer':9223372036854775807,'number':-1.5e3,"
		      "'boolean':false,'object':{'a':1},'array':[1,2],'any':'x'}",
		      "1"),
		 RESULT("['s\xc3\xa9',9223372036854775807,-1500,false,{'a':1},[1,2],'x']", "1"));
	exchange(&f, CALL("all", "{'integer':-9223372036854775808,'number':7}", "1"),
		 RESULT("['none',-9223372036854775808,7,true,null,null,null]", "1"));
	finish(&f);
}

TEST(defaults_stand_for_what_is_missing_or_null)
{
	static const char defaults[] = RESULT("['none',-7,2,true,null,null,null]", "1");
	struct fixture f;

	start(&f, &sequential);
	exchange(&f, "{'jsonrpc':'2.0','method':'all','id':1}\n", defaults);
	exchange(&f, CALL("all", "null", "1"), defaults);
	exchange(&f, CALL("all", "{}", "1"), defaults);
	exchange(&f, CALL("all", "[]", "1"), defaults);
	exchange(&f,
		 CALL("all",
		      "{'string':null,'integer':null,'number':null,'boolean':null,'object':null,"
		      "'array':null,'any':null}",
		      "1"),
		 defaults);
	finish(&f);
}

TEST(wrong_types_are_refused_with_the_field)
{
	struct fixture f;

	start(&f, &sequential);
	exchange(&f, CALL("all", "{'string':1}", "1"),
		 FIELD_ERROR("string must be a string, not number", "string", "1"));
	exchange(&f, CALL("all", "{'integer':'1'}", "1"),
		 FIELD_ERROR("integer must be an integer, not string", "integer", "1"));
	exchange(&f, CALL("all", "{'integer':1.5}", "1"),
		 FIELD_ERROR("integer must be a whole number, not 1.5", "integer", "1"));
	exchange(&f, CALL("all", "{'integer':1e2}", "1"),
		 FIELD_ERROR("integer must be a whole number, not 1e2", "integer", "1"));
	exchange(&f, CALL("all", "{'integer':9223372036854775808}", "1"),
		 FIELD_ERROR("integer must be a 64-bit integer, not 9223372036854775808", "integer",
			     "1"));
	exchange(&f, CALL("all", "{'number':true}", "1"),
		 FIELD_ERROR("number must be a number, not boolean", "number", "1"));
	exchange(&f, CALL("all", "{'boolean':0}", "1"),
		 FIELD_ERROR("boolean must be a boolean, not number", "boolean", "1"));
	exchange(&f, CALL("all", "{'object':[]}", "1"),
		 FIELD_ERROR("object must be an object, not array", "object", "1"));
	exchange(&f, CALL("all", "{'array':{}}", "1"),
		 FIELD_ERROR("array must be an array, not object", "array", "1"));
	exchange(&f, CALL("one", "{'text':'x'}", "1"), FIELD_ERROR("n is required", "n", "1"));
	exchange(&f, CALL("one", "{'n':null}", "1"), FIELD_ERROR("n is required", "n", "1"));
	exchange(&f, CALL("read", "{}", "1"), FIELD_ERROR("n is required", "n", "1"));
	finish(&f);
}

TEST(values_outside_a_range_or_a_list_of_words_are_refused)
{
	struct fixture f;

	start(&f, &sequential);
	exchange(&f, CALL("bounded", "{'n':6}", "1"),
		 FIELD_ERROR("n must be between 2 and 5, not 6", "n", "1"));
	exchange(&f, CALL("bounded", "{'n':1}", "1"),
		 FIELD_ERROR("n must be between 2 and 5, not 1", "n", "1"));
	exchange(&f, CALL("bounded", "{'from':-1}", "1"),
		 FIELD_ERROR("from must be at least 0, not -1", "from", "1"));
	exchange(&f, CALL("bounded", "{'text':'yew'}", "1"),
		 FIELD_ERROR("text must be ash, oak or elm, not `yew`", "text", "1"));
	exchange(&f, CALL("bounded", "{'text':''}", "1"),
		 FIELD_ERROR("text must be ash, oak or elm, not ``", "text", "1"));
	exchange(&f, CALL("bounded", "{'n':5,'text':'elm'}", "1"), RESULT("5", "1"));
	exchange(&f, CALL("bounded", "{'text':null}", "1"), RESULT("0", "1"));
	finish(&f);
}

TEST(a_number_of_too_many_digits_is_refused)
{
	char text[2000] = "{'jsonrpc':'2.0','id':1,'method':'all','params':{'number':";
	struct fixture f;
	size_t n = strlen(text);

	start(&f, &sequential);
	memset(text + n, '1', 1500);
	memcpy(text + n + 1500, "}}\n", 4);
	exchange(&f, text, FIELD_ERROR("number has too many digits", "number", "1"));
	finish(&f);
}

TEST(positional_params_follow_the_fields)
{
	struct fixture f;

	start(&f, &sequential);
	exchange(&f, CALL("all", "['a',1,2.5,false,{},[],[[]]]", "1"),
		 RESULT("['a',1,2.5,false,{},[],[[]]]", "1"));
	exchange(&f, CALL("all", "['a']", "1"), RESULT("['a',-7,2,true,null,null,null]", "1"));
	exchange(&f, CALL("all", "[1]", "1"),
		 FIELD_ERROR("string must be a string, not number", "string", "1"));
	exchange(&f, CALL("all", "[null,null,null,null,null,null,null,1]", "1"),
		 ERROR("-32602", "Invalid params: more than 7 positional parameters", "1"));
	exchange(&f, CALL("ping", "[1,2]", "1"), RESULT("'pong'", "1"));
	finish(&f);
}

TEST(unknown_params_are_ignored_and_the_last_of_equal_wins)
{
	struct fixture f;

	start(&f, &sequential);
	exchange(&f, CALL("one", "{'x':{},'n':1,'':0,'n':2,'nn':3}", "1"), RESULT("2", "1"));
	exchange(&f, CALL("ping", "{'x':1}", "1"), RESULT("'pong'", "1"));
	finish(&f);
}

/* ---- answers ---- */

TEST(a_result_is_null_unless_written)
{
	struct fixture f;

	start(&f, &sequential);
	exchange(&f, CALL("nothing", "{}", "1"), RESULT("null", "1"));
	exchange(&f, CALL("begun", "{}", "1"), RESULT("null", "1"));
	finish(&f);
}

TEST(errors_are_worded_by_the_table)
{
	struct fixture f;

	start(&f, &sequential);
	/* 6 not found: the sentence; 7 conflict: both; 11 forbidden: the words */
	exchange(&f, CALL("refuse", "[6,'no x']", "1"), ERROR("-32001", "no x", "1"));
	exchange(&f, CALL("refuse", "[6,'']", "1"), ERROR("-32001", "Not found", "1"));
	exchange(&f, CALL("refuse", "[7,'x is y']", "1"), ERROR("-32002", "Conflict: x is y", "1"));
	exchange(&f, CALL("refuse", "[7,'']", "1"), ERROR("-32002", "Conflict", "1"));
	exchange(&f, CALL("refuse", "[11,'secret']", "1"), ERROR("-32006", "Forbidden", "1"));
	exchange(&f, CALL("read_refuse", "[7,'x']", "1"), ERROR("-32002", "Conflict: x", "1"));
	exchange(&f, CALL("refuse", "[-5,'']", "1"),
		 ERROR("-32603", "Internal error: Input/output error", "1"));
	exchange(&f, CALL("bare", "{}", "1"), ERROR("-32002", "Conflict", "1"));
	exchange(&f, CALL("own_error", "{}", "1"),
		 "{'jsonrpc':'2.0','error':{'code':42,'message':'mine','data':{'a':1}},'id':1}\n");
	exchange(&f, CALL("absent", "{}", "1"), ERROR("-32601", "Method not found", "1"));
	exchange(&f, "nonsense\n", ERROR("-32700", "Parse error", "null"));
	exchange(&f, "{'id':1}\n", ERROR("-32600", "Invalid Request", "1"));
	assert_int_equal(f.world.endpoint->n_errors, 12);
	finish(&f);
}

TEST(a_long_sentence_is_cut_between_characters)
{
	char text[600] = "{'jsonrpc':'2.0','id':1,'method':'refuse','params':[6,'";
	struct fixture f;

	for (int i = 0; i < 120; i++)
		strcat(text, "\xc3\xa9");
	strcat(text, "']}\n");
	start(&f, &sequential);
	say(&f, text);
	hear(&f, "{'jsonrpc':'2.0','error':{'code':-32001,'message':'\xc3\xa9");
	assert_true(dialer_wait(&f.client, &f.world, 160));
	assert_non_null(memmem(f.client.in.data, f.client.in.len, "\xc3\xa9\"}", 4));
	finish(&f);
}

TEST(ids_second_where_the_rules_say)
{
	struct fixture f;

	start(&f, &id_second);
	exchange(&f, CALL("ping", "{}", "'x'"), "{'jsonrpc':'2.0','id':'x','result':'pong'}\n");
	exchange(&f, CALL("nothing", "{}", "1"), "{'jsonrpc':'2.0','id':1,'result':null}\n");
	exchange(&f, CALL("begun", "{}", "1"), "{'jsonrpc':'2.0','id':1,'result':null}\n");
	exchange(&f, CALL("read", "[5]", "2"), "{'jsonrpc':'2.0','id':2,'result':5}\n");
	exchange(&f, CALL("absent", "{}", "1"),
		 "{'jsonrpc':'2.0','id':1,'error':{'code':-32601,'message':'Method not found'}}\n");
	finish(&f);
}

TEST(notifications_are_not_answered)
{
	struct fixture f;

	start(&f, &sequential);
	say(&f, "{'jsonrpc':'2.0','method':'ping'}\n"
		"{'jsonrpc':'2.0','method':'absent'}\n"
		"{'jsonrpc':'2.0','method':'one','params':{'n':'x'}}\n"
		"{'jsonrpc':'2.0','method':'read','params':{'n':1}}\n" CALL("ping", "{}", "9"));
	hear(&f, RESULT("'pong'", "9"));
	hear_nothing(&f, &f.client);
	finish(&f);
}

/* ---- threads and order ---- */

TEST(readers_and_writers_are_answered)
{
	struct fixture f;

	start(&f, &sequential);
	exchange(&f, CALL("read", "[1]", "1"), RESULT("1", "1"));
	exchange(&f, CALL("write", "[2]", "2"), RESULT("2", "2"));
	finish(&f);
}

TEST(a_failed_commit_is_told_in_place_of_the_answer)
{
	struct fixture f;

	start(&f, &sequential);
	commit_result = -ENOSPC;
	exchange(&f, CALL("write", "[2]", "2"),
		 ERROR("-32603", "Internal error: No space left on device", "2"));
	finish(&f);
}

TEST(a_sequential_dialect_answers_in_order)
{
	struct fixture f;

	start(&f, &sequential);
	say(&f, CALL("hold", "{}", "1") CALL("ping", "{}", "2") CALL("write", "[3]", "3")
			CALL("read", "[4]", "4") CALL("ping", "{}", "5"));
	world_settle(&f.world);
	sem_wait(&held);
	hear_nothing(&f, &f.client);
	sem_post(&go);
	hear(&f, RESULT("'let go'", "1") RESULT("'pong'", "2") RESULT("3", "3") RESULT("4", "4")
			 RESULT("'pong'", "5"));
	finish(&f);
}

TEST(a_concurrent_dialect_answers_as_they_finish)
{
	struct fixture f;

	start(&f, &concurrent);
	say(&f, CALL("hold", "{}", "1") CALL("ping", "{}", "2") CALL("read", "[3]", "3"));
	hear(&f, RESULT("'pong'", "2") RESULT("3", "3"));
	sem_wait(&held);
	sem_post(&go);
	hear(&f, RESULT("'let go'", "1"));
	finish(&f);
}

TEST(two_clients_do_not_wait_for_each_other)
{
	struct dialer other;
	struct fixture f;

	start(&f, &sequential);
	assert_int_equal(dialer_init(&other, &f.world), 0);
	say(&f, CALL("hold", "{}", "1"));
	world_settle(&f.world);
	say_to(&f, &other, CALL("read", "[7]", "2"));
	hear_from(&f, &other, RESULT("7", "2"));
	sem_post(&go);
	hear(&f, RESULT("'let go'", "1"));
	dialer_done(&other);
	finish(&f);
}

/* ---- later ---- */

TEST(a_call_can_be_answered_later)
{
	struct fixture f;

	start(&f, &sequential);
	say(&f, CALL("later", "{}", "1") CALL("ping", "{}", "2"));
	hear_nothing(&f, &f.client);
	assert_non_null(waiting_call);
	json_str(call_result(waiting_call), "at last");
	(void)call_reply(waiting_call);
	hear(&f, RESULT("'at last'", "1") RESULT("'pong'", "2"));
	exchange(&f, CALL("sleep", "[1]", "3"), RESULT("'slept'", "3"));
	finish(&f);
}

TEST(later_and_then_at_once_is_an_answer)
{
	struct fixture f;

	start(&f, &sequential);
	for (int i = 0; i < 3; i++)
		exchange(&f, CALL("at_once", "{}", "1"), RESULT("'already'", "1"));
	exchange(&f, "[" REQUEST("at_once", "{}", "1") "," REQUEST("ping", "{}", "2") "]\n",
		 "[{'jsonrpc':'2.0','result':'already','id':1},"
		 "{'jsonrpc':'2.0','result':'pong','id':2}]\n");
	assert_int_equal(f.world.server->n_calls, 0);
	finish(&f);
}

TEST(cancel_overtakes_and_reaches_a_running_call)
{
	struct fixture f;

	start(&f, &sequential);
	say(&f, CALL("later", "{}", "'a'") CALL("ping", "{}", "2")
			CALL("rpc.cancel", "{'id':'a'}", "3"));
	hear(&f, ERROR("-32800", "Cancelled", "'a'") RESULT("{'cancelled':true}", "3")
			 RESULT("'pong'", "2"));
	assert_int_equal(n_cancels, 1);
	exchange(&f, CALL("rpc.cancel", "{'id':'a'}", "4"), RESULT("{'cancelled':false}", "4"));
	exchange(&f, CALL("rpc.cancel", "{}", "5"), FIELD_ERROR("id is required", "id", "5"));
	finish(&f);
}

TEST(cancel_reaches_a_delay_and_a_waiting_call)
{
	struct fixture f;

	start(&f, &sequential);
	say(&f, CALL("sleep", "[100000]", "1") CALL("ping", "{}", "2") CALL("ping", "{}", "3")
			CALL("rpc.cancel", "[2]", "4") CALL("rpc.cancel", "[1]", "5"));
	hear(&f, ERROR("-32800", "Cancelled", "2") RESULT("{'cancelled':true}", "4")
			 ERROR("-32800", "Cancelled", "1") RESULT("{'cancelled':true}", "5")
				 RESULT("'pong'", "3"));
	finish(&f);
}

TEST(a_call_that_was_cancelled_before_its_thread_does_not_run)
{
	struct dialer others[2];
	struct fixture f;

	start(&f, &sequential);
	/* both readers are held, so the third call waits in the queue */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(dialer_init(&others[i], &f.world), 0);
		say_to(&f, &others[i], CALL("hold", "{}", "1"));
		world_settle(&f.world);
		sem_wait(&held);
	}
	say(&f, CALL("read", "[1]", "1") CALL("rpc.cancel", "[1]", "2"));
	hear(&f, RESULT("{'cancelled':true}", "2"));
	sem_post(&go);
	sem_post(&go);
	hear(&f, ERROR("-32800", "Cancelled", "1"));
	for (int i = 0; i < 2; i++) {
		hear_from(&f, &others[i], RESULT("'let go'", "1"));
		dialer_done(&others[i]);
	}
	finish(&f);
}

/* ---- calls without a client, and the end ---- */

TEST(a_call_outlives_its_client)
{
	struct fixture f;

	start(&f, &sequential);
	say(&f, CALL("later", "{}", "1") CALL("ping", "{}", "2"));
	world_settle(&f.world);
	dialer_done(&f.client);
	world_settle(&f.world);
	assert_non_null(waiting_call);
	/* half-closed and unread is not gone: what waits is for its end */
	client_close((struct client *)only_client(&f));
	assert_null(waiting_call->client);
	assert_int_equal(f.world.server->n_calls, 1);
	json_str(call_result(waiting_call), "to nobody");
	(void)call_reply(waiting_call);
	assert_int_equal(f.world.server->n_calls, 0);
	finish(&f);
}

TEST(a_thread_outlives_its_client)
{
	struct fixture f;

	start(&f, &sequential);
	say(&f, CALL("hold_writer", "{}", "1"));
	world_settle(&f.world);
	sem_wait(&held);
	client_close((struct client *)only_client(&f));
	assert_int_equal(f.world.server->n_calls, 1);
	commit_result = -EIO;
	sem_post(&go);
	while (f.world.server->n_calls > 0)
		assert_true(world_turn(&f.world, NULL));
	hear_end(&f);
	finish(&f);
}

TEST(a_batch_outlives_its_client)
{
	struct fixture f;

	start(&f, &sequential);
	say(&f, "[" REQUEST("ping", "{}", "1") "," REQUEST("later", "{}", "2") "," REQUEST(
			"ping", "{}", "3") "]\n");
	world_settle(&f.world);
	client_close((struct client *)only_client(&f));
	assert_null(waiting_call->client);
	json_str(call_result(waiting_call), "to nobody");
	(void)call_reply(waiting_call);
	/* What stood behind it in the batch is not begun for nobody. */
	world_settle(&f.world);
	assert_int_equal(f.world.server->n_calls, 0);
	assert_int_equal(f.world.endpoint->n_calls, 2);
	finish(&f);
}

TEST(free_cancels_what_is_open)
{
	struct dialer others[3];
	struct fixture f;

	start(&f, &sequential);
	for (int i = 0; i < 3; i++)
		assert_int_equal(dialer_init(&others[i], &f.world), 0);
	say(&f, CALL("later", "{}", "1") CALL("ping", "{}", "2"));
	say_to(&f, &others[0], CALL("sleep", "[100000]", "1"));
	say_to(&f, &others[1], "[" REQUEST("hold", "{}", "1") "," REQUEST("ping", "{}", "1") "]\n");
	/* one that does not answer, not even when it is asked to stop */
	say_to(&f, &others[2], CALL("for_ever", "{}", "1"));
	world_settle(&f.world);
	sem_wait(&held);
	sem_post(&go);
	assert_int_equal(f.world.server->n_calls, 4);
	finish(&f);
	assert_int_equal(n_cancels, 1);
	for (int i = 0; i < 3; i++)
		dialer_done(&others[i]);
}

TEST(stop_lets_running_calls_answer)
{
	struct dialer idle;
	struct fixture f;

	start(&f, &sequential);
	assert_int_equal(dialer_init(&idle, &f.world), 0);
	say(&f, CALL("hold", "{}", "1"));
	world_settle(&f.world);
	sem_wait(&held);
	server_stop(f.world.server);
	assert_false(f.stopped);
	assert_true(dialer_wait_eof(&idle, &f.world));
	dialer_done(&idle);
	sem_post(&go);
	hear(&f, RESULT("'let go'", "1"));
	hear_end(&f);
	dialer_done(&f.client);
	while (!f.stopped)
		assert_true(world_turn(&f.world, NULL));
	finish(&f);
}

TEST(stop_cancels_what_takes_too_long)
{
	struct limits limits = default_limits;
	struct fixture f;

	limits.stop_ms = 1;
	start_with(&f, &sequential, &limits);
	say(&f, CALL("later", "{}", "1"));
	world_settle(&f.world);
	server_stop(f.world.server);
	while (!f.stopped)
		assert_true(world_turn(&f.world, NULL));
	assert_int_equal(n_cancels, 1);
	finish(&f);
}

TEST(a_second_stop_ends_it_at_once)
{
	struct fixture f;

	start(&f, &sequential);
	say(&f, CALL("later", "{}", "1"));
	world_settle(&f.world);
	server_stop(f.world.server);
	assert_false(f.stopped);
	server_stop(f.world.server);
	/* not before the loop turns: a handler may have asked */
	assert_int_equal(n_cancels, 0);
	assert_false(f.stopped);
	while (!f.stopped)
		assert_true(world_turn(&f.world, NULL));
	assert_int_equal(n_cancels, 1);
	finish(&f);
}

TEST(a_batch_that_stops_twice_is_answered)
{
	struct dialer other;
	struct fixture f;

	start(&f, &sequential);
	assert_int_equal(dialer_init(&other, &f.world), 0);
	say_to(&f, &other, CALL("later", "{}", "1"));
	world_settle(&f.world);
	exchange(&f, "[" REQUEST("stop", "{}", "1") "," REQUEST("stop", "{}", "2") "]\n",
		 "[{'jsonrpc':'2.0','result':null,'id':1},{'jsonrpc':'2.0','result':null,'id':2}]"
		 "\n");
	hear_end(&f);
	while (!f.stopped)
		assert_true(world_turn(&f.world, NULL));
	/* The second one cut what still ran elsewhere. */
	assert_int_equal(n_cancels, 1);
	dialer_done(&other);
	finish(&f);
}

TEST(stops_that_were_read_ahead_are_answered)
{
	struct fixture f;

	start(&f, &sequential);
	exchange(&f, CALL("write", "[7]", "1") CALL("stop", "{}", "2") CALL("stop", "{}", "3"),
		 RESULT("7", "1") RESULT("null", "2") RESULT("null", "3"));
	hear_end(&f);
	while (!f.stopped)
		assert_true(world_turn(&f.world, NULL));
	finish(&f);
}

/* Those that are cancelled may stop it once more, and so may what waits behind them. */
TEST(a_stop_while_calls_are_cancelled_changes_nothing)
{
	struct limits limits = default_limits;
	struct dialer other;
	struct fixture f;

	limits.stop_ms = 1;
	start_with(&f, &sequential, &limits);
	assert_int_equal(dialer_init(&other, &f.world), 0);
	say(&f, CALL("later", "{}", "1") CALL("stop", "{}", "2") CALL("stop", "{}", "3"));
	say_to(&f, &other, CALL("stop_if_cancelled", "{}", "1"));
	world_settle(&f.world);
	server_stop(f.world.server);
	while (!f.stopped)
		assert_true(world_turn(&f.world, NULL));
	assert_int_equal(n_cancels, 2);
	dialer_done(&other);
	finish(&f);
}

TEST(a_handler_can_stop_its_server)
{
	struct fixture f;

	start(&f, &sequential);
	exchange(&f, CALL("stop", "{}", "1") CALL("ping", "{}", "2"), RESULT("null", "1"));
	hear_end(&f);
	finish(&f);
}

TEST(a_half_closed_client_still_gets_its_answers)
{
	struct fixture f;

	start(&f, &sequential);
	/* the last one without its newline */
	say(&f, CALL("hold", "{}", "1") "{'jsonrpc':'2.0','method':'ping','id':2}");
	shutdown(f.client.fd, SHUT_WR);
	world_settle(&f.world);
	sem_wait(&held);
	sem_post(&go);
	hear(&f, RESULT("'let go'", "1") RESULT("'pong'", "2"));
	hear_end(&f);
	finish(&f);
}

/* ---- limits ---- */

TEST(calls_over_the_limit_are_refused)
{
	struct limits limits = default_limits;
	struct dialer other;
	struct fixture f;

	limits.calls = 1;
	start_with(&f, &sequential, &limits);
	assert_int_equal(dialer_init(&other, &f.world), 0);
	say(&f, CALL("later", "{}", "1"));
	world_settle(&f.world);
	say_to(&f, &other, CALL("read", "[1]", "1") CALL("ping", "{}", "2"));
	hear_from(&f, &other,
		  ERROR("-32003", "too many calls in flight (limit 1)", "1") RESULT("'pong'", "2"));
	(void)call_reply(waiting_call);
	hear(&f, RESULT("null", "1"));
	say_to(&f, &other, CALL("read", "[1]", "3"));
	hear_from(&f, &other, RESULT("1", "3"));
	dialer_done(&other);
	finish(&f);
}

TEST(reading_ahead_stops_at_its_limit)
{
	struct limits limits = default_limits;
	struct fixture f;

	limits.waiting = 3;
	start_with(&f, &sequential, &limits);
	say(&f, CALL("later", "{}", "0"));
	for (int i = 0; i < 20; i++)
		say(&f, CALL("ping", "{}", "1"));
	world_settle(&f.world);
	assert_int_equal(only_client(&f)->n_waiting, 3);
	assert_true(only_client(&f)->read_ahead_full);
	(void)call_reply(waiting_call);
	hear(&f, RESULT("null", "0"));
	for (int i = 0; i < 20; i++)
		hear(&f, RESULT("'pong'", "1"));
	finish(&f);
}

TEST(a_concurrent_client_runs_so_many_side_by_side)
{
	struct limits limits = default_limits;
	struct fixture f;

	limits.waiting = 2;
	start_with(&f, &concurrent, &limits);
	for (int i = 0; i < 10; i++)
		say(&f, CALL("sleep", "[1000000]", "1"));
	world_settle(&f.world);
	assert_int_equal(only_client(&f)->n_running, 2);
	assert_int_equal(only_client(&f)->n_waiting, 2);
	finish(&f);
}

TEST(an_answer_over_the_limit_becomes_an_error)
{
	struct limits limits = default_limits;
	struct fixture f;

	limits.reply_bytes = 1000;
	start_with(&f, &sequential, &limits);
	exchange(&f, CALL("big", "[10000]", "1"),
		 ERROR("-32004", "Too large: the result is larger than 1000 bytes", "1"));
	exchange(&f, "[" REQUEST("big", "[300]", "1") "," REQUEST("big", "[300]", "2") "]\n",
		 ERROR("-32004", "the responses to the batch exceed their size limit", "null"));
	exchange(&f, CALL("big", "[3]", "1"), RESULT("[1,1,1]", "1"));
	finish(&f);
}

TEST(a_limit_that_is_set_anew_holds_for_the_next_call)
{
	struct fixture f;

	start(&f, &sequential);
	exchange(&f, CALL("big", "[3]", "1"), RESULT("[1,1,1]", "1"));
	f.world.server->opts.limits.reply_bytes = 1000;
	exchange(&f, CALL("big", "[10000]", "1"),
		 ERROR("-32004", "Too large: the result is larger than 1000 bytes", "1"));
	finish(&f);
}

/* Half an answer would be worse than none. */
TEST(an_id_that_no_answer_can_carry_ends_the_connection)
{
	struct limits limits = default_limits;
	char text[3000];
	struct fixture f;

	limits.reply_bytes = 1000;
	for (int i = 0; i < 2; i++) {
		start_with(&f, &sequential, &limits);
		snprintf(text, sizeof(text),
			 "%s{'jsonrpc':'2.0','method':'ping','id':'%02000d'}%s\n", i ? "[" : "", 0,
			 i ? "]" : "");
		say(&f, text);
		if (i)
			hear(&f,
			     ERROR("-32004", "the responses to the batch exceed their size limit",
				   "null"));
		else
			hear_end(&f);
		finish(&f);
	}
}

TEST(a_message_over_the_limit_is_refused_and_ends_it)
{
	static char large[(1 << 20) + 2];
	struct fixture f;

	memset(large, 'x', sizeof(large));
	start(&f, &sequential);
	assert_true(dialer_send_n(&f.client, &f.world, large, sizeof(large)));
	hear(&f, ERROR("-32004", "the message is longer than 1048576 bytes", "null"));
	hear_end(&f);
	finish(&f);
}

TEST(a_refused_stream_behind_a_running_call_is_told)
{
	static char large[(1 << 20) + 2];
	struct limits limits = default_limits;
	struct fixture f;

	memset(large, 'x', sizeof(large));
	limits.queue_bytes = 4 << 20;
	start_with(&f, &sequential, &limits);
	say(&f, CALL("later", "{}", "1"));
	assert_true(dialer_send_n(&f.client, &f.world, large, sizeof(large)));
	world_settle(&f.world);
	(void)call_reply(waiting_call);
	hear(&f, RESULT("null", "1")
			 ERROR("-32004", "the message is longer than 1048576 bytes", "null"));
	hear_end(&f);
	finish(&f);
}

TEST(a_client_that_does_not_read_is_not_read)
{
	struct limits limits = default_limits;
	struct fixture f;

	limits.queue_bytes = 64 << 10;
	start_with(&f, &sequential, &limits);
	for (int i = 0; i < 100; i++)
		say(&f, CALL("big", "[20000]", "1"));
	world_settle(&f.world);
	/* one answer more than the limit at most */
	assert_true(conn_pending(only_client(&f)->conn) <= (64 << 10) + 41000);
	for (int i = 0; i < 100; i++) {
		assert_true(dialer_wait(&f.client, &f.world, 40036));
		assert_int_equal(f.client.in.data[40035], '\n');
		buf_consume(&f.client.in, 40036);
	}
	hear_nothing(&f, &f.client);
	finish(&f);
}

/* Until there is room: the first connection ends, or the limit is raised. */
static void over_the_limit(void (*make_room)(struct fixture *f))
{
	struct limits limits = default_limits;
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct endpoint_opts opts = {.dialect = &sequential, .framing = SPEAKS_LINE, .fd = -1};
	struct dialer other = {0};
	struct endpoint *e = NULL;
	char dir[TEMPDIR_MAX];
	struct error error = {0};
	struct fixture f;

	tempdir_make(dir);
	limits.connections = 1;
	start_with(&f, &sequential, &limits);
	client_close((struct client *)only_client(&f));
	world_settle(&f.world);
	dialer_done(&f.client);
	opts.registry = f.world.registry;
	snprintf(to.sun_path, sizeof(to.sun_path), "%s/s", dir);
	snprintf(opts.address.path, sizeof(opts.address.path), "%s/s", dir);
	assert_int_equal(server_listen(f.world.server, &opts, &e, &error), 0);
	f.client.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	other.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	buf_init(&other.in, 1000);
	assert_int_equal(connect(f.client.fd, (struct sockaddr *)&to, sizeof(to)), 0);
	f.client.eof = false;
	exchange(&f, CALL("ping", "{}", "1"), RESULT("'pong'", "1"));
	assert_int_equal(connect(other.fd, (struct sockaddr *)&to, sizeof(to)), 0);
	say_to(&f, &other, CALL("ping", "{}", "2"));
	hear_nothing(&f, &other);
	assert_int_equal(f.world.server->n_clients, 1);
	make_room(&f);
	hear_from(&f, &other, RESULT("'pong'", "2"));
	dialer_done(&other);
	finish(&f);
	tempdir_remove(dir);
}

static void end_first(struct fixture *f)
{
	dialer_done(&f->client);
}

static void raise_limit(struct fixture *f)
{
	server_set_limits(f->world.server, &default_limits);
}

TEST(connections_over_the_limit_wait)
{
	over_the_limit(end_first);
}

TEST(a_higher_limit_lets_waiting_connections_in_at_once)
{
	over_the_limit(raise_limit);
}

/* ---- batches ---- */

TEST(batches_are_answered_together_in_order)
{
	static const struct dialect *const dialects[] = {&sequential, &concurrent};

	for (int i = 0; i < 2; i++) {
		struct fixture f;

		start(&f, dialects[i]);
		say(&f, "[" REQUEST("sleep", "[1]", "1") "," REQUEST(
				"read", "[2]",
				"2") ",3,"
				     "{'jsonrpc':'2.0','method':'ping'}," REQUEST(
					     "write", "[4]",
					     "4") "," REQUEST("ping", "{}",
							      "5") "]\n" CALL("ping", "{}", "6"));
		hear(&f, "[{'jsonrpc':'2.0','result':'slept','id':1},"
			 "{'jsonrpc':'2.0','result':2,'id':2},"
			 "{'jsonrpc':'2.0','error':{'code':-32600,'message':'Invalid Request'},"
			 "'id':null},"
			 "{'jsonrpc':'2.0','result':4,'id':4},"
			 "{'jsonrpc':'2.0','result':'pong','id':5}]\n" RESULT("'pong'", "6"));
		hear_nothing(&f, &f.client);
		finish(&f);
	}
}

TEST(a_batch_of_notifications_is_silent)
{
	struct fixture f;

	start(&f, &sequential);
	say(&f, "[{'jsonrpc':'2.0','method':'ping'},"
		"{'jsonrpc':'2.0','method':'read','params':[1]}]\n" CALL("ping", "{}", "1"));
	hear(&f, RESULT("'pong'", "1"));
	finish(&f);
}

TEST(a_call_of_a_batch_can_be_cancelled)
{
	struct fixture f;

	start(&f, &sequential);
	say(&f, "[" REQUEST("later", "{}", "1") "," REQUEST("ping", "{}", "2") "]\n" CALL(
			"rpc.cancel", "[1]", "3"));
	hear(&f,
	     RESULT("{'cancelled':true}",
		    "3") "[{'jsonrpc':'2.0','error':{'code':-32800,'message':'Cancelled'},'id':1},"
			 "{'jsonrpc':'2.0','result':'pong','id':2}]\n");
	finish(&f);
}

TEST(batches_have_a_limit_and_can_be_forbidden)
{
	struct limits limits = default_limits;
	struct fixture f;

	limits.batch = 2;
	start_with(&f, &sequential, &limits);
	exchange(&f, "[1,2,3]\n",
		 ERROR("-32004", "Too large: more than 2 requests in a batch", "null"));
	exchange(&f, "[]\n", ERROR("-32600", "Invalid Request", "null"));
	finish(&f);
	start(&f, &no_batch);
	exchange(&f, "[" REQUEST("ping", "{}", "1") "]\n",
		 ERROR("-32600", "Invalid Request", "null"));
	finish(&f);
}

/* ---- framings ---- */

TEST(a_framing_is_recognised)
{
	struct dialer c;
	struct fixture f;
	char text[200];

	start(&f, &any);
	exchange(&f, CALL("ping", "{}", "1"), RESULT("'pong'", "1"));
	assert_string_equal(client_framing_name(only_client(&f)), "line");

	assert_int_equal(dialer_init(&c, &f.world), 0);
	snprintf(text, sizeof(text), "%s", quoted(CALL("ping", "{}", "1")));
	assert_true(dialer_send_n(&c, &f.world, "\0\0\0\x35", 4));
	assert_int_equal(strlen(text), 0x35);
	assert_true(dialer_send_n(&c, &f.world, text, 0x35));
	assert_true(dialer_wait(&c, &f.world, 4));
	assert_memory_equal(c.in.data, "\0\0\0\x28", 4);
	buf_consume(&c.in, 4);
	hear_from(&f, &c, "{'jsonrpc':'2.0','result':'pong','id':1}");
	dialer_done(&c);

	/* a Go client */
	assert_int_equal(dialer_init(&c, &f.world), 0);
	assert_true(dialer_send_n(&c, &f.world, "\x0f\x7f\x03\x01\x01", 5));
	world_settle(&f.world);
	assert_int_equal(f.world.server->n_clients, 2);
	shutdown(c.fd, SHUT_WR);
	assert_true(dialer_wait_eof(&c, &f.world));
	assert_int_equal(c.in.len, 0);
	dialer_done(&c);
	finish(&f);
}

#define POST(path, body, length)                                                                   \
	"POST " path " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " length "\r\n\r\n" body
#define ANSWER(status, connection, length, body)                                                   \
	"HTTP/1.1 " status "\r\nContent-Type: application/json; charset=utf-8\r\n"                 \
	"Content-Length: " length "\r\nConnection: " connection "\r\n\r\n" body

TEST(http_calls_are_answered_with_a_status)
{
	struct fixture f;

	start(&f, &http);
	exchange(&f, POST("/", "{'jsonrpc':'2.0','method':'ping','id':1}", "40"),
		 ANSWER("200 OK", "keep-alive", "40", "{'jsonrpc':'2.0','result':'pong','id':1}"));
	/* two in one go, the first on a thread */
	say(&f, POST("/rpc", "{'jsonrpc':'2.0','method':'read','params':[1],'id':1}", "53")
			POST("/rpc", "{'jsonrpc':'2.0','method':'ping'}", "33"));
	hear(&f, ANSWER("200 OK", "keep-alive", "35", "{'jsonrpc':'2.0','result':1,'id':1}")
			 ANSWER("202 Accepted", "keep-alive", "0", ""));
	exchange(&f, POST("/", "nonsense", "8"),
		 ANSWER("400 Bad Request", "keep-alive", "75",
			"{'jsonrpc':'2.0','error':{'code':-32700,'message':'Parse error'},"
			"'id':null}"));
	exchange(&f, POST("/x", "{}", "2"),
		 ANSWER("404 Not Found", "keep-alive", "89",
			"{'jsonrpc':'2.0','error':{'code':-32600,"
			"'message':'Not found. Use / or /rpc.'},'id':null}"));
	finish(&f);
}

TEST(http_errors_can_be_worded_by_the_dialect)
{
	struct fixture f;

	start(&f, &hooked);
	exchange(&f, POST("/x", "{}", "2"),
		 ANSWER("404 Not Found", "keep-alive", "50",
			"{'error':'Not found. Use / or /rpc.','status':404}"));
	exchange(&f, "nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n");
	assert_true(dialer_wait_eof(&f.client, &f.world));
	finish(&f);
}

TEST(http_turns_strangers_away)
{
	static const struct {
		const char *request;
		const char *answer;
	} cases[] = {
		{"POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 0\r\n\r\n", "403"},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://example.org\r\n"
		 "Content-Length: 0\r\n\r\n",
		 "403"},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nContent-Length: 0\r\n\r\n",
		 "403"},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:81\r\n"
		 "Content-Length: 0\r\n\r\n",
		 "403"},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n"
		 "Content-Length: 0\r\n\r\n",
		 "403"},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "401"},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n"
		 "Content-Length: 0\r\n\r\n",
		 "403"},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret2\r\n"
		 "Content-Length: 0\r\n\r\n",
		 "403"},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n",
		 "405"},
		{"HEAD / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n",
		 "405"},
		{"POST /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n"
		 "Content-Length: 0\r\n\r\n",
		 "404"},
		{"POST / HTTP/1.1\r\nHost: localhost:8\r\nAuthorization: Bearer secret\r\n"
		 "Origin: http://localhost:8\r\nSec-Fetch-Site: same-origin\r\n"
		 "Content-Length: 1\r\n\r\n1",
		 "400"},
	};
	struct fixture f;

	start(&f, &http);
	f.world.endpoint->tcp = true;
	strcpy(f.world.endpoint->token, "secret");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dialer c;

		assert_int_equal(dialer_init(&c, &f.world), 0);
		say_to(&f, &c, cases[i].request);
		assert_true(dialer_wait(&c, &f.world, 40));
		if (memcmp(c.in.data + 9, cases[i].answer, 3) != 0)
			fail_msg("%s\n%.*s", cases[i].request, (int)c.in.len, c.in.data);
		dialer_done(&c);
	}
	finish(&f);
}

TEST(http_requests_have_a_time_to_come_in)
{
	struct limits limits = default_limits;
	struct fixture f;

	limits.read_timeout_ms = 1;
	start_with(&f, &http, &limits);
	say(&f, "POST / HTTP/1.1\r\n");
	hear(&f, "HTTP/1.1 408 Request Timeout\r\n");
	assert_true(dialer_wait_eof(&f.client, &f.world));
	finish(&f);
}

TEST(the_dialect_says_what_answers_a_late_request)
{
	struct limits limits = default_limits;
	struct fixture f;

	limits.read_timeout_ms = 1;
	start_with(&f, &hooked, &limits);
	say(&f, "POST / HTTP/1.1\r\n");
	hear(&f, ANSWER("400 Bad Request", "close", "44",
			"{'error':'Header read timeout','status':400}"));
	hear_end(&f);
	finish(&f);
}

static void post_to(struct fixture *f, const char *path, const char *method)
{
	char body[100], text[400];

	snprintf(body, sizeof(body), "{'jsonrpc':'2.0','method':'%s','id':1}", method);
	snprintf(text, sizeof(text),
		 "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", path,
		 strlen(body), body);
	say(f, text);
}

TEST(a_path_can_have_a_place)
{
	static const char *const none[] = {
		"/place/",      "/place",  "/place/a/",  "/place/a/b", "/place/a?x=1", "/place/..",
		"/place/a%20b", "/rpc",    "/place/a*",  "/place/*",   "/place/.",     "//",
		"/placed",      "/Place/", "/place/a,b", "/place/~a",
	};
	struct dialer other;
	struct fixture f;

	start(&f, &places);
	post_to(&f, "/place/aZ09._-:@", "place");
	hear(&f,
	     ANSWER("200 OK", "keep-alive", "45", "{'jsonrpc':'2.0','result':'aZ09._-:@','id':1}"));
	/* on a thread it outlives the bytes that it came with */
	post_to(&f, "/place/..b", "hold_place");
	world_settle(&f.world);
	sem_wait(&held);
	assert_int_equal(dialer_init(&other, &f.world), 0);
	say_to(&f, &other, POST("/place/other", "{'jsonrpc':'2.0','method':'place','id':1}", "41"));
	assert_true(dialer_wait(&other, &f.world, 40));
	dialer_done(&other);
	sem_post(&go);
	hear(&f, ANSWER("200 OK", "keep-alive", "39", "{'jsonrpc':'2.0','result':'..b','id':1}"));
	post_to(&f, "/", "place");
	hear(&f, ANSWER("200 OK", "keep-alive", "38", "{'jsonrpc':'2.0','result':null,'id':1}"));
	/* and all calls of a batch have it */
	sem_post(&go);
	say(&f, POST("/place/x",
		     "[{'jsonrpc':'2.0','method':'place','id':1},"
		     "{'jsonrpc':'2.0','method':'hold_place','id':2}]",
		     "90"));
	hear(&f, ANSWER("200 OK", "keep-alive", "77",
			"[{'jsonrpc':'2.0','result':'x','id':1},"
			"{'jsonrpc':'2.0','result':'x','id':2}]"));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		post_to(&f, none[i], "ping");
		hear(&f, ANSWER("404 Not Found", "keep-alive", "89",
				"{'jsonrpc':'2.0','error':{'code':-32600,"
				"'message':'Not found. Use / or /rpc.'},'id':null}"));
	}
	finish(&f);
}

TEST(a_dialect_can_word_what_is_wrong_with_a_parameter)
{
	struct fixture f;

	start(&f, &worded);
	exchange(&f, CALL("one", "{}", "1"), ERROR("-32602", "Invalid params: n? none!", "1"));
	exchange(&f, CALL("one", "{'n':null}", "1"),
		 ERROR("-32602", "Invalid params: n? none!", "1"));
	exchange(&f, CALL("one", "{'n':'5'}", "2"),
		 ERROR("-32602", "Invalid params: n? string!", "2"));
	exchange(&f, CALL("one", "{'n':5,'text':[]}", "3"),
		 ERROR("-32602", "Invalid params: text? array!", "3"));
	exchange(&f, CALL("one", "{'n':5}", "4"), RESULT("5", "4"));
	finish(&f);
}

/* ---- work on the way ---- */

TEST(a_call_on_the_loop_can_have_work_done_elsewhere)
{
	struct fixture f;

	start(&f, &sequential);
	exchange(&f, CALL("work", "[0]", "1"), RESULT("false", "1"));
	assert_int_equal(work_at, -1);
	exchange(&f, CALL("work_reader", "[0]", "2"), RESULT("false", "2"));
	assert_true(work_at >= 0);
	exchange(&f, CALL("work", "[7]", "3"), ERROR("-32002", "Conflict", "3"));
	/* a commit that fails has undone it */
	commit_result = -EIO;
	exchange(&f, CALL("work", "[0]", "4"),
		 ERROR("-32603", "Internal error: Input/output error", "4"));
	finish(&f);
}

TEST(work_goes_on_when_its_client_leaves)
{
	struct fixture f;

	start(&f, &sequential);
	work_at = 77;
	say(&f, CALL("work", "[0]", "1"));
	dialer_done(&f.client);
	while (work_at == 77 || f.world.server->n_calls > 0)
		assert_true(world_turn(&f.world, NULL));
	assert_int_equal(work_at, -1);
	finish(&f);
}

/* ---- one listener of several ---- */

TEST(a_listener_can_be_closed_alone)
{
	struct dialer idle, other;
	struct endpoint *first;
	struct fixture f;

	start(&f, &sequential);
	first = f.world.endpoint;
	exchange(&f, CALL("unlisten", "{}", "1"), RESULT("false", "1"));
	assert_int_equal(dialer_init(&idle, &f.world), 0);
	assert_int_equal(world_add_endpoint(&f.world, &sequential), 0);
	assert_int_equal(dialer_init(&other, &f.world), 0);

	/* what runs at it is answered, then its clients are closed */
	say_to(&f, &idle, CALL("hold", "{}", "2"));
	world_settle(&f.world);
	sem_wait(&held);
	exchange(&f, CALL("unlisten", "{}", "3"), RESULT("true", "3"));
	hear_end(&f);
	hear_nothing(&f, &idle);
	sem_post(&go);
	hear_from(&f, &idle, RESULT("'let go'", "2"));
	assert_true(dialer_wait_eof(&idle, &f.world));
	assert_true(first->closed);

	say_to(&f, &other, CALL("ping", "{}", "4"));
	hear_from(&f, &other, RESULT("'pong'", "4"));
	say_to(&f, &other, CALL("unlisten", "{}", "5"));
	hear_from(&f, &other, RESULT("false", "5"));
	assert_false(f.stopped);
	dialer_done(&idle);
	dialer_done(&other);
	finish(&f);
}

/* ---- notifications from the server ---- */

static unsigned notify_all(struct fixture *f, struct text method, struct text params)
{
	unsigned n = 0;

	assert_int_equal(server_notify_all(f->world.server, method, params, &n), 0);
	return n;
}

TEST(notifications_reach_one_or_all)
{
	struct dialer others[2];
	struct fixture f;
	struct client *s;

	start(&f, &any);
	for (int i = 0; i < 2; i++)
		assert_int_equal(dialer_init(&others[i], &f.world), 0);
	exchange(&f, CALL("ping", "{}", "1"), RESULT("'pong'", "1"));
	say_to(&f, &others[0], CALL("ping", "{}", "1"));
	hear_from(&f, &others[0], RESULT("'pong'", "1"));
	/* others[1] has not said what it speaks */
	assert_int_equal(notify_all(&f, TEXT("tick"), TEXT("{\"n\":1}")), 2);
	hear(&f, "{'jsonrpc':'2.0','method':'tick','params':{'n':1}}\n");
	hear_from(&f, &others[0], "{'jsonrpc':'2.0','method':'tick','params':{'n':1}}\n");
	hear_nothing(&f, &others[1]);

	s = server_find_client(f.world.server, 2);
	assert_non_null(s);
	assert_int_equal(client_notify(s, "{}", 2), 0);
	hear_from(&f, &others[0], "{}\n");
	hear_nothing(&f, &f.client);
	assert_null(server_find_client(f.world.server, 77));
	assert_int_equal(client_notify(server_find_client(f.world.server, 3), "{}", 2), -ENOTSUP);

	/* from within a call: before its own answer */
	exchange(&f, CALL("shout", "{}", "2"),
		 "{'jsonrpc':'2.0','method':'shout','params':[1]}\n" RESULT("'shouted'", "2"));
	for (int i = 0; i < 2; i++)
		dialer_done(&others[i]);
	finish(&f);
}

TEST(a_notification_over_the_limit_is_a_fault)
{
	struct limits limits = default_limits;
	struct fixture f;

	limits.reply_bytes = 40;
	start_with(&f, &sequential, &limits);
	assert_int_equal(
		server_notify_all(f.world.server, TEXT("m"), TEXT("[1,2,3,4,5,6,7,8]"), NULL),
		-EMSGSIZE);
	hear_nothing(&f, &f.client);
	finish(&f);
}

TEST(what_a_slow_client_misses_is_counted)
{
	static char large[100000];
	struct limits limits = default_limits;
	unsigned n_sent = 0;
	unsigned n = 0;
	struct fixture f;

	memset(large, '1', sizeof(large));
	limits.queue_bytes = 300000;
	start_with(&f, &sequential, &limits);
	while (f.world.endpoint->n_dropped < 5 && n < 1000) {
		struct text params = {.data = large, .len = sizeof(large)};

		n_sent += notify_all(&f, TEXT("m"), params);
		n++;
	}
	assert_int_equal(f.world.endpoint->n_dropped, 5);
	assert_int_equal(n, n_sent + 5);
	assert_true(conn_pending(only_client(&f)->conn) <= 300000 + sizeof(large) + 100);
	/* every one that was not dropped is whole */
	for (unsigned i = 0; i < n_sent; i++) {
		assert_true(dialer_wait(&f.client, &f.world, sizeof(large) + 41));
		assert_memory_equal(f.client.in.data, "{\"jsonrpc\":\"2.0\",\"method\":\"m\"", 29);
		assert_int_equal(f.client.in.data[sizeof(large) + 40], '\n');
		buf_consume(&f.client.in, sizeof(large) + 41);
	}
	exchange(&f, CALL("ping", "{}", "1"), RESULT("'pong'", "1"));
	assert_int_equal(notify_all(&f, TEXT("m"), (struct text) {0}), 1);
	hear(&f, "{'jsonrpc':'2.0','method':'m'}\n");
	finish(&f);
}

static const struct value *method_named(const struct value *methods_found, const char *name)
{
	value_each (m, methods_found)
		if (text_is(value_text(value_find(m, "name")), name))
			return m;
	fail_msg("no method %s", name);
	return NULL;
}

/* A parameter that must be given stands before those that need not, and the row's order
 * is not promised where it is another. */
static void check_order(const struct value *method, const char *structure)
{
	const struct value *first = value_find(method, "params")->first;

	assert_true(text_is(value_text(value_find(method, "paramStructure")), structure));
	assert_true(text_is(value_text(value_find(first, "name")), "n"));
	assert_int_equal(value_find(first, "required")->kind, VALUE_TRUE);
}

static void check_result(const struct value *m, const char *schema)
{
	const struct value *found = value_find(value_find(m, "result"), "schema");

	assert_int_equal(found->raw_len, strlen(schema));
	assert_memory_equal(found->raw, schema, found->raw_len);
}

TEST(discover_describes_every_method)
{
	const struct value *found;
	struct value *root = NULL;
	struct fixture f;
	struct arena a;
	size_t n = 0;

	start(&f, &sequential);
	say(&f, CALL("rpc.discover", "{}", "1"));
	while (n == 0) {
		assert_true(dialer_wait(&f.client, &f.world, f.client.in.len + 1));
		n = f.client.in.data[f.client.in.len - 1] == '\n' ? f.client.in.len : 0;
	}
	arena_init(&a, 1 << 20);
	assert_int_equal(json_read(&a, f.client.in.data, n, &json_default_limits, &root, NULL), 0);
	found = value_find(value_find(root, "result"), "methods");
	assert_int_equal(found->len, sizeof(methods) / sizeof(methods[0]) + rpc_methods.n);
	check_order(method_named(found, "one"), "either");
	check_order(method_named(found, "swapped"), "by-name");
	check_result(method_named(found, "one"), "{}");
	check_result(method_named(found, "ping"),
		     "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":[\"string\",\"null\"]},"
		     "\"at\":{\"type\":\"string\",\"format\":\"date-time\"},"
		     "\"ok\":{\"const\":true},\"all\":{\"type\":\"array\",\"items\":{\"type\":"
		     "\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},"
		     "\"is\":{\"const\":\"on\"}}}},\"any\":{},"
		     "\"last\":{\"enum\":[\"end\",null]}}}");
	arena_done(&a);
	finish(&f);
}
