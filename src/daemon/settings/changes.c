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

/* Of a new section with texts, each is told. */
static void compare(const struct changes *c, const struct section_kind *kind,
		    const struct section *was, const struct section *now)
{
	if (!was && !kind->texts) {
		tell(c, kind, now->name, NULL, section_first_line(kind, c->now, now->name), false);
		return;
	}
	for (unsigned i = 0; i < kind->n_keys; i++) {
		if (!section_key_equal(kind, i, was, now))
			tell(c, kind, now->name, kind->rows[i].key, now->marks.lines[i],
			     kind->texts && !section_text(kind, now, i));
	}
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
		else
			compare(c, kind, was, now);
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
				.key = key,
				.line = i < SETTING_LINES_MAX ? now->lines[i] : 0,
			});
	}
	for (unsigned k = 0; k < N_SECTION_KINDS; k++) {
		compare_kind(&c, section_kinds[k], false);
		compare_kind(&c, section_kinds[k], true);
	}
}
