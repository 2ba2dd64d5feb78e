/*
 * Events of an agent about which nobody decides: koined logs them, so that sessions are seen that it
 * did not start, and before the agent thinks it is told what is remembered of its project.
 *
 * An agent never waits long for this, and what goes wrong is said on stderr alone.
 */
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "model/project.h"
#include "cli/approval/hook.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

enum { TELL_MS = 3000 };

static void add_note(struct koine_json *j, const struct hook *h)
{
	params_add(j, "what", h->told->what);
	params_add_text(j, "agent", h->agent);
	params_add_text(j, "session_id", h->session);
	params_add_text(j, "folder", h->folder);
	params_add_text(j, "tool", h->tool);
	params_add_text(j, "tool_use_id", h->tool_use_id);
	params_add_text(j, "text", text_cut(h->said, HOOK_TEXT_MAX));
	if (h->input) {
		koine_json_key(j, "input");
		hook_write_value(j, h->input);
	}
}

static void note(struct cli *cli, const struct hook *h)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = params_new();
	int r;

	add_note(j, h);
	r = call_ask(cli, "agent.note", j, &a);
	if (r != 0)
		(void)talk_failed(cli->client, "agent.note", r, a);
}

/* ---- what is remembered ---- */

/* With a question, what answers it best; without, what came last. */
static int find_memories(struct cli *cli, const struct hook *h, struct koine_answer **ret_answer)
{
	char project[PROJECT_NAME_MAX + 1];
	struct koine_json *j = params_new();

	if (project_of_reported(h->folder, project))
		params_add(j, "project", project);
	else
		params_add_bool(j, "common", true);
	params_add_int(j, "limit", HOOK_RECALLED);
	if (h->said.len > 0)
		params_add_text(j, "query", h->said);
	return call_ask(cli, h->said.len > 0 ? "memory.search" : "memory.list", j, ret_answer);
}

static void print_context(struct hook_input *in, const struct koine_value *memories)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	CLEANUP(buf_donep) struct buf context = {0};
	const struct value *said = NULL;
	const char *text;

	hook_context_begin(&context);
	for (const struct koine_value *m = koine_value_first(memories); m;
	     m = koine_value_next(m)) {
		const struct hook_memory memory = {.id = member_string(m, "id"),
						   .created = member_string(m, "created_at"),
						   .content = member_string(m, "content")};

		hook_context_add(&context, &memory);
	}
	if (hook_context_answer(&in->arena, in->hook.told, &context, &said) != 0 || !said ||
	    koine_json_new(&j) != 0)
		return;
	hook_write_value(j, said);
	text = koine_json_text(j, NULL);
	if (text)
		printf("%s\n", text);
	fflush(stdout);
}

static void recall(struct cli *cli, struct hook_input *in)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = find_memories(cli, &in->hook, &a);

	if (r != 0)
		(void)talk_failed(cli->client, "memory.search", r, a);
	else
		print_context(in, koine_answer_result(a));
}

void hook_tell(struct cli *cli, struct hook_input *in)
{
	cli->options.timeout_ms = TELL_MS;
	if (talk_connect(cli) != 0)
		return;
	note(cli, &in->hook);
	if (in->hook.told->recalls)
		recall(cli, in);
	talk_hang_up(cli);
}

void hook_tell_unread(struct cli *cli, const struct hook_input *in, const char *why)
{
	CLEANUP(client_freep) struct koine_client *c = NULL;
	CLEANUP(json_freep) struct koine_json *j = params_new();
	char error[TALK_ERROR];
	struct koine_answer *a = NULL;
	const char *params;

	cli->options.timeout_ms = TELL_MS;
	if (!j || talk_try(cli, &c, error) != 0)
		return;
	params_add(j, "what", "unread");
	params_add_text(j, "agent", in->hook.agent);
	params_add(j, "text", why);
	params = params_end(j);
	if (params)
		(void)koine_client_call(c, "agent.note", params, &a);
	koine_answer_free(a);
}
