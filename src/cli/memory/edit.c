/* koine memory edit: a memory's content, through the user's editor. */
#include "base/cleanup.h"
#include "cli/child/editor.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/memory/memory.h"

enum { CONTENT_MAX = 16 << 20 };

struct update {
	struct cli *cli;
	const char *method;
	struct text id;
};

static int send_content(void *arg, struct text content)
{
	const struct update *u = arg;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = memory_id_params(u->cli, u->id);
	int r;

	params_add_text(j, "content", content);
	r = call_send(u->cli, u->method, j, &a);
	if (r == 0 && u->cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else if (r == 0)
		memory_say(stdout, "Memory changed", u->id);
	return r;
}

int memory_edit(struct cli *cli, const char *method, const struct koine_value *memory)
{
	struct update u = {.cli = cli, .method = method, .id = member_text(memory, "id")};
	struct text content = member_text(memory, "content");

	if (!u.id.data || !content.data)
		return memory_refuse_answer();
	return editor_change(&(struct edited_text) {.name = "memory",
						    .before = content,
						    .max = CONTENT_MAX,
						    .send = send_content,
						    .arg = &u});
}

int cmd_memory_edit(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct text id = text_of(cli->args[0]);
	int r = memory_check_id(cli, id);

	if (r == 0)
		r = call_send(cli, "memory.get", memory_id_params(cli, id), &a);
	if (r != 0)
		return r;
	/* An editor may take longer than a server keeps an idle connection. */
	talk_hang_up(cli);
	return memory_edit(cli, "memory.update", koine_answer_result(a));
}
