/*
 * What was said in a session, for people: texts as they are, a call of a tool on one line and its
 * result on another, unless all of it is wanted.
 */
#include <string.h>

#include "base/cleanup.h"
#include "cli/approval/approval.h"
#include "cli/kit/glyph.h"
#include "cli/session/session.h"
#include "cli/task/task.h"
#include "cli/kit/tool_gist.h"

enum { LINE_MAX_COLUMNS = 160, APPROVAL_ID_SHOWN = 8 };

static size_t room(const struct cli *cli)
{
	unsigned columns = cli->terminal ? terminal_columns() : LINE_MAX_COLUMNS;

	return columns > 20 ? columns : 20;
}

static void color(const struct cli *cli, const char *begin)
{
	if (cli->color)
		fputs(begin, stdout);
}

static const char *text_of_member(const struct koine_value *v, const char *key, size_t *ret_len)
{
	const char *text = koine_value_text(koine_value_get(v, key), ret_len);

	if (!text)
		*ret_len = 0;
	return text ? text : "";
}

static size_t without_end(const char *text, size_t len)
{
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	return len;
}

/* ---- messages ---- */

/* What the user said stands behind a mark, line by line. */
static void print_asked(const struct cli *cli, const char *text, size_t len)
{
	do {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		color(cli, "\033[1m");
		fputs("> ", stdout);
		print_text(stdout, text, n);
		color(cli, "\033[0m");
		fputc('\n', stdout);
		n += end != NULL;
		text += n;
		len -= n;
	} while (len > 0);
}

static void print_message(const struct cli *cli, const struct koine_value *e)
{
	size_t len;
	const char *text = text_of_member(e, "content", &len);

	len = without_end(text, len);
	if (value_is(koine_value_get(e, "role"), "user")) {
		print_asked(cli, text, len);
		return;
	}
	print_text(stdout, text, len);
	fputc('\n', stdout);
}

/* Lines that nobody needs to read. */
static void print_aside(const struct cli *cli, const char *mark, const char *text, size_t len)
{
	color(cli, "\033[2m");
	printf("%s ", mark);
	(void)print_fitting(stdout, text, without_end(text, len), NULL, room(cli) - 2);
	color(cli, "\033[0m");
	fputc('\n', stdout);
}

static void print_line_of(const struct cli *cli, const struct koine_value *e, const char *mark)
{
	size_t len;
	const char *text = text_of_member(e, "content", &len);

	if (len == 0)
		text = text_of_member(e, "subtype", &len);
	if (!cli->options.session.full) {
		print_aside(cli, mark, text, len);
		return;
	}
	printf("%s ", mark);
	print_text(stdout, text, without_end(text, len));
	fputc('\n', stdout);
}

/* ---- tools ---- */

static void print_approval(const struct cli *cli, const struct koine_value *e)
{
	size_t len;
	const char *status = text_of_member(e, "approval_status", &len);

	/* That it waits is said on a line of its own. */
	if (len == 0 || value_is(koine_value_get(e, "approval_status"), "pending"))
		return;
	color(cli, "\033[33m");
	fputs(" (", stdout);
	print_text(stdout, status, len);
	fputs(")", stdout);
	color(cli, "\033[0m");
}

static void print_call(const struct cli *cli, const struct koine_value *e)
{
	const struct koine_value *input = koine_value_get(e, "tool_input");
	size_t used = 3;
	size_t len = 0;
	const char *name = text_of_member(e, "tool_name", &len);
	CLEANUP(buf_donep) struct buf what;

	buf_init(&what, GIST_MAX);
	color(cli, "\033[36m");
	fputs("* ", stdout);
	used += print_fitting(stdout, name, len, NULL, room(cli) / 2);
	color(cli, "\033[0m");
	if (cli->options.session.full) {
		print_approval(cli, e);
		fputc('\n', stdout);
		if (koine_value_first(input))
			print_json_pretty(stdout, input, cli->color);
		return;
	}
	fputc(' ', stdout);
	if (koine_value_first(input))
		tool_gist(&what, (struct text) {.data = name, .len = len}, input);
	(void)print_fitting_exact(stdout, (struct text) {.data = what.data, .len = what.len},
				  room(cli) > used + 12 ? room(cli) - used - 12 : 8);
	print_approval(cli, e);
	fputc('\n', stdout);
}

static size_t count_lines(const char *text, size_t len)
{
	size_t n = len > 0;

	for (size_t i = 0; i + 1 < len; i++)
		n += text[i] == '\n';
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
	size_t len;
	const char *text = text_of_member(e, "tool_result_content", &len);
	size_t lines = count_lines(text, len);
	const char *end = len > 0 ? memchr(text, '\n', len) : NULL;
	char size[32];
	char head[96];

	if (cli->options.session.full) {
		print_text(stdout, text, without_end(text, len));
		fputc('\n', stdout);
		return;
	}
	format_size(len, size, sizeof(size));
	if (len == 0)
		snprintf(head, sizeof(head), "  = nothing");
	else if (lines == 1)
		snprintf(head, sizeof(head), "  = %s: ", size);
	else
		snprintf(head, sizeof(head), "  = %zu lines, %s: ", lines, size);
	color(cli, "\033[2m");
	fputs(head, stdout);
	if (len > 0)
		(void)print_fitting(stdout, text, end ? (size_t)(end - text) : len, NULL,
				    room(cli) > strlen(head) + 8 ? room(cli) - strlen(head) : 8);
	color(cli, "\033[0m");
	fputc('\n', stdout);
}

void session_print_event(const struct cli *cli, const struct koine_value *e)
{
	const struct koine_value *type = koine_value_get(e, "event_type");
	bool truncated = false;

	if (cli->options.json) {
		print_json_compact(stdout, e);
		return;
	}
	if (value_is(type, "tool_call"))
		print_call(cli, e);
	else if (value_is(type, "tool_result"))
		print_result_of(cli, e);
	else if (value_is(type, "message"))
		print_message(cli, e);
	else
		print_line_of(cli, e, value_is(type, "raw") ? "~" : "-");
	if (koine_value_bool(koine_value_get(e, "truncated"), &truncated) && truncated)
		print_aside(cli, "-", "(cut)", 5);
}

/* ---- approvals ---- */

/* As `koine approvals` shows it. */
static void print_short_id(const char *id)
{
	const char *bare = strncmp(id, "local-", 6) == 0 ? id + 6 : id;

	print_text(stdout, bare, strnlen(bare, APPROVAL_ID_SHOWN));
}

static void print_question(const struct koine_value *approval, const char *id, size_t columns)
{
	const struct koine_value *input = koine_value_get(approval, "input");
	size_t len;
	const char *text = text_of_member(input, "msg", &len);

	fputs(" asks: ", stdout);
	(void)print_fitting_exact(stdout, (struct text) {.data = text, .len = len}, columns);
	fputs("\n  to answer:  koine respond ", stdout);
	print_short_id(id);
	fputs(" TEXT", stdout);
}

void session_print_pending(const struct cli *cli, const struct koine_value *approval)
{
	char id[SESSION_ID_MAX];
	size_t len;
	const char *tool = text_of_member(approval, "tool", &len);

	if (cli->options.json)
		return;
	session_member(approval, "id", id, sizeof(id));
	color(cli, "\033[33m");
	fputs("? ", stdout);
	(void)print_fitting_exact(stdout, (struct text) {.data = tool, .len = len}, room(cli) / 2);
	if (value_is(koine_value_get(approval, "kind"), "human_contact")) {
		print_question(approval, id, 10 * room(cli));
	} else {
		fputs(" waits for approval: koine approve ", stdout);
		print_short_id(id);
		fputs(", or koine deny ", stdout);
		print_short_id(id);
		fputs(" --comment WHY", stdout);
	}
	color(cli, "\033[0m");
	fputc('\n', stdout);
}

void session_print_resolved(const struct cli *cli, const struct koine_value *data)
{
	static const char *const why[] = {"comment", "reason", "response", "response_text"};
	size_t len;
	const char *text;

	if (cli->options.json)
		return;
	color(cli, "\033[33m");
	fputs("? ", stdout);
	text = text_of_member(data, "tool_name", &len);
	(void)print_fitting(stdout, text, len, NULL, room(cli) / 2);
	fputs(" was ", stdout);
	text = text_of_member(data, "decision", &len);
	print_text(stdout, text, len);
	text = text_of_member(data, "decided_by", &len);
	fputs(len > 0 ? " by " : "", stdout);
	(void)print_fitting(stdout, text, len, NULL, room(cli) / 2);
	for (size_t i = len = 0; i < sizeof(why) / sizeof(why[0]) && len == 0; i++)
		text = text_of_member(data, why[i], &len);
	fputs(len > 0 ? ": " : "", stdout);
	(void)print_fitting(stdout, text, len, NULL, room(cli));
	color(cli, "\033[0m");
	fputc('\n', stdout);
}
