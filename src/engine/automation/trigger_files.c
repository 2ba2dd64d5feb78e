/*
 * Files that change below a rule's folders. What happens to one path within the debounce time
 * is one change: created and written is created, deleted and created again is written, created
 * and deleted is nothing.
 *
 * If the kernel lost events, or more changes are waiting than we hold, there is one
 * "file.modify" of the folder itself; those who need to know more look there. A folder that
 * does not exist suspends the rule, and is looked for every few seconds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/object_builder.h"
#include "engine/automation/changes.h"
#include "engine/automation/inner.h"

enum {
	SLOW_MS = 2000,
	CHANGE_ARENA_MAX = 64 << 10,
	PENDING_MAX = 1024, /* changed files of one rule that may wait */
};

struct folder_watch {
	struct list link;
	struct live_rule *rule;
	const char *path;
	struct watch *watch; /* NULL: suspended */
	bool told;           /* that it is suspended */
};

/* ---- which files ---- */

static bool is_ignored(const struct live_rule *r, struct text name)
{
	for (unsigned i = 0; i < r->def.ignore.n; i++) {
		if (glob_fits(r->def.ignore.items[i], name))
			return true;
	}
	return false;
}

static bool on_skip(void *arg, const char *name)
{
	const struct folder_watch *w = arg;

	return is_ignored(w->rule, text_of(name));
}

static bool has_extension(const struct live_rule *r, struct text path)
{
	if (r->def.extensions.n == 0)
		return true;
	for (unsigned i = 0; i < r->def.extensions.n; i++) {
		if (text_ends(path, r->def.extensions.items[i]))
			return true;
	}
	return false;
}

static bool automation_trigger_files_is_wanted(const struct folder_watch *w, const char *path)
{
	const char *at = path + strlen(w->path);

	while (*at) {
		size_t n;

		at += strspn(at, "/");
		n = strcspn(at, "/");
		if (n > 0 && is_ignored(w->rule, (struct text) {at, n}))
			return false;
		at += n;
	}
	return has_extension(w->rule, text_of(path));
}

/* ---- what changed ---- */

static enum change merge(enum change before, enum change now)
{
	if (before == CHANGE_CREATE && now == CHANGE_DELETE)
		return CHANGE_NONE;
	if (before == CHANGE_DELETE && now != CHANGE_DELETE)
		return CHANGE_MODIFY;
	return now == CHANGE_DELETE ? CHANGE_DELETE : before;
}

static void changed(struct folder_watch *w, enum change change, const char *path)
{
	struct live_rule *r = w->rule;

	if (changes_count(r->changes) >= PENDING_MAX && !changes_has(r->changes, path)) {
		if (changes_has(r->changes, w->path))
			return;
		log_info("too many changed files, reporting only the folder", "rule=%.*s folder=%s",
			 TEXT_ARGS(r->def.id), w->path);
		change = CHANGE_MODIFY;
		path = w->path;
	}
	if (changes_note(r->changes, change, path) != 0)
		log_warn("file change missed", "rule=%.*s reason=\"out of memory\"",
			 TEXT_ARGS(r->def.id));
}

static bool is_folder(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_root(const struct live_rule *r, const char *path)
{
	for (unsigned i = 0; i < r->def.paths.n; i++) {
		if (text_is(r->def.paths.items[i], path))
			return true;
	}
	return false;
}

static void automation_trigger_files_notify(void *arg, enum change change, const char *path)
{
	struct live_rule *r = arg;
	struct object_builder payload;
	struct arena a;
	char type[16];

	/* A folder counts only if it is the rule's own, which changed as a whole. */
	if (change != CHANGE_DELETE && is_folder(path) && !is_root(r, path))
		return;
	snprintf(type, sizeof(type), "file.%s", change_name(change));
	arena_init(&a, CHANGE_ARENA_MAX);
	object_begin(&payload, &a);
	object_text(&payload, "path", text_of(path));
	object_text(&payload, "event_type", text_of(change_name(change)));
	if (payload.err == 0) {
		matching_begin(r->automation);
		rule_consider(r, &(struct happening) {.type = text_of(type),
						      .source = TEXT("watch"),
						      .payload = payload.root});
		matching_end(r->automation, text_of(type));
	}
	arena_done(&a);
}

/* ---- folders ---- */

static void suspend(struct folder_watch *w, const char *reason)
{
	watch_close(w->watch);
	w->watch = NULL;
	if (!w->told)
		log_warn("rule suspended", "rule=%.*s folder=%s reason=\"%s\"",
			 TEXT_ARGS(w->rule->def.id), w->path, reason);
	w->told = true;
}

static void on_change(void *arg, enum watch_event event, const char *path)
{
	struct folder_watch *w = arg;

	if (event == WATCH_OVERFLOW)
		changed(w, CHANGE_MODIFY, w->path);
	else if (event == WATCH_DELETE && strcmp(path, w->path) == 0)
		suspend(w, "the folder was deleted");
	else if (automation_trigger_files_is_wanted(w, path))
		changed(w, change_of(event), path);
}

/* The limits of inotify belong to the machine; its owner can raise them. */
static const char *reason(int r, const struct error *error)
{
	if (r == -ENOSPC)
		return "no inotify watches left: raise fs.inotify.max_user_watches";
	if (r == -EMFILE)
		return "no inotify instances left: raise fs.inotify.max_user_instances";
	return error_words(r, error);
}

static void folder_open(struct folder_watch *w)
{
	const struct watch_opts opts = {.on_change = on_change, .skip = on_skip, .arg = w};
	struct error error = {.text = ""};
	int r = watch_open(w->rule->automation->opts.loop, w->path, &opts, &w->watch, &error);

	if (r != 0) {
		w->watch = NULL;
		suspend(w, reason(r, &error));
		return;
	}
	if (w->told)
		log_info("rule resumed", "rule=%.*s folder=%s", TEXT_ARGS(w->rule->def.id),
			 w->path);
	w->told = false;
}

/* Without a trailing slash: paths below it are compared with it. */
static const char *folder_path(struct live_rule *r, struct text t)
{
	while (t.len > 1 && t.data[t.len - 1] == '/')
		t.len--;
	return arena_copy(&r->arena, t.data, t.len);
}

static void folder_add(struct live_rule *r, struct text path)
{
	struct folder_watch *w = calloc(1, sizeof(*w));

	if (w)
		w->path = folder_path(r, path);
	if (!w || !w->path) {
		log_err("could not watch folder", "rule=%.*s reason=\"out of memory\"",
			TEXT_ARGS(r->def.id));
		free(w);
		return;
	}
	w->rule = r;
	list_append(&r->watches, &w->link);
	folder_open(w);
}

static void on_slow(void *automation)
{
	struct automation *a = automation;

	list_for_each (at, following, &a->rules) {
		struct live_rule *r = list_entry(at, struct live_rule, link);

		list_for_each (link, next, &r->watches) {
			struct folder_watch *w = list_entry(link, struct folder_watch, link);

			if (!w->watch)
				folder_open(w);
		}
	}
}

void rule_watch(struct live_rule *r)
{
	struct automation *a = r->automation;
	const struct changes_opts opts = {
		.loop = a->opts.loop,
		.quiet_ms = r->def.debounce_ms,
		.from_first = true,
		.merge = merge,
		.tell = automation_trigger_files_notify,
		.arg = r,
	};

	if (r->def.trigger != TRIGGER_FILES || !list_empty(&r->watches))
		return;
	if (!r->changes && changes_new(&opts, &r->changes) != 0)
		return;
	if (!a->slow)
		ticker_new(a->opts.loop, SLOW_MS, on_slow, a, &a->slow);
	for (unsigned i = 0; i < r->def.paths.n; i++)
		folder_add(r, r->def.paths.items[i]);
}

void rule_unwatch(struct live_rule *r)
{
	list_for_each (at, following, &r->watches) {
		struct folder_watch *w = list_entry(at, struct folder_watch, link);

		watch_close(w->watch);
		list_remove(&w->link);
		free(w);
	}
	changes_free(r->changes);
	r->changes = NULL;
}
