/*
 * Equal lines at the beginning and at the end are set aside. Between them the longest common
 * subsequence is found with a table.
 */
#include "cli/approval/diff.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"

enum { CELLS_MAX = 4 << 20 };

bool text_next_line(struct text *left, struct text *ret_line)
{
	const char *newline;

	if (left->len == 0)
		return false;
	newline = memchr(left->data, '\n', left->len);
	*ret_line = *left;
	if (newline)
		ret_line->len = (size_t)(newline - left->data);
	left->data += ret_line->len + (newline != NULL);
	left->len -= ret_line->len + (newline != NULL);
	return true;
}

static size_t count_lines(struct text t)
{
	struct text line;
	size_t n = 0;

	while (text_next_line(&t, &line))
		n++;
	return n;
}

/* NULL: none, or out of memory. */
static struct text *split(struct text t, size_t *ret_n)
{
	size_t n = count_lines(t);
	struct text *lines = n > 0 ? calloc(n, sizeof(*lines)) : NULL;

	*ret_n = lines ? n : 0;
	for (size_t i = 0; i < *ret_n; i++)
		(void)text_next_line(&t, &lines[i]);
	return lines;
}

struct diff {
	const struct text *old;
	const struct text *new;
	size_t n_old;
	size_t n_new;
	diff_fn fn;
	void *arg;
};

static void tell(const struct diff *d, char sign, const struct text *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		d->fn(d->arg, sign, lines[i]);
}

static void replace(const struct diff *d)
{
	tell(d, '-', d->old, d->n_old);
	tell(d, '+', d->new, d->n_new);
}

/* table[i][j] is how many lines the texts from old i and new j on have in common. */
static void fill(const struct diff *d, uint16_t *table)
{
	size_t width = d->n_new + 1;

	for (size_t i = d->n_old; i-- > 0;) {
		uint16_t *row = table + i * width;
		const uint16_t *below = row + width;

		for (size_t j = d->n_new; j-- > 0;) {
			if (text_equal(d->old[i], d->new[j]))
				row[j] = (uint16_t)(below[j + 1] + 1);
			else
				row[j] = below[j] >= row[j + 1] ? below[j] : row[j + 1];
		}
	}
}

static void walk(const struct diff *d, const uint16_t *table)
{
	size_t width = d->n_new + 1;
	size_t i = 0;
	size_t j = 0;

	while (i < d->n_old && j < d->n_new) {
		const uint16_t *row = table + i * width;

		if (text_equal(d->old[i], d->new[j])) {
			d->fn(d->arg, ' ', d->old[i++]);
			j++;
		} else if (row[width + j] >= row[j + 1]) {
			d->fn(d->arg, '-', d->old[i++]);
		} else {
			d->fn(d->arg, '+', d->new[j++]);
		}
	}
	tell(d, '-', d->old + i, d->n_old - i);
	tell(d, '+', d->new + j, d->n_new - j);
}

static void middle(const struct diff *d)
{
	CLEANUP(freep) uint16_t *table = NULL;

	if (d->n_old > 0 && d->n_new > 0 && d->n_old < UINT16_MAX && d->n_new < UINT16_MAX &&
	    (d->n_old + 1) * (d->n_new + 1) <= CELLS_MAX)
		table = calloc((d->n_old + 1) * (d->n_new + 1), sizeof(*table));
	if (!table) {
		replace(d);
		return;
	}
	fill(d, table);
	walk(d, table);
}

/* Without memory to compare, report both texts whole: nothing may go unseen. */
static void tell_whole(struct text t, char sign, diff_fn fn, void *arg)
{
	struct text line;

	while (text_next_line(&t, &line))
		fn(arg, sign, line);
}

void diff_lines(struct text before, struct text after, diff_fn fn, void *arg)
{
	struct diff d = {.fn = fn, .arg = arg};
	CLEANUP(freep) struct text *old = split(before, &d.n_old);
	CLEANUP(freep) struct text *new = split(after, &d.n_new);
	size_t head = 0;
	size_t tail = 0;

	if ((before.len > 0 && !old) || (after.len > 0 && !new)) {
		tell_whole(before, '-', fn, arg);
		tell_whole(after, '+', fn, arg);
		return;
	}
	while (head < d.n_old && head < d.n_new && text_equal(old[head], new[head]))
		head++;
	while (tail < d.n_old - head && tail < d.n_new - head &&
	       text_equal(old[d.n_old - 1 - tail], new[d.n_new - 1 - tail]))
		tail++;
	tell(&d, ' ', old, head);
	d.old = old ? old + head : NULL;
	d.new = new ? new + head : NULL;
	d.n_old -= head + tail;
	d.n_new -= head + tail;
	middle(&d);
	tell(&d, ' ', old ? old + head + d.n_old : NULL, tail);
}
