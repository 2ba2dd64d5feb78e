#include "daemon/project.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/project_files.h"
#include "daemon/project_log.h"
#include "daemon/project_trust.h"
#include "daemon/project_watch.h"
#include "dialect/aiwg/import.h"
#include "dialect/daemon.h"
#include "engine/services.h"
#include "store/store.h"
#include "wire/digest.h"

enum {
	HEARTBEAT_MS = 30 * 1000,
	STATE_MAX = 1 << 20,
	CONFIG_ARENA_MAX = 64 << 20,
	IMPORT_ARENA_MAX = 1 << 30,
};

/* What a daemon.json said. Replaced as a whole. */
struct project_config {
	struct arena arena;
	struct buf text; /* which it points into */
	struct aiwg_config config;
	char digest[DIGEST_HEX_LEN + 1]; /* "": there is no file */
	struct trust_offer offer;
};

struct place {
	const struct plan_row *row;
	struct aiwg_project shown;
	struct endpoint *endpoint;
	struct aiwg_teller *teller;
	bool first; /* of its folder: another socket of the same has no files of its own */
	struct project_config *config;
	struct project_watch *watch;
	struct project_log *log;
	struct ticker *heartbeat;
	bool writing; /* a heartbeat is under way */
	bool started;
	bool skipped; /* it cannot be served */
	bool unused;  /* its settings are new, and nothing acts by them yet */
	struct projects *projects;
};

struct projects {
	const struct settings *settings;
	struct loop *loop;
	struct services *services;
	struct background background;
	struct place *places;
	unsigned n;
};

static const char *folder_of(const struct place *p)
{
	return p->row->project;
}

static struct place *place_of(const struct projects *p, const struct plan_row *row)
{
	for (unsigned i = 0; i < p->n; i++) {
		if (p->places[i].row == row)
			return &p->places[i];
	}
	return NULL;
}

static bool is_first(const struct projects *p, const char *folder)
{
	for (unsigned i = 0; i < p->n; i++) {
		if (strcmp(folder_of(&p->places[i]), folder) == 0)
			return false;
	}
	return true;
}

int projects_new(const struct settings *s, const struct plan *plan, struct projects **ret_projects)
{
	struct projects *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->settings = s;
	p->places = calloc(plan->n + 1, sizeof(p->places[0]));
	if (!p->places) {
		free(p);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < plan->n; i++) {
		const struct plan_row *row = &plan->rows[i];

		if (!row->spoken->in_project)
			continue;
		p->places[p->n] = (struct place) {
			.row = row,
			.shown.folder = text_of(row->project),
			.first = is_first(p, row->project),
			.projects = p,
		};
		p->n++;
	}
	*ret_projects = p;
	return 0;
}

/* Another socket of the same folder may do better. */
static void skip(struct place *p, const struct why *why)
{
	p->skipped = true;
	p->first = false;
	log_warn("project not served", "why=%s", why->text);
}

void projects_check(struct projects *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		struct why why;

		if (project_check(folder_of(&p->places[i]), &why) != 0)
			skip(&p->places[i], &why);
	}
}

bool projects_skip(struct projects *p, const struct plan_row *row, const struct why *why)
{
	struct place *place = place_of(p, row);

	if (!place || row->fd >= 0 || !project_socket_broken(row->address.path))
		return false;
	skip(place, why);
	return true;
}

bool projects_skipped(const struct projects *p, const struct plan_row *row)
{
	const struct place *place = place_of(p, row);

	return place && place->skipped;
}

const struct aiwg_project *projects_settings(const struct projects *p, const struct plan_row *row)
{
	const struct place *place = place_of(p, row);

	return place ? &place->shown : NULL;
}

void projects_listening(struct projects *p, const struct plan_row *row, struct endpoint *e)
{
	struct place *place = place_of(p, row);

	if (place)
		place->endpoint = e;
}

/* ---- daemon.json ---- */

static void config_free(struct project_config *c)
{
	if (!c)
		return;
	arena_done(&c->arena);
	buf_done(&c->text);
	free(c);
}

static void complain(void *arg, const char *sentence)
{
	(void)arg;
	log_warn("left out", "why=%s", sentence);
}

static struct text text_in(const struct buf *b)
{
	return (struct text) {.data = b->data, .len = b->len};
}

static void on_trust_changed(void *place);

static int parse_config(const struct place *p, struct project_config *c, struct why *why)
{
	char file[PATH_LEN + 32];
	int r = project_file_read(folder_of(p), PROJECT_CONFIG, &c->text);

	/* Without one everything is as ever. */
	if (r == -ENOENT)
		return 0;
	snprintf(file, sizeof(file), "%s/%s", folder_of(p), PROJECT_CONFIG);
	if (r != 0)
		return refuse(why, REFUSE_UNAVAILABLE, "cannot read %.120s: %s", file,
			      strerror(-r));
	return aiwg_config_read(&c->arena, file, text_in(&c->text), p->shown.folder, complain, NULL,
				&c->config, why);
}

/* What of it would act, and by what it is known again. */
static int make_offer(const struct place *p, struct project_config *c)
{
	int r;

	project_forbid(p->projects->settings->project_webhooks, &c->config);
	r = project_offer(&c->arena, &c->config, &c->offer);
	if (c->text.len > 0)
		digest_hex(text_in(&c->text), c->digest);
	return r;
}

/* However little is in it: of a file that cannot be read there is nothing. */
static void sign_offer(struct place *p, struct project_config *c)
{
	c->offer.folder = p->shown.folder;
	c->offer.digest = text_of(c->digest);
	c->offer.changed = on_trust_changed;
	c->offer.arg = p;
}

/* The original would take them before daemon.json. */
static void tell_unread(const struct place *p)
{
	static const char *const names[] = {PROJECT_YAML, PROJECT_YML};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (project_file_exists(folder_of(p), names[i]))
			log_warn("project settings not read", "file=%s/%s why=only %s is read",
				 folder_of(p), names[i], PROJECT_CONFIG);
	}
}

/* A file that cannot be read leaves things as they are; that is told. */
static int read_config(struct place *p)
{
	struct project_config *c = calloc(1, sizeof(*c));
	struct why why = {.text = ""};
	int r;

	if (!c)
		return -ENOMEM;
	arena_init(&c->arena, CONFIG_ARENA_MAX);
	buf_init(&c->text, AIWG_CONFIG_MAX);
	tell_unread(p);
	r = parse_config(p, c, &why);
	if (r > 0)
		log_warn("project settings not read", "why=%s", why.text);
	if (r == 0)
		r = make_offer(p, c);
	sign_offer(p, c);
	if (r != 0 && p->config) {
		config_free(c);
		return r < 0 ? r : 0;
	}
	project_watch_free(p->watch);
	p->watch = NULL;
	config_free(p->config);
	p->config = c;
	p->unused = true;
	return r < 0 ? r : 0;
}

int projects_read(struct projects *p)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < p->n; i++) {
		if (p->places[i].first)
			r = read_config(&p->places[i]);
	}
	return r;
}

static struct task_project limits_of(const struct place *p)
{
	return (struct task_project) {
		.folder = folder_of(p),
		.parallel = p->config->config.parallel,
		.timeout_ms = p->config->config.timeout_ms,
		.queue = p->config->config.queue,
	};
}

unsigned projects_limits(const struct projects *p, struct task_project *out, unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->n && n < max; i++) {
		if (p->places[i].first)
			out[n++] = limits_of(&p->places[i]);
	}
	return n;
}

/* ---- tasks.json ---- */

static int import_text(struct place *p, struct services *s, struct text text,
		       struct task_import *in, struct why *why)
{
	struct task *tasks = NULL;
	struct arena arena;
	unsigned n = 0;
	int r;

	arena_init(&arena, IMPORT_ARENA_MAX);
	r = aiwg_tasks_read(&arena, text, p->shown.folder, p->config->config.timeout_ms, &tasks,
			    &in->n, why);
	in->tasks = tasks;
	if (r == 0)
		r = tasks_import(s, &arena, in, &n);
	arena_done(&arena);
	if (r == 0)
		r = project_file_put_aside(folder_of(p), PROJECT_TASKS, ".imported");
	if (r == 0)
		log_info("tasks imported", "project=%s n=%u", folder_of(p), n);
	return r;
}

/* What cannot be read is left where it is, and the project begins without it. */
static void import(struct place *p, struct services *s, struct task_import *in)
{
	CLEANUP(buf_donep) struct buf text;
	struct why why = {.text = ""};
	int r;

	buf_init(&text, AIWG_IMPORT_BYTES);
	r = project_file_read(folder_of(p), PROJECT_TASKS, &text);
	if (r == -ENOENT)
		return;
	if (r == 0)
		r = import_text(p, s, (struct text) {.data = text.data, .len = text.len}, in, &why);
	if (r != 0)
		log_warn("tasks not imported", "file=%s/%s why=%s", folder_of(p), PROJECT_TASKS,
			 r > 0 ? why.text : strerror(-r));
}

int projects_import(struct projects *p, struct services *s, const char *output_folder,
		    int64_t output_bytes)
{
	struct task_import in = {.output_folder = output_folder, .output_bytes = output_bytes};

	for (unsigned i = 0; i < p->n; i++) {
		if (p->places[i].first)
			import(&p->places[i], s, &in);
	}
	return 0;
}

/* ---- the files that tell of us ---- */

/* A heartbeat on its way to the disk, on a reader's thread: a slow one must not hold the loop. */
struct beat {
	struct work work;
	struct place *place;
	struct buf state;
	struct buf heartbeat;
};

static void write_state(const struct place *p, const char *health, struct buf *out)
{
	CLEANUP(buf_donep) struct buf plain;
	struct json j;

	buf_init(&plain, STATE_MAX);
	j = json_writer(&plain);
	aiwg_write_state(&j, p->endpoint, health);
	if (plain.err != 0)
		out->err = plain.err;
	project_indent((struct text) {.data = plain.data, .len = plain.len}, out);
}

static void write_heartbeat(const struct place *p, struct buf *out)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_int(&j, "pid", getpid());
	json_member_str(&j, "timestamp", clock_iso_now());
	json_member_uint(&j, "uptime_seconds",
			 (clock_steady_ms() - p->endpoint->server->started_ms) / 1000);
	json_end_object(&j);
}

static struct beat *beat_new(struct place *p, const char *health)
{
	struct beat *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->place = p;
	buf_init(&b->state, 4 * STATE_MAX);
	buf_init(&b->heartbeat, 4096);
	write_state(p, health, &b->state);
	write_heartbeat(p, &b->heartbeat);
	return b;
}

static void beat_free(struct beat *b)
{
	buf_done(&b->state);
	buf_done(&b->heartbeat);
	free(b);
}

static int put(const struct place *p, const char *name, const struct buf *text)
{
	if (text->err != 0)
		return text->err;
	return project_file_write(folder_of(p), name, text_in(text));
}

static int beat_write(const struct beat *b)
{
	int r = put(b->place, PROJECT_STATE, &b->state);

	return r != 0 ? r : put(b->place, PROJECT_HEARTBEAT, &b->heartbeat);
}

static int beat_run(struct work *w, int lane)
{
	struct beat *b = list_entry(w, struct beat, work);

	(void)lane;
	return beat_write(b);
}

/* Its folder may be gone, or the disk full: nobody who talks to us minds. */
static void beat_finished(struct work *w, int result)
{
	struct beat *b = list_entry(w, struct beat, work);

	if (result != 0)
		log_debug("heartbeat not written", "project=%s error=%s", folder_of(b->place),
			  strerror(-result));
	b->place->writing = false;
	beat_free(b);
}

static void on_heartbeat(void *arg)
{
	struct place *p = arg;
	const struct background *background = &p->projects->background;
	struct beat *b;

	if (p->writing || p->endpoint->server->stopping)
		return;
	b = beat_new(p, dialect_health(p->endpoint->server));
	if (!b)
		return;
	b->work = (struct work) {.run = beat_run, .finished = beat_finished};
	p->writing = background->submit(background->arg, &b->work, false) == 0;
	if (!p->writing)
		beat_free(b);
}

/* At once: at the start and at the end. */
static int write_files(struct place *p, const char *health)
{
	struct beat *b = beat_new(p, health);
	int r = b ? beat_write(b) : -ENOMEM;

	if (b)
		beat_free(b);
	return r;
}

static int start_files(struct place *p)
{
	int64_t every = p->config->config.heartbeat_ms;
	int r = project_pid_write(folder_of(p));

	if (r == 0) {
		p->started = true;
		r = write_files(p, "healthy");
	}
	if (r != 0)
		log_warn("project files not written", "project=%s error=%s", folder_of(p),
			 strerror(-r));
	r = project_log_start(p->projects->services, p->projects->background, p->shown.folder,
			      &p->log);
	if (r != 0)
		return r;
	return ticker_new(p->projects->loop, every > 0 ? (uint64_t)every : HEARTBEAT_MS,
			  on_heartbeat, p, &p->heartbeat);
}

/* ---- all of it ---- */

static void count_held(void *n, struct text id)
{
	(void)id;
	(*(unsigned *)n)++;
}

/* Once for each time that its files are read: whoever wants them to act has to look at them. */
static void tell_untrusted(const struct place *p, enum trust_state state)
{
	const struct trust_offer *o = &p->config->offer;
	unsigned n_held = 0;

	tasks_each_held(p->projects->services, p->shown.folder, count_held, &n_held);
	if (state != TRUST_WANTED && state != TRUST_CHANGED && n_held == 0)
		return;
	log_info("project does not act",
		 "project=%s is=%s rules=%u watches=%u jobs=%u held=%u how=\"koine project trust\"",
		 folder_of(p), trust_state_name(state), o->n_rules, o->n_watches, o->n_jobs,
		 n_held);
}

/* Its rules act, and its files and times are watched, only as they are trusted. */
static int start_rules(struct place *p)
{
	struct services *s = p->projects->services;
	const struct aiwg_config *config = &p->config->config;
	int r = trust_offer(s->trust, &p->config->offer);
	enum trust_state state;

	if (r != 0)
		return r;
	p->unused = false;
	state = trust_of(s->trust, &p->config->offer, NULL);
	tell_untrusted(p, state);
	if (s->automation)
		r = automation_set_rules(s->automation, p->shown.folder, config->rules,
					 state == TRUST_GIVEN ? config->n_rules : 0, NULL, NULL);
	if (r == 0 && state == TRUST_GIVEN)
		r = project_watch_start(p->projects->loop, s, config, &p->shown, &p->watch);
	return r;
}

static void on_trust_changed(void *place)
{
	struct place *p = place;
	int r;

	project_watch_free(p->watch);
	p->watch = NULL;
	r = start_rules(p);
	if (r != 0)
		log_err("project not read again", "project=%s error=%s", folder_of(p),
			strerror(-r));
}

int projects_start(struct projects *p, struct backstage *stage, struct services *s)
{
	int r = 0;

	p->loop = stage->server->loop;
	p->services = s;
	p->background = backstage(stage);
	for (unsigned i = 0; r == 0 && i < p->n; i++) {
		struct place *place = &p->places[i];

		if (place->skipped)
			continue;
		r = aiwg_teller_start(place->endpoint, &place->teller);
		if (r == 0 && place->first)
			r = start_rules(place);
		if (r == 0 && place->first)
			r = start_files(place);
	}
	return r;
}

static int reload(struct place *p)
{
	struct task_project limits;
	int r = read_config(p);

	/* Where nothing new was read, what was there goes on. First of all: what was offered before
	 * is gone. */
	if (r == 0 && p->unused)
		r = start_rules(p);
	if (r != 0)
		return r;
	limits = limits_of(p);
	return tasks_add_project(p->projects->services, &limits);
}

void projects_reload(struct projects *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		struct place *place = &p->places[i];
		int r = place->first && place->started ? reload(place) : 0;

		if (r != 0)
			log_err("project not read again", "project=%s error=%s", folder_of(place),
				strerror(-r));
	}
}

void projects_stopped(struct projects *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		struct place *place = &p->places[i];

		if (!place->started)
			continue;
		place->started = false;
		(void)write_files(place, "stopped");
		project_pid_remove(folder_of(place));
	}
}

void projects_free(struct projects *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->n; i++) {
		struct place *place = &p->places[i];

		ticker_free(place->heartbeat);
		aiwg_teller_free(place->teller);
		project_log_free(place->log);
		project_watch_free(place->watch);
		config_free(place->config);
	}
	free(p->places);
	free(p);
}
