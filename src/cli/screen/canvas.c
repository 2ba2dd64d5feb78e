#include "cli/screen/canvas.h"

void canvas_row(struct canvas *c, unsigned row)
{
	c->room = c->columns;
	c->terminal->row(row);
}

void canvas_style(struct canvas *c, unsigned style)
{
	c->terminal->style(c->color ? style : style & (STYLE_BOLD | STYLE_REVERSE));
}

/* The bytes that fit into so many columns, which are *ret_used. */
static size_t fitting(const struct canvas *c, struct text t, unsigned columns, unsigned *ret_used)
{
	struct glyph g;
	unsigned used = 0;
	size_t i = 0;

	for (; i < t.len; i += g.used) {
		c->read(&g, t.data + i, t.data + t.len);
		if (used + g.width > columns)
			break;
		used += g.width;
	}
	*ret_used = used;
	return i;
}

static void put_all(struct canvas *c, struct text t)
{
	struct glyph g;

	for (size_t i = 0; i < t.len; i += g.used) {
		c->read(&g, t.data + i, t.data + t.len);
		c->terminal->put(&g);
	}
}

static void put_own(struct canvas *c, const char *shown, unsigned len)
{
	struct glyph g = {.len = len, .width = 1};

	for (unsigned i = 0; i < len; i++)
		g.shown[i] = shown[i];
	c->terminal->put(&g);
}

/* Returns the columns used. */
static unsigned print_in(struct canvas *c, struct text t, unsigned columns)
{
	static const char mark[] = "…";
	unsigned used;
	size_t n = fitting(c, t, columns, &used);

	if (n == t.len || columns == 0) {
		t.len = n;
		put_all(c, t);
		return used;
	}
	t.len = fitting(c, t, columns - 1, &used);
	put_all(c, t);
	put_own(c, mark, sizeof(mark) - 1);
	return used + 1;
}

void canvas_print(struct canvas *c, struct text t)
{
	c->room -= print_in(c, t, c->room);
}

void canvas_print_str(struct canvas *c, const char *text)
{
	canvas_print(c, text_of(text));
}

void canvas_put(struct canvas *c, struct text t, unsigned width)
{
	unsigned most = width < c->room ? width : c->room;
	unsigned used;

	if (most == 0)
		return;
	used = print_in(c, t, most);
	c->room -= most;
	if (c->room > 0) {
		most++;
		c->room--;
	}
	for (; used < most; used++)
		put_own(c, " ", 1);
}
