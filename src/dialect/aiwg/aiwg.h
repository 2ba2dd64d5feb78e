/*
 * aiwg: a project's command line and editors, which hand tasks to a supervisor of agents.
 * Newline-delimited JSON-RPC on a socket in the project's own folder; every connected client
 * is told whatever happens to the project's tasks.
 *
 * Each endpoint serves one project: its settings are a struct aiwg_project. On koine's socket
 * the same methods serve all projects.
 */
#pragma once

#include "base/schema.h"
#include "base/setting.h"
#include "call/call.h"
#include "call/dialect.h"
#include "engine/task/task.h"

struct automation;
struct dialect_life;
struct dialect_section;
struct endpoint;
struct server;
struct engine;

extern const struct dialect aiwg_dialect;

/* Why a task has failed, in the words that its clients show. */
extern const struct task_wording aiwg_task_wording;

/* project.c: [project] in the settings, and the dialect's part in the daemon's life. */
extern const struct dialect_section aiwg_section;
extern const struct dialect_life aiwg_life;

struct aiwg_settings {
	char webhooks[PATH_LEN]; /* where rules of projects may call; "": nowhere */
	unsigned rules;          /* how many of one project are used */
};

/* A job of the project's schedule. */
struct aiwg_job {
	struct text id;
	int64_t fired_ms; /* 0: not yet */
};

/* The project that an endpoint serves. Its owner changes it while it runs, on the loop. */
struct aiwg_project {
	struct text folder; /* absolute */
	bool watches;       /* its files are watched */
	const struct text *paths;
	unsigned n_paths;
	uint64_t n_changes; /* changes seen so far */
	bool schedules;
	const struct aiwg_job *jobs;
	unsigned n_jobs;
};

/* The folder whose tasks a call is about: that of its socket, or on koine's socket the one that
 * the call names, or {NULL, 0}. */
struct text aiwg_folder(const struct call *c, const struct value *named);

/* ---- params.c: parameters as the original accepts and refuses them ---- */

int aiwg_explain_field(const struct field *f, const struct value *v, struct error *error);

/* Whether JavaScript treats it as false: absent, null, false, 0, "". */
bool aiwg_is_nothing(const struct value *v);

/* Reads a limit: a number, a string of digits, or nothing (0). Refuses negative numbers and
 * anything else. */
int aiwg_read_limit(const struct value *v, int64_t *ret_limit, struct error *error);

/* ---- task.c ---- */

/* Which members of a task are written. */
enum {
	AIWG_TASK = MEMBER_OWN,
	AIWG_RUNNING = MEMBER_OWN << 1,
	AIWG_QUEUED = MEMBER_OWN << 2,
	AIWG_METADATA = MEMBER_OWN << 3,
	AIWG_FOLDERS = MEMBER_OWN << 4, /* koine's own clients only */
};

/* Node's words for a program that could not be started. False: the error says something else. */
enum { AIWG_UNSTARTED = 128 };
bool aiwg_word_unstarted(struct text error, int64_t exit_status, char out[AIWG_UNSTARTED]);

void aiwg_write_task(struct json *j, const struct task *t, uint32_t members);

/* ---- status.c ---- */

/* ISO time, or null for 0. */
void aiwg_write_time(struct json *j, const char *key, int64_t ms);

/* The object `subsystems` of daemon.status; covers all projects if the folder is {NULL, 0}. */
void aiwg_write_subsystems(struct json *j, const struct server *server, struct text folder);

/* Writes state.json as the original does, for programs that read it while no daemon answers. */
void aiwg_write_state(struct json *j, const struct endpoint *e, const char *health);

/* The object that automation.status answers. */
void aiwg_write_automation(struct json *j, struct engine *s, struct text folder);

/* ---- event.c: events for every client of a project ---- */

struct aiwg_teller;

/* Call it after the engine has started. The endpoint must outlive the teller. */
int aiwg_teller_start(struct endpoint *e, struct aiwg_teller **ret_teller);
void aiwg_teller_free(struct aiwg_teller *t); /* accepts NULL */

/* Sends event.daemonStopping to all clients but the one whose call is being answered. */
void aiwg_tell_stopping(struct server *s);

/* ---- handlers ---- */

struct aiwg_submit_in {
	struct text prompt; /* for chat.send, the message */
	struct text agent;
	double priority;
	const struct value *project;
};

struct aiwg_task_in {
	struct text id;
	const struct value *project;
};

struct aiwg_list_in {
	const struct value *state;
	const struct value *limit;
	const struct value *project;
};

/* For methods without other parameters. */
struct aiwg_project_in {
	const struct value *project;
};

struct aiwg_rule_in {
	struct text id;
	const struct value *project;
};

struct done aiwg_daemon_status(struct call *c);
struct done aiwg_task_submit(struct call *c);
struct done aiwg_task_cancel(struct call *c);
struct done aiwg_task_list(struct call *c);
struct done aiwg_task_get(struct call *c);
struct done aiwg_task_stats(struct call *c);
struct done aiwg_automation_status(struct call *c);
struct done aiwg_automation_switch(struct call *c);
struct done aiwg_chat_send(struct call *c);
