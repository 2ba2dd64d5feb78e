/* What was said in a conversation. */
#include "base/cleanup.h"
#include "cli/chat/chat.h"
#include "cli/kit/call.h"
#include "cli/kit/value.h"

static void print_member(const char *before, struct text text)
{
	if (text.len == 0)
		return;
	fputs(before, stdout);
	print_text(stdout, text);
}

static void print_calls(const struct koine_value *calls)
{
	for (const struct koine_value *v = koine_value_first(calls); v; v = koine_value_next(v)) {
		print_member("(calls ", member_text(v, "name"));
		fputs(")\n", stdout);
	}
}

/* "role, time" and the text below it. */
static void print_message(const struct cli *cli, const struct koine_value *m)
{
	struct text text = member_text(m, "content");
	char when[TIME_SHOWN];

	format_time(koine_value_get(m, "created_at"), when);
	print_style(cli, style_bold);
	print_member("", member_text(m, "role"));
	print_plain(cli);
	printf(", %s", when);
	/* A turn that did not end normally is marked. */
	if (!member_is(m, "state", "done"))
		print_member(", ", member_text(m, "state"));
	fputc('\n', stdout);
	if (text.len > 0) {
		print_text(stdout, text);
		fputs(text.data[text.len - 1] == '\n' ? "" : "\n", stdout);
	}
	print_calls(koine_value_get(m, "tool_calls"));
	fputc('\n', stdout);
}

/* Returns how many it printed. */
static int print_page(const struct cli *cli, const struct koine_answer *a, int64_t *ret_n)
{
	const struct koine_value *m = koine_value_get(koine_answer_result(a), "messages");

	if (koine_value_kind(m) != KOINE_ARRAY) {
		complain("the server did not return messages");
		return EX_PROTOCOL;
	}
	*ret_n = (int64_t)koine_value_count(m);
	if (cli->options.json) {
		print_json_compact(stdout, koine_answer_result(a));
		return 0;
	}
	for (m = koine_value_first(m); m; m = koine_value_next(m))
		print_message(cli, m);
	return 0;
}

static int call_page(struct cli *cli, const struct conversation *which, int64_t offset,
		     int64_t limit, struct koine_answer **ret_answer)
{
	return chat_call(cli, which->number > 0 ? "chat.read" : "get_messages", which, offset,
			 limit, ret_answer);
}

/* How many messages there are. */
static int count(struct cli *cli, const struct conversation *which, int64_t *ret_total)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_page(cli, which, 0, 1, &a);

	*ret_total = member_number(koine_answer_result(a), "total");
	return r;
}

int chat_print_messages(struct cli *cli, const struct conversation *which, int64_t n)
{
	int64_t total = 0;
	int64_t at;
	int r = count(cli, which, &total);

	/* Pages are counted from the oldest. */
	at = total > n ? total - n : 0;
	/* With --json even an empty page is printed. */
	if (cli->options.json && at == total)
		total = at + 1;
	while (r == 0 && at < total) {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		int64_t want = total - at > CHAT_PAGE_MAX ? CHAT_PAGE_MAX : total - at;
		int64_t got = 0;

		r = call_page(cli, which, at, want, &a) ?: print_page(cli, a, &got);
		if (got == 0)
			break;
		at += got;
	}
	return r;
}
