/* Sessions: launching, continuing, interrupting, showing. */
#include <errno.h>

#include "dialect/hld/hld.h"
#include "dialect/engine.h"

/* ---- needs ---- */

int hld_need(struct call *c, struct text t, const char *name)
{
	if (t.len > 0)
		return 0;
	return refuse_field(&c->error, name, "%s is required", name);
}

/* The original says at which step it failed. */
static int fail_at(struct call *c, int r, const char *where, const struct error *error)
{
	const struct error inner = *error;

	return refuse(&c->error, (enum refusal)r, "%s: %s", where, inner.text);
}

/* Takes over why a service refused in a callback. */
static int hld_session_explain(struct call *c, int r, const struct error *error)
{
	if (r > 0 && error)
		c->error = *error;
	return r;
}

/* ---- health ---- */

/* Written by hand, like koine's ping: clients begin with it, and some poll it for ever. The version is
 * the one that they expect of hld, not koine's. */
struct done hld_health(struct call *c)
{
	static const char answer[] = "{\"status\":\"ok\",\"version\":\"0.1.0\"}";

	buf_add(call_result(c)->out, answer, sizeof(answer) - 1);
	return call_reply(c);
}

/* ---- launch, continue ---- */

/* An empty list counts as absent, and is inherited. On koine's socket nobody has checked the
 * items yet. */
static int read_texts(struct call *c, const struct value *list, const char *name,
		      struct texts *ret_texts)
{
	unsigned n = list ? list->len : 0;
	struct text *texts;
	unsigned i = 0;

	if (n == 0)
		return 0;
	if (n > SESSION_TOOLS_MAX)
		return refuse_field(&c->error, name, "%s has more than %d items", name,
				    SESSION_TOOLS_MAX);
	texts = arena_alloc(&c->arena, n * sizeof(*texts));
	if (!texts)
		return -ENOMEM;
	value_each (v, list) {
		if (v->kind != VALUE_STRING && v->kind != VALUE_NULL)
			return refuse_field(&c->error, name, "%s must contain only strings", name);
		texts[i++] = v->kind == VALUE_STRING ? value_text(v) : TEXT("");
	}
	*ret_texts = (struct texts) {.items = texts, .n = n};
	return 0;
}

/* The agent chooses the model where the original does not know the name. */
static struct text read_model(struct text model)
{
	return text_is(model, "opus") || text_is(model, "sonnet") ? model : (struct text) {0};
}

/* A client that asks for this must learn that it does not get it. */
static int refuse_skipping(struct call *c, const struct hld_run_in *in)
{
	const char *name = in->dangerously_skip_permissions ? "dangerously_skip_permissions"
			   : in->dangerously_skip_permissions_timeout != 0
				   ? "dangerously_skip_permissions_timeout"
				   : NULL;

	if (!name)
		return 0;
	return refuse_field(&c->error, name, "%s is not supported: use approval policies", name);
}

static int read_run(struct call *c, struct session_new *ret)
{
	const struct hld_run_in *in = c->in;
	int r = refuse_skipping(c, in);

	if (r != 0)
		return r;
	*ret = (struct session_new) {
		.query = in->query,
		.title = hld_some(in->title),
		.model = read_model(in->model),
		.mcp_config.value = in->mcp_config,
		.permission_prompt_tool = hld_some(in->permission_prompt_tool),
		.working_dir = hld_some(in->working_dir),
		.max_turns = in->max_turns,
		.system_prompt = hld_some(in->system_prompt),
		.append_system_prompt = hld_some(in->append_system_prompt),
		.custom_instructions = hld_some(in->custom_instructions),
	};
	r = read_texts(c, in->allowed_tools, "allowed_tools", &ret->allowed_tools)
			?: read_texts(c, in->disallowed_tools, "disallowed_tools",
				      &ret->disallowed_tools)
			?: read_texts(c, in->additional_directories, "additional_directories",
				      &ret->additional_directories);
	if (r == 0 && in->mcp_config_text.len > 0)
		r = hld_read_mcp(&c->arena, in->mcp_config_text, &ret->mcp_config.value, &c->error);
	if (r == 0 && in->mcp_config)
		r = hld_check_mcp(in->mcp_config, "invalid request: ", "mcp_config.", &c->error);
	return r;
}

static const char no_launch[] = "failed to launch Claude session: failed to start claude";
static const char no_resume[] = "failed to launch resumed Claude session: failed to start claude";

static struct done fail_launch(struct call *c, int r, const char *where, const struct error *error)
{
	const struct hld_run_in *in = c->in;

	hld_session_explain(c, r, error);
	if (r == REFUSE_UNAVAILABLE)
		r = fail_at(c, r, where, &c->error);
	/* In the original a missing parent is an error of the parameters. */
	if (r == REFUSE_NOT_FOUND)
		r = refuse_field(&c->error, "session_id",
				 "failed to get parent session: session not found: %.*s",
				 TEXT_ARGS(in->session_id));
	return call_fail(c, r);
}

static void launched(void *arg, int r, const struct session_launched *session,
		     const struct error *error)
{
	struct call *c = arg;

	if (r != 0)
		(void)fail_launch(c, r, no_launch, error);
	else
		(void)call_answer(c, 0, NULL,
				  PAIRS(JSON_TEXT("session_id", session->id),
					JSON_TEXT("run_id", session->run)));
}

struct done hld_launch(struct call *c)
{
	const struct hld_run_in *in = c->in;
	struct session_new session;
	int r = hld_need(c, in->query, "query") ?: read_run(c, &session);

	if (r != 0)
		return call_fail(c, r);
	r = session_launch(call_sessions(c), &session, launched, c, &c->error);
	return r == 0 ? call_later(c, NULL, NULL) : fail_launch(c, r, no_launch, &c->error);
}

static void continued(void *arg, int r, const struct session_launched *session,
		      const struct error *error)
{
	struct call *c = arg;
	const struct hld_run_in *in = c->in;
	struct json *j;

	if (r != 0) {
		(void)fail_launch(c, r, no_resume, error);
		return;
	}
	j = call_object(c);
	json_member_text(j, "session_id", session->id);
	json_member_text(j, "run_id", session->run);
	/* Not known until the agent tells it. */
	json_member_str(j, "claude_session_id", "");
	json_member_text(j, "parent_session_id", in->session_id);
	(void)call_reply_object(c);
}

struct done hld_continue(struct call *c)
{
	const struct hld_run_in *in = c->in;
	struct session_new session;
	int r = hld_need(c, in->session_id, "session_id") ?: hld_need(c, in->query, "query") ?:
		read_run(c, &session);

	if (r != 0)
		return call_fail(c, r);
	r = session_continue(call_sessions(c), in->session_id, &session, continued, c, &c->error);
	return r == 0 ? call_later(c, NULL, NULL) : fail_launch(c, r, no_resume, &c->error);
}

/* ---- interrupt ---- */

static struct done fail_interrupt(struct call *c, int r, const struct error *error)
{
	hld_session_explain(c, r, error);
	if (r == REFUSE_NOT_FOUND)
		r = fail_at(c, r, "failed to get session", &c->error);
	return call_fail(c, r);
}

static void interrupted(void *arg, int r, const struct error *error)
{
	struct call *c = arg;
	const struct hld_session_in *in = c->in;

	if (r != 0)
		(void)fail_interrupt(c, r, error);
	else
		(void)call_answer(c, 0, NULL,
				  PAIRS(JSON_BOOL("success", true),
					JSON_TEXT("session_id", in->session_id),
					JSON_STR("status", "completing")));
}

struct done hld_interrupt(struct call *c)
{
	const struct hld_session_in *in = c->in;
	int r = hld_need(c, in->session_id, "session_id");

	if (r != 0)
		return call_fail(c, r);
	r = session_interrupt(call_sessions(c), in->session_id, interrupted, c, &c->error);
	return r == 0 ? call_later(c, NULL, NULL) : fail_interrupt(c, r, &c->error);
}

/* ---- lists ---- */

static int64_t known(int64_t n)
{
	return n > 0 ? n : 0;
}

static void write_result(struct json *j, const struct session *row, const struct hld_fit *fit)
{
	if (!row->result.data && row->turns < 0 && row->cost_usd < 0 && row->duration_ms < 0)
		return;
	json_member_object(j, "result");
	json_member_str(j, "type", "result");
	json_member_str(j, "subtype", "session_completed");
	json_key(j, "total_cost_usd");
	json_double(j, row->cost_usd > 0 ? row->cost_usd : 0);
	json_member_bool(j, "is_error", row->status == SESSION_FAILED);
	json_member_int(j, "duration_ms", known(row->duration_ms));
	json_member_int(j, "duration_api_ms", 0);
	json_member_int(j, "num_turns", known(row->turns));
	hld_write_text(j, "result", hld_fit_text(fit, row->result, NULL));
	hld_write_text(j, "session_id", row->agent_session);
	hld_write_some(j, "error", hld_fit_text(fit, row->error, NULL));
	json_end_object(j);
}

static void write_info(struct json *j, const struct session *row, const struct hld_fit *fit)
{
	const struct selection first = {.without = HLD_LAST};
	const struct selection last = {.with = HLD_LAST};

	json_begin_object(j);
	hld_members(j, &hld_session_info, first, row, fit, NULL);
	write_result(j, row, fit);
	hld_members(j, &hld_session_info, last, row, fit, NULL);
	json_end_object(j);
}

static void write_list(struct json *j, const struct session *rows, unsigned n,
		       const struct hld_fit *fit)
{
	json_begin_object(j);
	json_member_array(j, "sessions");
	for (unsigned i = 0; i < hld_fit_count(fit, n); i++)
		write_info(j, &rows[i], fit);
	json_end_array(j);
	hld_fit_tell(fit, j);
	json_end_object(j);
}

static struct done reply_list(struct call *c, const struct session_filter *f)
{
	struct session *rows = NULL;
	struct hld_fit fit;
	unsigned n = 0;
	int r = session_list(call_sessions(c), c->lane, &c->arena, f, &rows, &n);

	if (r != 0)
		return call_fail(c, r);
	fit = hld_fit_begin(c, true);
	do {
		write_list(fit.json, rows, n, &fit);
	} while (hld_fit_again(&fit));
	return call_reply(c);
}

struct done hld_list(struct call *c)
{
	const struct session_filter f = {.archived = ARCHIVED_ANY, .status = -1};

	return reply_list(c, &f);
}

static struct done reply_no_sessions(struct call *c)
{
	struct json *j = call_object(c);

	json_member_array(j, "sessions");
	json_end_array(j);
	return call_reply_object(c);
}

struct done hld_leaves(struct call *c)
{
	const struct hld_session_in *in = c->in;
	struct session_filter f = {
		.archived = in->archived_only      ? ARCHIVED_ONLY
			    : in->include_archived ? ARCHIVED_ANY
						   : ARCHIVED_NO,
		.status = -1,
		.leaves = true,
	};

	if (text_is(in->filter, "draft")) /* koined has none */
		return reply_no_sessions(c);
	if (text_is(in->filter, "normal"))
		f.archived = ARCHIVED_NO;
	else if (text_is(in->filter, "archived"))
		f.archived = ARCHIVED_ONLY;
	else if (in->filter.len > 0)
		return call_fail(c, refuse_field(&c->error, "filter",
						 "filter must be normal, archived or draft"));
	return reply_list(c, &f);
}

/* ---- state ---- */

static void write_state(struct json *j, const struct session *row)
{
	struct session shown = *row;

	shown.input_tokens = known(row->input_tokens) + known(row->output_tokens);
	json_begin_object(j);
	hld_members(j, &hld_session_state, (struct selection) {0}, &shown, NULL, NULL);
	json_end_object(j);
}

struct done hld_state(struct call *c)
{
	const struct hld_session_in *in = c->in;
	struct session row;
	struct json *j;
	int r = hld_need(c, in->session_id, "session_id")
			?: session_get(call_sessions(c), c->lane, &c->arena, in->session_id, false,
				       &row, &c->error);

	if (r == REFUSE_NOT_FOUND)
		r = fail_at(c, r, "failed to get session", &c->error);
	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_key(j, "session");
	write_state(j, &row);
	return call_reply_object(c);
}

/* ---- archive, title ---- */

static struct done reply_success(struct call *c)
{
	return call_answer(c, 0, NULL, PAIRS(JSON_BOOL("success", true)));
}

struct done hld_archive(struct call *c)
{
	const struct hld_session_in *in = c->in;
	int r = hld_need(c, in->session_id, "session_id")
			?: session_set_archived(call_sessions(c), in->session_id, in->archived,
						&c->error);

	if (r == REFUSE_NOT_FOUND)
		r = fail_at(c, r, "failed to archive session", &c->error);
	return r != 0 ? call_fail(c, r) : reply_success(c);
}

struct done hld_title(struct call *c)
{
	const struct hld_session_in *in = c->in;
	int r = hld_need(c, in->session_id, "session_id")
			?: session_set_title(call_sessions(c), in->session_id, hld_some(in->title),
					     &c->error);

	if (r == REFUSE_NOT_FOUND)
		r = fail_at(c, r, "failed to update session", &c->error);
	return r != 0 ? call_fail(c, r) : reply_success(c);
}

/* ---- folders ---- */

struct done hld_paths(struct call *c)
{
	const struct hld_session_in *in = c->in;
	struct session_path *paths = NULL;
	unsigned n = 0;
	struct json *j;
	int r = session_paths(call_sessions(c), c->lane, &c->arena, in->limit, &paths, &n);

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_member_array(j, "paths");
	for (unsigned i = 0; i < n; i++) {
		json_begin_object(j);
		hld_write_text(j, "path", paths[i].path);
		hld_write_seconds(j, "last_used", paths[i].used_ms);
		json_member_int(j, "usage_count", paths[i].n);
		json_end_object(j);
	}
	json_end_array(j);
	return call_reply_object(c);
}
