/*
 * Starts the engine's nouns, in order: fills the options of each from the settings. Rules, agents
 * and the model need more code, and have files of their own.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/error.h"
#include "call/server.h"
#include "daemon/daemon.h"
#include "daemon/life.h"
#include "engine/approval/approval.h"
#include "engine/automation/trust.h"
#include "engine/engine.h"
#include "engine/event/event.h"
#include "engine/extract/extract.h"
#include "engine/node/node.h"
#include "engine/session/session.h"
#include "engine/task/task.h"
#include "engine/page_session/page_session.h"
#include "io/activation.h"
#include "store/store.h"
#include "wire/json.h"

_Static_assert((int)POLICIES_MAX <= (int)APPROVAL_RULES_MAX, "room for all policies");

static const int64_t day_ms = 24 * 3600 * 1000LL;

/* ---- threads ---- */

struct work *daemon_trailer(void *daemon)
{
	struct engine *engine = ((struct daemon *)daemon)->engine;

	return engine_trails(engine) ? engine_trailer(engine) : NULL;
}

/* ---- the store ---- */

/* Only a store in a file makes its folder. What this machine keeps for itself needs it, too. */
int make_own_folder(const struct settings *s, struct error *error)
{
	char path[PATH_LEN];
	int r;

	settings_beside_store(s, path, sizeof(path));
	r = file_make_parents(path, 0700);
	if (r == 0)
		return 0;
	return refuse(error, REFUSE_UNAVAILABLE, "cannot create %s: %s", path, strerror(-r));
}

int daemon_accepted(const struct settings *s, char *out, size_t size)
{
	char path[PATH_LEN];

	settings_beside_store(s, path, sizeof(path));
	return snprintf(out, size, "%s.adopted", path) < (int)size ? 0 : -ENAMETOOLONG;
}

/* A refusal may pass, too: while a dump is restored the schema looks like another program's, or the grants are
 * missing; after a fail-over the new server may have too many connections. */
static bool is_passing(int r)
{
	return r < 0 || r == REFUSE_FORBIDDEN || r == REFUSE_CONFLICT;
}

void daemon_await_store(const struct settings *s)
{
	enum { REFUSED_MAX_S = 120 };
	char url[PATH_LEN + 16], accepted[PATH_LEN + 16], note[STORE_NOTE_MAX];
	const struct timespec pause = {.tv_sec = 1};
	struct error error = {.text = ""};
	unsigned n_refused = 0;
	int before = 0, r;

	settings_store_url(s, url, sizeof(url));
	if (daemon_accepted(s, accepted, sizeof(accepted)) != 0)
		return;
	while (is_passing(r = store_look(url, accepted, note, &error)) &&
	       n_refused < REFUSED_MAX_S) {
		if (r != before)
			log_warn("waiting for the store", "reason=\"%s\"", error.text);
		before = r;
		n_refused += r > 0;
		notify_send("WATCHDOG=1");
		nanosleep(&pause, NULL);
	}
}

void daemon_name_host(const struct settings *s, char out[HOST_NAME_MAX_BYTES + 1])
{
	snprintf(out, HOST_NAME_MAX_BYTES + 1, "%s", s->host_name);
	if (!*out && gethostname(out, HOST_NAME_MAX_BYTES) != 0)
		snprintf(out, HOST_NAME_MAX_BYTES + 1, "localhost");
	out[HOST_NAME_MAX_BYTES] = '\0';
}

/* A host that was suspended may hold a lock that a start needs. */
static int open_engine(const struct engine_opts *opts, struct engine **ret, struct error *error)
{
	enum { LOCKED_MAX_MS = 120 * 1000 };
	const struct timespec pause = {.tv_sec = 1};
	uint64_t end = clock_steady_ms() + LOCKED_MAX_MS;
	int r;

	while ((r = engine_open(opts, ret, error)) == -EBUSY && clock_steady_ms() < end) {
		log_warn("waiting for locks of other hosts", "reason=\"%s\"", error->text);
		nanosleep(&pause, NULL);
	}
	return r;
}

int daemon_open_engine(struct daemon *d, struct error *error)
{
	char url[PATH_LEN + 16], host[HOST_NAME_MAX_BYTES + 1], accepted[PATH_LEN + 16];
	const struct engine_opts opts = {
		.accepted = accepted,
		.store = url,
		.host = host,
		.n_readers = N_READERS,
	};
	int r = daemon_accepted(d->settings, accepted, sizeof(accepted));

	daemon_name_host(d->settings, host);
	settings_store_url(d->settings, url, sizeof(url));
	r = r ?: open_engine(&opts, &d->engine, error) ?: make_own_folder(d->settings, error);
	if (r == 0)
		error->text[0] =
			'\0'; /* the sentence may describe an attempt that did not matter */
	d->server->opts.engine = d->engine;
	d->server->opts.workers.arg = d->engine;
	d->hosts.means.engine = d->engine;
	r = r ?: server_workers(d->server, &d->workers);
	d->hosts.means.workers = d->workers;
	return r;
}

int daemon_beside_store(const struct daemon *d, const char *ending, char *out)
{
	char path[PATH_LEN], folder[PATH_MAX];
	char *name;
	int n;

	settings_beside_store(d->settings, path, sizeof(path));
	name = strrchr(path, '/');
	if (name)
		*name++ = '\0';
	if (!realpath(name ? path : ".", folder))
		return -errno;
	n = snprintf(out, PATH_MAX, "%s/%s%s", folder, name ? name : path, ending);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* ---- hosts that share it ---- */

int node_begin(struct daemon *d, struct error *error)
{
	const struct settings *s = d->settings;
	struct engine *engine = d->engine;
	char name[HOST_NAME_MAX_BYTES + 1];
	const struct node_opts opts = {
		.store = engine->store,
		.loop = d->loop,
		.name = name,
		.labels = s->host_labels,
		.version = KOINE_VERSION,
		.lease_ms = s->host_lease_ms,
		.parallel = s->tasks.parallel,
		.owner = s->programs ? store_owner(engine->store) : NULL,
	};

	daemon_name_host(s, name);
	return node_start(&opts, &engine->node, error);
}

/* ---- events ---- */

int events_begin(struct daemon *d)
{
	const struct settings *s = d->settings;
	struct engine *engine = d->engine;
	const struct events_opts opts = {
		.store = engine->store,
		.loop = d->loop,
		.host = node_name(engine->node),
		.on_commit = engine->node ? node_announce : NULL,
		.commit_arg = engine->node,
		.workers = d->workers,
		.keep_ms = s->events_keep_days * day_ms,
		.keep = s->events_keep,
	};

	int r = events_start(&opts, &engine->events);

	if (r == 0) {
		node_on_stale(engine->node, stop_to_start_anew, d);
		node_hear_events(engine->node, engine->events);
	}
	return r;
}

/* ---- tasks ---- */

static unsigned group_limits(const struct task_settings *t, struct task_group_limit *out)
{
	for (unsigned i = 0; i < t->n_groups; i++)
		out[i] = (struct task_group_limit) {t->groups[i].name, t->groups[i].parallel};
	return t->n_groups;
}

/* Dialects may bring tasks of their own; they must be in the store before tasks are read from
 * it. */
static int open_dialects(struct daemon *d, const char *folder, struct error *error)
{
	struct dialect_means *means = &d->hosts.means;
	int r;

	means->task_folder = folder;
	means->task_bytes = (int64_t)d->settings->tasks.output_bytes;
	r = hosts_step(&d->hosts, DIALECT_OPEN, error);
	means->task_folder = NULL;
	return r;
}

int tasks_begin(struct daemon *d, struct error *error)
{
	const struct task_settings *s = &d->settings->tasks;
	struct engine *engine = d->engine;
	struct task_group_limit groups[GROUPS_MAX];
	char folder[PATH_MAX];
	const struct tasks_opts opts = {
		.store = engine->store,
		.events = engine->events,
		.chat = engine->chat,
		.node = engine->node,
		.loop = d->loop,
		.workers = d->workers,
		.output_folder = folder,
		.parallel = s->parallel,
		.project_parallel = s->project_parallel,
		.queue = s->queue,
		.timeout_ms = s->timeout_ms,
		.output_bytes = (int64_t)s->output_bytes,
		.keep_ms = s->keep_days * day_ms,
		.interrupt_ms = s->interrupt_ms,
		.runner = s->runner,
		.env = &d->environments.tasks,
		.wording = dialects_first(offsetof(struct dialect_life, task_wording)),
		.groups = groups,
		.n_groups = group_limits(s, groups),
	};

	return daemon_beside_store(d, ".tasks", folder)
		?: trust_new(engine->store, engine->events, &engine->trust)
		?: trust_follow(engine->trust, d->loop, d->workers)
		?: page_sessions_new(&engine->page_sessions)
		?: open_dialects(d, folder, error)
		?: tasks_start(&opts, &engine->tasks, error);
}

/* ---- approvals ---- */

static enum approval_verdict verdict_of(const char *word)
{
	return strcmp(word, "allow") == 0  ? VERDICT_ALLOW
	       : strcmp(word, "deny") == 0 ? VERDICT_DENY
					   : VERDICT_ASK;
}

static unsigned make_rules(const struct approval_settings *a, struct approval_rule *out)
{
	for (unsigned i = 0; i < a->n_policies; i++) {
		const struct policy_setting *p = &a->policies[i];

		out[i] = (struct approval_rule) {
			.name = p->name,
			/* settings_check has checked that there is one. */
			.verdict = verdict_of(policy_setting_get(p, POLICY_VERDICT)),
			.agent = policy_setting_get(p, POLICY_AGENT),
			.tool = policy_setting_get(p, POLICY_TOOL),
			.input = policy_setting_get(p, POLICY_INPUT),
			.comment = policy_setting_get(p, POLICY_COMMENT),
		};
	}
	return a->n_policies;
}

static void on_wait(void *arg, struct text session, int change)
{
	struct engine *engine = arg;

	session_wait(engine->sessions, session, change);
}

int approvals_begin(struct daemon *d, struct error *error)
{
	const struct approval_settings *s = &d->settings->approvals;
	struct engine *engine = d->engine;
	struct approval_rule rules[POLICIES_MAX];
	const struct approvals_opts opts = {
		.store = engine->store,
		.events = engine->events,
		.node = engine->node,
		.loop = d->loop,
		.workers = d->workers,
		.pending = s->pending,
		.timeout_ms = s->timeout_ms,
		.keep_ms = s->keep_days * day_ms,
		.agents_decide = s->agents_decide,
		.rules = rules,
		.n_rules = make_rules(s, rules),
		.on_wait = on_wait,
		.arg = engine,
	};

	return approvals_start(&opts, &engine->approvals, error);
}

/* ---- sessions ---- */

int sessions_begin(struct daemon *d)
{
	const struct session_settings *s = &d->settings->sessions;
	struct engine *engine = d->engine;
	char folder[PATH_MAX];
	const struct sessions_opts opts = {
		.store = engine->store,
		.events = engine->events,
		.chat = engine->chat,
		.approvals = engine->approvals,
		.node = engine->node,
		.loop = d->loop,
		.workers = d->workers,
		.folder = folder,
		.program = s->program,
		.runner = s->runner,
		.env = &d->environments.sessions,
		.parallel = s->parallel,
		.interrupt_ms = s->interrupt_ms,
		.terminate_ms = s->terminate_ms,
		.keep_bytes = (int64_t)s->keep_bytes,
		.keep_ms = s->keep_days * day_ms,
		.silence_ms = s->silence_ms,
		.wording = dialects_first(offsetof(struct dialect_life, session_wording)),
		.to_json = tree_json,
	};

	return daemon_beside_store(d, ".sessions", folder)
		       ?: sessions_start(&opts, &engine->sessions);
}

/* ---- facts by an agent ---- */

int extracts_begin(struct daemon *d, struct error *error)
{
	const struct settings *s = d->settings;
	const struct extracts_opts opts = {
		.store = d->engine->store,
		.node = d->engine->node,
		.chat = d->engine->chat,
		.memories = d->engine->memories,
		.loop = d->loop,
		.workers = d->workers,
		.agent = s->extract,
		.idle_ms = (int64_t)s->extract_idle_s * 1000,
		.held = s->extract_review == EXTRACT_BEFORE,
	};

	if (!s->extract[0] || !s->memory_enabled)
		return 0;
	return extracts_start(&opts, &d->engine->extracts, error);
}

/* ---- settings that were read again ---- */

static void set_parallel(struct tasks *t, const char *group, unsigned parallel)
{
	struct error error = {.text = ""};
	int r = tasks_set_parallel(t, group ? text_of(group) : (struct text) {0}, parallel, &error);

	if (r != 0)
		log_warn("could not set the limit of running tasks",
			 "group=%s limit=%u reason=\"%s\"", group ? group : "all", parallel,
			 error_words(r, &error));
}

void tasks_reload(struct daemon *d, const struct settings *fresh)
{
	const struct task_settings *was = &d->settings->tasks, *now = &fresh->tasks;
	struct tasks *t = d->engine->tasks;

	if (was->parallel != now->parallel)
		set_parallel(t, NULL, now->parallel);
	if (was->project_parallel != now->project_parallel)
		(void)tasks_add_project(t,
					&(struct task_project) {.parallel = now->project_parallel});
	for (unsigned i = 0; i < was->n_groups; i++) {
		if (!section_find(&group_section, fresh, was->groups[i].name))
			set_parallel(t, was->groups[i].name, 0);
	}
	for (unsigned i = 0; i < now->n_groups; i++) {
		const struct group_setting *g =
			section_find(&group_section, d->settings, now->groups[i].name);

		if (!g || g->parallel != now->groups[i].parallel)
			set_parallel(t, now->groups[i].name, now->groups[i].parallel);
	}
}

void engine_reload(struct daemon *d)
{
	const struct settings *s = d->settings;
	struct approval_rule rules[POLICIES_MAX];

	events_set_keep(d->engine->events, s->events_keep_days * day_ms, s->events_keep);
	approvals_set_rules(d->engine->approvals, rules, make_rules(&s->approvals, rules));
}

enum { JSON_MAX = 8 << 20 };

int tree_json(struct arena *a, const struct value *v, struct text *ret_text)
{
	struct buf out;
	struct json j;
	char *copy;
	int r;

	buf_init(&out, JSON_MAX);
	j = json_writer(&out);
	json_value(&j, v);
	r = out.err;
	copy = r == 0 ? arena_copy(a, out.data, out.len) : NULL;
	if (copy)
		*ret_text = (struct text) {.data = copy, .len = out.len};
	buf_done(&out);
	return copy ? 0 : r ?: -ENOMEM;
}
