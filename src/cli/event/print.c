/* An event for people: when, what kind, and what is known of it. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/event/event.h"

enum { TYPE_COLUMNS = 18, WORD_MAX = 160 };

static void format_second(const struct koine_value *v, char shown[TIME_SHOWN])
{
	struct text iso = {0};
	int64_t ms;
	time_t seconds;
	struct tm tm;

	snprintf(shown, TIME_SHOWN, "-");
	iso.data = koine_value_text(v, &iso.len);
	if (!iso.data || !clock_parse_iso(iso, &ms))
		return;
	seconds = (time_t)(ms / 1000);
	if (localtime_r(&seconds, &tm))
		strftime(shown, TIME_SHOWN, "%Y-%m-%d %H:%M:%S", &tm);
}

/* On one line, and not for ever. */
static void print_word(const char *text, size_t len)
{
	size_t n = len;

	if (n > WORD_MAX) {
		n = WORD_MAX;
		while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
			n--;
	}
	for (size_t i = 0; i < n;) {
		size_t piece = 0;

		while (i + piece < n && text[i + piece] != '\n' && text[i + piece] != '\t')
			piece++;
		print_text(stdout, text + i, piece);
		i += piece;
		if (i < n) {
			fputc(' ', stdout);
			i++;
		}
	}
	if (n < len)
		fputs("…", stdout);
}

static void print_member(const struct cli *cli, const char *key, size_t key_len,
			 const struct koine_value *v)
{
	size_t len = 0;
	const char *text = koine_value_text(v, &len);

	if (!text)
		text = koine_value_raw(v, &len);
	fputs(cli->color ? "  \033[2m" : "  ", stdout);
	print_word(key, key_len);
	fputs(cli->color ? "=\033[0m" : "=", stdout);
	print_word(text ? text : "", text ? len : 0);
}

/* A conversation's events say its name twice. */
static bool said_already(const struct koine_value *data, const struct koine_value *id)
{
	size_t len;
	const char *text = koine_value_text(id, &len);

	for (const struct koine_value *v = koine_value_first(data); v; v = koine_value_next(v)) {
		size_t n;
		const char *other = koine_value_text(v, &n);

		if (other && n == len && memcmp(other, text, n) == 0)
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
		const struct koine_value *id = koine_value_get(event, ids[i][0]);

		if (koine_value_kind(id) == KOINE_STRING && !said_already(data, id))
			print_member(cli, ids[i][1], strlen(ids[i][1]), id);
	}
}

/* Members that say nothing. */
static bool is_empty(const struct koine_value *v)
{
	size_t len = 1;

	if (koine_value_kind(v) == KOINE_STRING)
		(void)koine_value_text(v, &len);
	return len == 0 || (koine_value_kind(v) == KOINE_OBJECT && !koine_value_first(v));
}

static void print_line(const struct cli *cli, const struct koine_value *event)
{
	const struct koine_value *data = koine_value_get(event, "data");
	char when[TIME_SHOWN];
	size_t len = 0;
	const char *type = koine_value_text(koine_value_get(event, "type"), &len);

	format_second(koine_value_get(event, "time"), when);
	printf("%s  %s", when, cli->color ? "\033[1m" : "");
	print_word(type ? type : "-", type ? len : 1);
	fputs(cli->color ? "\033[0m" : "", stdout);
	for (size_t i = len; i < TYPE_COLUMNS; i++)
		fputc(' ', stdout);
	for (const struct koine_value *v = koine_value_first(data); v; v = koine_value_next(v)) {
		size_t key_len;
		const char *key = koine_value_key(v, &key_len);

		if (!is_empty(v))
			print_member(cli, key, key_len, v);
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
	complain("%lld event%s not kept any more", (long long)n, n == 1 ? " is" : "s are");
}
