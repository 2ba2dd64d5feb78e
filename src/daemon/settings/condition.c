#include "daemon/settings/condition.h"

#include <errno.h>
#include <string.h>

#include "base/value.h"

static struct text take_word(const char **at)
{
	struct text word;

	*at += strspn(*at, " \t");
	word = (struct text) {.data = *at, .len = strcspn(*at, " \t")};
	*at += word.len;
	*at += strspn(*at, " \t");
	return word;
}

/* A number, true, false or null; anything else is text, and so is anything in quotes. */
static struct value value_of(const char *text)
{
	struct value v = {.kind = VALUE_NUMBER, .text = text, .len = (uint32_t)strlen(text)};
	double d;

	if (strspn(text, "0123456789.-") == v.len && value_double(&v, &d))
		return v;
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		return (struct value) {.kind = text[0] == 't' ? VALUE_TRUE : VALUE_FALSE};
	if (strcmp(text, "null") == 0)
		return (struct value) {.kind = VALUE_NULL};
	v.kind = VALUE_STRING;
	if (v.len >= 2 && text[0] == '"' && text[v.len - 1] == '"') {
		v.text = text + 1;
		v.len -= 2;
	}
	return v;
}

int condition_parse(const char *text, struct arena *a, struct event_condition *ret_condition)
{
	const char *at = text;
	struct value *v = arena_alloc(a, sizeof(*v));
	struct event_condition c;

	if (!v)
		return -ENOMEM;
	c.field = take_word(&at);
	c.operator= take_word(&at);
	if (c.operator.len == 0)
		return -EINVAL;
	*v = value_of(at);
	c.value = at[0] ? v : NULL;
	/* A regular expression is text, whatever it looks like. */
	if (text_is(c.operator, "matches") && v->kind != VALUE_STRING)
		*v = (struct value) {.kind = VALUE_STRING, .text = at, .len = (uint32_t)strlen(at)};
	*ret_condition = c;
	return 0;
}
