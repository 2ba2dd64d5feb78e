#include "engine/automation/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"

struct folder {
	struct list link;
	struct changes *owner;
	struct watch *watch;
	size_t path_len;
	void *arg;
};

/* A file that changed. */
struct automation_changes_pending {
	struct list link; /* in changes.pending, earliest first */
	enum change change;
	uint64_t due_ms;
	char path[];
};

struct changes {
	struct changes_opts opts;
	struct list folders;
	struct list pending;
	unsigned n_pending;
	struct timer *timer; /* runs until the first of these is due */
};

const char *change_name(enum change change)
{
	return change == CHANGE_CREATE ? "create" : change == CHANGE_MODIFY ? "modify" : "delete";
}

enum change change_of(enum watch_event event)
{
	static const enum change changes[] = {
		[WATCH_CREATE] = CHANGE_CREATE,
		[WATCH_MODIFY] = CHANGE_MODIFY,
		[WATCH_DELETE] = CHANGE_DELETE,
		[WATCH_OVERFLOW] = CHANGE_NONE,
	};

	return changes[event];
}

static struct automation_changes_pending *first_pending(const struct changes *c)
{
	struct list *first = list_first(&c->pending);

	return first ? list_entry(first, struct automation_changes_pending, link) : NULL;
}

static void drop(struct changes *c, struct automation_changes_pending *p)
{
	list_remove(&p->link);
	c->n_pending--;
	free(p);
}

static void tell_first(struct changes *c)
{
	struct automation_changes_pending *p = first_pending(c);

	c->opts.tell(c->opts.arg, p->change, p->path);
	drop(c, p);
}

static void arm(struct changes *c)
{
	const struct automation_changes_pending *p = first_pending(c);
	uint64_t now = loop_now_ms(c->opts.loop);

	if (p)
		timer_start(c->timer, p->due_ms > now ? p->due_ms - now : 1);
}

static void on_quiet(void *arg)
{
	struct changes *c = arg;
	uint64_t now = loop_now_ms(c->opts.loop);
	const struct automation_changes_pending *p;

	while ((p = first_pending(c)) && p->due_ms <= now)
		tell_first(c);
	arm(c);
}

/* Linear in the files that changed within the quiet time: fine for a checkout of thousands. */
static struct automation_changes_pending *find_pending(const struct changes *c, const char *path)
{
	list_for_each (at, following, (struct list *)&c->pending) {
		struct automation_changes_pending *p =
			list_entry(at, struct automation_changes_pending, link);

		if (strcmp(p->path, path) == 0)
			return p;
	}
	return NULL;
}

static struct automation_changes_pending *new_pending(struct changes *c, enum change change,
						      const char *path)
{
	size_t n = strlen(path) + 1;
	struct automation_changes_pending *p = malloc(sizeof(*p) + n);

	if (!p)
		return NULL;
	if (c->opts.max > 0 && c->n_pending == c->opts.max)
		tell_first(c);
	p->change = change;
	memcpy(p->path, path, n);
	c->n_pending++;
	return p;
}

bool changes_has(const struct changes *c, const char *path)
{
	return find_pending(c, path) != NULL;
}

unsigned changes_count(const struct changes *c)
{
	return c->n_pending;
}

int changes_note(struct changes *c, enum change change, const char *path)
{
	struct automation_changes_pending *p = find_pending(c, path);

	if (p) {
		p->change = c->opts.merge(p->change, change);
		if (p->change == CHANGE_NONE) {
			drop(c, p);
			return 0;
		}
		if (c->opts.from_first)
			return 0;
		list_remove(&p->link);
	} else {
		p = new_pending(c, change, path);
		if (!p)
			return -ENOMEM;
	}
	p->due_ms = loop_now_ms(c->opts.loop) + (uint64_t)c->opts.quiet_ms;
	list_append(&c->pending, &p->link);
	arm(c);
	return 0;
}

static bool on_skip(void *arg, const char *name)
{
	const struct folder *f = arg;

	return f->owner->opts.skips(f->arg, name);
}

static void on_change(void *arg, enum watch_event event, const char *path)
{
	const struct folder *f = arg;
	struct changes *c = f->owner;
	const char *below = path + f->path_len;
	enum change change = change_of(event);

	if (event == WATCH_OVERFLOW) {
		log_warn("inotify queue overflowed, file changes lost", "folder=%s", path);
		return;
	}
	if (c->opts.take(f->arg, change, below + (*below == '/')))
		(void)changes_note(c, change, path);
}

int changes_watch(struct changes *c, const char *path, void *folder, struct error *error)
{
	struct folder *f = calloc(1, sizeof(*f));
	const struct watch_opts opts = {.on_change = on_change, .skip = on_skip, .arg = f};
	int r;

	if (!f)
		return -ENOMEM;
	f->owner = c;
	f->path_len = strlen(path);
	f->arg = folder;
	r = watch_open(c->opts.loop, path, &opts, &f->watch, error);
	if (r != 0) {
		free(f);
		return r;
	}
	list_append(&c->folders, &f->link);
	return 0;
}

int changes_new(const struct changes_opts *opts, struct changes **ret_changes)
{
	struct changes *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->opts = *opts;
	list_init(&c->folders);
	list_init(&c->pending);
	r = timer_new(opts->loop, on_quiet, c, &c->timer);
	if (r != 0) {
		free(c);
		return r;
	}
	*ret_changes = c;
	return 0;
}

void changes_free(struct changes *c)
{
	if (!c)
		return;
	list_for_each (at, following, &c->folders) {
		struct folder *f = list_entry(at, struct folder, link);

		watch_close(f->watch);
		free(f);
	}
	list_for_each (at, following, &c->pending)
		free(list_entry(at, struct automation_changes_pending, link));
	timer_free(c->timer);
	free(c);
}
