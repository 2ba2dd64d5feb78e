/*
 * How a stream may begin. The first bytes show who came to the wrong door: a TLS client, which
 * would wait for an answer that never comes, and, where lines are spoken on TCP, a web page,
 * whose request is a line, too, and whose body it could fill with lines of its own.
 */
#include "call/call.h"
#include "call/client.h"
#include "wire/framing.h"

enum { TLS_HANDSHAKE = 0x16, TLS_MAJOR = 3 };

/* The other framings refuse that by themselves: it is a length that is too large, or not gob. */
static bool is_tls(const struct client *s, struct text first)
{
	const struct framing *f = s->framing;

	if (f && f != &framing_http && f != &framing_line)
		return false;
	return first.len >= 2 && first.data[0] == TLS_HANDSHAKE && first.data[1] == TLS_MAJOR;
}

static bool client_open_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool takes_batches(const struct client *s)
{
	return !(s->endpoint->dialect->rules.flags & JSONRPC_NO_BATCH);
}

static bool begins_object(const struct client *s, struct text first)
{
	size_t i = 0;

	while (i < first.len && client_open_is_blank(first.data[i]))
		i++;
	return i == first.len || first.data[i] == '{' || (first.data[i] == '[' && takes_batches(s));
}

static bool lines_on_tcp(const struct client *s)
{
	return s->framing == &framing_line && s->endpoint->tcp;
}

static bool no_object(struct frame *ret_no)
{
	refuse(&ret_no->error, REFUSE_PARSE, "over TCP the first line must be a JSON object");
	return false;
}

bool client_may_open(const struct client *s, struct text first, struct frame *ret_no)
{
	if (is_tls(s, first)) {
		ret_no->status = 400;
		refuse(&ret_no->error, REFUSE_PARSE, "TLS is not supported");
		return false;
	}
	return !lines_on_tcp(s) || begins_object(s, first) || no_object(ret_no);
}

bool client_may_go_on(const struct client *s, const struct call *first, struct frame *ret_no)
{
	const struct value *v = first->tree;

	if (!lines_on_tcp(s) || (v && v->kind == VALUE_OBJECT) ||
	    (v && v->kind == VALUE_ARRAY && takes_batches(s)))
		return true;
	return no_object(ret_no);
}
