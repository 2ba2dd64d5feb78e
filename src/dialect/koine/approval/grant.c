/* Grants: what is allowed or denied in advance. */
#include <errno.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "dialect/koine/approval/approval.h"
#include "dialect/koine/koine.h"
#include "dialect/engine.h"

struct done koine_grant_list(struct call *c)
{
	struct grant *rows = NULL;
	unsigned n = 0;
	struct json *j;
	int r = grant_list(call_approvals(c), c->lane, &c->arena, &rows, &n);

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_nouns(j, "grants", &grant_schema, rows, n);
	return call_reply_object(c);
}

/* ---- a new one ---- */

static int read_grant(const struct grant_in *in, struct arena *a, struct grant *ret,
		      struct error *error)
{
	int64_t ms = 0;
	char *id = arena_alloc(a, UUID_LEN + 1);
	int r = id ? uuid4(id) : -ENOMEM;

	if (r != 0)
		return r;
	if (in->tool.len == 0)
		return refuse_field(error, "tool", "tool must not be empty; use * for any tool");
	r = koine_read_seconds(in->seconds, "for", &ms, error);
	if (r != 0)
		return r;
	*ret = (struct grant) {
		.id = {.data = id, .len = UUID_LEN},
		.session = in->session_id,
		.agent = in->agent,
		.tool = in->tool,
		.pattern = in->pattern,
		.verdict = text_is(in->verdict, "deny") ? GRANT_DENIES : GRANT_ALLOWS,
		.comment = in->comment,
		.created_ms = clock_utc_ms(),
		.uses = in->uses == 0 ? -1 : in->uses,
	};
	ret->expires_ms = ms > 0 ? ret->created_ms + ms : 0;
	return 0;
}

static void on_added(void *arg, int r, const struct approval *a, const struct error *error)
{
	struct call *c = arg;

	if (r != 0) {
		(void)call_fail_for(c, r, error);
		return;
	}
	json_noun(call_result(c), &grant_schema, (struct selection) {0}, c->state, 0);
	(void)call_reply(c);
}

struct done koine_grant_add(struct call *c)
{
	struct grant *row = arena_zalloc(&c->arena, sizeof(*row));
	int r = row ? read_grant(c->in, &c->arena, row, &c->error) : -ENOMEM;
	if (r != 0)
		return call_fail(c, r);
	c->state = row;
	return call_await(c, grant_add(call_approvals(c), row,
				       &(struct approval_client) {.is = true, .peer = c->peer},
				       on_added, c, &c->error));
}

/* ---- ending one ---- */

/* Finds the grant whose id begins with what the client gave. */
static int find_work(struct call *c)
{
	const struct grant_in *in = c->in;
	struct grant *rows = NULL;
	const struct grant *found = NULL;
	unsigned n = 0;
	int r = grant_list(call_approvals(c), c->lane, &c->arena, &rows, &n);

	for (unsigned i = 0; r == 0 && i < n; i++) {
		if (in->id.len == 0 || rows[i].id.len < in->id.len ||
		    memcmp(rows[i].id.data, in->id.data, in->id.len) != 0)
			continue;
		if (found)
			return refuse(&c->error, REFUSE_CONFLICT,
				      "ambiguous grant id: %.*s and %.*s", TEXT_ARGS(found->id),
				      TEXT_ARGS(rows[i].id));
		found = &rows[i];
	}
	if (r == 0 && !found)
		return refuse(&c->error, REFUSE_NOT_FOUND, "grant not found: %.*s",
			      in->id.len < 64 ? (int)in->id.len : 64, in->id.data);
	c->state = (void *)found;
	return r;
}

static void on_removed(void *arg, int r, const struct approval *a, const struct error *error)
{
	struct call *c = arg;
	const struct grant *row = c->state;

	(void)call_answer(c, r, error, PAIRS(JSON_TEXT("id", row->id), JSON_BOOL("revoked", true)));
}

static struct done find_then(struct call *c, int r)
{
	const struct grant *row = c->state;

	if (r != 0)
		return call_fail(c, r);
	return call_await(c, grant_remove(call_approvals(c), row->id,
					  &(struct approval_client) {.is = true, .peer = c->peer},
					  on_removed, c, &c->error));
}

struct done koine_grant_remove(struct call *c)
{
	return call_work(c, READER, find_work, find_then);
}
