#include "daemon/project_watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/record.h"
#include "daemon/settings/paths.h"
#include "daemon/project_files.h"
#include "io/watch.h"
#include "base/pattern.h"
#include "engine/automation/schedule.h"
#include "engine/services.h"

enum {
	PENDING_MAX = 4096,           /* changed files that are not told yet */
	LOOK_AT_LEAST_MS = 60 * 1000, /* at the clock, which people set */
	IGNORE_MAX = 256,             /* bytes of a pattern */
};

/* A folder that is watched. */
struct spot {
	struct project_watch *owner;
	const struct aiwg_watched *config;
	struct watch *watch;
	size_t root_len; /* of the watched folder's path */
	char *real;      /* that path without links and ".."; NULL: not known */
};

/* A file that changed: told when it has been quiet for a while. */
struct pending {
	struct list link; /* in project_watch.pending, the first due first */
	enum watch_event event;
	uint64_t due_ms;
	char path[];
};

/* A job of the schedule. */
struct due {
	struct schedule *schedule;
	const struct aiwg_job_config *config;
	int64_t next_ms; /* 0: never */
};

struct project_watch {
	struct loop *loop;
	struct services *services;
	const struct aiwg_config *config;
	struct aiwg_project *shown;
	struct spot *spots;
	unsigned n_spots;
	struct list pending;
	unsigned n_pending;
	struct timer *quiet; /* until the first of these is due */
	struct due *dues;
	struct aiwg_job *jobs; /* what shown->jobs points to; as many */
	unsigned n_dues;
	struct timer *clock;
	struct text *paths; /* what shown->paths points to */
};

/* ---- files ---- */

static const char *change_name(enum watch_event event)
{
	return event == WATCH_CREATE ? "create" : event == WATCH_MODIFY ? "modify" : "delete";
}

static unsigned change_bit(enum watch_event event)
{
	return event == WATCH_CREATE   ? CHANGE_CREATE
	       : event == WATCH_MODIFY ? CHANGE_MODIFY
				       : CHANGE_DELETE;
}

/* Anywhere in the path, as the original does. */
static bool fits_pattern(struct text pattern, struct text path)
{
	char glob[IGNORE_MAX];
	int n = snprintf(glob, sizeof(glob), "*%.*s*", TEXT_ARGS(pattern));

	return pattern.len > 0 && (size_t)n < sizeof(glob) &&
	       glob_fits((struct text) {.data = glob, .len = (size_t)n}, path);
}

/* `path` is that below the watched folder. */
static bool is_ignored(const struct aiwg_watched *w, const char *path)
{
	for (unsigned i = 0; i < w->n_ignore; i++) {
		if (fits_pattern(w->ignore[i], text_of(path)))
			return true;
	}
	return false;
}

/* A pattern that is found in "NAME/" is found in all that is below. */
static bool on_skip(void *arg, const char *name)
{
	const struct spot *s = arg;
	char folder[NAME_MAX + 2];

	snprintf(folder, sizeof(folder), "%s/", name);
	return strcmp(name, ".git") == 0 || strcmp(name, "node_modules") == 0 ||
	       is_ignored(s->config, folder);
}

static bool has_extension(const struct aiwg_watched *w, const char *path)
{
	size_t n = strlen(path);

	for (unsigned i = 0; i < w->n_extensions; i++) {
		struct text e = w->extensions[i];

		if (e.len <= n && memcmp(path + n - e.len, e.data, e.len) == 0)
			return true;
	}
	return w->n_extensions == 0;
}

/* Below the project without its folder, as its own tools know it. */
static const char *relative(const struct project_watch *w, const char *path)
{
	size_t n = w->shown->folder.len;

	if (strncmp(path, w->shown->folder.data, n) == 0 && path[n] == '/')
		return path + n + 1;
	return path;
}

static bool is_at_or_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* What we, and those who work here, write over and over; by whatever way it is watched. */
static bool is_ours(const struct spot *s, const char *below)
{
	char whole[2 * PATH_MAX];
	const char *path;

	if (!s->real)
		return false;
	snprintf(whole, sizeof(whole), "%s/%s", strcmp(s->real, "/") == 0 ? "" : s->real, below);
	path = relative(s->owner, whole);
	return is_at_or_below(path, ".aiwg/daemon") || is_at_or_below(path, ".aiwg/working") ||
	       strncmp(path, PROJECT_PID, strlen(PROJECT_PID)) == 0;
}

static void tell_change(struct project_watch *w, const struct pending *p)
{
	struct arena arena;
	struct record payload;
	char type[32];

	arena_init(&arena, 1 << 20);
	record_begin(&payload, &arena);
	record_text(&payload, "path", text_of(p->path));
	record_text(&payload, "event_type", text_of(change_name(p->event)));
	snprintf(type, sizeof(type), "file.%s", change_name(p->event));
	if (payload.err == 0)
		automation_event(w->services->automation, w->shown->folder, TEXT("watch"),
				 text_of(type), payload.root);
	arena_done(&arena);
}

static struct pending *first_pending(const struct project_watch *w)
{
	struct list *first = list_first(&w->pending);

	return first ? list_entry(first, struct pending, link) : NULL;
}

static void drop_pending(struct project_watch *w, struct pending *p)
{
	list_remove(&p->link);
	w->n_pending--;
	free(p);
}

static void arm_quiet(struct project_watch *w)
{
	const struct pending *p = first_pending(w);
	uint64_t now = loop_now_ms(w->loop);

	if (p)
		timer_start(w->quiet, p->due_ms > now ? p->due_ms - now : 1);
}

static void on_quiet(void *arg)
{
	struct project_watch *w = arg;
	uint64_t now = loop_now_ms(w->loop);
	struct pending *p;

	while ((p = first_pending(w)) && p->due_ms <= now) {
		tell_change(w, p);
		drop_pending(w, p);
	}
	arm_quiet(w);
}

/* Linear in the files that changed within the debounce time: fine for a checkout of thousands. */
static struct pending *find_pending(const struct project_watch *w, const char *path)
{
	list_for_each (at, following, (struct list *)&w->pending) {
		struct pending *p = list_entry(at, struct pending, link);

		if (strcmp(p->path, path) == 0)
			return p;
	}
	return NULL;
}

static void add_pending(struct project_watch *w, enum watch_event event, const char *path)
{
	struct pending *p = find_pending(w, path);
	size_t n = strlen(path) + 1;

	if (p) {
		/* Made and then written is still made. */
		if (p->event != WATCH_CREATE || event == WATCH_DELETE)
			p->event = event;
		list_remove(&p->link);
	} else {
		if (w->n_pending == PENDING_MAX) {
			tell_change(w, first_pending(w));
			drop_pending(w, first_pending(w));
		}
		p = malloc(sizeof(*p) + n);
		if (!p)
			return;
		p->event = event;
		memcpy(p->path, path, n);
		w->n_pending++;
	}
	p->due_ms = loop_now_ms(w->loop) + (uint64_t)w->config->debounce_ms;
	list_append(&w->pending, &p->link);
	arm_quiet(w);
}

static void on_change(void *arg, enum watch_event event, const char *path)
{
	const struct spot *s = arg;
	struct project_watch *w = s->owner;
	const char *below = path + s->root_len;

	if (event == WATCH_OVERFLOW) {
		log_warn("changes were missed", "folder=%s", path);
		return;
	}
	below += *below == '/';
	path = relative(w, path);
	if (!(s->config->changes & change_bit(event)) || is_ours(s, below) ||
	    is_ignored(s->config, below) || !has_extension(s->config, below))
		return;
	w->shown->n_changes++;
	add_pending(w, event, path);
}

/* Without what says nothing: "//", "/./", and a slash or "/." at the end. */
static void simplify(char *path)
{
	char *to = path;

	for (const char *from = path; *from;) {
		size_t n;

		from += strspn(from, "/");
		n = strcspn(from, "/");
		if (n > 0 && !(n == 1 && from[0] == '.')) {
			*to++ = '/';
			memmove(to, from, n);
			to += n;
		}
		from += n;
	}
	if (to == path)
		*to++ = '/';
	*to = '\0';
}

static void open_spot(struct project_watch *w, struct spot *s)
{
	const struct watch_opts opts = {.on_change = on_change, .skip = on_skip, .arg = s};
	struct text path = s->config->path;
	struct why why = {.text = ""};
	char folder[2 * PATH_LEN];
	int r;

	if (path.data[0] == '/')
		snprintf(folder, sizeof(folder), "%.*s", TEXT_ARGS(path));
	else
		snprintf(folder, sizeof(folder), "%s/%.*s", w->shown->folder.data, TEXT_ARGS(path));
	simplify(folder);
	s->root_len = strlen(folder);
	s->real = realpath(folder, NULL);
	/* However it is written, and wherever links lead: what is not the project's is not its to watch. */
	if (s->real && !is_at_or_below(s->real, w->shown->folder.data)) {
		log_warn("not watched", "folder=%s why=outside of the project %s", folder,
			 w->shown->folder.data);
		return;
	}
	r = watch_open(w->loop, folder, &opts, &s->watch, &why);
	if (r != 0)
		log_info("not watched", "folder=%s why=%s", folder,
			 r > 0 ? why.text : strerror(-r));
}

static int start_watching(struct project_watch *w)
{
	const struct aiwg_config *config = w->config;

	if (!config->watch)
		return 0;
	w->spots = calloc(config->n_watched + 1, sizeof(w->spots[0]));
	w->paths = calloc(config->n_watched + 1, sizeof(w->paths[0]));
	if (!w->spots || !w->paths)
		return -ENOMEM;
	for (unsigned i = 0; i < config->n_watched; i++) {
		w->spots[i] = (struct spot) {.owner = w, .config = &config->watched[i]};
		w->paths[i] = config->watched[i].path;
		open_spot(w, &w->spots[i]);
		w->n_spots++;
	}
	return 0;
}

/* ---- times ---- */

static void tell_due(struct project_watch *w, unsigned i)
{
	const struct aiwg_job_config *config = w->dues[i].config;
	struct arena arena;
	struct record payload;

	arena_init(&arena, 1 << 20);
	record_begin(&payload, &arena);
	record_text(&payload, "job_id", config->id);
	if (config->action) {
		struct value *action = arena_alloc(&arena, sizeof(*action));

		if (action) {
			*action = *config->action;
			record_value(&payload, "action", action);
		}
	}
	w->jobs[i].fired_ms = clock_utc_ms();
	if (payload.err == 0)
		automation_event(w->services->automation, w->shown->folder, TEXT("schedule"),
				 TEXT("cron.fired"), payload.root);
	arena_done(&arena);
}

static void on_clock(void *arg)
{
	struct project_watch *w = arg;
	int64_t now = clock_utc_ms();
	int64_t wait = LOOK_AT_LEAST_MS;

	for (unsigned i = 0; i < w->n_dues; i++) {
		struct due *d = &w->dues[i];

		if (d->next_ms > 0 && d->next_ms <= now) {
			tell_due(w, i);
			d->next_ms = schedule_next(d->schedule, now);
		}
		if (d->next_ms > 0 && d->next_ms - now < wait)
			wait = d->next_ms - now;
	}
	timer_start(w->clock, (uint64_t)wait);
}

static void add_due(struct project_watch *w, const struct aiwg_job_config *config)
{
	struct due *d = &w->dues[w->n_dues];
	struct why why = {.text = ""};
	int r;

	*d = (struct due) {.config = config};
	r = schedule_cron(config->cron, "", &d->schedule, &why);
	if (r != 0) {
		log_warn("job left out", "where=%.*s why=%s", TEXT_ARGS(config->where),
			 r > 0 ? why.text : strerror(-r));
		return;
	}
	d->next_ms = schedule_next(d->schedule, clock_utc_ms());
	w->jobs[w->n_dues++] = (struct aiwg_job) {.id = config->id};
}

static int start_clock(struct project_watch *w)
{
	const struct aiwg_config *config = w->config;

	if (!config->schedule)
		return 0;
	w->dues = calloc(config->n_jobs + 1, sizeof(w->dues[0]));
	w->jobs = calloc(config->n_jobs + 1, sizeof(w->jobs[0]));
	if (!w->dues || !w->jobs)
		return -ENOMEM;
	for (unsigned i = 0; i < config->n_jobs; i++)
		add_due(w, &config->jobs[i]);
	if (w->n_dues > 0)
		on_clock(w);
	return 0;
}

/* ---- both ---- */

static void show(struct project_watch *w)
{
	struct aiwg_project *shown = w->shown;

	shown->watches = w->config->watch;
	shown->paths = w->paths;
	shown->n_paths = w->n_spots;
	shown->schedules = w->config->schedule;
	shown->jobs = w->jobs;
	shown->n_jobs = w->n_dues;
}

int project_watch_start(struct loop *l, struct services *s, const struct aiwg_config *config,
			struct aiwg_project *shown, struct project_watch **ret_watch)
{
	struct project_watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->loop = l;
	w->services = s;
	w->config = config;
	w->shown = shown;
	list_init(&w->pending);
	r = timer_new(l, on_quiet, w, &w->quiet);
	if (r == 0)
		r = timer_new(l, on_clock, w, &w->clock);
	if (r == 0)
		r = start_watching(w);
	if (r == 0)
		r = start_clock(w);
	if (r != 0) {
		project_watch_free(w);
		return r;
	}
	show(w);
	*ret_watch = w;
	return 0;
}

void project_watch_free(struct project_watch *w)
{
	struct pending *p;

	if (!w)
		return;
	w->shown->watches = false;
	w->shown->schedules = false;
	w->shown->n_paths = 0;
	w->shown->n_jobs = 0;
	for (unsigned i = 0; i < w->n_spots; i++) {
		watch_close(w->spots[i].watch);
		free(w->spots[i].real);
	}
	while ((p = first_pending(w)))
		drop_pending(w, p);
	for (unsigned i = 0; i < w->n_dues; i++)
		schedule_free(w->dues[i].schedule);
	timer_free(w->quiet);
	timer_free(w->clock);
	free(w->spots);
	free(w->paths);
	free(w->dues);
	free(w->jobs);
	free(w);
}
