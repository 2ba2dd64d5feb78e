#include "dialect/aiwg/project.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/object_builder.h"
#include "base/setting.h"
#include "dialect/aiwg/files.h"
#include "base/pattern/pattern.h"
#include "engine/automation/schedule.h"
#include "engine/engine.h"

enum {
	LOOK_AT_LEAST_MS = 60 * 1000, /* because people may set the clock */
	IGNORE_MAX = 256,             /* bytes of a pattern */
	CHANGES_MAX = 4096,           /* changed files not yet reported */
};

/* A watched folder. */
struct aiwg_watch_watched {
	struct project_watch *owner;
	const struct aiwg_watched *config;
	char *real; /* its path without links and ".."; NULL: unknown */
};

/* A job of the schedule. */
struct aiwg_watch_due {
	struct schedule *schedule;
	const struct aiwg_job_config *config;
	int64_t next_ms; /* 0: never */
};

struct project_watch {
	struct loop *loop;
	struct engine *engine;
	const struct aiwg_config *config;
	struct aiwg_project *shown;
	struct changes *changes;
	struct aiwg_watch_watched *watched;
	unsigned n_watched;
	struct aiwg_watch_due *dues;
	struct aiwg_job *jobs; /* shown->jobs points to it; one for each due */
	unsigned n_dues;
	struct timer *clock;
	struct text *paths; /* shown->paths points to it */
};

/* ---- files ---- */

/* The pattern may match anywhere in the path, as in the original. */
static bool fits_pattern(struct text pattern, struct text path)
{
	char glob[IGNORE_MAX];
	int n = snprintf(glob, sizeof(glob), "*%.*s*", TEXT_ARGS(pattern));

	return pattern.len > 0 && (size_t)n < sizeof(glob) &&
	       glob_fits((struct text) {.data = glob, .len = (size_t)n}, path);
}

/* `path` is relative to the watched folder. */
static bool is_ignored(const struct aiwg_watched *w, const char *path)
{
	for (unsigned i = 0; i < w->n_ignore; i++) {
		if (fits_pattern(w->ignore[i], text_of(path)))
			return true;
	}
	return false;
}

/* A pattern that matches "NAME/" matches everything below it. */
static bool skips(void *arg, const char *name)
{
	const struct aiwg_watch_watched *w = arg;
	char folder[NAME_MAX + 2];

	snprintf(folder, sizeof(folder), "%s/", name);
	return strcmp(name, ".git") == 0 || strcmp(name, "node_modules") == 0 ||
	       is_ignored(w->config, folder);
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

/* Returns the path relative to the project, if it is below it; the project's own tools name
 * files like that. */
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

/* Whether it is a file that koined and agents write all the time, however the folder is reached. */
static bool aiwg_watch_is_ours(const struct aiwg_watch_watched *w, const char *below)
{
	char whole[2 * PATH_MAX];
	const char *path;

	if (!w->real)
		return false;
	snprintf(whole, sizeof(whole), "%s/%s", strcmp(w->real, "/") == 0 ? "" : w->real, below);
	path = relative(w->owner, whole);
	return is_at_or_below(path, ".aiwg/daemon") || is_at_or_below(path, ".aiwg/working") ||
	       strncmp(path, PROJECT_PID, strlen(PROJECT_PID)) == 0;
}

static bool aiwg_watch_take(void *arg, enum change change, const char *below)
{
	const struct aiwg_watch_watched *w = arg;

	if (!(w->config->changes & change) || aiwg_watch_is_ours(w, below) ||
	    is_ignored(w->config, below) || !has_extension(w->config, below))
		return false;
	w->owner->shown->n_changes++;
	return true;
}

/* A file that is created and then written still counts as created. */
static enum change merge(enum change before, enum change now)
{
	return before == CHANGE_CREATE && now != CHANGE_DELETE ? CHANGE_CREATE : now;
}

static void tell_change(void *arg, enum change change, const char *path)
{
	const struct project_watch *w = arg;
	struct arena arena;
	struct object_builder payload;
	char type[32];

	arena_init(&arena, 1 << 20);
	object_begin(&payload, &arena);
	object_text(&payload, "path", text_of(relative(w, path)));
	object_text(&payload, "event_type", text_of(change_name(change)));
	snprintf(type, sizeof(type), "file.%s", change_name(change));
	if (payload.err == 0)
		automation_event(w->engine->automation, w->shown->folder, TEXT("watch"),
				 text_of(type), payload.root);
	arena_done(&arena);
}

/* Removes parts without meaning: "//", "/./", and a slash or "/." at the end. */
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

static void watch_folder(struct project_watch *p, struct aiwg_watch_watched *w)
{
	struct text path = w->config->path;
	struct error error = {.text = ""};
	char folder[2 * PATH_LEN];
	int r;

	if (path.data[0] == '/')
		snprintf(folder, sizeof(folder), "%.*s", TEXT_ARGS(path));
	else
		snprintf(folder, sizeof(folder), "%s/%.*s", p->shown->folder.data, TEXT_ARGS(path));
	simplify(folder);
	w->real = realpath(folder, NULL);
	/* A project may watch only what is below it, however the path is written and wherever
	 * links lead. */
	if (w->real && !is_at_or_below(w->real, p->shown->folder.data)) {
		log_warn("could not watch folder", "folder=%s reason=\"outside the project %s\"",
			 folder, p->shown->folder.data);
		return;
	}
	r = changes_watch(p->changes, folder, w, &error);
	if (r != 0)
		log_info("could not watch folder", "folder=%s reason=%s", folder,
			 error_words(r, &error));
}

static int start_watching(struct project_watch *p)
{
	const struct aiwg_config *config = p->config;
	const struct changes_opts opts = {
		.loop = p->loop,
		.quiet_ms = config->debounce_ms,
		.skips = skips,
		.take = aiwg_watch_take,
		.max = CHANGES_MAX,
		.merge = merge,
		.tell = tell_change,
		.arg = p,
	};
	int r;

	if (!config->watch)
		return 0;
	p->watched = calloc(config->n_watched + 1, sizeof(p->watched[0]));
	p->paths = calloc(config->n_watched + 1, sizeof(p->paths[0]));
	if (!p->watched || !p->paths)
		return -ENOMEM;
	r = changes_new(&opts, &p->changes);
	if (r != 0)
		return r;
	for (unsigned i = 0; i < config->n_watched; i++) {
		p->watched[i] =
			(struct aiwg_watch_watched) {.owner = p, .config = &config->watched[i]};
		p->paths[i] = config->watched[i].path;
		watch_folder(p, &p->watched[i]);
		p->n_watched++;
	}
	return 0;
}

/* ---- times ---- */

static void tell_due(struct project_watch *w, unsigned i)
{
	const struct aiwg_job_config *config = w->dues[i].config;
	struct arena arena;
	struct object_builder payload;

	arena_init(&arena, 1 << 20);
	object_begin(&payload, &arena);
	object_text(&payload, "job_id", config->id);
	if (config->action) {
		struct value *action = arena_alloc(&arena, sizeof(*action));

		if (action) {
			*action = *config->action;
			object_value(&payload, "action", action);
		}
	}
	w->jobs[i].fired_ms = clock_utc_ms();
	if (payload.err == 0)
		automation_event(w->engine->automation, w->shown->folder, TEXT("schedule"),
				 TEXT("cron.fired"), payload.root);
	arena_done(&arena);
}

static void on_clock(void *arg)
{
	struct project_watch *w = arg;
	int64_t now = clock_utc_ms();
	int64_t wait = LOOK_AT_LEAST_MS;

	for (unsigned i = 0; i < w->n_dues; i++) {
		struct aiwg_watch_due *d = &w->dues[i];

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
	struct aiwg_watch_due *d = &w->dues[w->n_dues];
	struct error error = {.text = ""};
	int r;

	*d = (struct aiwg_watch_due) {.config = config};
	r = schedule_cron(config->cron, "", &d->schedule, &error);
	if (r != 0) {
		log_warn("job skipped", "where=%.*s reason=%s", TEXT_ARGS(config->where),
			 error_words(r, &error));
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

/* ---- start and stop ---- */

static void aiwg_watch_show(struct project_watch *w)
{
	struct aiwg_project *shown = w->shown;

	shown->watches = w->config->watch;
	shown->paths = w->paths;
	shown->n_paths = w->n_watched;
	shown->schedules = w->config->schedule;
	shown->jobs = w->jobs;
	shown->n_jobs = w->n_dues;
}

int project_watch_start(struct loop *l, struct engine *s, const struct aiwg_config *config,
			struct aiwg_project *shown, struct project_watch **ret_watch)
{
	struct project_watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->loop = l;
	w->engine = s;
	w->config = config;
	w->shown = shown;
	r = timer_new(l, on_clock, w, &w->clock) ?: start_watching(w) ?: start_clock(w);
	if (r != 0) {
		project_watch_free(w);
		return r;
	}
	aiwg_watch_show(w);
	*ret_watch = w;
	return 0;
}

void project_watch_free(struct project_watch *w)
{
	if (!w)
		return;
	w->shown->watches = false;
	w->shown->schedules = false;
	w->shown->n_paths = 0;
	w->shown->n_jobs = 0;
	changes_free(w->changes);
	for (unsigned i = 0; i < w->n_watched; i++)
		free(w->watched[i].real);
	for (unsigned i = 0; i < w->n_dues; i++)
		schedule_free(w->dues[i].schedule);
	timer_free(w->clock);
	free(w->watched);
	free(w->paths);
	free(w->dues);
	free(w->jobs);
	free(w);
}
