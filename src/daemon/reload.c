/*
 * What becomes of each setting when the settings are read again: most take effect at once, others wait for
 * the next start. Rules that are invalid are reported in rules.c.
 */
#include <stdio.h>
#include <string.h>

#include "call/server.h"
#include "daemon/dialects.h"
#include "daemon/life.h"
#include "daemon/settings/settings.h"
#include "engine/engine.h"
#include "engine/task/task.h"

/* Rows that take effect at once; key NULL: all of the section. So do all sections that users name, but
 * those of listeners. */
static const struct {
	const char *section;
	const char *key;
} renewed[] = {
	{"daemon", "log_level"}, {"daemon", "log_messages"},
	{"daemon", "programs"},  {"chat", "agent"},
	{"chat", "budget"},      {"chat", "reserve"},
	{"events", NULL},        {"limits", NULL},
	{"tasks", "parallel"},   {"tasks", "project_parallel"},
};

static bool is_renewed(const struct setting *row)
{
	for (unsigned i = 0; i < sizeof(renewed) / sizeof(renewed[0]); i++) {
		if (strcmp(renewed[i].section, row->section) == 0 &&
		    (!renewed[i].key || strcmp(renewed[i].key, row->key) == 0))
			return true;
	}
	for (unsigned i = 0; i < n_dialects; i++) {
		const struct dialect_section *s = dialects[i]->section;

		if (s && s->renewed && row >= s->rows && row < s->rows + s->n_rows)
			return true;
	}
	return false;
}

/* The dialect's addresses in [listen]. */
static uint64_t hash_listens(const struct settings *s, const struct dialect *d, unsigned *ret_line)
{
	uint64_t h = TEXT_HASH;

	*ret_line = 0;
	for (unsigned i = 0; i < s->n_listens; i++) {
		const struct listen_setting *l = &s->listens[i];

		if (l->dialect != d)
			continue;
		h = text_hash_byte(text_hash(h, text_of(l->address)), '\0');
		*ret_line = l->line;
	}
	return h;
}

static uint64_t hash_users(const struct settings *s, const char *dialect)
{
	const struct listener_setting *l = section_find(&listen_section, s, dialect);

	return l ? setting_hash(&listen_row, l) : 0;
}

void reload_remember(struct daemon *d)
{
	const struct settings *s = d->settings;
	const struct setting *row;
	void *base;
	unsigned line;

	for (unsigned i = 0; i < SETTING_LINES_MAX && (row = settings_row(s, i, &base)); i++)
		d->at_start.rows[i] = setting_hash(row, base);
	for (unsigned i = 0; i < n_dialects; i++) {
		d->at_start.listens[i] = hash_listens(s, dialects[i], &line);
		d->at_start.users[i] = hash_users(s, dialects[i]->name);
	}
}

struct reporting {
	const struct settings *fresh;
	const struct reload_listener *report;
};

static void note(const struct reporting *r, enum reload_fate fate, const char *key, unsigned line,
		 const char *reason)
{
	r->report->note(r->report->arg, &(struct reload_note) {
						.fate = fate,
						.key = key,
						.file = line > 0 ? r->fresh->config : "",
						.line = line,
						.reason = reason,
					});
}

/* A section that users name, or one of its keys. Whether a rule can be used is said in rules.c, and
 * listeners stay as they were at the start. */
static void note_section(const struct reporting *r, const struct section_kind *kind,
			 const char *name, const char *key, unsigned line, bool removed)
{
	const struct rule_setting *rule =
		kind == &rule_section ? section_find(kind, r->fresh, name) : NULL;
	char shown[160];

	if (kind == &listen_section || (rule && rule->invalid))
		return;
	snprintf(shown, sizeof(shown), "%s.%s%s%s", kind->word, name, key ? "." : "",
		 key ? key : "");
	note(r, RELOAD_TAKEN, shown, line, removed ? "removed" : "");
}

/* Of a new section with texts, each is told. */
static void report_section(const struct reporting *r, const struct section_kind *kind,
			   const struct section *was, const struct section *now)
{
	if (!was && !kind->texts) {
		note_section(r, kind, now->name, NULL,
			     section_first_line(kind, r->fresh, now->name), false);
		return;
	}
	for (unsigned i = 0; i < kind->n_keys; i++) {
		if (!section_key_equal(kind, i, was, now))
			note_section(r, kind, now->name, kind->rows[i].key, now->marks.lines[i],
				     kind->texts && !section_text(kind, now, i));
	}
}

/* The sections that there are now, and then those that are there no more. */
static void report_sections(const struct daemon *d, const struct reporting *r,
			    const struct section_kind *kind)
{
	const struct section *one;

	for (unsigned i = 0; (one = section_nth(kind, r->fresh, i)); i++)
		report_section(r, kind, section_find(kind, d->settings, one->name), one);
	for (unsigned i = 0; (one = section_nth(kind, d->settings, i)); i++) {
		if (!section_find(kind, r->fresh, one->name))
			note_section(r, kind, one->name, NULL, 0, true);
	}
}

static void report_taken(const struct daemon *d, const struct reporting *r)
{
	const struct setting *row;
	void *was, *now;

	for (unsigned i = 0; i < SETTING_LINES_MAX && (row = settings_row(d->settings, i, &was)) &&
			     settings_row(r->fresh, i, &now);
	     i++) {
		char key[160];

		snprintf(key, sizeof(key), "%s.%s", row->section, row->key);
		if (is_renewed(row) && !setting_equal(row, was, now))
			note(r, RELOAD_TAKEN, key, r->fresh->lines[i], "");
	}
	for (unsigned i = 0; i < N_SECTION_KINDS; i++)
		report_sections(d, r, section_kinds[i]);
}

/* Where the settings say the same as before, a limit that was set by hand stays. group NULL: that of all. */
static void report_limit(const struct daemon *d, const struct reporting *r, const char *group,
			 unsigned was, unsigned now, const char *key, unsigned line)
{
	unsigned is = task_group_state(d->engine->tasks, group ? text_of(group) : (struct text) {0})
			      .parallel;
	char reason[64];

	if (was != now || is == now)
		return;
	snprintf(reason, sizeof(reason), "set to %u by `koine task parallel`", is);
	note(r, RELOAD_KEPT, key, line, reason);
}

static void report_group_limits(const struct daemon *d, const struct reporting *r)
{
	const struct task_settings *now = &r->fresh->tasks;

	for (unsigned i = 0; i < now->n_groups; i++) {
		const struct group_setting *g = &now->groups[i];
		const struct group_setting *was =
			section_find(&group_section, d->settings, g->name);
		char key[160];

		snprintf(key, sizeof(key), "group.%s.parallel", g->name);
		if (was)
			report_limit(d, r, g->name, was->parallel, g->parallel, key,
				     section_first_line(&group_section, r->fresh, g->name));
	}
}

static void report_listens(const struct daemon *d, const struct reporting *r)
{
	for (unsigned i = 0; i < n_dialects; i++) {
		const char *name = dialects[i]->name;
		char key[160];
		unsigned line;

		snprintf(key, sizeof(key), "listen.%s", name);
		if (hash_listens(r->fresh, dialects[i], &line) != d->at_start.listens[i])
			note(r, RELOAD_LATER, key, line, "");
		if (hash_users(r->fresh, name) == d->at_start.users[i])
			continue;
		snprintf(key, sizeof(key), "listen.%s.%s", name, listen_row.key);
		note(r, RELOAD_LATER, key, section_first_line(&listen_section, r->fresh, name),
		     section_find(&listen_section, r->fresh, name) ? "" : "removed");
	}
}

/* Of those that wait for a start, all that differ from the start are told each time; and so are those lines of
 * the file that have no effect. */
void reload_report(struct daemon *d, const struct settings *fresh,
		   const struct reload_listener *report)
{
	struct reporting r = {.fresh = fresh, .report = report};
	const struct setting *row;
	void *base;

	if (!report)
		return;
	report_taken(d, &r);
	for (unsigned i = 0; i < SETTING_LINES_MAX && (row = settings_row(fresh, i, &base)); i++) {
		char key[160];

		snprintf(key, sizeof(key), "%s.%s", row->section, row->key);
		if (fresh->overridden[i] > 0)
			note(&r, RELOAD_KEPT, key, fresh->overridden[i],
			     "overridden by a command-line option or an environment variable");
		else if (!is_renewed(row) && setting_hash(row, base) != d->at_start.rows[i])
			note(&r, RELOAD_LATER, key, fresh->lines[i], "");
		if (strcmp(key, "tasks.parallel") == 0)
			report_limit(d, &r, NULL, d->settings->tasks.parallel,
				     fresh->tasks.parallel, key, fresh->lines[i]);
	}
	report_group_limits(d, &r);
	report_listens(d, &r);
}
