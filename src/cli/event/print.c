/* An event for people: when, what kind, and its details. */
#include "cli/event/event.h"
#include "cli/kit/print.h"
#include "cli/kit/value.h"

enum { TYPE_COLUMNS = 18, VALUE_MAX = 160 };

/* On one line, cut if it is long. */
static void print_short(struct text t)
{
	struct text left = text_cut(t, VALUE_MAX);
	bool cut = left.len < t.len;

	while (left.len > 0) {
		size_t n = 0;

		while (n < left.len && left.data[n] != '\n' && left.data[n] != '\t')
			n++;
		print_text(stdout, (struct text) {.data = left.data, .len = n});
		if (n < left.len) {
			fputc(' ', stdout);
			n++;
		}
		left.data += n;
		left.len -= n;
	}
	if (cut)
		fputs("…", stdout);
}

static void print_member(const struct cli *cli, struct text key, const struct koine_value *v)
{
	fputs("  ", stdout);
	print_style(cli, style_faint);
	print_short(key);
	fputc('=', stdout);
	print_plain(cli);
	print_short(text_of_any(v));
}

/* Whether the data already contains that id: a conversation's events have its name twice. */
static bool said_already(const struct koine_value *data, struct text id)
{
	for (const struct koine_value *v = koine_value_first(data); v; v = koine_value_next(v)) {
		struct text other = text_of_value(v);

		if (other.data && text_equal(other, id))
			return true;
	}
	return false;
}

static void print_ids(const struct cli *cli, const struct koine_value *event)
{
	static const char *const ids[][2] = {
		{"project", "project"}, {"session_id", "session"}, {"run_id", "run"}};
	const struct koine_value *data = koine_value_get(event, "data");

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct text id = member_string(event, ids[i][0]);

		if (id.data && !said_already(data, id))
			print_member(cli, text_of(ids[i][1]), koine_value_get(event, ids[i][0]));
	}
}

/* Whether it is empty. */
static bool is_empty(const struct koine_value *v)
{
	if (koine_value_kind(v) == KOINE_STRING)
		return text_of_value(v).len == 0;
	return koine_value_kind(v) == KOINE_OBJECT && !koine_value_first(v);
}

static void print_line(const struct cli *cli, const struct koine_value *event)
{
	const struct koine_value *data = koine_value_get(event, "data");
	struct text type = member_text(event, "type");
	char when[TIME_SHOWN];

	format_second(koine_value_get(event, "time"), when);
	printf("%s  ", when);
	print_style(cli, style_bold);
	print_short(type.data ? type : TEXT("-"));
	print_plain(cli);
	for (size_t i = type.len; i < TYPE_COLUMNS; i++)
		fputc(' ', stdout);
	for (const struct koine_value *v = koine_value_first(data); v; v = koine_value_next(v)) {
		if (!is_empty(v))
			print_member(cli, text_of_key(v), v);
	}
	print_ids(cli, event);
	fputc('\n', stdout);
}

void event_print(const struct cli *cli, const struct koine_value *event)
{
	if (cli->options.json)
		print_json_without(stdout, event, "subscription");
	else
		print_line(cli, event);
}

void event_print_gone(const struct cli *cli, int64_t n)
{
	if (n <= 0)
		return;
	if (cli->options.json) {
		printf("{\"gone\":%lld}\n", (long long)n);
		return;
	}
	fflush(stdout);
	complain("%lld event%s no longer stored", (long long)n, n == 1 ? " is" : "s are");
}
