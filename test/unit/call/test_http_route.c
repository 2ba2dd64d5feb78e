/*
 * HTTP endpoints that are no JSON-RPC: which route a request takes and with which parameters,
 * how errors are worded, answers in pieces, and connections that are handed over.
 */
#include "talk.h"

#include <errno.h>

#include "call/http.h"
#include "wire/http/http1.h"

/* ---- the routes ---- */

static struct call *waiting;
static unsigned n_cancels;

struct all_in {
	struct text string;
	int64_t integer;
	double number;
	bool boolean;
	const struct value *any;
};

#define IN(member) offsetof(struct all_in, member)

static const struct field all_fields[] = {
	{.name = "string", .type = FIELD_STRING, .default_text = "none", .offset = IN(string)},
	{.name = "integer", .type = FIELD_INT, .default_number = -7, .offset = IN(integer)},
	{.name = "number", .type = FIELD_NUMBER, .default_number = 2, .offset = IN(number)},
	{.name = "boolean", .type = FIELD_BOOL, .offset = IN(boolean)},
	{.name = "any", .type = FIELD_ANY, .offset = IN(any)},
};

static const struct field need_fields[] = {
	{.name = "string", .type = FIELD_STRING, .required = true, .offset = IN(string)},
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
	json_value(j, in->any);
	json_text(j, c->path_name);
	json_end_array(j);
	return call_reply(c);
}

static struct done handle_made(struct call *c)
{
	call_status(c, 201);
	return call_reply(c);
}

static struct done handle_own_error(struct call *c)
{
	return call_fail_with(c, 502, TEXT("no model"), (struct text) {0});
}

static struct done handle_busy(struct call *c)
{
	return call_fail(c, refuse(&c->error, REFUSE_LIMIT, "enough"));
}

static void on_cancel(struct call *c, void *arg)
{
	n_cancels++;
	waiting = NULL;
	(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

static struct done handle_later(struct call *c)
{
	waiting = c;
	return call_later(c, on_cancel, NULL);
}

static struct done handle_stream(struct call *c)
{
	waiting = c;
	assert_int_equal(call_stream_begin(c, 200, "text/event-stream"), 0);
	assert_int_equal(call_stream(c, "one\n", 4), 0);
	return call_later(c, on_cancel, NULL);
}

static struct done handle_short_stream(struct call *c)
{
	assert_int_equal(call_stream_begin(c, 200, "text/plain"), 0);
	assert_int_equal(call_stream(c, "", 0), 0);
	assert_int_equal(call_stream(c, "0123456789abcdef!", 17), 0);
	return call_stream_end(c);
}

static struct done handle_rpc_stream(struct call *c)
{
	json_int(call_result(c), call_stream_begin(c, 200, "text/plain"));
	return call_reply(c);
}

/* An echo that says goodbye. */
static struct upgraded echo;
static unsigned n_drained;
static bool echo_open;

static void echo_bytes(struct upgraded *u, const char *data, size_t len)
{
	if (len == 3 && memcmp(data, "end", 3) == 0) {
		assert_int_equal(upgraded_write(u, "so be it", 8), 0);
		upgraded_end(u);
		assert_int_equal(upgraded_write(u, "x", 1), -ENOTCONN);
		return;
	}
	assert_int_equal(upgraded_write(u, data, len), 0);
}

static void echo_drained(struct upgraded *u)
{
	n_drained++;
}

static void echo_end(struct upgraded *u, const char *reason)
{
	assert_non_null(reason);
	(void)upgraded_write(u, "goodbye", 7);
}

static void echo_closed(struct upgraded *u)
{
	assert_null(u->client);
	echo_open = false;
}

static const struct upgraded_ops echo_ops = {
	.on_bytes = echo_bytes,
	.on_drained = echo_drained,
	.on_end = echo_end,
	.on_closed = echo_closed,
};

static int take_over(struct client *s, const struct upgrade_request *r, struct error *error)
{
	if (text_is(http_header_find(r->http, "Sec-WebSocket-Version"), "12"))
		return refuse(error, REFUSE_REQUEST, "too old");
	client_upgrade(s, &echo, &echo_ops, "websocket", "X-Asked: yes\r\n");
	echo_open = true;
	return 0;
}

#define ALL FIELDS(all_fields, all_in), .handle = handle_all

static const struct http_route routes[] = {
	{"GET", "/all", {.name = "all", ALL}},
	{"POST", "/all", {.name = "all", ALL}},
	{"GET", "/place/*", {.name = "place", ALL}},
	{"POST", "/thread", {.name = "thread", ALL, .where = READER}},
	{"POST", "/need", {.name = "need", FIELDS(need_fields, all_in), .handle = handle_made}},
	{"GET", "/own", {.name = "own", .handle = handle_own_error}},
	{"GET", "/busy", {.name = "busy", .handle = handle_busy}},
	{"GET", "/open", {.name = "open", .handle = handle_made}, .flags = ROUTE_OPEN},
	{"GET", "/later", {.name = "later", .handle = handle_later, .flags = METHOD_LATER}},
	{"GET",
	 "/watched",
	 {.name = "watched", .handle = handle_later, .flags = METHOD_LATER},
	 .flags = ROUTE_WATCH},
	{"GET", "/stream", {.name = "stream", .handle = handle_stream, .flags = METHOD_LATER}},
	{"GET", "/short", {.name = "short", .handle = handle_short_stream}},
	{"GET",
	 "/ws",
	 {.name = "ws"},
	 .flags = ROUTE_UPGRADE | ROUTE_TOKEN_QUERY,
	 .upgrade = take_over},
};

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {-1, "not JSON", WORDS_BOTH, 0},
	[REFUSE_REQUEST] = {-2, "no request", WORDS_TEXT, 0},
	[REFUSE_METHOD] = {-3, "no method", WORDS_TEXT, 0},
	[REFUSE_PARAMS] = {-4, "bad params", WORDS_TEXT, 422},
	[REFUSE_INTERNAL] = {-5, "fault", WORDS_ONLY, 0},
	[REFUSE_NOT_FOUND] = {-6, "none", WORDS_TEXT, 0},
	[REFUSE_CONFLICT] = {-7, "conflict", WORDS_TEXT, 0},
	[REFUSE_LIMIT] = {-8, "limit", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {-9, "too large", WORDS_TEXT, 0},
	[REFUSE_UNAVAILABLE] = {-10, "unavailable", WORDS_TEXT, 0},
	[REFUSE_FORBIDDEN] = {-11, "forbidden", WORDS_TEXT, 0},
	[REFUSE_TIMEOUT] = {-12, "late", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {-13, "cancelled", WORDS_TEXT, 0},
	[REFUSE_STOPPING] = {-14, "stopping", WORDS_TEXT, 0},
};

static void word(struct buf *body, const struct http_refusal *no)
{
	buf_printf(body, "%d %s [%s] %s", no->status, no->message.data,
		   no->error ? no->error->field : "-", no->route ? no->route->path : "-");
}

static const struct method methods[] = {
	{.name = "stream", .handle = handle_rpc_stream},
};

static const char *const paths[] = {"/rpc", NULL};

#define DIALECT                                                                                    \
	.name = "test", .framing = SPEAKS_HTTP, .message_max = 100000, .errors = errors,           \
	.http_routes = routes, .n_http_routes = sizeof(routes) / sizeof(routes[0])

static const struct dialect worded = {DIALECT, .http_refusal = word};
static const struct dialect plain = {DIALECT};
static const struct dialect mixed = {DIALECT, .http_paths = paths, .methods = methods,
				     .n_methods = 1};
static const struct dialect tokens = {DIALECT, .http_refusal = word, .http_token_header = "X-Token",
				      .http_token_bare = true,
				      .http_token_unset = "no token is set"};

/* ---- one test's world ---- */

static void on_stopped(void *arg)
{
	struct fixture *f = arg;

	f->stopped = true;
}

static void start_with(struct fixture *f, const struct dialect *d, const struct limits *limits)
{
	const struct server_opts opts = {
		.limits = *limits,
		.workers = {.n_readers = 1},
		.on_stopped = on_stopped,
		.arg = f,
		.version = "1",
	};

	f->stopped = false;
	waiting = NULL;
	n_cancels = 0;
	n_drained = 0;
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
}

static const char *answer(const char *status, const char *extra, const char *body)
{
	static char out[4096];

	snprintf(out, sizeof(out),
		 "HTTP/1.1 %s\r\nContent-Type: application/json; charset=utf-8\r\n"
		 "Content-Length: %zu\r\nConnection: keep-alive\r\n%s\r\n%s",
		 status, strlen(body), extra, body);
	return out;
}

static const char *post(const char *path, const char *extra, const char *body)
{
	static char out[4096];

	snprintf(out, sizeof(out),
		 "POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n%s", path,
		 extra, strlen(body), body);
	return out;
}

#define GET(path)  "GET " path " HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define HEAD(path) "HEAD " path " HTTP/1.1\r\nHost: localhost\r\n\r\n"

static void get(struct fixture *f, const char *path, const char *status, const char *body)
{
	char request[1024];

	snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
	say(f, request);
	hear(f, answer(status, "", body));
}

static void turn_until_cancelled(struct fixture *f)
{
	while (n_cancels == 0)
		assert_true(world_turn(&f->world, NULL));
}

/* ---- parameters and answers ---- */

TEST(the_query_gives_parameters_of_every_type)
{
	struct fixture f;

	start(&f, &worded);
	get(&f, "/all", "200 OK", "['none',-7,2,false,null,null]");
	get(&f, "/all?", "200 OK", "['none',-7,2,false,null,null]");
	get(&f, "/all?string=a+b%26%C3%A9&integer=12&number=-1.5e1&boolean=true&any=5&other=1",
	    "200 OK", "['a b&\xc3\xa9',12,-15,true,'5',null]");
	get(&f, "/all?&&string=&boolean=1&any", "200 OK", "['',-7,2,true,'',null]");
	get(&f, "/all?integer=&number=&boolean=", "200 OK", "['none',-7,2,false,null,null]");
	get(&f, "/all?integer=05&number=.25", "200 OK", "['none',5,0.25,false,null,null]");
	get(&f, "/all?integer=-00&number=-00.5", "200 OK", "['none',0,-0.5,false,null,null]");
	get(&f, "/place/a%40b?boolean=0", "200 OK", "['none',-7,2,false,null,'a@b']");
	finish(&f);
}

TEST(what_the_query_cannot_be_is_refused_by_name)
{
	struct fixture f;

	start(&f, &worded);
	get(&f, "/all?integer=x", "422 Unprocessable Content",
	    "422 integer must be an integer, not string [integer] /all");
	get(&f, "/all?integer=5+", "422 Unprocessable Content",
	    "422 integer must be an integer, not string [integer] /all");
	get(&f, "/all?boolean=yes", "422 Unprocessable Content",
	    "422 boolean must be a boolean, not string [boolean] /all");
	get(&f, "/all?number=.", "422 Unprocessable Content",
	    "422 number must be a number, not string [number] /all");
	get(&f, "/all?integer=-", "422 Unprocessable Content",
	    "422 integer must be an integer, not string [integer] /all");
	get(&f, "/all?any=1&any=2", "422 Unprocessable Content",
	    "422 duplicate parameter any [any] /all");
	get(&f, "/all?string=%4", "400 Bad Request",
	    "400 not JSON: the query is not percent-encoded UTF-8 [] /all");
	get(&f, "/all?string=%zz", "400 Bad Request",
	    "400 not JSON: the query is not percent-encoded UTF-8 [] /all");
	get(&f, "/all?%ff=1", "400 Bad Request",
	    "400 not JSON: the query is not percent-encoded UTF-8 [] /all");
	say(&f, post("/all?any=1", "", "{'any':2}"));
	hear(&f, answer("422 Unprocessable Content", "", "422 duplicate parameter any [any] /all"));
	finish(&f);
}

TEST(a_query_of_many_pairs_is_refused)
{
	char path[1024] = "/all?";
	struct fixture f;

	for (int i = 0; i < 65; i++)
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "k%d&", i);
	start(&f, &worded);
	get(&f, path, "413 Content Too Large", "413 more than 64 parameters in the query [] /all");
	finish(&f);
}

TEST(the_body_gives_parameters)
{
	struct fixture f;

	start(&f, &worded);
	say(&f, post("/all", "", "{'integer':5,'any':{'a':[1]}}"));
	hear(&f, answer("200 OK", "", "['none',5,2,false,{'a':[1]},null]"));
	say(&f, post("/thread?string=q", "", "{'integer':5,'any':'x'}"));
	hear(&f, answer("200 OK", "", "['q',5,2,false,'x',null]"));
	say(&f, post("/thread", "", ""));
	hear(&f, answer("200 OK", "", "['none',-7,2,false,null,null]"));
	say(&f, post("/need", "", "{'string':'s'}"));
	hear(&f, answer("201 Created", "", "null"));
	finish(&f);
}

TEST(a_bad_body_is_refused)
{
	struct fixture f;

	start(&f, &worded);
	say(&f, post("/need", "", ""));
	hear(&f, answer("422 Unprocessable Content", "", "422 string is required [string] /need"));
	say(&f, post("/need", "", "{'string':5}"));
	hear(&f, answer("422 Unprocessable Content", "",
			"422 string must be a string, not number [string] /need"));
	say(&f, post("/need", "", "[1]"));
	hear(&f, answer("400 Bad Request", "",
			"400 the body must be a JSON object, not array [] /need"));
	say(&f, post("/need", "", "{"));
	hear(&f, "HTTP/1.1 400 Bad Request\r\n");
	finish(&f);
}

TEST(a_body_must_be_called_json)
{
	static const char *const good[] = {"application/json", "Application/JSON ; charset=utf-8",
					   "application/x+json"};
	static const char *const bad[] = {"text/plain", "application/x-www-form-urlencoded",
					  "application/jsonx", ""};
	struct fixture f;
	char type[128];

	start(&f, &worded);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(type, sizeof(type), "Content-Type: %s\r\n", good[i]);
		say(&f, post("/need", type, "{'string':''}"));
		hear(&f, answer("201 Created", "", "null"));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(type, sizeof(type), "Content-Type: %s\r\n", bad[i]);
		say(&f, post("/need", type, "{'string':''}"));
		hear(&f, answer("415 Unsupported Media Type", "",
				"415 Content-Type must be application/json [-] /need"));
	}
	finish(&f);
}

TEST(whoever_has_shown_the_token_may_call_it_as_he_likes)
{
	struct fixture f;

	start(&f, &worded);
	strcpy(f.world.endpoint->token, "secret");
	say(&f, post("/need",
		     "Authorization: Bearer secret\r\n"
		     "Content-Type: application/x-www-form-urlencoded\r\n",
		     "{'string':''}"));
	hear(&f, answer("201 Created", "", "null"));
	say(&f, "GET /open HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
		"Content-Length: 2\r\n\r\n{}");
	hear(&f, "HTTP/1.1 415 Unsupported Media Type\r\n");
	finish(&f);
}

TEST(a_body_too_large_is_refused)
{
	struct fixture f;

	start(&f, &worded);
	say(&f, "POST /need HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100001\r\n\r\n");
	hear(&f, "HTTP/1.1 413 Content Too Large\r\n");
	assert_true(dialer_wait_eof(&f.client, &f.world));
	finish(&f);
}

TEST(other_paths_and_methods_are_refused)
{
	struct fixture f;

	start(&f, &worded);
	get(&f, "/", "404 Not Found", "404 Not found [-] -");
	get(&f, "/all/", "404 Not Found", "404 Not found [-] -");
	get(&f, "/%61ll", "404 Not Found", "404 Not found [-] -");
	get(&f, "/place/", "404 Not Found", "404 Not found [-] -");
	get(&f, "/place/..", "404 Not Found", "404 Not found [-] -");
	say(&f, "DELETE /all HTTP/1.1\r\nHost: localhost\r\n\r\n");
	hear(&f, answer("405 Method Not Allowed", "Allow: GET, HEAD, POST\r\n",
			"405 Method not allowed [-] -"));
	say(&f, GET("/need"));
	hear(&f,
	     answer("405 Method Not Allowed", "Allow: POST\r\n", "405 Method not allowed [-] -"));
	finish(&f);
}

TEST(a_head_has_no_body)
{
	struct fixture f;

	start(&f, &plain);
	say(&f, HEAD("/all") HEAD("/short") GET("/open"));
	hear(&f, "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n"
		 "Content-Length: 29\r\nConnection: keep-alive\r\n\r\n"
		 "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n"
		 "Connection: keep-alive\r\nCache-Control: no-store\r\n\r\n");
	hear(&f, answer("201 Created", "", "null"));
	finish(&f);
}

TEST(refusals_have_a_status_and_words)
{
	struct fixture f;

	start(&f, &worded);
	get(&f, "/own", "502 Bad Gateway", "502 no model [-] /own");
	get(&f, "/busy", "429 Too Many Requests", "429 enough [] /busy");
	finish(&f);
	start(&f, &plain);
	get(&f, "/own", "502 Bad Gateway", "{'error':{'message':'no model'}}");
	finish(&f);
}

TEST(routes_and_json_rpc_live_side_by_side)
{
	struct fixture f;

	start(&f, &mixed);
	get(&f, "/open", "201 Created", "null");
	say(&f, post("/rpc", "", "{'jsonrpc':'2.0','method':'stream','id':1}"));
	hear(&f, answer("200 OK", "", "{'jsonrpc':'2.0','result':-95,'id':1}"));
	say(&f, GET("/nowhere"));
	hear(&f, "HTTP/1.1 405 Method Not Allowed\r\n");
	finish(&f);
}

/* ---- the token ---- */

TEST(the_token_comes_in_several_ways)
{
	static const struct {
		const char *request;
		const char *status;
	} cases[] = {
		{"GET /all HTTP/1.1\r\nHost: localhost\r\n\r\n", "401"},
		{"GET /all?token=secret HTTP/1.1\r\nHost: localhost\r\n\r\n", "401"},
		{"GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n", "201"},
		{"GET /all HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n",
		 "200"},
		{"GET /all HTTP/1.1\r\nHost: localhost\r\nAuthorization: secret\r\n\r\n", "200"},
		{"GET /all HTTP/1.1\r\nHost: localhost\r\nAuthorization: secre\r\n\r\n", "403"},
		{"GET /all HTTP/1.1\r\nHost: localhost\r\nX-Token: secret\r\n\r\n", "200"},
		{"GET /all HTTP/1.1\r\nHost: localhost\r\nX-Token: Bearer secret\r\n\r\n", "403"},
		{"GET /ws?x=1&token=%73ecret HTTP/1.1\r\nHost: localhost\r\n\r\n", "426"},
		{"GET /ws?token=other HTTP/1.1\r\nHost: localhost\r\n\r\n", "403"},
		{"GET /ws?token=%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", "403"},
		{"GET /open HTTP/1.1\r\nHost: localhost\r\nOrigin: http://other\r\n\r\n", "403"},
		{"GET /open HTTP/1.1\r\nHost: example.org\r\n\r\n", "403"},
	};
	struct fixture f;

	start(&f, &tokens);
	f.world.endpoint->tcp = true;
	strcpy(f.world.endpoint->token, "secret");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dialer c;

		assert_int_equal(dialer_init(&c, &f.world), 0);
		assert_true(
			dialer_send_n(&c, &f.world, cases[i].request, strlen(cases[i].request)));
		assert_true(dialer_wait(&c, &f.world, 40));
		if (memcmp(c.in.data + 9, cases[i].status, 3) != 0)
			fail_msg("%s\n%.*s", cases[i].request, (int)c.in.len, c.in.data);
		dialer_done(&c);
	}
	finish(&f);
}

TEST(without_a_token_nobody_comes_in_where_one_is_needed)
{
	struct fixture f;

	start(&f, &tokens);
	say(&f, GET("/open") "GET /all HTTP/1.1\r\nHost: localhost\r\n"
			     "Authorization: Bearer \r\n\r\n");
	hear(&f, answer("201 Created", "", "null"));
	hear(&f, "HTTP/1.1 401 Unauthorized\r\n");
	assert_true(dialer_wait_eof(&f.client, &f.world));
	assert_non_null(
		memmem(f.client.in.data, f.client.in.len, "401 no token is set [-] /all", 28));
	finish(&f);
}

TEST(a_second_way_needs_to_be_asked_for)
{
	struct fixture f;

	start(&f, &plain);
	strcpy(f.world.endpoint->token, "secret");
	say(&f, "GET /all HTTP/1.1\r\nHost: localhost\r\nAuthorization: secret\r\n\r\n");
	hear(&f, "HTTP/1.1 401 Unauthorized\r\n");
	finish(&f);
}

/* ---- answers in pieces ---- */

#define STREAM_HEAD                                                                                \
	"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"                                   \
	"Transfer-Encoding: chunked\r\nConnection: keep-alive\r\nCache-Control: no-store\r\n\r\n"

TEST(a_stream_is_sent_as_it_comes)
{
	struct fixture f;

	start(&f, &plain);
	say(&f, GET("/stream") GET("/open"));
	hear(&f, STREAM_HEAD "4\r\none\n\r\n");
	/* what is asked behind it waits */
	hear_nothing(&f, &f.client);
	assert_int_equal(call_stream(waiting, "two", 3), 0);
	hear(&f, "3\r\ntwo\r\n");
	(void)call_stream_end(waiting);
	hear(&f, "0\r\n\r\n");
	hear(&f, answer("201 Created", "", "null"));
	say(&f, GET("/short"));
	hear(&f, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n"
		 "Connection: keep-alive\r\nCache-Control: no-store\r\n\r\n"
		 "11\r\n0123456789abcdef!\r\n0\r\n\r\n");
	finish(&f);
}

TEST(an_old_client_reads_a_stream_to_its_end)
{
	struct fixture f;

	start(&f, &plain);
	say(&f, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	hear(&f, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
		 "Connection: close\r\nCache-Control: no-store\r\n\r\none\n");
	assert_int_equal(call_stream(waiting, "two", 3), 0);
	(void)call_stream_end(waiting);
	hear(&f, "two");
	hear_end(&f);
	finish(&f);
}

TEST(a_stream_that_fails_is_cut)
{
	struct fixture f;

	start(&f, &plain);
	say(&f, GET("/stream") GET("/open"));
	hear(&f, STREAM_HEAD "4\r\none\n\r\n");
	(void)call_fail(waiting, refuse(&waiting->error, REFUSE_UNAVAILABLE, "gone"));
	hear_end(&f);
	finish(&f);
}

TEST(who_leaves_a_stream_cancels_it)
{
	struct fixture f;

	start(&f, &plain);
	say(&f, GET("/stream"));
	hear(&f, STREAM_HEAD "4\r\none\n\r\n");
	dialer_done(&f.client);
	turn_until_cancelled(&f);
	assert_int_equal(n_cancels, 1);
	finish(&f);
}

TEST(who_sends_no_more_is_taken_to_have_left)
{
	struct fixture f;

	start(&f, &plain);
	say(&f, GET("/stream"));
	hear(&f, STREAM_HEAD "4\r\none\n\r\n");
	shutdown(f.client.fd, SHUT_WR);
	hear_end(&f);
	assert_int_equal(n_cancels, 1);
	finish(&f);
}

TEST(pieces_for_nobody_are_refused)
{
	struct fixture f;
	struct call *c;

	start(&f, &plain);
	say(&f, GET("/stream"));
	hear(&f, STREAM_HEAD "4\r\none\n\r\n");
	c = waiting;
	c->on_cancel = NULL; /* one that does not care */
	dialer_done(&f.client);
	while (c->client)
		assert_true(world_turn(&f.world, NULL));
	assert_int_equal(call_stream(c, "x", 1), -ENOTCONN);
	(void)call_stream_end(c);
	finish(&f);
}

TEST(who_does_not_read_a_stream_is_told_of)
{
	struct limits limits = default_limits;
	static char piece[65536];
	struct fixture f;
	unsigned n = 0;
	int r;

	limits.queue_bytes = 100000;
	start_with(&f, &plain, &limits);
	say(&f, GET("/stream"));
	hear(&f, STREAM_HEAD "4\r\none\n\r\n");
	memset(piece, 'x', sizeof(piece));
	while ((r = call_stream(waiting, piece, sizeof(piece))) == 0)
		assert_true(++n < 1000);
	assert_int_equal(r, -ENOBUFS);
	/* it reads again */
	while (call_stream(waiting, "y", 1) != 0) {
		assert_true(world_turn(&f.world, &f.client));
		dialer_read(&f.client);
	}
	(void)call_stream_end(waiting);
	say(&f, GET("/open"));
	while (f.client.in.len < 12 ||
	       memcmp(f.client.in.data + f.client.in.len - 8, "\r\n\r\nnull", 8) != 0)
		assert_true(dialer_wait(&f.client, &f.world, f.client.in.len + 1));
	finish(&f);
}

TEST(a_stalled_stream_does_not_outlive_its_failure)
{
	struct limits limits = default_limits;
	static char piece[65536];
	struct fixture f;

	limits.queue_bytes = 100000;
	limits.linger_ms = 1;
	start_with(&f, &plain, &limits);
	say(&f, GET("/stream"));
	hear(&f, STREAM_HEAD "4\r\none\n\r\n");
	while (call_stream(waiting, piece, sizeof(piece)) == 0)
		continue;
	(void)call_fail(waiting, refuse(&waiting->error, REFUSE_LIMIT, "not read"));
	while (f.world.server->n_clients > 0)
		assert_true(world_turn(&f.world, NULL));
	finish(&f);
}

TEST(a_watched_call_is_cancelled_when_its_client_leaves)
{
	struct fixture f;

	start(&f, &plain);
	say(&f, GET("/watched"));
	while (!waiting)
		assert_true(world_turn(&f.world, NULL));
	/* what comes meanwhile is kept */
	say(&f, GET("/open"));
	hear_nothing(&f, &f.client);
	assert_int_equal(n_cancels, 0);
	dialer_done(&f.client);
	turn_until_cancelled(&f);
	finish(&f);
}

TEST(other_calls_go_on_when_their_client_leaves)
{
	struct fixture f;

	start(&f, &plain);
	say(&f, GET("/later"));
	while (!waiting)
		assert_true(world_turn(&f.world, NULL));
	dialer_done(&f.client);
	while (f.world.server->n_clients > 0)
		assert_true(world_turn(&f.world, NULL));
	assert_int_equal(n_cancels, 0);
	(void)call_reply(waiting);
	finish(&f);
}

TEST(a_server_that_stops_lets_a_stream_end)
{
	struct fixture f;

	start(&f, &plain);
	say(&f, GET("/stream"));
	hear(&f, STREAM_HEAD "4\r\none\n\r\n");
	server_stop(f.world.server);
	assert_int_equal(call_stream(waiting, "two", 3), 0);
	(void)call_stream_end(waiting);
	hear(&f, "3\r\ntwo\r\n0\r\n\r\n");
	hear_end(&f);
	finish(&f);
}

/* ---- connections handed over ---- */

#define UPGRADE                                                                                    \
	"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\n"               \
	"Upgrade: WebSocket\r\n\r\n"
#define SWITCH                                                                                     \
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"        \
	"X-Asked: yes\r\n\r\n"

TEST(a_route_can_take_the_connection_over)
{
	struct fixture f;

	start(&f, &plain);
	say(&f, GET("/open") UPGRADE "first");
	hear(&f, answer("201 Created", "", "null"));
	hear(&f, SWITCH "first");
	say(&f, GET("/open"));
	hear(&f, GET("/open"));
	say(&f, "end");
	hear(&f, "so be it");
	hear_end(&f);
	dialer_done(&f.client);
	while (echo_open)
		assert_true(world_turn(&f.world, NULL));
	assert_int_equal(upgraded_write(&echo, "x", 1), -ENOTCONN);
	finish(&f);
}

TEST(what_is_no_upgrade_stays_http)
{
	struct fixture f;

	start(&f, &worded);
	say(&f, GET("/ws"));
	hear(&f, answer("426 Upgrade Required", "Upgrade: websocket\r\n",
			"426 This path accepts only WebSocket connections [-] /ws"));
	say(&f, "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
		"Upgrade: h2c\r\n\r\n");
	hear(&f, "HTTP/1.1 426 ");
	finish(&f);
	start(&f, &worded);
	say(&f, "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
		"Sec-WebSocket-Version: 12\r\nUpgrade: websocket\r\n\r\n" GET("/open"));
	hear(&f, answer("400 Bad Request", "", "400 too old [-] /ws"));
	hear(&f, answer("201 Created", "", "null"));
	finish(&f);
}

TEST(who_took_over_hears_that_its_client_left)
{
	struct fixture f;

	start(&f, &plain);
	say(&f, UPGRADE);
	hear(&f, SWITCH);
	assert_true(echo_open);
	dialer_done(&f.client);
	while (echo_open)
		assert_true(world_turn(&f.world, NULL));
	finish(&f);
}

TEST(who_took_over_says_goodbye_when_the_server_stops)
{
	struct fixture f;

	start(&f, &plain);
	say(&f, UPGRADE);
	hear(&f, SWITCH);
	server_stop(f.world.server);
	hear(&f, "goodbye");
	hear_end(&f);
	dialer_done(&f.client);
	while (!f.stopped)
		assert_true(world_turn(&f.world, NULL));
	assert_false(echo_open);
	finish(&f);
}

TEST(who_took_over_is_told_when_there_is_room_again)
{
	struct limits limits = default_limits;
	static char piece[65536];
	struct fixture f;

	limits.queue_bytes = 100000;
	start_with(&f, &plain, &limits);
	say(&f, UPGRADE);
	hear(&f, SWITCH);
	while (upgraded_write(&echo, piece, sizeof(piece)) == 0)
		continue;
	assert_int_equal(n_drained, 0);
	while (n_drained == 0) {
		dialer_read(&f.client);
		assert_true(world_turn(&f.world, &f.client));
	}
	assert_int_equal(upgraded_write(&echo, "x", 1), 0);
	finish(&f);
}

/* ---- the query itself ---- */

TEST(queries_are_split_and_decoded)
{
	struct text path;
	struct text query;
	struct http_pair pair;
	char out[16];
	size_t n;

	http_target_split(TEXT("/a?b=c?d"), &path, &query);
	assert_true(text_is(path, "/a") && text_is(query, "b=c?d"));
	http_target_split(TEXT("/a"), &path, &query);
	assert_true(text_is(path, "/a") && !query.data);
	query = TEXT("&a=b=c&&d&=e&");
	assert_true(http_query_next(&query, &pair));
	assert_true(text_is(pair.name, "a") && text_is(pair.value, "b=c"));
	assert_true(http_query_next(&query, &pair));
	assert_true(text_is(pair.name, "d") && text_is(pair.value, ""));
	assert_true(http_query_next(&query, &pair));
	assert_true(text_is(pair.name, "") && text_is(pair.value, "e"));
	assert_false(http_query_next(&query, &pair));
	assert_true(http_query_decode(TEXT("%41%4a+%2B%00"), out, &n));
	assert_int_equal(n, 5);
	assert_memory_equal(out, "AJ +", 5);
	assert_false(http_query_decode(TEXT("%"), out, &n));
	assert_false(http_query_decode(TEXT("%c3"), out, &n));
	assert_false(http_query_decode(TEXT("%ed%a0%80"), out, &n));
}
