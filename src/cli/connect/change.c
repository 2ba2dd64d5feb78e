/*
 * What we change is few lines among many that stay: where two lines differ, the nearest line that
 * both have again is looked for.
 */
#include <stdlib.h>
#include <unistd.h>

#include "cli/connect/change.h"
#include "cli/connect/ours.h"
#include "cli/kit/args.h"
#include "cli/kit/print.h"

enum {
	AROUND = 3,
	LOOK_AHEAD = 400,
	LONG_LINE = 200, /* bytes; of a longer one only what changes is shown, */
	SHOWN = 40,      /* with so many around it */
	SAME = 32,       /* so many equal bytes end a change within a line */
};

struct connect_change_lines {
	struct text *items;
	size_t n;
};

struct connect_change_printer {
	const struct cli *cli;
	struct connect_change_lines old;
	size_t shown; /* lines of the old text that were printed or left out */
	size_t until; /* lines of it that follow a change closely */
	bool begun;
};

/* Lines keep their ends, so that a change of those shows. */
static struct connect_change_lines split(struct text t)
{
	struct connect_change_lines l = {0};
	size_t n = 1;

	for (size_t i = 0; i < t.len; i++)
		n += t.data[i] == '\n';
	l.items = calloc(n, sizeof(*l.items));
	while (l.items && t.len > 0) {
		const char *end = memchr(t.data, '\n', t.len);
		size_t len = end ? (size_t)(end - t.data) + 1 : t.len;

		l.items[l.n++] = (struct text) {.data = t.data, .len = len};
		t = text_skip(t, len);
	}
	return l;
}

static void print_part(const struct connect_change_printer *p, char sign, struct text line)
{
	if (sign != ' ')
		print_style(p->cli, color_begin(sign == '+' ? COLOR_GREEN : COLOR_RED));
	putchar(sign);
	print_text(stdout, line);
	if (sign != ' ')
		print_plain(p->cli);
	putchar('\n');
}

static void connect_change_print_line(const struct connect_change_printer *p, char sign,
				      struct text line)
{
	bool has_end = line.len > 0 && line.data[line.len - 1] == '\n';

	line.len -= has_end;
	if (line.len > 0 && line.data[line.len - 1] == '\r')
		line.len--;
	if (sign == ' ' && line.len > LONG_LINE) {
		print_part(p, sign, text_cut(line, SHOWN));
		puts(" ...");
		return;
	}
	print_part(p, sign, line);
	if (!has_end)
		puts("\\ No newline at end of file");
}

/* ---- within a long line ---- */

static bool continues_char(struct text t, size_t at)
{
	return at < t.len && ((unsigned char)t.data[at] & 0xc0) == 0x80;
}

/* From `from` to `to`, with a few bytes around them. */
static void print_piece(const struct connect_change_printer *p, char sign, struct text line,
			size_t from, size_t to)
{
	size_t begin = from > SHOWN ? from - SHOWN : 0;
	size_t end = line.len - to > SHOWN ? to + SHOWN : line.len;

	while (begin > 0 && continues_char(line, begin))
		begin--;
	while (continues_char(line, end))
		end++;
	if (from == to)
		return;
	print_part(p, sign, (struct text) {.data = line.data + begin, .len = end - begin});
	if (end < line.len)
		puts(" ...");
}

/* Where the next bytes of `a` occur in `b`; the end of `b` if they do not, or are too few. */
static size_t find_again(struct text a, size_t at, struct text b, size_t from)
{
	const char *found;

	if (at == a.len || a.len - at < SAME)
		return b.len;
	found = memmem(b.data + from, b.len - from, a.data + at, SAME);
	return found ? (size_t)(found - b.data) : b.len;
}

static void print_pieces(const struct connect_change_printer *p, struct text old, struct text new)
{
	struct text a = old;
	struct text b = new;
	size_t i = 0;
	size_t j = 0;

	while (a.len > 0 && b.len > 0 && a.data[a.len - 1] == b.data[b.len - 1]) {
		a.len--;
		b.len--;
	}
	while (i < a.len || j < b.len) {
		size_t to_old = i;
		size_t to_new = j;

		if (i < a.len && j < b.len && a.data[i] == b.data[j]) {
			i++;
			j++;
			continue;
		}
		to_new = find_again(a, i, b, j);
		if (to_new == b.len)
			to_old = find_again(b, j, a, i);
		if (to_new == b.len && to_old < a.len)
			to_new = j;
		print_piece(p, '-', old, i, to_old);
		print_piece(p, '+', new, j, to_new);
		i = to_old;
		j = to_new;
	}
}

/* Old lines up to this one stay: those near a change are shown. */
static void pass(struct connect_change_printer *p, size_t to, bool change_follows)
{
	size_t from = change_follows && to > AROUND ? to - AROUND : change_follows ? 0 : to;

	for (; p->shown < to; p->shown++) {
		if (p->shown < p->until || p->shown >= from)
			connect_change_print_line(p, ' ', p->old.items[p->shown]);
		else if (p->begun && p->shown == p->until)
			puts("...");
	}
}

static void print_change(struct connect_change_printer *p, size_t at, size_t n_old,
			 const struct text *added, size_t n_added)
{
	bool pieces = n_old > 0 && n_added > 0 &&
		      (p->old.items[at].len > LONG_LINE || added[0].len > LONG_LINE);

	pass(p, at, true);
	if (pieces)
		print_pieces(p, p->old.items[at], added[0]);
	for (size_t i = pieces; i < n_old; i++)
		connect_change_print_line(p, '-', p->old.items[at + i]);
	for (size_t i = pieces; i < n_added; i++)
		connect_change_print_line(p, '+', added[i]);
	p->begun = true;
	p->shown = at + n_old;
	p->until = p->shown + AROUND;
}

/* How many lines of each differ from here on. */
static void measure(struct connect_change_lines old, struct connect_change_lines new, size_t i,
		    size_t j, size_t *ret_old, size_t *ret_new)
{
	for (size_t sum = 1; sum < LOOK_AHEAD; sum++) {
		for (size_t a = 0; a <= sum; a++) {
			size_t b = sum - a;

			if (i + a < old.n &&
			    j + b < new.n &&text_equal(old.items[i + a], new.items[j + b])) {
				*ret_old = a;
				*ret_new = b;
				return;
			}
		}
	}
	*ret_old = old.n - i;
	*ret_new = new.n - j;
}

static void compare(struct connect_change_printer *p, struct connect_change_lines new)
{
	size_t i = 0;
	size_t j = 0;

	while (i < p->old.n || j < new.n) {
		size_t n_old;
		size_t n_new;

		if (i < p->old.n && j < new.n &&text_equal(p->old.items[i], new.items[j])) {
			i++;
			j++;
			continue;
		}
		measure(p->old, new, i, j, &n_old, &n_new);
		print_change(p, i, n_old, new.items + j, n_new);
		i += n_old;
		j += n_new;
	}
	pass(p, p->old.n < p->until ? p->old.n : p->until, false);
}

void change_print(const struct cli *cli, const char *path, struct text before, struct text after)
{
	struct connect_change_printer p = {.cli = cli, .old = split(before)};
	struct connect_change_lines new = split(after);

	print_styled(cli, style_bold, text_of(path));
	putchar('\n');
	if (p.old.items && new.items)
		compare(&p, new);
	else
		(void)out_of_memory();
	free(p.old.items);
	free(new.items);
}

int change_ask(const struct cli *cli)
{
	if (cli->options.json || !cli->terminal || !isatty(STDIN_FILENO))
		return fail_with(
			EX_USAGE,
			"no changes written; use --yes to write them, or --dry-run to show them");
	if (args_confirm("Write these changes?"))
		return 0;
	puts("No changes written.");
	return EXIT_ERROR_ANSWER;
}

/* ---- what is not shown ---- */

/* A string or a comment. */
struct connect_change_token {
	struct text text; /* with its quotes */
	bool is_key;
	bool is_comment;
};

static bool begins(struct text t, size_t at, const char *word)
{
	size_t n = strlen(word);

	return t.len - at >= n && memcmp(t.data + at, word, n) == 0;
}

/* Where something that began at `from` ends: behind `end`, or at the end of the text. */
static size_t behind(struct text t, size_t from, const char *end, bool escapes)
{
	for (; from < t.len; from++) {
		if (escapes && t.data[from] == '\\')
			from++;
		else if (begins(t, from, end))
			return from + strlen(end);
	}
	return t.len;
}

/* In TOML up to two quotes may stand before the three that end a string. */
static size_t behind_long_string(struct text t, size_t at, const char *quotes)
{
	size_t end = behind(t, at + 3, quotes, quotes[0] == '"');

	for (unsigned i = 0; i < 2 && end < t.len && t.data[end] == quotes[0]; i++)
		end++;
	return end;
}

static size_t end_of_token(struct text t, size_t at, bool toml, bool *ret_comment)
{
	static const char *const long_quotes[] = {"\"\"\"", "'''"};
	static const char *const quotes[] = {"\"", "'"};

	*ret_comment = true;
	if (toml ? t.data[at] == '#' : begins(t, at, "//")) {
		while (at < t.len && t.data[at] != '\r' && t.data[at] != '\n')
			at++;
		return at;
	}
	if (!toml && begins(t, at, "/*"))
		return behind(t, at + 2, "*/", false);
	*ret_comment = false;
	for (unsigned i = 0; toml && i < 2; i++) {
		if (begins(t, at, long_quotes[i]))
			return behind_long_string(t, at, long_quotes[i]);
	}
	for (unsigned i = 0; i < (toml ? 2 : 1); i++) {
		if (begins(t, at, quotes[i]))
			return behind(t, at + 1, quotes[i], quotes[i][0] == '"');
	}
	return at;
}

static bool is_key(struct text t, size_t end, bool toml)
{
	while (end < t.len && memchr(" \t\r\n", t.data[end], 4))
		end++;
	return end < t.len &&
	       (toml ? t.data[end] == '=' || t.data[end] == '.' : t.data[end] == ':');
}

/* The next string or comment; false: there is none. What is before it begins at *at. */
static bool next_token(struct text t, bool toml, size_t *at, struct connect_change_token *ret)
{
	for (size_t i = *at; i < t.len; i++) {
		bool comment;
		size_t end = end_of_token(t, i, toml, &comment);

		if (end == i)
			continue;
		*ret = (struct connect_change_token) {
			.text = {.data = t.data + i, .len = end - i},
			.is_key = !comment && is_key(t, end, toml),
			.is_comment = comment,
		};
		*at = end;
		return true;
	}
	*at = t.len;
	return false;
}

/* A koine of another place or version is koine's, too. */
static bool is_koines(const struct mask *m, struct text t)
{
	for (unsigned i = 0; i < m->n_edits; i++) {
		if (memmem(m->edits[i].value, strlen(m->edits[i].value), t.data, t.len))
			return true;
	}
	return ours_is_command((struct text) {.data = t.data + 1, .len = t.len - 2});
}

static bool is_shown(const struct mask *m, const struct connect_change_token *t)
{
	return t->is_key || t->text.len <= 2 || (!t->is_comment && is_koines(m, t->text));
}

static void add_hidden(const struct connect_change_token *t, struct buf *out)
{
	if (t->is_comment) {
		buf_add(out, t->text.data, t->text.data[0] == '#' ? 1 : 2);
		buf_add_str(out, " ...");
		for (size_t i = 0; i < t->text.len; i++) {
			if (t->text.data[i] == '\n')
				buf_add_char(out, '\n');
		}
		if (t->text.data[0] == '/' && t->text.data[1] == '*')
			buf_add_str(out, " */");
		return;
	}
	buf_add(out, t->text.data, 1);
	buf_add_str(out, "...");
	buf_add(out, t->text.data, 1);
}

void mask_text(const struct mask *m, struct text t, struct buf *out)
{
	struct connect_change_token token;
	size_t from = 0;
	size_t at = 0;

	while (next_token(t, m->by == &toml_editor, &at, &token)) {
		buf_add(out, t.data + from, (size_t)(token.text.data - t.data) - from);
		if (is_shown(m, &token))
			buf_add(out, token.text.data, token.text.len);
		else
			add_hidden(&token, out);
		from = at;
	}
	buf_add(out, t.data + from, t.len - from);
}
