#include "cli/complete/offers.h"

#include <stdio.h>
#include <string.h>

#include "cli/kit/glyph.h"
#include "cli/kit/value.h"

enum { VALUE_MAX = 512, SAID_COLUMNS = 60, OUT_MAX = 1 << 20 };

struct shell {
	const char *name;
	bool filters; /* candidates that do not fit what was typed are left to the shell */
	void (*add_value)(struct buf *out, struct text value);
	char mark; /* between a candidate and its description */
};

/* ---- as a shell wants them ---- */

/*
 * bash puts a candidate on the line as it is. A backslash before whatever may mean something
 * works outside of quotes; and inside, where it is one too many, it starts nothing. No other
 * form of quoting does both.
 */
static void add_for_bash(struct buf *out, struct text value)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-./:=@%+,";

	for (size_t i = 0; i < value.len; i++) {
		if (!((unsigned char)value.data[i] & 0x80) && !strchr(plain, value.data[i]))
			buf_add_char(out, '\\');
		buf_add_char(out, value.data[i]);
	}
}

/* The form of _describe, which then quotes by itself. */
static void add_for_zsh(struct buf *out, struct text value)
{
	for (size_t i = 0; i < value.len; i++) {
		if (value.data[i] == ':' || value.data[i] == '\\')
			buf_add_char(out, '\\');
		buf_add_char(out, value.data[i]);
	}
}

/* It quotes by itself. */
static void add_for_fish(struct buf *out, struct text value)
{
	buf_add(out, value.data, value.len);
}

static const struct shell shells[] = {
	{"bash", false, add_for_bash, '\t'},
	{"zsh", true, add_for_zsh, ':'},
	{"fish", true, add_for_fish, '\t'},
};

/* ---- collecting ---- */

bool offers_init(struct offers *o, const char *shell, const char *typed)
{
	*o = (struct offers) {.how = "words"};
	buf_init(&o->out, OUT_MAX);
	buf_init(&o->values, OUT_MAX);
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(shells[i].name, shell) == 0)
			o->shell = &shells[i];
	}
	if (o->shell && !o->shell->filters)
		o->typed = text_of(typed);
	return o->shell != NULL;
}

void offers_done(struct offers *o)
{
	buf_done(&o->out);
	buf_done(&o->values);
}

void offers_put_before(struct offers *o, struct text before)
{
	o->before = before;
	if (o->typed.data)
		o->typed = text_skip(o->typed, before.len);
}

void offers_set_how(struct offers *o, const char *how)
{
	o->how = how;
}

static bool is_there(const struct offers *o, struct text value)
{
	struct text rest = buf_text(&o->values);
	struct text one;

	while (text_next(&rest, '\0', &one)) {
		if (text_equal(one, value))
			return true;
	}
	return false;
}

/* In one line, its first words; nothing in it moves a cursor. */
static void add_said(struct buf *out, struct text said)
{
	const char *at = said.data;
	const char *end = said.data + said.len;
	size_t columns = 0;
	bool space = true; /* so that none comes first */
	struct glyph g;

	for (; at && at < end && columns < SAID_COLUMNS; at += g.used) {
		bool was_space = space;

		glyph_read(&g, at, end);
		space = g.len == 1 && g.shown[0] == ' ';
		if (space && was_space)
			continue;
		buf_add(out, g.shown, g.len);
		columns += g.width;
	}
	if (at && at < end)
		buf_add_str(out, "…");
}

void offers_add(struct offers *o, struct text value, struct text said)
{
	if (o->n == OFFERS_MAX || value.len == 0 || is_there(o, value) ||
	    (o->typed.data && !text_begins(value, o->typed)))
		return;
	buf_add(&o->values, value.data, value.len);
	buf_add_char(&o->values, '\0');
	o->n++;
	o->shell->add_value(&o->out, o->before);
	o->shell->add_value(&o->out, value);
	if (said.len > 0) {
		buf_add_char(&o->out, o->shell->mark);
		add_said(&o->out, said);
	}
	buf_add_char(&o->out, '\n');
}

/* Whether a person sees all that there is of it. */
static bool is_visible(struct text value)
{
	const char *end = value.data + value.len;
	struct glyph g;

	for (const char *at = value.data; at < end; at += g.used) {
		glyph_read_exact(&g, at, end);
		if (g.len != g.used || memcmp(g.shown, at, g.len) != 0)
			return false;
	}
	return true;
}

void offers_add_foreign(struct offers *o, struct text value, struct text said)
{
	if (value.len == 0 || value.len > VALUE_MAX || value.data[0] == '-' || !is_visible(value))
		return;
	offers_add(o, value, said);
}

/* All or nothing: half of a candidate is another one. */
void offers_print(const struct offers *o)
{
	puts(o->how);
	if (o->out.err == 0 && o->values.err == 0 && o->out.len > 0)
		fwrite(o->out.data, 1, o->out.len, stdout);
}
