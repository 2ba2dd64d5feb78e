#include "cli/connect/program.h"

#include "cli/connect/json_file.h"
#include "cli/connect/ours.h"
#include "cli/connect/toml_file.h"
#include "cli/kit/value.h"

struct walk {
	void (*fn)(void *arg, struct text program);
	void *arg;
};

/* A line for a shell, a program with a list of arguments beside it, or a list of both. */
static void report(const struct walk *w, const struct koine_value *over,
		   const struct koine_value *command)
{
	const struct koine_value *first = koine_value_first(command);
	struct text text = text_of_value(first ? first : command);
	bool whole = first || koine_value_kind(koine_value_get(over, "args")) == KOINE_ARRAY;

	if (whole && ours_is_program(text))
		w->fn(w->arg, text);
	else if (!whole && ours_is_command(text))
		w->fn(w->arg, ours_program(text));
}

static void walk(const struct walk *w, const struct koine_value *v)
{
	const struct koine_value *child;

	for (child = koine_value_first(v); child; child = koine_value_next(child)) {
		if (ours_is_line(child))
			report(w, v, child);
		else
			walk(w, child);
	}
}

static void each_json(struct text text, const struct walk *w)
{
	struct json_file f;

	if (json_file_open(&f, text, true, NULL) == 0)
		walk(w, f.root);
	json_file_close(&f);
}

static void each_toml(struct text text, const struct walk *w)
{
	struct toml_file f;
	int r = toml_file_open(&f, text, NULL);

	for (size_t i = 0; r == 0 && i < f.n_items; i++) {
		const struct toml_item *item = &f.items[i];
		struct text value = item->value;

		if (item->kind != TOML_KEY || value.len < 2 ||
		    !text_is(item->path.keys[item->path.n - 1], "command"))
			continue;
		value = (struct text) {.data = value.data + 1, .len = value.len - 2};
		if (ours_is_program(value))
			w->fn(w->arg, value);
	}
	toml_file_close(&f);
}

void program_each(const struct editor *by, struct text text,
		  void (*fn)(void *arg, struct text program), void *arg)
{
	const struct walk w = {.fn = fn, .arg = arg};

	if (by == &toml_editor)
		each_toml(text, &w);
	else
		each_json(text, &w);
}
