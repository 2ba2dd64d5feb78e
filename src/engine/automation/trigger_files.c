/*
 * Files that change below a rule's folders. What happens to one path within the debounce time is one
 * change: made and written is made, gone and back is written, made and gone is nothing.
 *
 * When the kernel lost count, or more changes wait than we hold, there is one "file.modify" of the
 * folder itself; whoever wants to know more looks there. A folder that is not there suspends the rule,
 * and is looked for every few seconds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/record.h"
#include "io/watch.h"
#include "engine/automation/inner.h"

enum {
	SLOW_MS = 2000,
	CHANGE_ARENA_MAX = 64 << 10,
	PENDING_MAX = 1024, /* changed files of one rule that wait for their time */
};

struct folder_watch {
	struct list link;
	struct live_rule *rule;
	const char *path;
	struct watch *watch; /* NULL: suspended */
	bool told;           /* that it is */
};

struct pending {
	struct list link;
	enum watch_event kind;
	uint64_t due_ms;
	char path[];
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

static bool ends_with(struct text t, struct text end)
{
	return t.len >= end.len &&
	       (end.len == 0 || memcmp(t.data + t.len - end.len, end.data, end.len) == 0);
}

static bool has_extension(const struct live_rule *r, struct text path)
{
	if (r->def.extensions.n == 0)
		return true;
	for (unsigned i = 0; i < r->def.extensions.n; i++) {
		if (ends_with(path, r->def.extensions.items[i]))
			return true;
	}
	return false;
}

static bool is_wanted(const struct folder_watch *w, const char *path)
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

/* ---- one change for each path ---- */

static void pending_free(struct live_rule *r, struct pending *p)
{
	list_remove(&p->link);
	r->n_pending--;
	free(p);
}

static struct pending *pending_find(const struct live_rule *r, const char *path)
{
	list_for_each (at, following, &r->pending) {
		struct pending *p = list_entry(at, struct pending, link);

		if (strcmp(p->path, path) == 0)
			return p;
	}
	return NULL;
}

static void set_timer(struct live_rule *r)
{
	uint64_t now = clock_steady_ms();
	const struct pending *first;

	if (list_empty(&r->pending))
		return;
	first = list_entry(list_first(&r->pending), struct pending, link);
	timer_start(r->debounce, first->due_ms > now ? first->due_ms - now : 0);
}

static void add(struct live_rule *r, enum watch_event kind, const char *path)
{
	struct pending *p = malloc(sizeof(*p) + strlen(path) + 1);

	if (!p) {
		log_warn("change not seen", "rule=%.*s why=no memory", TEXT_ARGS(r->def.id));
		return;
	}
	strcpy(p->path, path);
	p->kind = kind;
	p->due_ms = clock_steady_ms() + (uint64_t)r->def.debounce_ms;
	list_append(&r->pending, &p->link);
	if (r->n_pending++ == 0)
		set_timer(r);
}

static void merge(struct live_rule *r, struct pending *p, enum watch_event kind)
{
	if (p->kind == WATCH_CREATE && kind == WATCH_DELETE)
		pending_free(r, p);
	else if (p->kind == WATCH_DELETE && kind != WATCH_DELETE)
		p->kind = WATCH_MODIFY;
	else if (kind == WATCH_DELETE)
		p->kind = WATCH_DELETE;
}

static void changed(struct folder_watch *w, enum watch_event kind, const char *path)
{
	struct live_rule *r = w->rule;
	struct pending *p = pending_find(r, path);

	if (p) {
		merge(r, p, kind);
		return;
	}
	if (r->n_pending < PENDING_MAX) {
		add(r, kind, path);
		return;
	}
	if (!pending_find(r, w->path)) {
		log_info("many files changed", "rule=%.*s folder=%s", TEXT_ARGS(r->def.id),
			 w->path);
		add(r, WATCH_MODIFY, w->path);
	}
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

static void tell(struct live_rule *r, const struct pending *p)
{
	static const char *const types[] = {
		[WATCH_CREATE] = "file.create",
		[WATCH_MODIFY] = "file.modify",
		[WATCH_DELETE] = "file.delete",
	};
	const char *type = types[p->kind];
	struct record payload;
	struct arena a;

	/* A folder counts only where it is the rule's own, which changed as a whole. */
	if (p->kind != WATCH_DELETE && is_folder(p->path) && !is_root(r, p->path))
		return;
	arena_init(&a, CHANGE_ARENA_MAX);
	record_begin(&payload, &a);
	record_text(&payload, "path", text_of(p->path));
	record_text(&payload, "event_type", text_of(type + strlen("file.")));
	if (payload.err == 0) {
		matching_begin(r->automation);
		rule_consider(r, text_of(type), TEXT("watch"), payload.root);
		matching_end(r->automation, text_of(type));
	}
	arena_done(&a);
}

static void on_debounce(void *arg)
{
	struct live_rule *r = rule_ref(arg);
	uint64_t now = clock_steady_ms();

	while (!list_empty(&r->pending)) {
		struct pending *p = list_entry(list_first(&r->pending), struct pending, link);

		if (p->due_ms > now)
			break;
		tell(r, p);
		pending_free(r, p);
	}
	set_timer(r);
	rule_unref(r);
}

/* ---- folders ---- */

static void suspend(struct folder_watch *w, const char *why)
{
	watch_close(w->watch);
	w->watch = NULL;
	if (!w->told)
		log_warn("rule suspended", "rule=%.*s folder=%s why=\"%s\"",
			 TEXT_ARGS(w->rule->def.id), w->path, why);
	w->told = true;
}

static void on_change(void *arg, enum watch_event event, const char *path)
{
	struct folder_watch *w = arg;

	if (event == WATCH_OVERFLOW)
		changed(w, WATCH_MODIFY, w->path);
	else if (event == WATCH_DELETE && strcmp(path, w->path) == 0)
		suspend(w, "the folder is gone");
	else if (is_wanted(w, path))
		changed(w, event, path);
}

/* The limits of inotify are the machine's, and its owner's to raise. */
static const char *reason(int r, const struct why *why)
{
	if (r == -ENOSPC)
		return "inotify's limit is reached: raise fs.inotify.max_user_watches";
	if (r == -EMFILE)
		return "inotify's limit is reached: raise fs.inotify.max_user_instances";
	return r > 0 ? why->text : strerror(-r);
}

static void folder_open(struct folder_watch *w)
{
	const struct watch_opts opts = {.on_change = on_change, .skip = on_skip, .arg = w};
	struct why why = {.text = ""};
	int r = watch_open(w->rule->automation->opts.loop, w->path, &opts, &w->watch, &why);

	if (r != 0) {
		w->watch = NULL;
		suspend(w, reason(r, &why));
		return;
	}
	if (w->told)
		log_info("rule goes on", "rule=%.*s folder=%s", TEXT_ARGS(w->rule->def.id),
			 w->path);
	w->told = false;
}

/* Without a slash at its end: paths below it are compared with it. */
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
		log_err("folder not watched", "rule=%.*s why=no memory", TEXT_ARGS(r->def.id));
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

	if (r->def.trigger != TRIGGER_FILES || !list_empty(&r->watches))
		return;
	if (!r->debounce && timer_new(a->opts.loop, on_debounce, r, &r->debounce) != 0)
		return;
	if (!a->slow)
		ticker_new(a->opts.loop, SLOW_MS, on_slow, a, &a->slow);
	for (unsigned i = 0; i < r->def.paths.n; i++)
		folder_add(r, r->def.paths.items[i]);
}

void rule_unwatch(struct live_rule *r)
{
	struct list *first;

	while ((first = list_first(&r->watches))) {
		struct folder_watch *w = list_entry(first, struct folder_watch, link);

		watch_close(w->watch);
		list_remove(&w->link);
		free(w);
	}
	while ((first = list_first(&r->pending)))
		pending_free(r, list_entry(first, struct pending, link));
	timer_free(r->debounce);
	r->debounce = NULL;
}
