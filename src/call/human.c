#include "call/human.h"

#include <stdio.h>

#include "call/call.h"
#include "call/server.h"

/* Many clients send all members and leave those empty that they do not use. */
static bool is_empty(const struct value *v)
{
	return !v || v->kind == VALUE_NULL ||
	       ((v->kind == VALUE_STRING || v->kind == VALUE_ARRAY || v->kind == VALUE_OBJECT) &&
		v->len == 0);
}

static bool is_for_humans(const struct call *c, const struct field *f, const struct value *v)
{
	switch (f->for_humans) {
	case ANYBODY:
		return false;
	case HUMANS:
		return !is_empty(v);
	case HUMANS_IF_PROGRAM:
		return !is_empty(v) && v->kind == VALUE_STRING &&
		       c->server->opts.is_program(c, value_text(v));
	}
	return true;
}

/* NULL: there is none, or the whole method is for humans. */
static const struct field *find_field(const struct call *c)
{
	const struct method *m = c->method;

	if (m->flags & METHOD_FOR_HUMANS)
		return NULL;
	for (unsigned i = 0; c->given && i < m->n_fields; i++) {
		if (is_for_humans(c, &m->fields[i], c->given[i]))
			return &m->fields[i];
	}
	return NULL;
}

bool human_needed(struct call *c)
{
	if (!c->server->opts.check_human)
		return false;
	c->for_humans = find_field(c);
	return (c->method->flags & METHOD_FOR_HUMANS) || c->for_humans;
}

static int check(struct call *c)
{
	/* Other users were let in to talk, not to become the user of koined. */
	if (c->peer.other && !c->endpoint->dialect->lets_in)
		return refuse(&c->why, REFUSE_FORBIDDEN, "only koined's own user may");
	return c->server->opts.check_human(c);
}

int human_check(struct call *c)
{
	const struct field *f = c->for_humans;
	char text[sizeof(c->why.text)];
	int r = check(c);

	if (r <= 0)
		return r;
	snprintf(text, sizeof(text), "%s", c->why.text);
	return refuse(&c->why, REFUSE_FORBIDDEN, "agents may not %s %s: %.400s", f ? "set" : "call",
		      f ? f->name : c->method->name, text);
}
