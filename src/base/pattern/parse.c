/*
 * Compiles an expression in one pass: each piece is appended, and an operator that follows it
 * ("*", "{2}", "|") moves or copies what was written.
 */
#include <string.h>

#include "base/pattern/code.h"

enum { NO_PIECE = -1, NO_JUMP = -1, FOR_EVER = -1 };

/* An open group: where its parts begin in the program. */
struct level {
	int start;  /* of the group */
	int branch; /* of what follows the last "|" */
	int piece;  /* of what an operator would repeat, or NO_PIECE */
	int jump;   /* the last jump to the group's end; its `to` is the jump before it */
};

struct parse_reader {
	const char *at;
	const char *end;
	struct pattern_code *code;
	struct level levels[PATTERN_DEPTH_MAX];
	unsigned depth;
	bool repeated; /* the last piece was repeated; a "?" now only makes it lazy */
	struct error *error;
};

static int no(struct parse_reader *r, const char *text)
{
	return refuse_field(r->error, "pattern", "regular expression: %s", text);
}

static struct level *level(struct parse_reader *r)
{
	return &r->levels[r->depth];
}

/* ---- writing ---- */

static int parse_put(struct parse_reader *r, struct pattern_step step)
{
	struct pattern_code *c = r->code;

	if (c->n == PATTERN_CODE_MAX - 1) /* one is reserved for OP_FOUND */
		return no(r, "the expression expands to too many steps");
	c->steps[c->n++] = step;
	return 0;
}

/* Inserts it before what was written from `at` on. */
static int parse_insert(struct parse_reader *r, int at, struct pattern_step step)
{
	struct pattern_code *c = r->code;
	int e = parse_put(r, step);

	if (e != 0)
		return e;
	memmove(&c->steps[at + 1], &c->steps[at], (c->n - 1 - (unsigned)at) * sizeof(step));
	c->steps[at] = step;
	return 0;
}

static void begin_piece(struct parse_reader *r)
{
	level(r)->piece = (int)r->code->n;
	r->repeated = false;
}

/* ---- repeating ---- */

static struct pattern_step parse_split(int to, int or_to)
{
	return (struct pattern_step) {.op = OP_SPLIT, .to = (int16_t)to, .or_to = (int16_t)or_to};
}

static int put_copy(struct parse_reader *r, const struct pattern_step *steps, int n)
{
	int e = 0;

	for (int i = 0; e == 0 && i < n; i++)
		e = parse_put(r, steps[i]);
	return e;
}

/* Repeats the piece up to `times` times. */
static int put_optional(struct parse_reader *r, const struct pattern_step *steps, int n, int times)
{
	int e = 0;

	for (int left = times; e == 0 && left > 0; left--) {
		if (left * (n + 1) > PATTERN_CODE_MAX)
			return no(r, "the expression expands to too many steps");
		e = parse_put(r, parse_split(1, left * (n + 1))) ?: put_copy(r, steps, n);
	}
	return e;
}

static int put_star(struct parse_reader *r, int at)
{
	int n = (int)r->code->n - at;
	int e = parse_insert(r, at, parse_split(1, n + 2));

	if (e == 0)
		e = parse_put(r, (struct pattern_step) {.op = OP_JUMP, .to = (int16_t) - (n + 1)});
	return e;
}

/* `most` may be FOR_EVER. */
static int repeat(struct parse_reader *r, int least, int most)
{
	struct pattern_step copy[PATTERN_CODE_MAX];
	int at = level(r)->piece;
	int n = (int)r->code->n - at;
	int e = 0;

	if (r->repeated || at == NO_PIECE)
		return no(r, "nothing to repeat");
	r->repeated = true;
	if (least == 0 && most == FOR_EVER)
		return put_star(r, at);
	memcpy(copy, &r->code->steps[at], (size_t)n * sizeof(copy[0]));
	if (least == 0)
		r->code->n = (unsigned)at;
	for (int i = 1; e == 0 && i < least; i++)
		e = put_copy(r, copy, n);
	if (e == 0 && most == FOR_EVER)
		return parse_put(r, parse_split(-n, 1));
	return e == 0 ? put_optional(r, copy, n, most - least) : e;
}

/* ---- one byte, or one of several ---- */

static void add_class(struct pattern_set *s, char letter)
{
	for (unsigned c = 0; c < 256; c++) {
		bool in = letter == 'd'   ? c >= '0' && c <= '9'
			  : letter == 'w' ? is_word_byte((unsigned char)c)
					  : c == ' ' || (c >= '\t' && c <= '\r');

		if (in)
			set_add(s, (unsigned char)c);
	}
}

static void invert(struct pattern_set *s)
{
	for (unsigned i = 0; i < 4; i++)
		s->bits[i] = ~s->bits[i];
}

static int put_set(struct parse_reader *r, const struct pattern_set *s)
{
	struct pattern_code *c = r->code;

	if (c->n_sets == PATTERN_MAX)
		return no(r, "too many bracket expressions");
	c->sets[c->n_sets] = *s;
	return parse_put(r, (struct pattern_step) {.op = OP_SET, .set = (uint16_t)c->n_sets++});
}

static int put_byte(struct parse_reader *r, char c)
{
	return parse_put(r, (struct pattern_step) {.op = OP_BYTE, .byte = (unsigned char)c});
}

static int put_op(struct parse_reader *r, enum pattern_op op)
{
	return parse_put(r, (struct pattern_step) {.op = (uint8_t)op});
}

/* An anchor cannot be repeated. */
static int put_anchor(struct parse_reader *r, enum pattern_op op)
{
	level(r)->piece = NO_PIECE;
	r->repeated = false;
	return put_op(r, op);
}

static bool is_class(char c)
{
	return c == 'd' || c == 'w' || c == 's';
}

/* The control character that an escape names; 0: none. */
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
	return c != '_' && is_word_byte((unsigned char)c);
}

/* ---- brackets ---- */

/* One member of a class: a byte, or a named class, which is added; *ret_byte is then -1. */
static int bracket_member(struct parse_reader *r, struct pattern_set *s, int *ret_byte)
{
	char c = *r->at++;

	*ret_byte = (unsigned char)c;
	if (c == '[' && r->at < r->end && strchr(":.=", *r->at))
		return no(r, "classes such as [:alpha:] are not supported");
	if (c != '\\')
		return 0;
	if (r->at == r->end)
		return no(r, "trailing backslash");
	c = *r->at++;
	*ret_byte = (unsigned char)(control_of(c) ? control_of(c) : c);
	if (is_class(c)) {
		add_class(s, c);
		*ret_byte = -1;
	} else if (is_alnum(c) && !control_of(c)) {
		return no(r, "unknown escape sequence in a bracket expression");
	}
	return 0;
}

/* A hyphen between two bytes makes a range; anywhere else it is itself. */
static int bracket_range(struct parse_reader *r, struct pattern_set *s)
{
	int first, last;
	int e = bracket_member(r, s, &first);

	last = first;
	if (e == 0 && first >= 0 && r->end - r->at >= 2 && r->at[0] == '-' && r->at[1] != ']') {
		r->at++;
		e = bracket_member(r, s, &last);
		if (e == 0 && last < 0) {
			set_add(s, '-');
			last = first;
		}
	}
	if (e != 0 || first < 0)
		return e;
	if (last < first)
		return no(r, "a range ends before it begins");
	for (int c = first; c <= last; c++)
		set_add(s, (unsigned char)c);
	return 0;
}

static int read_bracket(struct parse_reader *r)
{
	struct pattern_set s = {0};
	bool inverted = r->at < r->end && *r->at == '^';
	int e = 0;

	r->at += inverted;
	if (r->at < r->end && *r->at == ']')
		return no(r, "empty bracket expression");
	while (e == 0 && r->at < r->end && *r->at != ']')
		e = bracket_range(r, &s);
	if (e != 0)
		return e;
	if (r->at == r->end)
		return no(r, "unclosed bracket expression");
	r->at++;
	if (inverted)
		invert(&s);
	return put_set(r, &s);
}

/* ---- the rest ---- */

static int read_escape(struct parse_reader *r)
{
	struct pattern_set s = {0};
	char c;

	if (r->at == r->end)
		return no(r, "trailing backslash");
	c = *r->at++;
	if (is_alnum(c) && is_class((char)(c | 0x20))) {
		add_class(&s, (char)(c | 0x20));
		if (!(c & 0x20))
			invert(&s);
		return put_set(r, &s);
	}
	if (c == 'b' || c == 'B')
		return put_anchor(r, c == 'b' ? OP_WORD : OP_NOT_WORD);
	if (control_of(c))
		return put_byte(r, control_of(c));
	return is_alnum(c) ? no(r, "unknown escape sequence") : put_byte(r, c);
}

/* Any byte but NUL. */
static int read_dot(struct parse_reader *r)
{
	struct pattern_set s = {0};

	set_add(&s, 0);
	invert(&s);
	return put_set(r, &s);
}

static void open_level(struct parse_reader *r)
{
	int at = (int)r->code->n;

	*level(r) = (struct level) {at, at, NO_PIECE, NO_JUMP};
	r->repeated = false;
}

static int open_group(struct parse_reader *r)
{
	if (r->depth + 1 == PATTERN_DEPTH_MAX)
		return no(r, "too many nested groups");
	r->depth++;
	open_level(r);
	if (r->at == r->end || *r->at != '?')
		return 0;
	if (r->end - r->at < 2 || r->at[1] != ':')
		return no(r, "lookahead, lookbehind and named groups are not supported");
	r->at += 2;
	return 0;
}

/* Makes the jumps out of the group point to its end. */
static void end_level(struct parse_reader *r)
{
	int jump = level(r)->jump;

	while (jump != NO_JUMP) {
		struct pattern_step *s = &r->code->steps[jump];
		int before = s->to;

		s->to = (int16_t)((int)r->code->n - jump);
		jump = before;
	}
}

static int close_group(struct parse_reader *r)
{
	int start = level(r)->start;

	if (r->depth == 0)
		return no(r, "unmatched closing parenthesis");
	end_level(r);
	r->depth--;
	level(r)->piece = start;
	r->repeated = false;
	return 0;
}

/* What precedes it is one alternative; what follows is the next. */
static int read_or(struct parse_reader *r)
{
	struct level *l = level(r);
	int n = (int)r->code->n - l->branch;
	int e = parse_insert(r, l->branch, parse_split(1, n + 2));

	if (e == 0)
		e = parse_put(r, (struct pattern_step) {.op = OP_JUMP, .to = (int16_t)l->jump});
	l->jump = (int)r->code->n - 1;
	l->branch = (int)r->code->n;
	l->piece = NO_PIECE;
	return e;
}

/* Reads digits; -1: there are none, or too many. */
static int read_number(struct parse_reader *r)
{
	int n = -1;

	while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && n < PATTERN_CODE_MAX)
		n = (n < 0 ? 0 : n) * 10 + (*r->at++ - '0');
	return n;
}

/* {n}, {n,}, {n,m} or {,m} */
static int read_braces(struct parse_reader *r)
{
	int least = read_number(r);
	bool comma = r->at < r->end && *r->at == ',';
	int most;

	r->at += comma;
	most = comma ? read_number(r) : least;
	if (r->at == r->end)
		return no(r, "unclosed brace");
	if (least >= PATTERN_CODE_MAX || most >= PATTERN_CODE_MAX)
		return no(r, "the expression expands to too many steps");
	if (*r->at != '}' || (least < 0 && most < 0))
		return no(r, "braces must contain numbers");
	r->at++;
	if (least < 0)
		least = 0;
	if (most >= 0 && most < least)
		return no(r, "the maximum repeat count is less than the minimum");
	return repeat(r, least, most);
}

static int read_sign(struct parse_reader *r, char c)
{
	/* Greedy or lazy makes no difference to whether there is a match. */
	if (c == '?' && r->repeated) {
		r->repeated = false;
		level(r)->piece = NO_PIECE;
		return 0;
	}
	return repeat(r, c == '+', c == '?' ? 1 : FOR_EVER);
}

static int read_piece(struct parse_reader *r, char c)
{
	begin_piece(r);
	return c == '\\'  ? read_escape(r)
	       : c == '[' ? read_bracket(r)
	       : c == '.' ? read_dot(r)
			  : put_byte(r, c);
}

static int read_one(struct parse_reader *r, char c)
{
	switch (c) {
	case '(':
		return open_group(r);
	case ')':
		return close_group(r);
	case '{':
		return read_braces(r);
	case '*':
	case '+':
	case '?':
		return read_sign(r, c);
	case '|':
		r->repeated = false;
		return read_or(r);
	case '^':
		return put_anchor(r, OP_BEGIN);
	case '$':
		return put_anchor(r, OP_END);
	}
	return read_piece(r, c);
}

int pattern_parse(struct text expression, struct pattern_code *code, struct error *error)
{
	struct parse_reader r = {.at = expression.data, .code = code, .error = error};
	int e = 0;

	if (expression.len == 0 || expression.len > PATTERN_MAX)
		return no(&r, "the expression must have 1 to 512 bytes");
	if (memchr(expression.data, '\0', expression.len))
		return no(&r, "NUL bytes are not allowed");
	r.end = expression.data + expression.len;
	open_level(&r);
	while (e == 0 && r.at < r.end)
		e = read_one(&r, *r.at++);
	if (e == 0 && r.depth > 0)
		e = no(&r, "unclosed group");
	if (e != 0)
		return e;
	end_level(&r);
	code->steps[code->n++] = (struct pattern_step) {.op = OP_FOUND};
	return 0;
}
