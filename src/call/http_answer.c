#include "call/http.h"

#include "base/log.h"

enum { PATH_LOGGED = 200 };

static void send_response(struct client *s, struct http_response response, const char *body,
			  size_t len)
{
	response.keep_alive = s->http_keep_alive && !s->closing;
	if (!response.always)
		response.always = s->endpoint->dialect->http_headers;
	http_write_response(conn_out(s->conn), &response, body, len);
	if (!response.keep_alive)
		s->closing = true;
}

void http_send_as(struct client *s, const struct http_response *response, const char *body,
		  size_t len)
{
	struct http_response as = *response;

	as.head_only |= s->http_head;
	send_response(s, as, body, len);
}

void http_send(struct client *s, int status, const char *extra, const char *body, size_t len)
{
	const struct http_response response = {
		.status = status ? status : 200, .head_only = s->http_head, .extra = extra};

	send_response(s, response, body, len);
}

bool http_send_head(struct client *s, int status, size_t len)
{
	const struct http_response response = {.status = status ? status : 200, .head_only = true};

	send_response(s, response, NULL, len);
	return !s->http_head;
}

void http_write_refusal(const struct dialect *d, struct buf *body, const struct http_refusal *no)
{
	struct json j = json_writer(body);

	if (d->http_refusal) {
		d->http_refusal(body, no);
		return;
	}
	json_begin_object(&j);
	json_member_object(&j, "error");
	json_member_text(&j, "message", no->message);
	json_end_object(&j);
	json_end_object(&j);
}

static void write_error(const struct dialect *d, struct buf *body, const struct http_refusal *no)
{
	struct json j = json_writer(body);

	if (d->http_refusal || no->route)
		http_write_refusal(d, body, no);
	else if (d->http_error)
		d->http_error(body, no->status, no->message.data);
	else
		jsonrpc_write_error(&d->rules, &j, (struct text) {0},
				    d->errors[REFUSE_REQUEST].code, no->message, (struct text) {0});
}

bool http_refusal_below(const struct http_refusal *no, const char *path)
{
	struct text asked = no->route ? text_of(no->route->path) : no->target;
	size_t n = strlen(path);

	return asked.len >= n && memcmp(asked.data, path, n) == 0;
}

void http_send_refusal(struct client *s, const char *extra, const struct http_refusal *no)
{
	const struct dialect *d = s->endpoint->dialect;
	struct http_response response = {
		.status = no->status, .extra = extra, .content_type = d->http_refusal_type};
	struct buf body;

	buf_init(&body, 4096);
	if (no->status == 413 && d->http_too_large && d->http_too_large(&body, no))
		response.status = 200;
	else
		write_error(d, &body, no);
	s->endpoint->n_errors++;
	http_send_as(s, &response, body.data, body.len);
	buf_done(&body);
}

void http_send_error(struct client *s, int status, const char *extra, const char *text,
		     const struct http_route *route)
{
	const struct http_refusal no = {.status = status, .message = text_of(text), .route = route};

	http_send_refusal(s, extra, &no);
}

/* Not what follows it: a query may hold a token. */
static size_t path_length(struct text target)
{
	size_t n = 0;

	while (n < target.len && n < PATH_LOGGED && target.data[n] != '?')
		n++;
	return n;
}

static void turn_away(struct client *s, const struct gate_refusal *no,
		      const struct http_route *route, struct text target)
{
	const struct http_refusal refusal = {.status = no->status,
					     .message = text_of(no->text),
					     .route = route,
					     .target = target};

	s->endpoint->n_gate[no->reason]++;
	if (no->status == 401 || no->status == 403)
		s->http_keep_alive = false;
	log_caused(LOG_LEVEL_INFO, "request refused",
		   "connection=%llu dialect=%s status=%d path=%.*s reason=\"%s\"",
		   (unsigned long long)s->number, s->endpoint->dialect->name, no->status,
		   (int)path_length(target), target.data, no->text);
	http_send_refusal(s, no->extra, &refusal);
}

static bool pass_gate(struct client *s, const struct http_request *r, bool keep_alive,
		      struct route_found *ret_found, struct path_name *ret_name)
{
	struct gate_refusal no;

	s->http_keep_alive = keep_alive;
	s->http_head = text_is(r->method, "HEAD");
	s->http_old = r->minor == 0;
	route_find(s->endpoint->dialect, r, ret_found);
	if (gate_check(s, r, ret_found, ret_name, &no))
		return true;
	turn_away(s, &no, ret_found->route, r->target);
	return false;
}

bool http_admit_head(struct client *s, const struct frame *frame)
{
	struct route_found found;
	struct path_name path_name;

	/* Our answer ends the connection: the body is not read. */
	return pass_gate(s, frame->http, false, &found, &path_name) &&
	       (!found.route || route_admit(s, frame->http, found.route, true));
}

bool http_admit(struct client *s, const struct frame *frame, struct path_name *ret_name)
{
	struct route_found found;

	if (!pass_gate(s, frame->http, frame->http->keep_alive, &found, ret_name))
		return false;
	if (!found.route)
		return true;
	route_start(s, frame, &found);
	return false;
}
