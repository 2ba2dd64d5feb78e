/*
 * The projects that koined serves. Each has a socket in its folder, settings of its own there
 * (.aiwg/daemon.json), files that show that a daemon runs, and rules.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/error.h"
#include "call/server.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/aiwg/files.h"
#include "dialect/aiwg/project.h"
#include "dialect/life.h"
#include "engine/engine.h"
#include "wire/crypto.h"

enum {
	CONFIG_ARENA_MAX = 64 << 20,
	IMPORT_ARENA_MAX = 1 << 30,
	PROJECT_RULES_MAX = 2000,
};

/* The contents of a daemon.json. Replaced as a whole. */
struct project_config {
	struct arena arena;
	struct buf text; /* the config points into it */
	struct aiwg_config config;
	char digest[DIGEST_HEX_LEN + 1]; /* "": there is no file */
	struct trust_offer offer;
};

/* A socket of a project. */
struct project {
	struct list link;
	const struct dialect_host *host;
	const char *folder;
	struct aiwg_project shown;
	struct endpoint *endpoint;
	struct aiwg_teller *teller;
	bool first; /* the first socket of its folder; only this one has what follows */
	struct project_config *config;
	struct project_watch *watch;
	struct project_log *log;
	struct heartbeat *heartbeat;
	bool unused; /* the config is new, and its rules are not started yet */
};

static struct list *projects(const struct dialect_host *h)
{
	return h->state;
}

/* ---- sockets ---- */

static int aiwg_project_prepare(struct dialect_host *h, struct error *error)
{
	struct list *list = arena_alloc(h->daemon->arena, sizeof(*list));

	if (!list)
		return -ENOMEM;
	list_init(list);
	h->state = list;
	return 0;
}

static bool is_first(const struct dialect_host *h, const char *folder)
{
	list_for_each (at, following, projects(h)) {
		struct project *p = list_entry(at, struct project, link);

		if (strcmp(p->folder, folder) == 0)
			return false;
	}
	return true;
}

static int listening(struct dialect_host *h, const char *folder, struct endpoint *e)
{
	struct project *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->host = h;
	p->folder = folder;
	p->first = is_first(h, folder);
	p->shown.folder = text_of(folder);
	p->endpoint = e;
	e->settings = &p->shown;
	list_append(projects(h), &p->link);
	return 0;
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

/* Whoever asked for a reload hears it, too. */
static void report(const struct project *p, enum reload_fate fate, const char *sentence)
{
	const struct reload_listener *listener = p->host->daemon->report;

	if (listener)
		listener->note(listener->arg, &(struct reload_note) {.fate = fate,
								     .key = PROJECT_CONFIG,
								     .file = "",
								     .reason = sentence});
}

static void report_invalid(void *project, const char *sentence)
{
	report(project, RELOAD_INVALID, sentence);
}

static void complain(void *project, const char *sentence)
{
	log_warn("project setting skipped", "reason=%s", sentence);
	report_invalid(project, sentence);
}

static struct text aiwg_project_text_in(const struct buf *b)
{
	return (struct text) {.data = b->data, .len = b->len};
}

static void on_trust_changed(void *project);

static int parse_config(struct project *p, struct project_config *c, struct error *error)
{
	const struct aiwg_settings *settings = p->host->settings;
	struct aiwg_config_file config = {.project = p->shown.folder,
					  .max_rules = settings->rules,
					  .complain = complain,
					  .arg = p};
	char file[PATH_LEN + 32];
	int r = project_file_read(p->folder, PROJECT_CONFIG, &c->text);

	/* Without the file, everything has its default. */
	if (r == -ENOENT)
		return 0;
	snprintf(file, sizeof(file), "%s/%s", p->folder, PROJECT_CONFIG);
	if (r != 0)
		return refuse(error, REFUSE_UNAVAILABLE, "cannot read %s: %s", file, strerror(-r));
	config.name = file;
	config.text = aiwg_project_text_in(&c->text);
	return aiwg_config_read(&c->arena, &config, &c->config, error);
}

/* Lists what would act, and computes the digest by which the file is recognised. */
static int make_offer(const struct project *p, struct project_config *c)
{
	const struct aiwg_settings *settings = p->host->settings;
	int r;

	project_forbid(settings->webhooks, &c->config);
	r = project_offer(&c->arena, &c->config, &c->offer);
	if (c->text.len > 0)
		digest_hex(aiwg_project_text_in(&c->text), c->digest);
	return r;
}

/* There is an offer even for a file that cannot be read; then it is empty. */
static void sign_offer(struct project *p, struct project_config *c)
{
	c->offer.folder = p->shown.folder;
	c->offer.digest = text_of(c->digest);
	c->offer.changed = on_trust_changed;
	c->offer.arg = p;
}

/* The original prefers these files to daemon.json; koined does not read them. */
static void tell_unread(const struct project *p)
{
	static const char *const names[] = {PROJECT_YAML, PROJECT_YML};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (project_file_exists(p->folder, names[i]))
			log_warn("could not read project settings",
				 "file=%s/%s reason=only %s is read", p->folder, names[i],
				 PROJECT_CONFIG);
	}
}

/* A file that cannot be read changes nothing; that is logged. */
static int read_config(struct project *p)
{
	struct project_config *c = calloc(1, sizeof(*c));
	struct error error = {.text = ""};
	int r;

	if (!c)
		return -ENOMEM;
	arena_init(&c->arena, CONFIG_ARENA_MAX);
	buf_init(&c->text, AIWG_CONFIG_MAX);
	tell_unread(p);
	r = parse_config(p, c, &error);
	if (r > 0) {
		log_warn("could not read project settings", "reason=%s", error.text);
		report_invalid(p, error.text);
	}
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

static int set_limits(const struct project *p)
{
	const struct task_project limits = {
		.folder = p->folder,
		.parallel = p->config->config.parallel,
		.timeout_ms = p->config->config.timeout_ms,
		.queue = p->config->config.queue,
	};

	return tasks_add_project(p->host->daemon->engine->tasks, &limits);
}

/* ---- tasks.json ---- */

static int import_text(const struct project *p, struct text text, struct task_import *in,
		       struct error *error)
{
	struct printed_task *tasks = NULL;
	struct arena arena;
	unsigned n = 0;
	int r;

	arena_init(&arena, IMPORT_ARENA_MAX);
	r = aiwg_tasks_read(&arena, text, p->shown.folder, p->config->config.timeout_ms, &tasks,
			    &in->n, error);
	in->tasks = tasks;
	if (r == 0)
		r = tasks_import(p->host->daemon->engine->store, &arena, in, &n);
	arena_done(&arena);
	if (r == 0)
		r = project_file_put_aside(p->folder, PROJECT_TASKS, ".imported");
	if (r == 0)
		log_info("tasks imported", "project=%s n=%u", p->folder, n);
	return r;
}

/* Imports, once, the tasks that the original has kept. If the file cannot be read, it stays
 * where it is, and the project starts without it. */
static void import(const struct project *p)
{
	struct task_import in = {.output_folder = p->host->daemon->task_folder,
				 .output_bytes = p->host->daemon->task_bytes};
	CLEANUP(buf_donep) struct buf text;
	struct error error = {.text = ""};
	int r;

	buf_init(&text, AIWG_IMPORT_BYTES);
	r = project_file_read(p->folder, PROJECT_TASKS, &text);
	if (r == -ENOENT)
		return;
	if (r == 0)
		r = import_text(p, aiwg_project_text_in(&text), &in, &error);
	if (r != 0)
		log_warn("could not import tasks", "file=%s/%s reason=%s", p->folder, PROJECT_TASKS,
			 error_words(r, &error));
}

static int open_all(struct dialect_host *h, struct error *error)
{
	list_for_each (at, following, projects(h)) {
		struct project *p = list_entry(at, struct project, link);
		int r = p->first ? read_config(p) : 0;

		if (r != 0)
			return r;
		if (p->first)
			import(p);
	}
	return 0;
}

/* ---- rules ---- */

/* Logged each time the files are read: somebody has to review them before they may act. */
static void tell_untrusted(const struct project *p, enum trust_state state)
{
	const struct trust_offer *o = &p->config->offer;
	unsigned n_held =
		tasks_each_held(p->host->daemon->engine->tasks, p->shown.folder, NULL, NULL);

	if (state != TRUST_WANTED && state != TRUST_CHANGED && n_held == 0)
		return;
	log_info("project not trusted, holding its rules",
		 "project=%s is=%s rules=%u watches=%u jobs=%u held=%u how=\"koine project trust\"",
		 p->folder, trust_state_name(state), o->n_rules, o->n_watches, o->n_jobs, n_held);
}

/* Rules act, and files and times are watched, only if the project's files are trusted. */
static int start_rules(struct project *p)
{
	struct engine *s = p->host->daemon->engine;
	const struct aiwg_config *config = &p->config->config;
	int r = trust_offer(s->trust, &p->config->offer);
	enum trust_state state;

	if (r != 0)
		return r;
	p->unused = false;
	state = trust_of(s->trust, &p->config->offer, NULL);
	tell_untrusted(p, state);
	r = automation_set_rules(s->automation, p->shown.folder, config->rules,
				 state == TRUST_GIVEN ? config->n_rules : 0, report_invalid, p);
	if (r != 0 || state != TRUST_GIVEN)
		return r;
	return project_watch_start(p->host->daemon->loop, s, config, &p->shown, &p->watch);
}

static void tell_failed(const struct project *p, int r)
{
	if (r != 0)
		log_err("could not reload project", "project=%s error=%s", p->folder,
			fault_words(r));
}

static void on_trust_changed(void *project)
{
	struct project *p = project;

	project_watch_free(p->watch);
	p->watch = NULL;
	tell_failed(p, start_rules(p));
}

/* ---- start, reload, stop ---- */

static int start_project(struct project *p)
{
	const struct dialect_means *daemon = p->host->daemon;
	int r = aiwg_teller_start(p->endpoint, &p->teller);

	if (r != 0 || !p->first)
		return r;
	r = set_limits(p)
			?: start_rules(p)
			?: heartbeat_start(daemon, p->folder, p->endpoint,
					   p->config->config.heartbeat_ms, &p->heartbeat)
			?: project_log_start(daemon->engine->events, daemon->workers,
					     p->shown.folder, &p->log);
	return r;
}

static int aiwg_project_start(struct dialect_host *h, struct error *error)
{
	list_for_each (at, following, projects(h)) {
		struct project *p = list_entry(at, struct project, link);
		int r = start_project(p);

		if (r != 0)
			return r;
	}
	return 0;
}

static void report_taken(const struct project *p)
{
	enum trust_state state = trust_of(p->host->daemon->engine->trust, &p->config->offer, NULL);
	bool held = state == TRUST_WANTED || state == TRUST_CHANGED;
	char sentence[PATH_LEN + 64];

	snprintf(sentence, sizeof(sentence), "%s%s", p->folder,
		 held ? "; run `koine project trust` to activate the project's rules" : "");
	report(p, RELOAD_TAKEN, sentence);
}

static int reload_project(struct project *p)
{
	char was[sizeof(p->config->digest)];
	int r;

	memcpy(was, p->config->digest, sizeof(was));
	r = read_config(p);

	/* If nothing new was read, the old rules stay. Rules come first, because the offer they
	 * had is freed. */
	if (r == 0 && p->unused)
		r = start_rules(p);
	if (r == 0 && strcmp(was, p->config->digest) != 0)
		report_taken(p);
	return r != 0 ? r : set_limits(p);
}

static int aiwg_project_reload(struct dialect_host *h, struct error *error)
{
	list_for_each (at, following, projects(h)) {
		struct project *p = list_entry(at, struct project, link);

		if (p->heartbeat)
			tell_failed(p, reload_project(p));
	}
	return 0;
}

static int stopping(struct dialect_host *h, struct error *error)
{
	aiwg_tell_stopping(h->daemon->server);
	return 0;
}

static int stopped(struct dialect_host *h, struct error *error)
{
	list_for_each (at, following, projects(h))
		heartbeat_stop(list_entry(at, struct project, link)->heartbeat);
	return 0;
}

static int free_all(struct dialect_host *h, struct error *error)
{
	if (!h->state)
		return 0;
	list_for_each (at, following, projects(h)) {
		struct project *p = list_entry(at, struct project, link);

		heartbeat_free(p->heartbeat);
		aiwg_teller_free(p->teller);
		project_log_free(p->log);
		project_watch_free(p->watch);
		config_free(p->config);
		list_remove(&p->link);
		free(p);
	}
	return 0;
}

/* ---- the dialect's part in the daemon's life ---- */

static const struct setting rows[] = {
	{"project", "webhooks", SET_TEXT, SETTING_TEXT(struct aiwg_settings, webhooks),
	 "URL prefixes that a project's webhooks may call; empty means none"},
	{"project", "rules", SET_UNSIGNED, offsetof(struct aiwg_settings, rules), 0,
	 PROJECT_RULES_MAX, "maximum number of rules per project"},
};

static const struct aiwg_settings defaults = {.rules = 256};

const struct dialect_section aiwg_section = {
	SECTION(rows, defaults),
	.renewed = true,
};

const struct dialect_life aiwg_life = {
	.steps = {[DIALECT_PREPARE] = aiwg_project_prepare,
		  [DIALECT_OPEN] = open_all,
		  [DIALECT_START] = aiwg_project_start,
		  [DIALECT_RELOAD] = aiwg_project_reload,
		  [DIALECT_STOPPING] = stopping,
		  [DIALECT_STOPPED] = stopped,
		  [DIALECT_FREE] = free_all},
	.task_wording = &aiwg_task_wording,
	.check_folder = project_check,
	.socket_broken = project_socket_broken,
	.listening = listening,
	.debug_variable = "AIWG_IPC_DEBUG",
};
