/*
 * Events of an agent about which nobody decides: koined logs them, so that sessions are seen that it
 * did not start, and before the agent thinks it is told what is remembered of its project.
 *
 * An agent never waits long for this, and what goes wrong is said on stderr alone.
 */
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/project/project.h"
#include "cli/approval/hook.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

enum {
	TELL_MS = 3000,
	RECALLED = 8,         /* memories */
	MEMORY_SHOWN = 600,   /* bytes of each */
	CONTEXT_MAX = 8 << 10 /* bytes of all */
};

static void add_note(struct koine_json *j, const struct hook *h, const struct hook_told *told)
{
	const struct koine_value *in = koine_doc_root(h->doc);

	params_add(j, "what", told->what);
	params_add(j, "agent", h->agent);
	params_add_text(j, "session_id", text_cut(member_string(in, "session_id"), 256));
	params_add_text(j, "folder", text_cut(member_string(in, "cwd"), 4096));
	params_add_text(j, "tool", text_cut(member_string(in, "tool_name"), 256));
	params_add_text(j, "tool_use_id", text_cut(member_string(in, "tool_use_id"), 256));
	if (told->text)
		params_add_text(j, "text", text_cut(member_string(in, told->text), 4096));
}

static void note(struct cli *cli, const struct hook *h, const struct hook_told *told)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = params_new();
	int r;

	add_note(j, h, told);
	r = call_ask(cli, "agent.note", j, &a);
	if (r != 0)
		(void)talk_failed(cli->client, "agent.note", r, a);
}

/* ---- what is remembered ---- */

static bool name_project(const struct hook *h, char name[PROJECT_NAME_MAX + 1])
{
	struct text folder = member_string(koine_doc_root(h->doc), "cwd");
	char path[PATH_MAX];

	if (folder.len == 0 || folder.len >= sizeof(path) || folder.data[0] != '/' ||
	    memchr(folder.data, '\0', folder.len))
		return false;
	memcpy(path, folder.data, folder.len);
	path[folder.len] = '\0';
	return project_of_folder(path, name) == 0;
}

/* With a question, what answers it best; without, what came last. */
static int find_memories(struct cli *cli, const struct hook *h, struct text question,
			 struct koine_answer **ret_answer)
{
	char project[PROJECT_NAME_MAX + 1];
	struct koine_json *j = params_new();

	if (name_project(h, project))
		params_add(j, "project", project);
	else
		params_add_bool(j, "common", true);
	params_add_int(j, "limit", RECALLED);
	if (question.len > 0)
		params_add_text(j, "query", question);
	return call_ask(cli, question.len > 0 ? "memory.search" : "memory.list", j, ret_answer);
}

static void add_memory(struct buf *out, const struct koine_value *memory)
{
	struct text content = text_cut(member_string(memory, "content"), MEMORY_SHOWN);

	if (content.len == 0 || out->len + content.len + 4 > CONTEXT_MAX)
		return;
	buf_add_str(out, "- ");
	for (size_t i = 0; i < content.len; i++)
		buf_add_char(out, content.data[i] == '\n' ? ' ' : content.data[i]);
	buf_add_char(out, '\n');
}

/* Agents read it as what they know, so it says where it comes from. */
static void print_context(const struct hook_told *told, const struct koine_value *memories)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	CLEANUP(buf_donep) struct buf out = {0};
	const char *text;
	size_t head;

	buf_init(&out, 2 * CONTEXT_MAX);
	buf_add_str(&out, "Remembered by koine, from earlier work of agents and people:\n");
	head = out.len;
	for (const struct koine_value *m = koine_value_first(memories); m; m = koine_value_next(m))
		add_memory(&out, m);
	if (out.err || out.len == head || koine_json_new(&j) != 0)
		return;
	koine_json_begin_object(j);
	koine_json_key(j, "hookSpecificOutput");
	koine_json_begin_object(j);
	koine_json_key(j, "hookEventName");
	koine_json_string(j, told->event);
	koine_json_key(j, "additionalContext");
	koine_json_text_n(j, out.data, out.len);
	koine_json_end_object(j);
	koine_json_end_object(j);
	text = koine_json_text(j, NULL);
	if (text)
		printf("%s\n", text);
	fflush(stdout);
}

static void recall(struct cli *cli, const struct hook *h, const struct hook_told *told)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct text question = {0};
	int r;

	if (told->text)
		question = member_string(koine_doc_root(h->doc), told->text);
	r = find_memories(cli, h, question, &a);
	if (r != 0)
		(void)talk_failed(cli->client, "memory.search", r, a);
	else
		print_context(told, koine_answer_result(a));
}

void hook_tell(struct cli *cli, const struct hook *h)
{
	const struct hook_told *told = h->told;

	cli->options.timeout_ms = TELL_MS;
	if (talk_connect(cli) != 0)
		return;
	note(cli, h, told);
	if (told->recalls)
		recall(cli, h, told);
	talk_hang_up(cli);
}
