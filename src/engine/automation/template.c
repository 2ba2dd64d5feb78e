/* Templates: a text with {{a.b}} in it, which stands for a field of the event. */
#include <string.h>

#include "base/buf.h"
#include "engine/automation/inner.h"

static bool is_name_byte(char c)
{
	return ascii_alnum(c) || c == '_';
}

/* For "a.b}}" at the front: the length of the path, or 0. */
static size_t path_len(struct text t)
{
	size_t n = 0;

	while (n < t.len &&
	       (is_name_byte(t.data[n]) || (t.data[n] == '.' && n > 0 && t.data[n - 1] != '.')))
		n++;
	if (n == 0 || t.data[n - 1] == '.' || t.len - n < 2 || memcmp(t.data + n, "}}", 2) != 0)
		return 0;
	return n;
}

static void add_value(const struct automation *a, struct arena *arena, const struct value *v,
		      struct buf *out)
{
	struct text t = event_scalar(v);

	if (!t.data && (!a->opts.to_json || a->opts.to_json(arena, v, &t) != 0))
		t = TEXT("");
	buf_add(out, t.data, t.len);
}

static void automation_template_fill(const struct automation *a, struct arena *arena,
				     struct text from, const struct value *event, struct buf *out)
{
	while (from.len > 0) {
		const char *open = memmem(from.data, from.len, "{{", 2);
		size_t n = open ? (size_t)(open - from.data) : from.len;
		const struct value *v = NULL;
		struct text path;

		buf_add(out, from.data, n);
		from = (struct text) {.data = from.data + n, .len = from.len - n};
		if (!open)
			return;
		path = (struct text) {.data = from.data + 2, .len = from.len - 2};
		path.len = path_len(path);
		if (path.len > 0)
			v = event_field(event, path);
		/* An unknown field stays as it was written; in "{{{x}}" the first brace stays. */
		if (v)
			add_value(a, arena, v, out);
		else
			buf_add_char(out, '{');
		n = v ? path.len + 4 : 1;
		from = (struct text) {.data = from.data + n, .len = from.len - n};
	}
}

int template_fill(const struct automation *a, struct arena *arena, struct text from,
		  const struct value *event, struct text *ret_text)
{
	struct buf out;
	int r;

	buf_init(&out, PROMPT_MAX);
	automation_template_fill(a, arena, from, event, &out);
	r = out.err;
	if (r == 0)
		r = arena_copy_text(arena, (struct text) {out.data ? out.data : "", out.len},
				    ret_text);
	buf_done(&out);
	return r;
}
