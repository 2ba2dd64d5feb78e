/* Calls about approvals: finding one, deciding it, and learning how somebody else decided it. */
#include "base/cleanup.h"
#include "cli/approval/approval.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

struct koine_json *approval_id_params(struct text id, bool exact)
{
	struct koine_json *j = params_new();

	params_add_text(j, "id", id);
	if (exact)
		params_add_bool(j, "exact", true);
	return j;
}

int approval_find(struct cli *cli, const char *typed, struct koine_answer **ret_answer)
{
	const struct approval_options *o = cli->own;

	return call_send(cli, "approval.get", approval_id_params(text_of(typed), o->exact),
			 ret_answer);
}

/* koined does not know sessions that it did not start; their ids are used as typed. */
int approval_find_session(struct cli *cli)
{
	static char whole[APPROVAL_ID_SIZE];
	struct approval_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct text id;
	int r = o->session ? talk_connect(cli) : 0;

	if (r != 0 || !o->session)
		return r;
	r = call_ask(cli, "session.get", approval_id_params(text_of(o->session), false), &a);
	if (r == KOINE_ERROR_ANSWER && koine_answer_error_code(a) != CODE_NOT_FOUND)
		return talk_failed(cli->client, "session.get", r, a);
	id = member_string(koine_answer_result(a), "id");
	if (r != 0 || id.len == 0 || id.len >= sizeof(whole))
		return 0;
	snprintf(whole, sizeof(whole), "%.*s", TEXT_ARGS(id));
	o->session = whole;
	return 0;
}

struct koine_json *approval_list_params(const struct cli *cli, bool all, int64_t limit)
{
	const struct approval_options *o = cli->own;
	struct koine_json *j = params_new();

	params_add(j, "status", all ? "any" : "pending");
	params_add(j, "session_id", o->session);
	params_add_int(j, "limit", limit);
	return j;
}

struct koine_json *approval_event_params(const char *session, int64_t since)
{
	static const struct option_list types = {.values = {"approval.*"}, .n = 1};
	struct koine_json *j = params_new();

	if (since >= 0)
		params_add_int(j, "since", since);
	params_add_list(j, "types", &types);
	params_add(j, "session_id", session);
	return j;
}

static void add_grant(struct koine_json *j, const struct approval_choice *choice)
{
	koine_json_key(j, "grant");
	koine_json_begin_object(j);
	params_add(j, "scope", choice->grant);
	if (choice->for_ms > 0)
		params_add_double(j, "for", (double)choice->for_ms / 1000);
	if (choice->uses > 0)
		params_add_int(j, "uses", choice->uses);
	koine_json_end_object(j);
}

struct koine_json *approval_choice_params(const struct approval_choice *choice)
{
	struct koine_json *j = approval_id_params(choice->id, true);

	params_add(j, "decision", choice->decision);
	params_add_text(j, "comment", choice->comment);
	if (choice->grant && j)
		add_grant(j, choice);
	return j;
}

const struct koine_value *approval_quicker(const struct koine_answer *error)
{
	if (koine_answer_error_code(error) != CODE_CONFLICT)
		return NULL;
	return koine_value_get(koine_answer_error_data(error), "approval");
}
