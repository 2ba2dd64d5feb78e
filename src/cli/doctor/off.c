/* Settings of an agent that switch off what koine has put into its files. */
#include <fcntl.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/connect/json_file.h"
#include "cli/connect/plan.h"
#include "cli/connect/toml_file.h"
#include "cli/doctor/exam.h"

/* A setting that switches something off. */
struct setting {
	const char *file;
	struct text keys[EDIT_PATH_MAX];
	unsigned n;
	const char *value; /* or an element of its list */
	const char *what;  /* is switched off */
	bool allows;       /* a list that has something, but not this */
	bool is_list;      /* as found */
	char where[512];   /* " for PROJECT", where a "*" stands for one of several; or "" */
};

static bool list_has(const struct koine_value *list, const char *word)
{
	const struct koine_value *v = koine_value_first(list);

	while (v && !value_is(v, word))
		v = koine_value_next(v);
	return v != NULL;
}

/* A truth or a string as it is written, or a word in a list. */
static bool has_value(const struct koine_value *v, struct setting *s)
{
	struct text raw;

	s->is_list = koine_value_kind(v) == KOINE_ARRAY && koine_value_count(v) > 0;
	if (s->is_list)
		return list_has(v, s->value) != s->allows;
	if (koine_value_kind(v) == KOINE_ARRAY)
		return strcmp(s->value, "[]") == 0;
	raw.data = koine_value_raw(v, &raw.len);
	return text_is(raw, s->value);
}

/* The value below this one that switches it off; NULL if there is none. */
static const struct koine_value *follow(const struct json_file *f, const struct koine_value *v,
					struct setting *s, unsigned depth)
{
	const struct koine_value *found = NULL;

	if (depth == s->n)
		return has_value(v, s) ? v : NULL;
	if (!text_is(s->keys[depth], "*"))
		return json_file_member(f, v, s->keys[depth], &v, NULL) == 0 && v
			       ? follow(f, v, s, depth + 1)
			       : NULL;
	for (v = koine_value_first(v); v && !found; v = koine_value_next(v)) {
		found = follow(f, v, s, depth + 1);
		if (found)
			snprintf(s->where, sizeof(s->where), " for %.*s",
				 TEXT_ARGS(text_cut(text_of_key(v), sizeof(s->where) - 6)));
	}
	return found;
}

/* The line of the setting; 0 if the file does not have it. */
static unsigned line_in_json(struct text text, struct setting *s)
{
	const struct koine_value *v = NULL;
	struct json_file f;
	unsigned line = 0;

	if (json_file_open(&f, text, true, NULL) == 0 && f.root)
		v = follow(&f, f.root, s, 0);
	if (v)
		line = edit_line(text, json_file_span(&f, v).start);
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

/* Whether it is off everywhere. */
static bool find(struct exam *e, const struct plan *p, const struct setting *s, unsigned line)
{
	struct text key = s->keys[s->n - 1];

	if (line == 0)
		return false;
	exam_find(e, s->where[0] ? MARK_WARN : MARK_BAD,
		  "%s is connected, but %s turns off %s%s in line %u", p->agent->title, s->file,
		  s->what, s->where, line);
	if (!s->is_list)
		exam_advise(e, "Remove %.*s from line %u of %s.", TEXT_ARGS(key), line, s->file);
	else
		exam_advise(e, "%s \"%s\" %s %.*s in line %u of %s.", s->allows ? "Add" : "Remove",
			    s->value, s->allows ? "to" : "from", TEXT_ARGS(key), line, s->file);
	return !s->where[0];
}

static bool find_in(struct exam *e, const struct plan *p, const struct plan_file *f,
		    struct setting *s)
{
	struct text text = buf_text(&f->target.text);
	unsigned line = f->row->by == &toml_editor ? line_in_toml(text, s) : line_in_json(text, s);

	s->file = f->target.path;
	return find(e, p, s, line);
}

static bool find_elsewhere(struct exam *e, const struct plan *p, const char *row, struct setting *s)
{
	CLEANUP(buf_donep) struct buf text;
	char path[PATH_MAX];
	char folder[PATH_MAX];
	unsigned line = 0;
	bool found;
	CLEANUP(closep) int fd = -1;

	buf_init(&text, EDIT_FILE_MAX);
	if (plan_path(row, path, folder))
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && file_read_all(fd, &text) == 0)
		line = line_in_json(buf_text(&text), s);
	s->file = path;
	found = find(e, p, s, line);
	s->file = NULL; /* the path goes with this function */
	return found;
}

/* Codex can switch off a single hook, in the table that has its trust. */
static bool find_hook(struct exam *e, const struct plan *p)
{
	const struct plan_file *f = &p->files[0];
	bool found = false;

	for (unsigned i = 0; i < f->n_edits && p->agent->trust && !found; i++) {
		struct setting s = {.value = "false", .what = "one of koine's hooks"};

		s.n = edit_keys(&f->edits[i], s.keys);
		s.keys[s.n++] = TEXT("enabled");
		found = f->edits[i].key && find_in(e, p, f, &s);
	}
	return found;
}

static bool find_row(struct exam *e, const struct plan *p, const struct plan_file *f,
		     const struct agent_off *off)
{
	const struct edit named = {.path = off->path};
	struct setting s = {.value = off->value, .what = off->what, .allows = off->allows};

	s.n = edit_keys(&named, s.keys);
	return off->file ? find_elsewhere(e, p, off->file, &s) : find_in(e, p, f, &s);
}

bool exam_find_switched_off(struct exam *e, const struct plan *p)
{
	bool found = false;

	for (unsigned i = 0; i < p->n && !found; i++) {
		const struct agent_off *off = p->files[i].row->off;

		for (unsigned k = 0; k < AGENT_OFF_MAX && off[k].path && !found; k++)
			found = find_row(e, p, &p->files[i], &off[k]);
	}
	return found || find_hook(e, p);
}
