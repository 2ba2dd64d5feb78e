/*
 * requestState: what a modern client carries from one round to the next. It is signed, expires, and
 * counts only for the same user, the same method and name, and the same arguments.
 */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "mcp/inner.h"

/* What the state is bound to. */
static int write_about(struct mcp_call *mc, struct buf *about)
{
	struct text arguments = TEXT("{}");
	int r = 0;

	if (mc->arguments)
		r = json_compact(&mc->call->arena, mc->arguments, &arguments);
	buf_init(about, arguments.len + mc->name.len + 256);
	buf_printf(about, "%s\n%u\n", mc->row->method.name, (unsigned)mc->call->peer.uid);
	buf_add(about, mc->name.data, mc->name.len);
	buf_add_char(about, '\n');
	buf_add(about, arguments.data, arguments.len);
	return r != 0 ? r : about->err;
}

static void write_state(struct mcp_call *mc, struct buf *what)
{
	struct json j = json_writer(what);

	json_begin_object(&j);
	json_member_int(&j, "expires", clock_utc_ms() / 1000 + MCP_STATE_LIFE_S);
	json_member_object(&j, "answers");
	for (const struct mcp_question *q = mc->questions; q; q = q->next) {
		if (!q->answer)
			continue;
		json_key_text(&j, q->key);
		json_value(&j, q->answer);
	}
	json_end_object(&j);
	if (mc->state.data) {
		json_member_raw(&j, "state", mc->state);
	} else if (mc->kept) {
		/* Kept in an earlier round, and not replaced. */
		json_key(&j, "state");
		json_value(&j, mc->kept);
	}
	json_end_object(&j);
}

int mcp_state_add(struct mcp_call *mc, struct buf *out)
{
	CLEANUP(buf_donep) struct buf about = {0};
	CLEANUP(buf_donep) struct buf what = {0};
	int r;

	buf_init(&what, mc->call->out.max);
	r = write_about(mc, &about);
	write_state(mc, &what);
	if (r == 0)
		r = what.err;
	if (r == 0)
		seal_add(out, mc->mcp->key, buf_bytes(&what), buf_bytes(&about));
	return r;
}

static int mcp_state_bad(struct mcp_call *mc, const char *reason)
{
	return mcp_refuse_with(mc, -32602, 0, (struct text) {0}, "requestState %s", reason);
}

int mcp_state_read(struct mcp_call *mc, struct text sealed, const struct value **ret_answers)
{
	struct arena *a = &mc->call->arena;
	CLEANUP(buf_donep) struct buf about = {0};
	struct value *state;
	struct text what;
	struct error error;
	int64_t expires;
	int r = write_about(mc, &about)
			?: seal_open(a, mc->mcp->key, sealed, buf_bytes(&about), &what);

	if (r == -EBADMSG)
		return mcp_state_bad(
			mc, "belongs to another server or call; call again without requestState");
	if (r == 0)
		r = json_read(a, what.data, what.len, &json_default_limits, &state, &error);
	if (r != 0)
		return r < 0 ? r : mcp_state_bad(mc, "is invalid; call again without requestState");
	if (!value_int(value_find(state, "expires"), &expires) || expires < clock_utc_ms() / 1000)
		return mcp_state_bad(mc, "has expired; call again without requestState");
	*ret_answers = value_find(state, "answers");
	mc->kept = value_find(state, "state");
	return 0;
}
