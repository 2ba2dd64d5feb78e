#include "service/pattern.h"

#include <errno.h>
#include <regex.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"

struct pattern {
	regex_t regex;
	unsigned n_uses;
	char text[];
};

/* libc keeps every state that it ever was in: from time to time it must begin afresh. */
enum { USES_MAX = 100 };

/* What a group has come to: libc writes out what is repeated, and what is repeated in it,
 * which a few signs can make larger than any memory. */
struct level {
	unsigned long cost; /* without the last piece */
	unsigned long last; /* piece, which may be repeated */
};

/* An expression while it is being put into POSIX's form. */
struct reader {
	const char *at;
	const char *end;
	struct buf *out;
	struct level levels[PATTERN_DEPTH_MAX];
	unsigned depth;
	bool repeated; /* the last piece: a "?" only makes it modest */
	struct why *why;
};

static int no(struct reader *r, const char *text)
{
	return refuse_field(r->why, "pattern", "regular expression: %s", text);
}

/* ---- what it costs ---- */

static void piece(struct reader *r, unsigned long cost)
{
	struct level *l = &r->levels[r->depth];

	l->cost += l->last;
	l->last = cost;
	r->repeated = false;
}

static int repeat(struct reader *r, unsigned long times)
{
	struct level *l = &r->levels[r->depth];

	if (r->repeated || l->last == 0)
		return no(r, "nothing to repeat");
	l->last *= times;
	r->repeated = true;
	return l->last + l->cost > PATTERN_COST_MAX ? no(r, "repeats too often") : 0;
}

/* ---- classes ---- */

static const struct {
	char letter;
	const char *inside; /* of brackets */
} classes[] = {{'d', "0-9"}, {'w', "A-Za-z0-9_"}, {'s', " \t\n\r\f\v"}};

static const char *class_of(char letter)
{
	for (unsigned i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (classes[i].letter == letter)
			return classes[i].inside;
	}
	return NULL;
}

/* The byte that an escape stands for; 0: none. */
static char control_of(char letter)
{
	switch (letter) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'r':
		return '\r';
	case 'f':
		return '\f';
	case 'v':
		return '\v';
	}
	return 0;
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- brackets: POSIX has no escapes there, and some bytes mean themselves only at a place ---- */

struct bracket {
	bool not, closing, hyphen, caret;
	struct buf inside;
};

static int bracket_escape(struct reader *r, struct bracket *b)
{
	const char *class;
	char c;

	if (r->at == r->end)
		return no(r, "ends with a backslash");
	c = *r->at++;
	class = class_of(c);
	if (class)
		buf_add_str(&b->inside, class);
	else if (control_of(c))
		buf_add_char(&b->inside, control_of(c));
	else if (c == ']')
		b->closing = true;
	else if (c == '-')
		b->hyphen = true;
	else if (c == '^')
		b->caret = true;
	else if (is_alnum(c))
		return no(r, "an escape in brackets that is not known");
	else
		buf_add_char(&b->inside, c);
	return 0;
}

static void bracket_write(struct reader *r, const struct bracket *b)
{
	struct buf *out = r->out;

	/* "[^]" would be open; a caret alone is itself. */
	if (b->caret && !b->not &&!b->closing && !b->hyphen && b->inside.len == 0) {
		buf_add_str(out, "\\^");
		return;
	}
	buf_add_str(out, b->not ? "[^" : "[");
	if (b->closing)
		buf_add_char(out, ']');
	buf_add(out, b->inside.data, b->inside.len);
	if (b->caret && !b->closing && b->inside.len == 0)
		buf_add_str(out, b->not ? "^" : "-^");
	else if (b->caret)
		buf_add_char(out, '^');
	if (b->hyphen)
		buf_add_char(out, '-');
	buf_add_char(out, ']');
}

static int read_bracket(struct reader *r)
{
	struct bracket b = {0};
	int e = 0;

	buf_init(&b.inside, 8 * PATTERN_MAX);
	if (r->at < r->end && *r->at == '^') {
		b.not = true;
		r->at++;
	}
	while (e == 0 && r->at < r->end && *r->at != ']') {
		char c = *r->at++;

		if (c == '\\')
			e = bracket_escape(r, &b);
		else if (c == '[' && r->at < r->end && strchr(":.=", *r->at))
			e = no(r, "a class like [:alpha:]");
		else
			buf_add_char(&b.inside, c);
	}
	if (e == 0 && r->at == r->end)
		e = no(r, "a bracket is not closed");
	if (e == 0 && !b.closing && !b.hyphen && !b.caret && b.inside.len == 0)
		e = no(r, "empty brackets");
	r->at += e == 0;
	if (e == 0)
		bracket_write(r, &b);
	e = e ? e : b.inside.err;
	buf_done(&b.inside);
	return e;
}

/* ---- the rest ---- */

static int read_escape(struct reader *r)
{
	const char *class;
	char c;

	if (r->at == r->end)
		return no(r, "ends with a backslash");
	c = *r->at++;
	class = class_of((char)(c | 0x20));
	if (class && is_alnum(c)) {
		buf_add_str(r->out, c & 0x20 ? "[" : "[^");
		buf_add_str(r->out, class);
		buf_add_char(r->out, ']');
	} else if (c == 'b' || c == 'B') {
		buf_add_char(r->out, '\\');
		buf_add_char(r->out, c);
	} else if (control_of(c)) {
		buf_add_char(r->out, control_of(c));
	} else if (is_alnum(c)) {
		return no(r, "an escape that is not known");
	} else {
		/* In brackets it is itself, and in POSIX some escapes are not defined. */
		if (strchr(".[]{}()*+?^$|\\", c))
			buf_add_char(r->out, '\\');
		buf_add_char(r->out, c);
	}
	return 0;
}

static int read_group(struct reader *r)
{
	if (r->depth + 1 == PATTERN_DEPTH_MAX)
		return no(r, "groups are nested too deep");
	r->levels[++r->depth] = (struct level) {.cost = 1};
	r->repeated = false;
	buf_add_char(r->out, '(');
	if (r->at == r->end || *r->at != '?')
		return 0;
	if (r->end - r->at < 2 || r->at[1] != ':')
		return no(r, "looking ahead or behind and named groups are not there");
	r->at += 2;
	return 0;
}

static int close_group(struct reader *r)
{
	const struct level *l = &r->levels[r->depth];

	if (r->depth == 0)
		return no(r, "a group is closed that was not opened");
	r->depth--;
	piece(r, l->cost + l->last);
	buf_add_char(r->out, ')');
	return 0;
}

/* {n}, {n,} or {n,m} */
static int read_braces(struct reader *r)
{
	unsigned long most = 1;
	unsigned long n = 0;

	buf_add_char(r->out, '{');
	for (; r->at < r->end && *r->at != '}'; r->at++) {
		if (*r->at != ',' && (*r->at < '0' || *r->at > '9'))
			return no(r, "braces must have numbers in them");
		n = *r->at == ',' ? 0 : n * 10 + (unsigned long)(*r->at - '0');
		if (n > PATTERN_COST_MAX)
			return no(r, "repeats too often");
		most = n > most ? n : most;
		buf_add_char(r->out, *r->at);
	}
	if (r->at == r->end)
		return no(r, "a brace is not closed");
	r->at++;
	buf_add_char(r->out, '}');
	return repeat(r, most + 1);
}

static int read_sign(struct reader *r, char c)
{
	/* Whether it takes much or little is one, if only the finding counts. */
	if (c == '?' && r->repeated) {
		r->repeated = false;
		r->levels[r->depth].cost += r->levels[r->depth].last;
		r->levels[r->depth].last = 0;
		return 0;
	}
	buf_add_char(r->out, c);
	return repeat(r, c == '+' ? 2 : 1);
}

static int read_one(struct reader *r, char c)
{
	switch (c) {
	case '\\':
		piece(r, 1);
		return read_escape(r);
	case '[':
		piece(r, 1);
		return read_bracket(r);
	case '(':
		return read_group(r);
	case ')':
		return close_group(r);
	case '{':
		return read_braces(r);
	case '*':
	case '+':
	case '?':
		return read_sign(r, c);
	case '|':
	case '^':
	case '$':
		piece(r, 1);
		piece(r, 0); /* these cannot be repeated */
		break;
	default:
		piece(r, 1);
		break;
	}
	buf_add_char(r->out, c);
	return 0;
}

static int translate(struct reader *r)
{
	int e = 0;

	while (e == 0 && r->at < r->end)
		e = read_one(r, *r->at++);
	if (e == 0 && r->depth > 0)
		e = no(r, "a group is not closed");
	buf_add_char(r->out, '\0');
	return e ? e : r->out->err;
}

static int compile(const char *text, struct pattern **ret_pattern, struct why *why)
{
	struct pattern *p = calloc(1, sizeof(*p) + strlen(text) + 1);
	char what[100];
	int e;

	if (!p)
		return -ENOMEM;
	strcpy(p->text, text);
	e = regcomp(&p->regex, text, REG_EXTENDED);
	if (e == 0) {
		*ret_pattern = p;
		return 0;
	}
	regerror(e, &p->regex, what, sizeof(what));
	free(p);
	return e == REG_ESPACE ? -ENOMEM
			       : refuse_field(why, "pattern", "regular expression: %s", what);
}

int pattern_new(struct text expression, struct pattern **ret_pattern, struct why *why)
{
	CLEANUP(buf_donep) struct buf out;
	struct reader r = {.at = expression.data,
			   .end = expression.data ? expression.data + expression.len : NULL,
			   .out = &out,
			   .why = why};
	int e;

	buf_init(&out, 16 * PATTERN_MAX);
	if (expression.len == 0 || expression.len > PATTERN_MAX)
		return no(&r, "must have 1 to 512 bytes");
	if (memchr(expression.data, '\0', expression.len))
		return no(&r, "has a NUL byte");
	e = translate(&r);
	return e ? e : compile(out.data, ret_pattern, why);
}

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	regfree(&p->regex);
	free(p);
}

static bool is_fresh(struct pattern *p)
{
	regex_t fresh;

	if (p->n_uses++ < USES_MAX)
		return true;
	if (regcomp(&fresh, p->text, REG_EXTENDED) != 0)
		return false;
	regfree(&p->regex);
	p->regex = fresh;
	p->n_uses = 1;
	return true;
}

bool pattern_finds(struct pattern *p, struct text t)
{
	size_t len = t.len < PATTERN_TEXT_MAX ? t.len : PATTERN_TEXT_MAX;
	regmatch_t m = {.rm_so = 0, .rm_eo = (regoff_t)len};
	char *copy = is_fresh(p) ? malloc(len + 1) : NULL;
	bool found;

	/* With an end, since not every regexec can do without; a NUL inside does not end it. */
	if (!copy)
		return false;
	if (len > 0)
		memcpy(copy, t.data, len);
	copy[len] = '\0';
	found = regexec(&p->regex, copy, 1, &m, REG_STARTEND) == 0;
	free(copy);
	return found;
}

/* Back to the last star, one byte further, whenever the rest does not fit. */
bool glob_fits(struct text glob, struct text t)
{
	size_t star = SIZE_MAX;
	size_t mark = 0;
	size_t g = 0;

	for (size_t i = 0; i < t.len;) {
		if (g < glob.len && glob.data[g] == '*') {
			star = g++;
			mark = i;
		} else if (g < glob.len && (glob.data[g] == '?' || glob.data[g] == t.data[i])) {
			g++;
			i++;
		} else if (star != SIZE_MAX) {
			g = star + 1;
			i = ++mark;
		} else {
			return false;
		}
	}
	while (g < glob.len && glob.data[g] == '*')
		g++;
	return g == glob.len;
}
