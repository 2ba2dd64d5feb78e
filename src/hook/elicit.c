/*
 * Elicitation: an MCP server asks the agent's user something, and the hook may answer for them. It
 * becomes a question in the inbox, if it is one that a line of text can answer: one field that is a
 * text, a number, a boolean or one of several choices, or none, which is to be accepted.
 *
 * "/decline" and "/cancel" are answers, too. An answer that does not fit is none: the agent asks.
 */
#include <strings.h>

#include "hook/inner.h"

enum { CHOICES_MAX = 64, MESSAGE_MAX = 64 << 10, NAME_MAX_BYTES = 256 };

static const char decline[] = "/decline";
static const char cancel[] = "/cancel";
static const char accept[] = "accept";

static int refuse_form(struct error *error, const char *words)
{
	return refuse(error, REFUSE_METHOD, "unsupported elicitation: %s", words);
}

/* ---- choices ---- */

/* What the choice is for the server, and what people read. */
struct choice {
	struct text value;
	struct text shown;
};

/* The schemas' ways to write choices: enum with or without enumNames, and oneOf. */
static const struct value *choices_of(const struct value *field)
{
	const struct value *list = value_find(field, "enum");

	if (!list)
		list = value_find(field, "oneOf");
	return list && list->kind == VALUE_ARRAY ? list : NULL;
}

static struct choice read_choice(const struct value *v, const struct value *name)
{
	struct choice c = {.value = value_text(v)};

	if (v->kind == VALUE_OBJECT) {
		c.value = value_text(value_find(v, "const"));
		name = value_find(v, "title");
	}
	c.shown = value_text(name).len > 0 ? value_text(name) : c.value;
	return c;
}

/* The first name, if the field has names. */
static const struct value *names_of(const struct value *field)
{
	const struct value *names = value_find(field, "enumNames");

	return names && names->kind == VALUE_ARRAY ? names->first : NULL;
}

static int add_choices(struct object_builder *into, const struct value *field, struct error *error)
{
	const struct value *list = choices_of(field);
	const struct value *name = names_of(field);

	if (list->len == 0 || list->len > CHOICES_MAX)
		return refuse(error, REFUSE_METHOD,
			      "unsupported elicitation: %u choices, expected 1 to %d", list->len,
			      CHOICES_MAX);
	value_each (v, list) {
		struct choice c = read_choice(v, name);

		if (c.value.len == 0)
			return refuse_form(error, "a choice is not a string");
		object_text(into, NULL, c.shown);
		name = name ? name->next : NULL;
	}
	return 0;
}

/* Whichever of the two somebody typed; {NULL, 0}: neither. */
static struct text find_choice(const struct value *field, struct text typed)
{
	const struct value *name = names_of(field);

	value_each (v, choices_of(field)) {
		struct choice c = read_choice(v, name);

		if (text_equal(typed, c.shown) || text_equal(typed, c.value))
			return c.value;
		name = name ? name->next : NULL;
	}
	return (struct text) {0};
}

/* ---- asking ---- */

static bool has_type(const struct value *field, const char *type)
{
	return text_is(value_text(value_find(field, "type")), type);
}

static int add_field(struct object_builder *input, const struct value *field, struct error *error)
{
	bool is_text = has_type(field, "string") || has_type(field, "number") ||
		       has_type(field, "integer");
	struct object_builder choices;
	int r = 0;

	if (field && !choices_of(field) && !has_type(field, "boolean"))
		return is_text ? 0
			       : refuse_form(error, "the field is not a string, number, boolean or "
						    "choice");
	choices = object_list(input, "choices");
	if (!field) {
		object_text(&choices, NULL, text_of(accept));
	} else if (choices_of(field)) {
		r = add_choices(&choices, field, error);
	} else {
		object_text(&choices, NULL, TEXT("yes"));
		object_text(&choices, NULL, TEXT("no"));
	}
	object_text(&choices, NULL, text_of(decline));
	return r ?: choices.err;
}

/* The one field; NULL: none. */
static int find_field(const struct value *schema, const struct value **ret, struct error *error)
{
	const struct value *fields = value_find(schema, "properties");

	*ret = NULL;
	if (!schema || schema->kind == VALUE_NULL || !fields)
		return 0;
	if (fields->kind != VALUE_OBJECT || fields->len > 1)
		return refuse_form(error, "the form has more than one field");
	*ret = fields->first;
	if (*ret &&
	    ((*ret)->kind != VALUE_OBJECT || (*ret)->key_len == 0 ||
	     (*ret)->key_len > NAME_MAX_BYTES || memchr((*ret)->key, '\0', (*ret)->key_len)))
		return refuse_form(error, "the field has an invalid name or schema");
	return 0;
}

static void add_message(struct object_builder *input, struct text message,
			const struct value *field)
{
	struct text about = value_text(value_find(field, "description"));
	struct buf out;

	if (about.len == 0)
		about = value_text(value_find(field, "title"));
	buf_init(&out, 2 * MESSAGE_MAX);
	buf_add(&out, message.data, message.len);
	if (about.len > 0)
		buf_printf(&out, "\n%.*s", TEXT_ARGS(text_cut(about, 4096)));
	buf_printf(&out, "\n(%s declines to answer, %s cancels the question)", decline, cancel);
	if (out.err == 0)
		object_text(input, "msg", (struct text) {out.data, out.len});
	else
		input->err = out.err;
	buf_done(&out);
}

/* koine's own ask_human is in the inbox already. */
static int elicit_check(const struct value *in, struct error *error)
{
	struct text mode = value_text(value_find(in, "mode"));
	struct text message = value_text(value_find(in, "message"));

	if (text_is(value_text(value_find(in, "mcp_server_name")), "koine"))
		return refuse_form(error, "koine has already added this question to the inbox");
	if (mode.data && !text_is(mode, "form"))
		return refuse_form(error, "the mode is not 'form'");
	if (message.len == 0 || message.len > MESSAGE_MAX)
		return refuse(error, REFUSE_METHOD,
			      "unsupported elicitation: the message must have 1 to %d bytes",
			      MESSAGE_MAX);
	return 0;
}

int hook_read_elicitation(struct arena *a, const struct value *in, struct hook *h,
			  struct error *error)
{
	const char *const once[] = {"mcp_server_name", "message", "mode", "requested_schema"};
	struct text server = value_text(value_find(in, "mcp_server_name"));
	struct object_builder input;
	int r = 0;

	for (size_t i = 0; i < sizeof(once) / sizeof(once[0]) && r == 0; i++)
		r = hook_is_twice(in, once[i])
			    ? refuse_form(error, "duplicate member in the hook input")
			    : 0;
	r = r ?: elicit_check(in, error) ?: find_field(value_find(in, "requested_schema"), &h->field, error);
	if (r != 0)
		return r;
	object_begin(&input, a);
	add_message(&input, value_text(value_find(in, "message")), h->field);
	r = add_field(&input, h->field, error);
	h->kind = TEXT("human_contact");
	h->tool = server.len > 0 ? text_cut(server, NAME_MAX_BYTES) : TEXT("Elicitation");
	h->input = input.root;
	return r ?: input.err;
}

/* ---- answering ---- */

static bool has_any(struct text t, const char *characters)
{
	for (; *characters; characters++) {
		if (memchr(t.data, *characters, t.len))
			return true;
	}
	return false;
}

/* As JSON writes a number; without fraction and exponent if it must be whole. */
static bool is_number(struct text t, bool whole)
{
	struct value v;

	return t.len > 0 && t.len <= 64 &&
	       json_scan(t.data, t.len, &json_default_limits, NULL, 0, &v) == 0 &&
	       v.kind == VALUE_NUMBER && !(whole && has_any(t, ".eE"));
}

/* Whether it keeps to "minimum", "maxLength" and the like; a limit that is none does not count. */
static bool is_within(const struct value *field, double n, const char *least, const char *most)
{
	double limit;

	if (value_double(value_find(field, least), &limit) && n < limit)
		return false;
	return !value_double(value_find(field, most), &limit) || n <= limit;
}

static size_t count_characters(struct text t)
{
	size_t n = 0;

	for (size_t i = 0; i < t.len; i++)
		n += ((unsigned char)t.data[i] & 0xc0) != 0x80;
	return n;
}

static bool is_one_of(struct text t, const char *const *words)
{
	for (; *words; words++) {
		if (t.len == strlen(*words) && strncasecmp(t.data, *words, t.len) == 0)
			return true;
	}
	return false;
}

static const char *const yes[] = {"yes", "y", "true", NULL};
static const char *const no[] = {"no", "n", "false", NULL};

/* False: it does not fit. */
static bool write_field(struct json *j, const struct value *field, struct text answer)
{
	struct value number = {
		.kind = VALUE_NUMBER, .text = answer.data, .len = (uint32_t)answer.len};
	bool whole = has_type(field, "integer");
	double n = 0;

	json_key_text(j, (struct text) {.data = field->key, .len = field->key_len});
	if (choices_of(field)) {
		answer = find_choice(field, answer);
		json_text(j, answer);
		return answer.data;
	}
	if (has_type(field, "boolean")) {
		json_bool(j, is_one_of(answer, yes));
		return is_one_of(answer, yes) || is_one_of(answer, no);
	}
	if (!whole && !has_type(field, "number")) {
		json_text(j, answer);
		return is_within(field, (double)count_characters(answer), "minLength", "maxLength");
	}
	json_raw(j, answer.data, answer.len);
	return is_number(answer, whole) && value_double(&number, &n) &&
	       is_within(field, n, "minimum", "maximum");
}

/* False: the answer accepts nothing, or does not fit. */
static bool write_accepted(struct json *j, const struct value *field, struct text answer)
{
	bool fits;

	json_member_str(j, "action", accept);
	json_key(j, "content");
	json_begin_object(j);
	fits = field ? write_field(j, field, answer)
		     : text_is(answer, accept) || is_one_of(answer, yes);
	json_end_object(j);
	return fits;
}

void hook_answer_elicitation(const struct hook *h, struct text answer, struct buf *out)
{
	struct json j = json_writer(out);
	size_t before = out->len;
	bool fits = true;

	answer = text_trim(answer, " \t\r\n");
	hook_begin_specific(&j, "Elicitation");
	if (text_is(answer, decline))
		json_member_str(&j, "action", "decline");
	else if (text_is(answer, cancel))
		json_member_str(&j, "action", "cancel");
	else
		fits = write_accepted(&j, h->field, answer);
	hook_end_specific(&j);
	if (!fits)
		out->len = before;
}
