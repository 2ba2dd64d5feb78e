#include "dialect/koine/approval_json.h"

#include "wire/json_members.h"

#define MEMBER(kind, field) MEMBER_OF(struct approval, kind, field)

static const struct member decider_members[] = {
	{"uid", NULL, MEMBER(INT, decider_uid)},
	{"pid", NULL, MEMBER(INT, decider_pid), 0, NONE_IS_ZERO},
	{"program", NULL, MEMBER(BLOB, decider_program)},
	{"terminal", NULL, MEMBER(TEXT, decider_terminal)},
};

static const struct portrait decider = PORTRAIT(struct approval, decider_members);

/* Written only where the decider is known. */
static void write_decider(struct json *j, const struct approval *a)
{
	if (!a->decider_known)
		return;
	json_key(j, "decided_from");
	json_begin_object(j);
	json_members(j, &decider, (struct selection) {0}, a, 0);
	json_end_object(j);
}

void approval_json_write_end(struct json *j, const struct approval *a)
{
	json_begin_object(j);
	json_members(j, &approval_portrait, (struct selection) {.with = APPROVAL_ENDS}, a, 0);
	write_decider(j, a);
	json_end_object(j);
}

/* The input is written to learn its length, and taken back if it is too long. */
static void write_input_within(struct json *j, const struct approval *a, size_t *left)
{
	size_t max = *left < APPROVAL_SHOWN ? *left : APPROVAL_SHOWN;
	struct json before = *j;
	size_t start = j->out->len;
	size_t n;

	json_members(j, &approval_portrait, (struct selection) {.with = APPROVAL_INPUT}, a, 0);
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
		json_members(j, &approval_portrait, head, a, 0);
		write_input_within(j, a, left);
		json_members(j, &approval_portrait, rest, a, 0);
	} else {
		json_members(j, &approval_portrait, (struct selection) {0}, a, 0);
	}
	write_decider(j, a);
	json_end_object(j);
}

void grant_json_write(struct json *j, const struct grant *grant)
{
	json_begin_object(j);
	json_members(j, &grant_portrait, (struct selection) {0}, grant, 0);
	json_end_object(j);
}
