/*
 * The body of a webhook: a template with {fields}. In one that is JSON, what is filled in is
 * escaped for a JSON string, so that no text can become a member or a value of its own; and before
 * that for HTML, if the receiver reads such markup: no text becomes a link then. A brace
 * that does not name a field stays as it is; JSON is full of them.
 */
#include <string.h>

#include "agent/notify/inner.h"
#include "wire/json.h"

const char *const notice_field_names[] = {
	"event",
	"title",
	"text",
	"time",
	"host",
	"id",
	"link",
	"approval.id",
	"approval.tool",
	"approval.agent",
	"approval.input",
	"approval.session",
	"approval.origin",
	"approval.kind",
	"approval.approve_url",
	"approval.deny_url",
	"project",
	"status",
	NULL,
};

static const char letters[] = "abcdefghijklmnopqrstuvwxyz._";

static bool is_known(struct text name)
{
	for (unsigned i = 0; notice_field_names[i]; i++) {
		if (text_is(name, notice_field_names[i]))
			return true;
	}
	return false;
}

/* The name in "{name}" at that place; {NULL, 0}: it is a plain brace. */
static struct text name_at(const char *brace)
{
	size_t n = strspn(brace + 1, letters);

	if (n == 0 || brace[1 + n] != '}')
		return (struct text) {.data = NULL};
	return (struct text) {.data = brace + 1, .len = n};
}

int notifier_check_template(const char *template, struct error *error)
{
	for (const char *at = strchr(template, '{'); at; at = strchr(at + 1, '{')) {
		struct text name = name_at(at);

		if (name.data && !is_known(name))
			return refuse(error, REFUSE_PARAMS,
				      "template: unknown field {%.*s}; see notify in koine.conf(5)",
				      TEXT_ARGS(text_cut(name, 40)));
	}
	return 0;
}

bool template_is_json(const char *template)
{
	const char *first = template + strspn(template, " \t");

	return *first == '[' || (*first == '{' && !is_known(name_at(first)));
}

static struct text value_of(const struct notice *notice, struct text name)
{
	for (unsigned i = 0; i < notice->n_fields; i++) {
		if (text_is(name, notice->fields[i].name) && notice->fields[i].value.data)
			return notice->fields[i].value;
	}
	return TEXT("");
}

/* As HTML and Slack want it. */
static void add_html(struct buf *out, struct text t)
{
	for (size_t i = 0; i < t.len; i++) {
		if (t.data[i] == '&')
			buf_add_str(out, "&amp;");
		else if (t.data[i] == '<')
			buf_add_str(out, "&lt;");
		else if (t.data[i] == '>')
			buf_add_str(out, "&gt;");
		else
			buf_add_char(out, t.data[i]);
	}
}

/* As in a JSON string, without its quotes. */
static void add_json(struct buf *out, struct text t)
{
	struct json j;
	struct buf one;

	buf_init(&one, NOTIFIER_BODY_MAX);
	j = json_writer(&one);
	json_text(&j, t);
	if (one.err == 0 && one.len >= 2)
		buf_add(out, one.data + 1, one.len - 2);
	else if (out->err == 0)
		out->err = one.err;
	buf_done(&one);
}

static void add_value(struct buf *out, struct text t, bool html, bool json)
{
	struct buf escaped;

	buf_init(&escaped, NOTIFIER_BODY_MAX);
	if (html)
		add_html(&escaped, t);
	else
		buf_add(&escaped, t.data, t.len);
	if (json)
		add_json(out, (struct text) {.data = escaped.data ? escaped.data : "",
					     .len = escaped.len});
	else
		buf_add(out, escaped.data, escaped.len);
	if (escaped.err != 0 && out->err == 0)
		out->err = escaped.err;
	buf_done(&escaped);
}

int template_write(struct buf *out, const char *template, bool html, const struct notice *notice)
{
	bool json = template_is_json(template);
	const char *at = template;

	while (*at) {
		size_t n = strcspn(at, "{");
		struct text name = {.data = NULL};

		buf_add(out, at, n);
		at += n;
		if (!*at)
			break;
		name = name_at(at);
		if (!name.data || !is_known(name)) {
			buf_add_char(out, *at++);
			continue;
		}
		add_value(out, value_of(notice, name), html, json);
		at += name.len + 2;
	}
	return out->err;
}
