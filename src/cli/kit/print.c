#include "cli/kit/print.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/kit/glyph.h"
#include "cli/kit/value.h"

enum { COMPLAINT_MAX = 4096 };

const char style_bold[] = "\033[1m";
const char style_faint[] = "\033[2m";

static void complain_of(const char *format, va_list args)
{
	char sentence[COMPLAINT_MAX];
	struct text all = {.data = sentence};
	int n = vsnprintf(sentence, sizeof(sentence), format, args);

	all.len = n < 0 ? 0 : (size_t)n < sizeof(sentence) ? (size_t)n : sizeof(sentence) - 1;
	fputs("koine: ", stderr);
	/* It may quote names that others have chosen. */
	print_exact(stderr, text_cut(all, utf8_whole(sentence, all.len)));
	fputs(n >= (int)sizeof(sentence) ? "…\n" : "\n", stderr);
}

void complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain_of(format, args);
	va_end(args);
}

int fail_with(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain_of(format, args);
	va_end(args);
	return code;
}

int out_of_memory(void)
{
	return fail_with(EX_SOFTWARE, "out of memory");
}

/* ASCII controls and DEL, and the second set, which UTF-8 encodes as C2 80 … C2 9F: terminals
 * obey both. */
static bool is_control(const char *text, size_t left)
{
	unsigned char c = (unsigned char)text[0];

	if (c < 0x20 || c == 0x7f)
		return true;
	return c == 0xc2 && left > 1 && (unsigned char)text[1] < 0xa0;
}

void print_text(FILE *out, struct text t)
{
	const char *text = t.data;
	struct glyph g;

	for (size_t i = 0; i < t.len; i++) {
		if (text[i] == '\n' || text[i] == '\t') {
			fputc(text[i], out);
			continue;
		}
		if (!is_control(text + i, t.len - i)) {
			glyph_read(&g, text + i, text + t.len);
			fwrite(g.shown, 1, g.len, out);
			i += g.used - 1;
			continue;
		}
		fprintf(out, "\\x%02x", (unsigned char)text[i]);
		if ((unsigned char)text[i] == 0xc2)
			fprintf(out, "\\x%02x", (unsigned char)text[++i]);
	}
}

void print_texts(FILE *out, const struct text *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		print_text(out, texts[i]);
}

void print_lines(FILE *out, const char *before, struct text t)
{
	struct text line;

	while (text_next(&t, '\n', &line)) {
		if (line.len > 0)
			PRINT(out, text_of(before), line, TEXT("\n"));
	}
}

void print_count(FILE *out, int64_t n)
{
	if (n >= 1000)
		print_count(out, n / 1000);
	fprintf(out, n >= 1000 ? ",%03lld" : "%lld", (long long)(n >= 1000 ? n % 1000 : n));
}

enum { HALF_DAY_MS = 12 * 3600 * 1000 };

static void format_as(const char *format, const struct koine_value *v, char shown[TIME_SHOWN])
{
	struct text iso = text_of_value(v);
	time_t seconds;
	struct tm tm;
	int64_t ms;

	snprintf(shown, TIME_SHOWN, "-");
	if (!iso.data || !clock_parse_iso(iso, &ms))
		return;
	seconds = (time_t)(ms / 1000);
	if (localtime_r(&seconds, &tm))
		strftime(shown, TIME_SHOWN, format, &tm);
}

void format_time(const struct koine_value *v, char shown[TIME_SHOWN])
{
	format_as("%Y-%m-%d %H:%M", v, shown);
}

void format_soon(const struct koine_value *v, char shown[TIME_SHOWN])
{
	int64_t ms = 0;
	bool soon = clock_parse_iso(text_of_value(v), &ms) && ms - clock_utc_ms() < HALF_DAY_MS;

	format_as(soon ? "%H:%M" : "%Y-%m-%d %H:%M", v, shown);
}

void format_second(const struct koine_value *v, char shown[TIME_SHOWN])
{
	format_as("%Y-%m-%d %H:%M:%S", v, shown);
}

/* ---- colours ---- */

const char *color_begin(enum color color)
{
	static const char *const begins[] = {
		[COLOR_NONE] = "",           [COLOR_RED] = "\033[31m",  [COLOR_GREEN] = "\033[32m",
		[COLOR_YELLOW] = "\033[33m", [COLOR_BLUE] = "\033[36m", [COLOR_GREY] = "\033[90m",
	};

	return begins[color];
}

enum color color_of_word(const struct word_color *rows, struct text word)
{
	for (; rows && rows->word; rows++) {
		if (text_is(word, rows->word))
			return rows->color;
	}
	return COLOR_NONE;
}

void print_style(const struct cli *cli, const char *begin)
{
	if (cli->color)
		fputs(begin, stdout);
}

void print_plain(const struct cli *cli)
{
	print_style(cli, "\033[0m");
}

void print_styled(const struct cli *cli, const char *begin, struct text t)
{
	print_style(cli, begin);
	print_text(stdout, t);
	print_plain(cli);
}

/* ---- JSON ---- */

struct kit_print_printer {
	FILE *out;
	bool pretty;
	bool color;
	unsigned depth;
	/* For a command of ours: names and times of the five dialects become those of koine. */
	bool translates;
};

static void begin_color(const struct kit_print_printer *p, const char *color)
{
	if (p->color)
		fprintf(p->out, "\033[%sm", color);
}

static void end_color(const struct kit_print_printer *p)
{
	if (p->color)
		fputs("\033[0m", p->out);
}

static void new_line(const struct kit_print_printer *p)
{
	if (!p->pretty)
		return;
	fputc('\n', p->out);
	for (unsigned i = 0; i < p->depth; i++)
		fputs("  ", p->out);
}

/* JSON source is as the server wrote it, and may contain what is_control finds. */
static void write_source(const struct kit_print_printer *p, struct text t)
{
	for (size_t i = 0; i < t.len; i++) {
		if (!is_control(t.data + i, t.len - i)) {
			fputc(t.data[i], p->out);
			continue;
		}
		if ((unsigned char)t.data[i] == 0xc2)
			i++;
		fprintf(p->out, "\\u%04x", (unsigned char)t.data[i]);
	}
}

static void write_key(const struct kit_print_printer *p, struct text key)
{
	begin_color(p, "34");
	fputc('"', p->out);
	for (size_t i = 0; i < key.len; i++) {
		const char *at = key.data + i;

		if (*at == '"' || *at == '\\')
			fputc('\\', p->out);
		if (is_control(at, key.len - i) && (unsigned char)*at == 0xc2) {
			write_source(p, (struct text) {.data = at, .len = 2});
			i++;
		} else {
			write_source(p, (struct text) {.data = at, .len = 1});
		}
	}
	fputc('"', p->out);
	end_color(p);
	fputs(p->pretty ? ": " : ":", p->out);
}

static void write_value(struct kit_print_printer *p, const struct koine_value *v);

/* ---- what other dialects call it ---- */

static struct text own_key(const struct kit_print_printer *p, struct text key)
{
	static const char *const names[][2] = {
		{"exitCode", "exit_status"}, {"maxConcurrency", "max_concurrency"},
		{"queueSize", "queue_size"}, {"recentExecutions", "recent_executions"},
		{"ruleCount", "rule_count"}, {"taskId", "task_id"},
	};

	for (size_t i = 0; p->translates && i < sizeof(names) / sizeof(names[0]); i++) {
		if (text_is(key, names[i][0]))
			return text_of(names[i][1]);
	}
	return key;
}

/* What a program or a person wrote is printed as it is. */
static bool is_foreign(struct text key)
{
	return text_among(key, "input|metadata|env|arguments");
}

/* "2026-11-15T07:47:17.177000+00:00" as "2026-11-15T07:47:17.177Z". */
static bool write_time(const struct kit_print_printer *p, struct text key,
		       const struct koine_value *v)
{
	static const struct text end = TEXT("+00:00");
	struct text t = text_of_value(v);
	char iso[32];
	int64_t ms;

	if (!p->translates || koine_value_kind(v) != KOINE_STRING || t.len < end.len ||
	    memcmp(t.data + t.len - end.len, end.data, end.len) != 0 || key.len < 3 ||
	    memcmp(key.data + key.len - 3, "_at", 3) != 0 || !clock_parse_iso(t, &ms))
		return false;
	clock_format_iso(ms, iso);
	fprintf(p->out, "\"%s\"", iso);
	return true;
}

static void write_member(struct kit_print_printer *p, struct text key, const struct koine_value *v)
{
	bool translates = p->translates;

	write_key(p, own_key(p, key));
	p->translates = translates && !is_foreign(key);
	if (!write_time(p, key, v))
		write_value(p, v);
	p->translates = translates;
}

/* The recursion is as deep as the reader allowed the text to be. */
static void write_children(struct kit_print_printer *p, const struct koine_value *v,
			   const char *brackets)
{
	fputc(brackets[0], p->out);
	p->depth++;
	for (EACH(child, koine_value_first(v))) {
		struct text key = text_of_key(child);

		new_line(p);
		if (key.data)
			write_member(p, key, child);
		else
			write_value(p, child);
		if (koine_value_next(child))
			fputc(',', p->out);
	}
	p->depth--;
	if (koine_value_first(v))
		new_line(p);
	fputc(brackets[1], p->out);
}

static const char *color_of(enum koine_kind kind)
{
	switch (kind) {
	case KOINE_STRING:
		return "32";
	case KOINE_NUMBER:
		return "36";
	case KOINE_NULL:
	case KOINE_FALSE:
	case KOINE_TRUE:
		return "35";
	case KOINE_ARRAY:
	case KOINE_OBJECT:
		break;
	}
	return "0";
}

static void write_value(struct kit_print_printer *p, const struct koine_value *v)
{
	enum koine_kind kind = koine_value_kind(v);
	struct text raw = text_of_raw(v);

	if (kind == KOINE_ARRAY || kind == KOINE_OBJECT) {
		write_children(p, v, kind == KOINE_ARRAY ? "[]" : "{}");
		return;
	}
	begin_color(p, color_of(kind));
	write_source(p, raw.data ? raw : TEXT("null"));
	end_color(p);
}

void print_json_without(FILE *out, const struct koine_value *v, const char *without)
{
	struct kit_print_printer p = {.out = out, .translates = true};
	bool any = false;

	fputc('{', out);
	for (EACH(child, koine_value_first(v))) {
		struct text key = text_of_key(child);

		if (!key.data || text_is(key, without))
			continue;
		if (any)
			fputc(',', out);
		write_member(&p, key, child);
		any = true;
	}
	fputs("}\n", out);
}

void print_json_compact(FILE *out, const struct koine_value *v)
{
	struct kit_print_printer p = {.out = out};

	write_value(&p, v);
	fputc('\n', out);
}

bool print_if_json(const struct cli *cli, const struct koine_value *v)
{
	struct kit_print_printer p = {.out = stdout, .translates = true};

	if (!cli->options.json)
		return false;
	write_value(&p, v);
	fputc('\n', stdout);
	return true;
}

void print_json_items(FILE *out, const struct koine_value *array, bool first)
{
	struct kit_print_printer p = {.out = out, .translates = true};

	for (EACH(item, koine_value_first(array))) {
		if (!first)
			fputc(',', out);
		write_value(&p, item);
		first = false;
	}
}

void print_json_pretty(FILE *out, const struct koine_value *v, bool color)
{
	struct kit_print_printer p = {.out = out, .pretty = true, .color = color};

	write_value(&p, v);
	fputc('\n', out);
}
