/*
 * What we change is few lines among many that stay: where two lines differ, the nearest line that
 * both have again is looked for.
 */
#include "cli/connect/change.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/kit/args.h"
#include "cli/kit/print.h"

enum {
	AROUND = 3,
	LOOK_AHEAD = 400,
	LONG_LINE = 200, /* bytes; of a longer one only what changes is shown, */
	SHOWN = 40,      /* with so many around it */
	SAME = 32,       /* so many equal bytes end a change within a line */
};

struct lines {
	struct text *items;
	size_t n;
};

struct printer {
	const struct cli *cli;
	struct lines old;
	size_t shown; /* lines of the old text that were printed or left out */
	size_t until; /* lines of it that follow a change closely */
	bool begun;
};

/* Lines keep their ends, so that a change of those shows. */
static struct lines split(struct text t)
{
	struct lines l = {0};
	size_t n = 1;

	for (size_t i = 0; i < t.len; i++)
		n += t.data[i] == '\n';
	l.items = calloc(n, sizeof(*l.items));
	while (l.items && t.len > 0) {
		const char *end = memchr(t.data, '\n', t.len);
		size_t len = end ? (size_t)(end - t.data) + 1 : t.len;

		l.items[l.n++] = (struct text) {.data = t.data, .len = len};
		t.data += len;
		t.len -= len;
	}
	return l;
}

static void print_part(const struct printer *p, char sign, struct text line)
{
	if (sign != ' ')
		print_style(p->cli, color_begin(sign == '+' ? COLOR_GREEN : COLOR_RED));
	putchar(sign);
	print_text(stdout, line);
	if (sign != ' ')
		print_plain(p->cli);
	putchar('\n');
}

static void print_line(const struct printer *p, char sign, struct text line)
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
static void print_piece(const struct printer *p, char sign, struct text line, size_t from,
			size_t to)
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

static void print_pieces(const struct printer *p, struct text old, struct text new)
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
static void pass(struct printer *p, size_t to, bool change_follows)
{
	size_t from = change_follows && to > AROUND ? to - AROUND : change_follows ? 0 : to;

	for (; p->shown < to; p->shown++) {
		if (p->shown < p->until || p->shown >= from)
			print_line(p, ' ', p->old.items[p->shown]);
		else if (p->begun && p->shown == p->until)
			puts("...");
	}
}

static void print_change(struct printer *p, size_t at, size_t n_old, const struct text *added,
			 size_t n_added)
{
	bool pieces = n_old > 0 && n_added > 0 &&
		      (p->old.items[at].len > LONG_LINE || added[0].len > LONG_LINE);

	pass(p, at, true);
	if (pieces)
		print_pieces(p, p->old.items[at], added[0]);
	for (size_t i = pieces; i < n_old; i++)
		print_line(p, '-', p->old.items[at + i]);
	for (size_t i = pieces; i < n_added; i++)
		print_line(p, '+', added[i]);
	p->begun = true;
	p->shown = at + n_old;
	p->until = p->shown + AROUND;
}

/* How many lines of each differ from here on. */
static void measure(struct lines old, struct lines new, size_t i, size_t j, size_t *ret_old,
		    size_t *ret_new)
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

static void compare(struct printer *p, struct lines new)
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
	struct printer p = {.cli = cli, .old = split(before)};
	struct lines new = split(after);

	print_style(cli, style_bold);
	print_text(stdout, text_of(path));
	print_plain(cli);
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
	if (cli->options.json || !cli->terminal || !isatty(STDIN_FILENO)) {
		complain("no changes written; use --yes to write them, or --dry-run to show them");
		return EX_USAGE;
	}
	if (args_confirm("Write these changes?"))
		return 0;
	puts("No changes written.");
	return EXIT_ERROR_ANSWER;
}
