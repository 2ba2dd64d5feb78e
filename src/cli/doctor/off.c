/* Settings of an agent that switch off what koine has put into its files. */
#include <stdio.h>

#include "cli/connect/json_file.h"
#include "cli/connect/plan.h"
#include "cli/connect/toml_file.h"
#include "cli/doctor/exam.h"

/* A setting that switches something off. */
struct setting {
	struct text keys[EDIT_PATH_MAX];
	unsigned n;
	const char *value; /* or an element of its list */
	const char *what;  /* is switched off */
};

/* A truth as it is written, or a word in a list. */
static bool has_value(const struct koine_value *v, const char *value)
{
	struct text raw = {0};

	if (koine_value_kind(v) != KOINE_ARRAY) {
		raw.data = koine_value_raw(v, &raw.len);
		return text_is(raw, value);
	}
	for (v = koine_value_first(v); v; v = koine_value_next(v)) {
		if (value_is(v, value))
			return true;
	}
	return false;
}

/* The line of the setting; 0 if the file does not have it. */
static unsigned line_in_json(struct text text, const struct setting *s)
{
	const struct koine_value *v;
	struct json_file f;
	unsigned line = 0;

	if (json_file_open(&f, text, true, NULL) == 0) {
		v = f.root;
		for (unsigned i = 0; i < s->n && v; i++) {
			if (json_file_member(&f, v, s->keys[i], &v, NULL) != 0)
				v = NULL;
		}
		if (v && has_value(v, s->value))
			line = edit_line(text, json_file_span(&f, v).start);
	}
	json_file_close(&f);
	return line;
}

static unsigned line_in_toml(struct text text, const struct setting *s)
{
	struct toml_path path = {.n = s->n};
	struct toml_file f;
	unsigned line = 0;
	int r = toml_file_open(&f, text, NULL);

	memcpy(path.keys, s->keys, s->n * sizeof(path.keys[0]));
	for (size_t i = 0; r == 0 && i < f.n_items; i++) {
		const struct toml_item *item = &f.items[i];

		if (item->kind == TOML_KEY && toml_path_equal(&item->path, &path) &&
		    text_is(item->value, s->value))
			line = item->line;
	}
	toml_file_close(&f);
	return line;
}

static bool find(struct exam *e, const struct plan *p, const struct plan_file *f,
		 const struct setting *s)
{
	struct text text = buf_text(&f->target.text);
	unsigned line = f->row->by == &toml_editor ? line_in_toml(text, s) : line_in_json(text, s);

	if (line == 0)
		return false;
	exam_find(e, MARK_BAD, "%s is connected, but %s has switched off %s, in line %u",
		  p->agent->title, f->target.path, s->what, line);
	if (strcmp(s->value, "true") == 0 || strcmp(s->value, "false") == 0)
		exam_advise(e, "Remove %.*s from line %u of %s.", TEXT_ARGS(s->keys[s->n - 1]),
			    line, f->target.path);
	else
		exam_advise(e, "Remove \"%s\" from %.*s in line %u of %s.", s->value,
			    TEXT_ARGS(s->keys[s->n - 1]), line, f->target.path);
	return true;
}

/* Codex can switch off a single hook, in the table that has its trust. */
static bool find_hook(struct exam *e, const struct plan *p)
{
	const struct plan_file *f = &p->files[0];
	bool found = false;

	for (unsigned i = 0; i < f->n_edits && p->agent->trust && !found; i++) {
		struct setting s = {.value = "false", .what = "a hook of koine's"};

		s.n = edit_keys(&f->edits[i], s.keys);
		s.keys[s.n++] = TEXT("enabled");
		found = f->edits[i].key && find(e, p, f, &s);
	}
	return found;
}

bool exam_find_switched_off(struct exam *e, const struct plan *p)
{
	bool found = false;

	for (unsigned i = 0; i < p->n && !found; i++) {
		const struct agent_off *off = p->files[i].row->off;

		for (unsigned k = 0; k < AGENT_OFF_MAX && off[k].path && !found; k++) {
			const struct edit named = {.path = off[k].path};
			struct setting s = {.value = off[k].value, .what = off[k].what};

			s.n = edit_keys(&named, s.keys);
			found = find(e, p, &p->files[i], &s);
		}
	}
	return found || find_hook(e, p);
}
