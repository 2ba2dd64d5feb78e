/*
 * koine memory edit opens a memory in the user's editor. koine memory review shows the facts that
 * an agent extracted, one after another or for scripts.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/child/child.h"
#include "cli/kit/call.h"
#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/memory/memory.h"

/* ---- editing ---- */

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

/* Opens a memory's content in the editor, and sends what was changed as `content` of the method. */
static int memory_edit(struct cli *cli, const char *method, const struct koine_value *memory)
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

/* ---- reviewing ---- */

enum { PAGE = 20 };

static int accept_one(struct cli *cli, struct text id)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_send(cli, "memory.accept", memory_id_params(cli, id), &a);

	if (r == 0)
		memory_say(stdout, "Memory accepted", id);
	return r;
}

static int reject_one(struct cli *cli, struct text id)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_send(cli, "memory.delete", memory_id_params(cli, id), &a);

	if (r != 0)
		return r;
	if (member_flag(koine_answer_result(a), "deleted")) {
		memory_say(stdout, "Memory rejected", id);
		return 0;
	}
	memory_say(stderr, "Memory not found or not owned by you", id);
	return EXIT_ERROR_ANSWER;
}

static int check_ids(const struct cli *cli, const struct option_list *ids)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < ids->n; i++)
		r = memory_check_id(cli, text_of(ids->values[i]));
	return r;
}

static int each(struct cli *cli, const struct option_list *ids,
		int (*act)(struct cli *cli, struct text id))
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < ids->n; i++)
		r = act(cli, text_of(ids->values[i]));
	return r;
}

/* ---- one after another ---- */

static void show(const struct koine_value *memory)
{
	fputc('\n', stdout);
	print_wrapped(stdout, member_text(memory, "content"), NULL, terminal_columns(), 0, 0);
	fputs("  from ", stdout);
	print_text(stdout, member_text(memory, "origin"));
	fputs(", ", stdout);
	memory_print_cut(stdout, member_text(memory, "created_at"), 10, 0);
	fputc('\n', stdout);
}

/* 'q' at the end of the input. */
static char ask(void)
{
	char line[64];

	fputs("Accept this fact? [y]es, [n]o, [e]dit, [s]kip, [q]uit: ", stdout);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 'q';
	return line[0];
}

/* Asks until it gets an answer. *ret_end: enough. */
static int decide(struct cli *cli, const struct koine_value *memory, bool *ret_end)
{
	struct text id = member_text(memory, "id");

	show(memory);
	for (;;) {
		switch (ask()) {
		case 'y':
			return accept_one(cli, id);
		case 'n':
			return reject_one(cli, id);
		case 'e':
			return memory_edit(cli, "memory.accept", memory);
		case 's':
			return 0;
		case 'q':
			*ret_end = true;
			return 0;
		default:
			break;
		}
	}
}

static int review(struct cli *cli, const struct koine_value *rows, int64_t limit)
{
	const struct koine_value *row = koine_value_first(rows);
	bool end = false;
	int r = 0;

	if (!row)
		puts("Nothing to review.");
	for (; r == 0 && row && !end && limit-- > 0; row = koine_value_next(row))
		r = decide(cli, row, &end);
	if (r == 0 && row && !end)
		puts("More facts are waiting for review.");
	return r;
}

static int list(const struct koine_value *rows, int64_t limit)
{
	const struct koine_value *row = koine_value_first(rows);

	for (int64_t i = 0; row && i < limit; i++, row = koine_value_next(row)) {
		print_text(stdout, member_text(row, "id"));
		fputc(' ', stdout);
		print_text(stdout, member_text(row, "origin"));
		fputs(": ", stdout);
		print_text(stdout, member_text(row, "content"));
		fputc('\n', stdout);
	}
	if (row)
		list_say_hidden(limit, -1);
	return 0;
}

/* Asks for one more than it shows, to know whether there is one. */
int cmd_memory_review(struct cli *cli)
{
	const struct memory_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int64_t limit = o->limit != 0 ? o->limit : PAGE;
	struct koine_json *j;
	int r = check_ids(cli, &o->accept) ?: check_ids(cli, &o->reject);

	if (r != 0)
		return r;
	if (o->accept.n > 0 || o->reject.n > 0)
		return each(cli, &o->accept, accept_one) ?: each(cli, &o->reject, reject_one);
	j = params_new();
	params_add_int(j, "limit", limit + !cli->options.json);
	r = request_send(cli, j, &a);
	if (r != 0)
		return r;
	if (cli->options.json) {
		print_json_compact(stdout, koine_answer_result(a));
		return 0;
	}
	if (o->list || !cli->terminal || !isatty(STDIN_FILENO))
		return list(koine_answer_result(a), limit);
	return review(cli, koine_answer_result(a), limit);
}
