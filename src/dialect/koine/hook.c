/* hook.run: an agent's hook, as `koine hook` relays it. */
#include "dialect/hook.h"

#include <errno.h>

#include "base/log.h"
#include "dialect/koine/koine.h"

struct run_in {
	const struct value *input;
	struct text format;
	struct text agent;
	struct text id;
	struct text session_id;
	struct text run_id;
	double timeout;
};

static struct done koine_hook_end(struct hook_call *h)
{
	struct json *j = call_object(h->call);

	json_key(j, "output");
	if (h->said.data)
		json_raw(j, h->said.data, h->said.len);
	else
		json_null(j);
	json_member_text(j, "status", h->status);
	return call_reply_object(h->call);
}

static int read(struct call *c, struct hook_call *h)
{
	const struct run_in *in = c->in;
	const struct hook_source from = {
		.text = {.data = in->input->raw, .len = in->input->raw_len},
		.tree = in->input,
		.format = in->format,
		.agent = in->agent,
	};
	int r = koine_read_seconds(in->timeout, "timeout", &h->wait_ms, &c->error);

	if (r != 0)
		return r;
	h->run = (struct hook_run) {.session = in->session_id, .id = in->run_id};
	h->id = in->id;
	h->bond = BOND_PROCESS;
	h->end = koine_hook_end;
	r = hook_read(&c->arena, &from, &h->hook, &c->error);
	if (r > 0 && !h->hook.told)
		log_caused(LOG_LEVEL_INFO, "invalid hook input", "agent=%.*s reason=\"%s\"",
			   TEXT_ARGS(text_cut(h->hook.agent, HOOK_ID_MAX)), c->error.text);
	return r;
}

static struct done handle_run(struct call *c)
{
	struct hook_call *h = arena_zalloc(&c->arena, sizeof(*h));
	int r = h ? read(c, h) : -ENOMEM;

	c->opened = h;
	if (r == 0)
		return hook_decide(c, h);
	if (r > 0 && h->hook.told)
		return hook_tell(c, h);
	/* The method is known; the event is not. */
	if (r == REFUSE_METHOD)
		c->error.code = r = REFUSE_PARAMS;
	return call_fail(c, r);
}

static const struct field run_fields[] = {
	FIELD(OBJECT, run_in, input, "Hook input, exactly as the agent sent it", .required = true),
	FIELD(STRING, run_in, format,
	      "Format: auto, plain, claude, codex, gemini, cursor or copilot",
	      .default_text = "auto"),
	FIELD(STRING, run_in, agent, "Name of the agent; default: the name of the format"),
	FIELD(STRING, run_in, id,
	      "Id of the approval, chosen by the client; default: generated. Repeat the same call "
	      "with this id to wait for the same decision"),
	FIELD(STRING, run_in, session_id, "Id of the session, if koined runs the agent"),
	FIELD(STRING, run_in, run_id, "Id of the run, if koined runs the agent"),
	FIELD(NUMBER, run_in, timeout,
	      "Seconds until the approval expires; default: approval.timeout"),
};

static const struct method rows[] = {
	{"hook.run",
	 "Handle an agent's hook: wait for the decision about a tool call, or record the event; "
	 "return the hook's output",
	 "{output:object|null status:string|null}", FIELDS(run_fields, run_in),
	 .handle = handle_run, .flags = METHOD_LATER | METHOD_ENDS},
};

const struct method_table koine_hook_methods = METHOD_TABLE(rows);
