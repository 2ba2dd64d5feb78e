/* Conversations that were ended: which there are, and their end for good. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "cli/chat/chat.h"
#include "cli/kit/glyph.h"

static void answer_freep(struct koine_answer **a)
{
	koine_answer_free(*a);
}

static int out_of_memory(void)
{
	complain("out of memory");
	return EX_SOFTWARE;
}

static void json_freep(struct koine_json **j)
{
	koine_json_free(*j);
}

static void add_number(struct koine_json *j, const char *key, int64_t value)
{
	koine_json_key(j, key);
	koine_json_int(j, value);
}

/* What is 0 is left out, but for the offset of a page. */
int look_call_number(struct koine_client *c, const char *method, int64_t number, int64_t offset,
		     int64_t limit, struct koine_answer **ret_answer)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	struct koine_answer *a = NULL;
	const char *params;
	int r;

	if (koine_json_new(&j) != 0)
		return out_of_memory();
	koine_json_begin_object(j);
	if (number > 0)
		add_number(j, "number", number);
	if (limit > 0) {
		add_number(j, "offset", offset);
		add_number(j, "limit", limit);
	}
	koine_json_end_object(j);
	params = koine_json_text(j, NULL);
	if (!params)
		return out_of_memory();
	r = koine_client_call(c, method, params, &a);
	if (r != 0)
		return talk_failed(c, method, r, a);
	*ret_answer = a;
	return 0;
}

static const struct {
	const char *title;
	const char *member;
	void (*cell)(struct table *t, const struct koine_value *v);
} columns[] = {
	{"NUMBER", "number", table_cell_value},     {"MESSAGES", "messages", table_cell_value},
	{"AGENT", "agent", table_cell_value},       {"ENDED", "ended_at", table_cell_time},
	{"NAME", "conversation", table_cell_value},
};

enum { N_COLUMNS = sizeof(columns) / sizeof(columns[0]), PAGE_MAX = 2000 };

static int print_ended(const struct cli *cli, const struct koine_value *rows)
{
	CLEANUP(table_freep) struct table *t = table_new("rrlll");

	if (!t)
		return out_of_memory();
	for (int i = 0; i < N_COLUMNS; i++)
		table_cell_str(t, columns[i].title);
	for (const struct koine_value *v = koine_value_first(rows); v; v = koine_value_next(v)) {
		for (int i = 0; i < N_COLUMNS; i++)
			columns[i].cell(t, koine_value_get(v, columns[i].member));
	}
	if (cli->terminal)
		table_fit(t, terminal_columns());
	return table_print(t, stdout, cli->color);
}

int look_ended(struct cli *cli, struct koine_client *c, int64_t n)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = look_call_number(c, "chat.past", 0, 0, n < PAGE_MAX ? n : PAGE_MAX, &a);

	if (r != 0)
		return r;
	if (!cli->options.json)
		return print_ended(cli, koine_value_get(koine_answer_result(a), "conversations"));
	print_json_compact(stdout, koine_answer_result(a));
	return 0;
}

static int call_purge(struct koine_client *c, int64_t number, struct koine_answer **ret_answer)
{
	int r;

	if (number > 0)
		return look_call_number(c, "chat.purge", number, 0, 0, ret_answer);
	r = koine_client_call(c, "chat.purge", "{\"all\":true}", ret_answer);
	return r != 0 ? talk_failed(c, "chat.purge", r, *ret_answer) : 0;
}

int look_purge(struct cli *cli, struct koine_client *c, int64_t number)
{
	struct koine_answer *a = NULL;
	int64_t n = 0;
	int r = call_purge(c, number, &a);

	if (r != 0)
		return r;
	koine_value_int(koine_value_get(koine_answer_result(a), "purged"), &n);
	if (cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else
		printf("%" PRId64 " conversation%s purged\n", n, n == 1 ? "" : "s");
	koine_answer_free(a);
	return 0;
}
