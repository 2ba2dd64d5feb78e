#include "dialect/koine/approval/approval.h"

#include "wire/json.h"

enum { KEYS_ARENA_MAX = 8 << 20, DIGITS_EXACT = 15 };

#define MEMBER(kind, field) MEMBER_OF(struct approval, kind, field)

static const struct member decider_members[] = {
	{"uid", NULL, MEMBER(INT, decider_uid)},
	{"pid", NULL, MEMBER(INT, decider_pid), 0, NONE_IS_ZERO},
	{"program", NULL, MEMBER(BLOB, decider_program)},
	{"terminal", NULL, MEMBER(TEXT, decider_terminal)},
};

static const struct schema decider = SCHEMA(struct approval, decider_members);

/* Written only where the decider is known. */
static void write_decider(struct json *j, const struct approval *a)
{
	if (!a->decider_known)
		return;
	json_member_object(j, "decided_from");
	json_members(j, &decider, (struct selection) {0}, a, 0);
	json_end_object(j);
}

void approval_json_write_end(struct json *j, const struct approval *a)
{
	json_begin_object(j);
	json_members(j, &approval_schema, (struct selection) {.with = APPROVAL_ENDS}, a, 0);
	write_decider(j, a);
	json_end_object(j);
}

/* ---- what a reader may change ---- */

/* A browser has doubles: more digits than these it rounds. */
static bool number_is_exact(const struct value *v)
{
	return v->len <= DIGITS_EXACT && !memchr(v->text, 'e', v->len) &&
	       !memchr(v->text, 'E', v->len);
}

static bool numbers_are_exact(const struct value *v)
{
	if (v->kind == VALUE_NUMBER)
		return number_is_exact(v);
	if (v->kind != VALUE_ARRAY && v->kind != VALUE_OBJECT)
		return true;
	value_each (child, v) {
		if (!numbers_are_exact(child))
			return false;
	}
	return true;
}

/* Where that cannot be told for lack of memory, it is not. */
static bool is_read_alike(const struct value *v)
{
	struct text twice = {0};
	struct arena arena;
	int r;

	arena_init(&arena, KEYS_ARENA_MAX);
	r = value_find_twice(&arena, v, &twice);
	arena_done(&arena);
	return r == 0 && !twice.data && numbers_are_exact(v);
}

/* Who reads the input as JSON might be shown less than there is: a name that stands there twice is
 * one, and long numbers become others. So the text itself is there, too. */
static void write_input_text(struct json *j, const struct approval *a)
{
	struct buf text;
	struct json inner;

	if (!a->input.value || is_read_alike(a->input.value))
		return;
	buf_init(&text, j->out->max);
	inner = json_writer(&text);
	json_value(&inner, a->input.value);
	json_member_text(j, "input_text",
			 (struct text) {.data = text.data ? text.data : "", .len = text.len});
	if (text.err != 0 && j->out->err == 0)
		j->out->err = text.err;
	buf_done(&text);
}

/* The input is written to learn its length, and taken back if it is too long. */
static void write_input_within(struct json *j, const struct approval *a, size_t *left)
{
	size_t max = *left < APPROVAL_SHOWN ? *left : APPROVAL_SHOWN;
	struct json before = *j;
	size_t start = j->out->len;
	size_t n;

	json_members(j, &approval_schema, (struct selection) {.with = APPROVAL_INPUT}, a, 0);
	write_input_text(j, a);
	n = j->out->len - start - strlen(",\"input\":");
	if (j->out->err != 0)
		return;
	if (n <= max) {
		*left -= n;
		return;
	}
	*j = before;
	j->out->len = start;
	json_key(j, "input");
	json_null(j);
	json_member_bool(j, "input_omitted", true);
}

void approval_json_write(struct json *j, const struct approval *a, size_t *left)
{
	const struct selection head = {.with = APPROVAL_HEAD};
	const struct selection rest = {.without = APPROVAL_HEAD | APPROVAL_INPUT};

	json_begin_object(j);
	if (left) {
		json_members(j, &approval_schema, head, a, 0);
		write_input_within(j, a, left);
		json_members(j, &approval_schema, rest, a, 0);
	} else {
		json_members(j, &approval_schema, (struct selection) {0}, a, 0);
		write_input_text(j, a);
	}
	write_decider(j, a);
	json_end_object(j);
}
