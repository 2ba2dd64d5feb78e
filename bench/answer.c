/*
 * Enough of a JSON reader to judge an answer: it walks the members of the
 * outermost object and steps over what is inside them. It is written apart from
 * the project's own reader, so that a fault there cannot hide itself here.
 */
#include "answer.h"

#include <errno.h>
#include <string.h>

struct cursor {
	const char *at;
	const char *end;
};

static char peek(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\r'))
		c->at++;
	return c->at < c->end ? *c->at : 0;
}

static bool expect(struct cursor *c, char wanted)
{
	if (peek(c) != wanted)
		return false;
	c->at++;
	return true;
}

/* A quote behind an odd number of backslashes is not the end. */
static bool is_escaped(const char *start, const char *quote)
{
	const char *at = quote;

	while (at > start && at[-1] == '\\')
		at--;
	return (quote - at) % 2 == 1;
}

static bool take_string(struct cursor *c, struct text *ret)
{
	const char *start, *quote;

	if (!expect(c, '"'))
		return false;
	start = c->at;
	do {
		quote = memchr(c->at, '"', (size_t)(c->end - c->at));
		if (!quote)
			return false;
		c->at = quote + 1;
	} while (is_escaped(start, quote));
	*ret = (struct text) {.data = start, .len = (size_t)(quote - start)};
	return true;
}

/* Everything up to the bracket that closes the one we stand on. */
static bool skip_nested(struct cursor *c)
{
	unsigned depth = 0;
	struct text unused;

	while (c->at < c->end) {
		switch (*c->at) {
		case '"':
			if (!take_string(c, &unused))
				return false;
			continue;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			if (--depth == 0) {
				c->at++;
				return true;
			}
			break;
		}
		c->at++;
	}
	return false;
}

static bool take_value(struct cursor *c, struct text *ret)
{
	struct text unused;
	char first = peek(c);
	const char *start = c->at;
	bool ok = true;

	if (first == '{' || first == '[') {
		ok = skip_nested(c);
	} else if (first == '"') {
		ok = take_string(c, &unused);
	} else {
		while (c->at < c->end && *c->at != ',' && *c->at != '}' && *c->at != ' ')
			c->at++;
	}
	*ret = (struct text) {.data = start, .len = (size_t)(c->at - start)};
	return ok && ret->len > 0;
}

static bool take_number(struct text t, uint64_t *ret)
{
	uint64_t n = 0;

	if (t.len == 0 || t.len > 19)
		return false;
	for (size_t i = 0; i < t.len; i++) {
		if (t.data[i] < '0' || t.data[i] > '9')
			return false;
		n = n * 10 + (uint64_t)(t.data[i] - '0');
	}
	*ret = n;
	return true;
}

struct members {
	struct text id, result, error;
};

static bool take_members(struct cursor *c, struct members *m)
{
	struct text key, value;

	if (!expect(c, '{'))
		return false;
	do {
		if (!take_string(c, &key) || !expect(c, ':') || !take_value(c, &value))
			return false;
		if (text_is(key, "id"))
			m->id = value;
		else if (text_is(key, "result"))
			m->result = value;
		else if (text_is(key, "error"))
			m->error = value;
	} while (expect(c, ','));
	return expect(c, '}') && peek(c) == 0;
}

int answer_read(struct text body, uint64_t *ret_id, const char **ret_wrong)
{
	struct cursor c = {.at = body.data, .end = body.data + body.len};
	struct members m = {0};

	if (!take_members(&c, &m))
		*ret_wrong = "not a JSON object";
	else if (m.error.data && !text_is(m.error, "null"))
		*ret_wrong = "an error";
	else if (!m.result.data || text_is(m.result, "null"))
		*ret_wrong = "no result";
	else if (!take_number(m.id, ret_id))
		*ret_wrong = "no usable id";
	else
		return 0;
	return -EPROTO;
}

bool answer_member(struct text object, const char *name, struct text *ret_value)
{
	struct cursor c = {.at = object.data, .end = object.data + object.len};
	struct text key, value;

	if (!expect(&c, '{'))
		return false;
	do {
		if (!take_string(&c, &key) || !expect(&c, ':') || !take_value(&c, &value))
			return false;
		if (!text_is(key, name))
			continue;
		if (value.data[0] == '"')
			value = (struct text) {.data = value.data + 1, .len = value.len - 2};
		*ret_value = value;
		return true;
	} while (expect(&c, ','));
	return false;
}
