/*
 * What was said in a session, for people: texts as they are, a tool call on one line and its
 * result on another, unless everything is wanted.
 */
#include <string.h>

#include "base/cleanup.h"
#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/tool_gist.h"
#include "cli/kit/value.h"
#include "cli/session/session.h"

enum { LINE_MAX_COLUMNS = 160 };

static size_t room(const struct cli *cli)
{
	unsigned columns = cli->terminal ? terminal_columns() : LINE_MAX_COLUMNS;

	return columns > 20 ? columns : 20;
}

static bool is_full(const struct cli *cli)
{
	const struct session_options *o = cli->own;

	return o->full;
}

static struct text without_end(struct text t)
{
	while (t.len > 0 && (t.data[t.len - 1] == '\n' || t.data[t.len - 1] == ' '))
		t.len--;
	return t;
}

/* ---- messages ---- */

/* What the user said is marked, line by line. */
static void print_asked(const struct cli *cli, struct text t)
{
	do {
		const char *end = t.len > 0 ? memchr(t.data, '\n', t.len) : NULL;
		size_t n = end ? (size_t)(end - t.data) : t.len;

		print_style(cli, style_bold);
		fputs("> ", stdout);
		print_text(stdout, (struct text) {.data = t.data, .len = n});
		print_plain(cli);
		fputc('\n', stdout);
		n += end != NULL;
		t.len -= n;
		t.data = t.len > 0 ? t.data + n : NULL;
	} while (t.len > 0);
}

static void print_message(const struct cli *cli, const struct koine_value *e)
{
	struct text content = without_end(member_text(e, "content"));

	if (member_is(e, "role", "user")) {
		print_asked(cli, content);
		return;
	}
	print_text(stdout, content);
	fputc('\n', stdout);
}

/* A line that nobody needs to read. */
static void print_aside(const struct cli *cli, const char *mark, struct text t)
{
	print_style(cli, style_faint);
	printf("%s ", mark);
	(void)print_fitting(stdout, without_end(t), room(cli) - 2);
	print_plain(cli);
	fputc('\n', stdout);
}

static void print_other(const struct cli *cli, const struct koine_value *e, const char *mark)
{
	struct text t = member_text(e, "content");

	if (t.len == 0)
		t = member_text(e, "subtype");
	if (!is_full(cli)) {
		print_aside(cli, mark, t);
		return;
	}
	printf("%s ", mark);
	print_text(stdout, without_end(t));
	fputc('\n', stdout);
}

/* ---- tools ---- */

static void print_approval(const struct cli *cli, const struct koine_value *e)
{
	struct text status = member_text(e, "approval_status");

	/* A separate line says that it is waiting. */
	if (status.len == 0 || text_is(status, "pending"))
		return;
	print_style(cli, color_begin(COLOR_YELLOW));
	fputs(" (", stdout);
	print_text(stdout, status);
	fputs(")", stdout);
	print_plain(cli);
}

static void print_gist(const struct koine_value *e, struct text tool, size_t columns)
{
	const struct koine_value *input = koine_value_get(e, "tool_input");
	CLEANUP(buf_donep) struct buf gist;

	buf_init(&gist, GIST_MAX);
	if (koine_value_first(input))
		tool_gist(&gist, tool, input);
	(void)print_fitting_exact(stdout, buf_text(&gist), columns);
}

static void print_call(const struct cli *cli, const struct koine_value *e)
{
	const struct koine_value *input = koine_value_get(e, "tool_input");
	struct text tool = member_text(e, "tool_name");
	size_t used = 3;

	print_style(cli, color_begin(COLOR_BLUE));
	fputs("* ", stdout);
	used += print_fitting(stdout, tool, room(cli) / 2);
	print_plain(cli);
	if (!is_full(cli)) {
		fputc(' ', stdout);
		print_gist(e, tool, room(cli) > used + 12 ? room(cli) - used - 12 : 8);
	}
	print_approval(cli, e);
	fputc('\n', stdout);
	if (is_full(cli) && koine_value_first(input))
		print_json_pretty(stdout, input, cli->color);
}

static size_t count_lines(struct text t)
{
	size_t n = t.len > 0;

	for (size_t i = 0; i + 1 < t.len; i++)
		n += t.data[i] == '\n';
	return n;
}

static void format_size(size_t bytes, char *out, size_t size)
{
	if (bytes < 1024)
		snprintf(out, size, "%zu byte%s", bytes, bytes == 1 ? "" : "s");
	else if (bytes < 1 << 20)
		snprintf(out, size, "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(out, size, "%.1f MiB", (double)bytes / (1 << 20));
}

/* "  = 12 lines, 3.1 KiB: the first of them" */
static void print_result_of(const struct cli *cli, const struct koine_value *e)
{
	struct text t = member_text(e, "tool_result_content");
	size_t lines = count_lines(t);
	const char *end = t.len > 0 ? memchr(t.data, '\n', t.len) : NULL;
	char size[32];
	char head[96];

	if (is_full(cli)) {
		print_text(stdout, without_end(t));
		fputc('\n', stdout);
		return;
	}
	format_size(t.len, size, sizeof(size));
	if (t.len == 0)
		snprintf(head, sizeof(head), "  = nothing");
	else if (lines == 1)
		snprintf(head, sizeof(head), "  = %s: ", size);
	else
		snprintf(head, sizeof(head), "  = %zu lines, %s: ", lines, size);
	print_style(cli, style_faint);
	fputs(head, stdout);
	if (end)
		t.len = (size_t)(end - t.data);
	(void)print_fitting(stdout, t, room(cli) > strlen(head) + 8 ? room(cli) - strlen(head) : 8);
	print_plain(cli);
	fputc('\n', stdout);
}

void session_print_event(const struct cli *cli, const struct koine_value *e)
{
	if (cli->options.json) {
		print_json_compact(stdout, e);
		return;
	}
	if (member_is(e, "event_type", "tool_call"))
		print_call(cli, e);
	else if (member_is(e, "event_type", "tool_result"))
		print_result_of(cli, e);
	else if (member_is(e, "event_type", "message"))
		print_message(cli, e);
	else
		print_other(cli, e,
			    member_is(e, "event_type", "raw")        ? "~"
			    : member_is(e, "event_type", "thinking") ? "?"
								     : "-");
	if (member_flag(e, "truncated"))
		print_aside(cli, "-", TEXT("(cut)"));
}

/* ---- approvals ---- */

/* As `koine approvals` shows it. */
static void print_short_id(const struct koine_value *approval)
{
	char id[SESSION_ID_MAX];
	const char *bare = id;

	member_copy(approval, "id", id, sizeof(id));
	if (strncmp(id, "local-", 6) == 0)
		bare += 6;
	print_text(stdout, (struct text) {.data = bare, .len = strnlen(bare, SHORT_ID)});
}

static void print_question(const struct koine_value *approval, size_t columns)
{
	fputs(" asks: ", stdout);
	(void)print_fitting_exact(stdout, member_text(koine_value_get(approval, "input"), "msg"),
				  columns);
	fputs("\n  to answer:  koine respond ", stdout);
	print_short_id(approval);
	fputs(" TEXT", stdout);
}

void session_print_pending(const struct cli *cli, const struct koine_value *approval)
{
	if (cli->options.json)
		return;
	print_style(cli, color_begin(COLOR_YELLOW));
	fputs("? ", stdout);
	(void)print_fitting_exact(stdout, member_text(approval, "tool"), room(cli) / 2);
	if (member_is(approval, "kind", "human_contact")) {
		print_question(approval, 10 * room(cli));
	} else {
		fputs(" waits for approval: koine approve ", stdout);
		print_short_id(approval);
		fputs(", or koine deny ", stdout);
		print_short_id(approval);
		fputs(" --comment WHY", stdout);
	}
	print_plain(cli);
	fputc('\n', stdout);
}

void session_print_resolved(const struct cli *cli, const struct koine_value *data)
{
	static const char *const reasons[] = {"comment", "reason", "response", "response_text"};
	struct text by = member_text(data, "decided_by");
	struct text why = {0};

	if (cli->options.json)
		return;
	print_style(cli, color_begin(COLOR_YELLOW));
	fputs("? ", stdout);
	(void)print_fitting(stdout, member_text(data, "tool_name"), room(cli) / 2);
	fputs(" was ", stdout);
	print_text(stdout, member_text(data, "decision"));
	fputs(by.len > 0 ? " by " : "", stdout);
	(void)print_fitting(stdout, by, room(cli) / 2);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]) && why.len == 0; i++)
		why = member_text(data, reasons[i]);
	fputs(why.len > 0 ? ": " : "", stdout);
	(void)print_fitting(stdout, why, room(cli));
	print_plain(cli);
	fputc('\n', stdout);
}
