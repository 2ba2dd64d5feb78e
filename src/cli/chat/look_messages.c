/* Conversations that there are, and what was said in one. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/chat/chat.h"
#include "cli/kit/glyph.h"

enum { PAGE_MAX = 2000 };

static void answer_freep(struct koine_answer **a)
{
	koine_answer_free(*a);
}

/* ---- conversations ---- */

static const struct {
	const char *title;
	const char *member;
	void (*cell)(struct table *t, const struct koine_value *v);
} columns[] = {
	{"MESSAGES", "message_count", table_cell_value},
	{"AGENT", "model", table_cell_value},
	{"CHANGED", "last_action_at", table_cell_time},
	{"NAME", "agent_id", table_cell_value},
};

enum { N_COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static int print_conversations(const struct cli *cli, const struct koine_value *rows, int64_t n)
{
	CLEANUP(table_freep) struct table *t = table_new("rlll");

	if (!t) {
		complain("out of memory");
		return EX_SOFTWARE;
	}
	for (int i = 0; i < N_COLUMNS; i++)
		table_cell_str(t, columns[i].title);
	for (const struct koine_value *v = koine_value_first(rows); v && n-- > 0;
	     v = koine_value_next(v)) {
		for (int i = 0; i < N_COLUMNS; i++)
			columns[i].cell(t, koine_value_get(v, columns[i].member));
	}
	if (cli->terminal)
		table_fit(t, terminal_columns());
	return table_print(t, stdout, cli->color);
}

int look_conversations(struct cli *cli, struct koine_client *c, int64_t n)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = look_call(c, "list_agents", NULL, 0, 0, &a);

	if (r != 0)
		return r;
	if (!cli->options.json)
		return print_conversations(cli, koine_value_get(koine_answer_result(a), "agents"),
					   n);
	print_json_compact(stdout, koine_answer_result(a));
	return 0;
}

/* ---- messages ---- */

static void print_member(const char *before, const struct koine_value *v)
{
	size_t len;
	const char *text = koine_value_text(v, &len);

	if (!text || len == 0)
		return;
	fputs(before, stdout);
	print_text(stdout, text, len);
}

/* Of a turn that did not come to its end, that is worth saying. */
static void print_state(const struct koine_value *state)
{
	size_t len;
	const char *text = koine_value_text(state, &len);

	if (text && !(len == 4 && memcmp(text, "done", 4) == 0))
		print_member(", ", state);
}

static void print_calls(const struct koine_value *calls)
{
	for (const struct koine_value *v = koine_value_first(calls); v; v = koine_value_next(v)) {
		print_member("(calls ", koine_value_get(v, "name"));
		fputs(")\n", stdout);
	}
}

/* "role, time" and the text below it. */
static void print_message(const struct cli *cli, const struct koine_value *m)
{
	size_t len = 0;
	const char *text = koine_value_text(koine_value_get(m, "content"), &len);
	char when[TIME_SHOWN];

	format_time(koine_value_get(m, "created_at"), when);
	fputs(cli->color ? "\033[1m" : "", stdout);
	print_member("", koine_value_get(m, "role"));
	fputs(cli->color ? "\033[0m" : "", stdout);
	printf(", %s", when);
	print_state(koine_value_get(m, "state"));
	fputc('\n', stdout);
	if (text && len > 0) {
		print_text(stdout, text, len);
		fputs(text[len - 1] == '\n' ? "" : "\n", stdout);
	}
	print_calls(koine_value_get(m, "tool_calls"));
	fputc('\n', stdout);
}

/* Counts what it printed. */
static int print_page(const struct cli *cli, const struct koine_answer *a, int64_t *n)
{
	const struct koine_value *m = koine_value_get(koine_answer_result(a), "messages");

	if (koine_value_kind(m) != KOINE_ARRAY) {
		complain("the server did not answer with messages");
		return EX_PROTOCOL;
	}
	*n = (int64_t)koine_value_count(m);
	if (cli->options.json) {
		print_json_compact(stdout, koine_answer_result(a));
		return 0;
	}
	for (m = koine_value_first(m); m; m = koine_value_next(m))
		print_message(cli, m);
	return 0;
}

/* Which conversation: by its name, or one that was ended by its number. */
struct place {
	const char *conversation;
	int64_t number; /* 0: by its name */
};

static int call_page(struct koine_client *c, const struct place *at, int64_t offset, int64_t limit,
		     struct koine_answer **ret)
{
	if (at->number > 0)
		return look_call_number(c, "chat.read", at->number, offset, limit, ret);
	return look_call(c, "get_messages", at->conversation, offset, limit, ret);
}

/* Where the newest n begin: pages count from the oldest. */
static int find_offset(struct koine_client *c, const struct place *at, int64_t n,
		       int64_t *ret_offset, int64_t *ret_total)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int64_t total = 0;
	int r = call_page(c, at, 0, 1, &a);

	if (r != 0)
		return r;
	koine_value_int(koine_value_get(koine_answer_result(a), "total"), &total);
	*ret_offset = total > n ? total - n : 0;
	*ret_total = total;
	return 0;
}

static int print_last(struct cli *cli, struct koine_client *c, const struct place *place, int64_t n)
{
	int64_t total = 0;
	int64_t at = 0;
	int r = find_offset(c, place, n, &at, &total);

	/* With --json even nothing has a shape. */
	if (r == 0 && cli->options.json && at == total)
		total = at + 1;
	while (r == 0 && at < total) {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		int64_t want = total - at > PAGE_MAX ? PAGE_MAX : total - at;
		int64_t got = 0;

		r = call_page(c, place, at, want, &a);
		if (r == 0)
			r = print_page(cli, a, &got);
		if (got == 0)
			break;
		at += got;
	}
	return r;
}

int look_messages(struct cli *cli, struct koine_client *c, const char *conversation, int64_t n)
{
	const struct place place = {.conversation = conversation};

	return print_last(cli, c, &place, n);
}

int look_messages_ended(struct cli *cli, struct koine_client *c, int64_t number, int64_t n)
{
	const struct place place = {.number = number};

	return print_last(cli, c, &place, n);
}
