#include "call/http.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "call/access.h"
#include "call/inner.h"

enum { QUERY_PAIRS_MAX = 64 };

/* ---- which one ---- */

static bool method_fits(const struct http_route *route, struct text method)
{
	return text_is(method, route->method) ||
	       (text_is(method, "HEAD") && strcmp(route->method, "GET") == 0);
}

static void allow(struct route_found *f, const struct http_route *route)
{
	size_t n = strlen(f->allow);

	snprintf(f->allow + n, sizeof(f->allow) - n, "%s%s%s",
		 n > 0 ? ", " : "Allow: ", route->method,
		 strcmp(route->method, "GET") == 0 ? ", HEAD" : "");
}

/* True: it is one of these. */
static bool http_route_find_in(const struct http_route *rows, unsigned n, struct text path,
			       struct text method, struct route_found *f)
{
	for (unsigned i = 0; i < n; i++) {
		f->path_name.len = 0;
		if (!gate_path_fits(rows[i].path, path, &f->path_name))
			continue;
		if (method_fits(&rows[i], method)) {
			f->route = &rows[i];
			return true;
		}
		allow(f, &rows[i]);
	}
	return false;
}

/* A first look that costs next to nothing: most requests are calls, which no route is for. */
static bool may_be_route(const struct http_route *rows, unsigned n, struct text target)
{
	/* "http://HOST?x=1" has no path at all. */
	if (target.len == 0 || target.data[0] != '/')
		return n > 0;
	for (unsigned i = 0; i < n; i++) {
		char second = rows[i].path[1];

		if (second == '\0' || second == '*' || (target.len > 1 && second == target.data[1]))
			return true;
	}
	return false;
}

void route_find(const struct dialect *d, const struct http_request *r, struct route_found *ret)
{
	const struct http_route_table *more = d->http_more_routes;
	struct text path;

	ret->route = NULL;
	ret->allow[0] = '\0';
	if (!may_be_route(d->http_routes, d->n_http_routes, r->target) &&
	    (!more || !may_be_route(more->rows, more->n, r->target)))
		return;
	http_target_split(r->target, &path, &ret->query);
	if (http_route_find_in(d->http_routes, d->n_http_routes, path, r->method, ret) ||
	    (more && http_route_find_in(more->rows, more->n, path, r->method, ret)))
		return;
	if (ret->allow[0])
		strcat(ret->allow, "\r\n");
}

/* ---- parameters ---- */

static const struct field *find_field(const struct method *m, struct text name)
{
	for (unsigned i = 0; i < m->n_fields; i++) {
		if (text_is(name, m->fields[i].name))
			return &m->fields[i];
	}
	return NULL;
}

static int http_route_decode(struct call *c, struct text t, struct text *ret)
{
	char *out = arena_alloc(&c->arena, t.len + 1);

	if (!out)
		return -ENOMEM;
	if (!http_query_decode(t, out, &ret->len))
		return refuse(&c->error, REFUSE_PARSE, "the query is not percent-encoded UTF-8");
	ret->data = out;
	return 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* People write ".3" and "05" as numbers; JSON does not know them. */
static bool write_number(struct call *c, struct text *t)
{
	size_t sign = t->len > 0 && t->data[0] == '-';
	size_t i = sign;
	char *out = arena_alloc(&c->arena, t->len + 2);
	char *p = out;

	if (!out)
		return false;
	while (i + 1 < t->len && t->data[i] == '0' && is_digit(t->data[i + 1]))
		i++;
	if (sign)
		*p++ = '-';
	if (i < t->len && t->data[i] == '.')
		*p++ = '0';
	memcpy(p, t->data + i, t->len - i);
	p += t->len - i;
	*t = (struct text) {.data = out, .len = (size_t)(p - out)};
	return true;
}

/* Numbers and booleans, where the field is one; "limit=" gives none. What cannot be read as one
 * stays text, and is refused as such. */
static bool read_plain(struct call *c, const struct field *f, struct text t, struct value **ret)
{
	const struct json_limits limits = {.depth = 1, .values = 1};
	struct error error;

	if (!f || (f->type != FIELD_INT && f->type != FIELD_NUMBER && f->type != FIELD_BOOL))
		return false;
	if (t.len == 0)
		t = TEXT("null");
	else if (f->type == FIELD_BOOL && (text_is(t, "1") || text_is(t, "0")))
		t = t.data[0] == '1' ? TEXT("true") : TEXT("false");
	else if (f->type != FIELD_BOOL && !write_number(c, &t))
		return false;
	if (json_read(&c->arena, t.data, t.len, &limits, ret, &error) != 0)
		return false;
	/* Only JSON allows white space here. */
	return (*ret)->raw_len == t.len && (*ret)->kind != VALUE_STRING;
}

static int make_string(struct call *c, struct text t, struct value **ret)
{
	struct value *v = arena_zalloc(&c->arena, sizeof(*v));
	struct buf raw;
	struct json j;

	if (!v)
		return -ENOMEM;
	buf_init(&raw, t.len * 6 + 2);
	j = json_writer(&raw);
	json_text(&j, t);
	v->kind = VALUE_STRING;
	v->text = t.data;
	v->len = (uint32_t)t.len;
	v->raw_len = (uint32_t)raw.len;
	v->raw = raw.err == 0 ? arena_copy(&c->arena, raw.data, raw.len) : NULL;
	buf_done(&raw);
	*ret = v;
	return v->raw ? 0 : -ENOMEM;
}

static int read_pair(struct call *c, const struct http_pair *pair, struct value **ret)
{
	struct text name;
	struct text value;
	int r = http_route_decode(c, pair->name, &name)
			?: http_route_decode(c, pair->value, &value);

	if (r == 0 && !read_plain(c, find_field(c->method, name), value, ret))
		r = make_string(c, value, ret);
	if (r != 0)
		return r;
	(*ret)->key = name.data;
	(*ret)->key_len = (uint32_t)name.len;
	return 0;
}

static bool has_key(const struct value *first, const struct value *end, const struct value *v)
{
	for (; first != end; first = first->next) {
		if (first->key_len == v->key_len && memcmp(first->key, v->key, v->key_len) == 0)
			return true;
	}
	return false;
}

static int twice(struct call *c, const struct value *v)
{
	char name[sizeof(c->error.field)];

	snprintf(name, sizeof(name), "%.*s",
		 (int)text_cut((struct text) {v->key, v->key_len}, sizeof(name) - 1).len, v->key);
	return refuse_field(&c->error, name, "duplicate parameter %s", name);
}

/* The query's pairs, then the body's members. */
static int read_params(struct call *c, struct text query)
{
	struct value *object = arena_zalloc(&c->arena, sizeof(*object));
	struct value **link;
	struct http_pair pair;

	if (!object)
		return -ENOMEM;
	object->kind = VALUE_OBJECT;
	link = &object->first;
	while (http_query_next(&query, &pair)) {
		struct value *v;
		int r = read_pair(c, &pair, &v);

		if (r != 0)
			return r;
		if (++object->len > QUERY_PAIRS_MAX)
			return refuse(&c->error, REFUSE_TOO_LARGE,
				      "more than %d parameters in the query", QUERY_PAIRS_MAX);
		if (has_key(object->first, NULL, v))
			return twice(c, v);
		*link = v;
		link = &v->next;
	}
	if (c->tree) {
		value_each (member, c->tree) {
			if (has_key(object->first, NULL, member))
				return twice(c, member);
		}
		object->len += c->tree->len;
		*link = c->tree->first;
	}
	c->request.params = object;
	return 0;
}

static int check_body(struct call *c)
{
	if (c->source.len == 0)
		return 0;
	if (!c->tree)
		return c->error.code;
	if (c->tree->kind != VALUE_OBJECT)
		return refuse(&c->error, REFUSE_REQUEST, "the body must be a JSON object, not %s",
			      value_kind_name(c->tree));
	return 0;
}

/* No type at all is fine: many programs send none. */
static bool is_json(const struct http_request *r)
{
	struct text type = http_header_find(r, "Content-Type");
	const char *end;

	if (!type.data)
		return true;
	end = memchr(type.data, ';', type.len);
	if (end)
		type.len = (size_t)(end - type.data);
	while (type.len > 0 && (type.data[type.len - 1] == ' ' || type.data[type.len - 1] == '\t'))
		type.len--;
	if (type.len == 16 && strncasecmp(type.data, "application/json", 16) == 0)
		return true;
	return type.len > 5 && strncasecmp(type.data + type.len - 5, "+json", 5) == 0;
}

/* Any web page may send forms and plain text without being asked; but no page has the token,
 * which a request to such a route must show. */
static bool type_will_do(const struct client *s, const struct http_request *r,
			 const struct http_route *route)
{
	bool shown = s->endpoint->token[0] && !(route->flags & ROUTE_OPEN);

	return shown || is_json(r);
}

/* ---- running a route ---- */

int route_status(const struct dialect *d, enum refusal code)
{
	static const int usual[N_REFUSALS] = {
		[REFUSE_PARSE] = 400,       [REFUSE_REQUEST] = 400,   [REFUSE_METHOD] = 404,
		[REFUSE_PARAMS] = 400,      [REFUSE_INTERNAL] = 500,  [REFUSE_NOT_FOUND] = 404,
		[REFUSE_CONFLICT] = 409,    [REFUSE_LIMIT] = 429,     [REFUSE_TOO_LARGE] = 413,
		[REFUSE_UNAVAILABLE] = 503, [REFUSE_FORBIDDEN] = 403, [REFUSE_TIMEOUT] = 504,
		[REFUSE_CANCELLED] = 503,   [REFUSE_STOPPING] = 503,
	};

	return d->errors[code].http_status ? d->errors[code].http_status : usual[code];
}

static bool asks_websocket(const struct http_request *r)
{
	return r->minor == 1 && text_is(r->method, "GET") &&
	       http_has_token(http_header_find(r, "Connection"), "Upgrade") &&
	       http_has_token(http_header_find(r, "Upgrade"), "websocket");
}

bool route_admit(struct client *s, const struct http_request *r, const struct http_route *route,
		 bool has_body)
{
	if ((route->flags & ROUTE_UPGRADE) && asks_websocket(r))
		return true;
	if (!route->row.handle)
		http_send_error(s, 426, "Upgrade: websocket\r\n",
				"This path accepts only WebSocket connections", route);
	else if (has_body && !type_will_do(s, r, route))
		http_send_error(s, 415, NULL, "Content-Type must be application/json", route);
	else
		return true;
	return false;
}

static void upgrade(struct client *s, const struct http_request *http,
		    const struct route_found *found)
{
	const struct upgrade_request request = {
		.http = http,
		.path_name = path_name_text(&found->path_name),
		.query = found->query,
	};
	struct error error = {.text = ""};
	int r = found->route->upgrade(s, &request, &error);

	if (r == 0)
		return;
	if (r < 0)
		refuse(&error, REFUSE_INTERNAL, "%s", fault_words(r));
	http_send_error(s, route_status(s->endpoint->dialect, error.code), NULL, error.text,
			found->route);
}

static void http_route_run(struct client *s, const struct frame *frame,
			   const struct route_found *found)
{
	struct call *c = frame->len > 0 ? dispatch_read(s, frame->data, frame->len, false)
					: dispatch_new_call(s);
	int r;

	if (!c) {
		client_end(s);
		return;
	}
	if (frame->len == 0)
		c->source = TEXT("");
	c->route = found->route;
	c->method = &found->route->row;
	c->watched = found->route->flags & ROUTE_WATCH;
	c->request.method = text_of(found->route->path);
	/* Valid until this returns, like the message; a call that goes on has its own copy. */
	c->path_name = path_name_text(&found->path_name);
	s->endpoint->n_calls++;
	if (found->route->flags & ROUTE_RPC) {
		dispatch_opened(c, frame->http);
		return;
	}
	c->http = frame->http;
	r = check_body(c) ?: read_params(c, found->query);
	if (r == 0 && found->route->head)
		r = found->route->head(c, frame->http);
	dispatch_go(c, r);
}

void route_start(struct client *s, const struct frame *frame, const struct route_found *found)
{
	const struct http_route *route = found->route;

	if (s->server->opts.log_messages)
		client_log(s, "in", frame->data, frame->len);
	if (!route_admit(s, frame->http, route, frame->len > 0))
		return;
	if ((route->flags & ROUTE_UPGRADE) && asks_websocket(frame->http) &&
	    !confined_may(s, route->path))
		http_send_error(s, 403, NULL,
				"Forbidden: a read-only agent may not open this WebSocket", route);
	else if ((route->flags & ROUTE_UPGRADE) && asks_websocket(frame->http))
		upgrade(s, frame->http, found);
	else
		http_route_run(s, frame, found);
}
