/* In which settings two readings of them differ. */
#include <stdio.h>
#include <string.h>

#include "daemon/settings/settings.h"

enum { KEY_SHOWN = 160 };

struct changes {
	const struct settings *was, *now;
	void (*fn)(void *arg, const struct settings_change *c);
	void *arg;
};

static void tell(const struct changes *c, const struct section_kind *kind, const char *name,
		 const char *key, unsigned line, bool removed)
{
	char shown[KEY_SHOWN];

	snprintf(shown, sizeof(shown), "%s.%s%s%s", kind->word, name, key ? "." : "",
		 key ? key : "");
	c->fn(c->arg, &(struct settings_change) {
			      .name = name, .key = shown, .line = line, .removed = removed});
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static void compare_texts(const struct changes *c, const struct section_kind *kind,
			  const char *name, const void *was, const void *now)
{
	const struct section_texts *t =
		(const struct section_texts *)((const char *)now + kind->texts);

	for (unsigned i = 0; i < kind->n_keys; i++) {
		const char *text = section_text(kind, now, i);

		if (!same_text(was ? section_text(kind, was, i) : NULL, text))
			tell(c, kind, name, kind->keys[i].name, text ? t->lines[i] : 0, !text);
	}
}

static void compare_rows(const struct changes *c, const struct section_kind *kind, const char *name,
			 const void *was, const void *now)
{
	for (unsigned i = 0; i < kind->n_keys && was; i++) {
		const char *key = kind->rows[i].key;

		if (!setting_equal(&kind->rows[i], was, now))
			tell(c, kind, name, key, section_row_line(kind, c->now, name, key), false);
	}
	if (!was)
		tell(c, kind, name, NULL, section_row_line(kind, c->now, name, NULL), false);
}

/* The sections that there are now, or (gone) those that are there no more. */
static void compare_kind(const struct changes *c, const struct section_kind *kind, bool gone)
{
	const struct settings *in = gone ? c->was : c->now;
	unsigned n = *(const unsigned *)((const char *)in + kind->n);

	for (unsigned i = 0; i < n; i++) {
		const char *name = (const char *)in + kind->list + i * kind->size;
		const void *was = section_find(kind, c->was, name);
		const void *now = section_find(kind, c->now, name);

		if (gone && now)
			continue;
		if (gone)
			tell(c, kind, name, NULL, 0, true);
		else if (kind->rows)
			compare_rows(c, kind, name, was, now);
		else
			compare_texts(c, kind, name, was, now);
	}
}

void settings_each_change(const struct settings *was, const struct settings *now,
			  void (*fn)(void *arg, const struct settings_change *c), void *arg)
{
	const struct changes c = {.was = was, .now = now, .fn = fn, .arg = arg};
	const struct setting *row;
	void *old, *fresh;

	for (unsigned i = 0; (row = settings_row(was, i, &old)) && settings_row(now, i, &fresh);
	     i++) {
		char key[KEY_SHOWN];

		if (setting_equal(row, old, fresh))
			continue;
		snprintf(key, sizeof(key), "%s.%s", row->section, row->key);
		fn(arg, &(struct settings_change) {
				.row = row,
				.i = i,
				.key = key,
				.line = i < SETTING_LINES_MAX ? now->lines[i] : 0,
			});
	}
	for (unsigned k = 0; k < N_SECTION_KINDS; k++) {
		compare_kind(&c, section_kinds[k], false);
		compare_kind(&c, section_kinds[k], true);
	}
}
