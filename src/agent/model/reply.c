/* What an answer has brought so far: text is passed on at once, tool calls are kept until
 * complete. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model/inner.h"
#include "base/uuid.h"

static int no_memory(struct agent_turn *t)
{
	return turn_fail(t, "ProviderError", "out of memory while reading the response");
}

void reply_init(struct reply *r)
{
	*r = (struct reply) {.usage = AGENT_NO_USAGE, .outcome = AGENT_DONE};
}

void reply_done(struct reply *r)
{
	for (unsigned i = 0; i < r->n_drafts; i++) {
		free(r->drafts[i].id);
		free(r->drafts[i].name);
		buf_done(&r->drafts[i].arguments);
	}
	free(r->drafts);
	r->drafts = NULL;
	r->n_drafts = 0;
}

int reply_text(struct agent_turn *t, struct text piece)
{
	if (piece.len > 0)
		t->sink.on_text(t->sink.arg, piece);
	return t->cancelled ? -ECANCELED : 0;
}

bool reply_count(const struct value *v, int64_t *ret_count)
{
	int64_t n;

	/* Sums of three must not overflow, whatever a provider says. */
	if (!value_int(v, &n) || n < 0 || n > INT64_MAX / 4)
		return false;
	*ret_count = n;
	return true;
}

/* ---- calls ---- */

static int model_reply_take(struct agent_turn *t, char **to, struct text from)
{
	if (*to || from.len == 0)
		return 0;
	if (from.len > MODEL_ID_MAX || memchr(from.data, '\0', from.len))
		return turn_fail_garbage(t, "a tool call has an invalid name or id");
	*to = strndup(from.data, from.len);
	return *to ? 0 : no_memory(t);
}

static struct draft *add_draft(struct reply *r, int64_t index)
{
	struct draft *more = realloc(r->drafts, (r->n_drafts + 1) * sizeof(*more));

	if (!more)
		return NULL;
	r->drafts = more;
	more += r->n_drafts++;
	*more = (struct draft) {.index = index};
	buf_init(&more->arguments, MODEL_ARGUMENTS_MAX);
	return more;
}

int reply_draft(struct agent_turn *t, int64_t index, struct text id, struct text name,
		struct draft **ret_draft)
{
	struct draft *d;
	int r;

	if (t->reply.n_drafts >= AGENT_CALLS_MAX)
		return turn_fail_garbage(t, "more than 64 tool calls");
	d = add_draft(&t->reply, index);
	if (!d)
		return no_memory(t);
	r = model_reply_take(t, &d->id, id) ?: model_reply_take(t, &d->name, name);
	if (r == 0)
		*ret_draft = d;
	return r;
}

int reply_name(struct agent_turn *t, struct draft *d, struct text id, struct text name)
{
	int r = model_reply_take(t, &d->id, id);

	return r != 0 ? r : model_reply_take(t, &d->name, name);
}

struct draft *reply_find_draft(const struct reply *r, int64_t index)
{
	for (unsigned i = r->n_drafts; i > 0; i--) {
		if (r->drafts[i - 1].index == index)
			return &r->drafts[i - 1];
	}
	return NULL;
}

int reply_arguments(struct agent_turn *t, struct draft *d, struct text piece)
{
	t->reply.n_arguments += piece.len;
	if (t->reply.n_arguments > MODEL_ARGUMENTS_MAX)
		return turn_fail_garbage(t, "the tool calls exceed their size limit");
	buf_add(&d->arguments, piece.data, piece.len);
	return d->arguments.err == 0 ? 0 : no_memory(t);
}

static int finish_draft(struct agent_turn *t, struct draft *d)
{
	char id[UUID_LEN + 1];

	if (!d->name)
		return turn_fail_garbage(t, "a tool call has no name");
	if (d->arguments.len == 0)
		buf_add_str(&d->arguments, "{}");
	if (!d->id && (uuid4(id) != 0 || asprintf(&d->id, "call_%s", id) < 0))
		d->id = NULL;
	return d->id && d->arguments.err == 0 ? 0 : no_memory(t);
}

int reply_finish_drafts(struct agent_turn *t)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < t->reply.n_drafts; i++)
		r = finish_draft(t, &t->reply.drafts[i]);
	return r;
}
