/*
 * A rule: when something happens, do something. Its schema says how its members are shown. Beside it are the jobs,
 * which are schedules of clients, and the projects whose rules are trusted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/schema.h"
#include "model/event.h"

enum rule_trigger { TRIGGER_CRON, TRIGGER_EVERY, TRIGGER_FILES, TRIGGER_EVENT };
enum rule_action { ACTION_TASK, ACTION_COMMAND, ACTION_WEBHOOK, ACTION_DESKTOP };
enum rule_catch_up { CATCH_UP_NONE, CATCH_UP_ONE, CATCH_UP_ALL };

struct rule {
	struct text id;
	struct text project; /* {NULL, 0}: none */
	struct text where;   /* "FILE:LINE", for complaints */
	bool disabled;       /* as it was given */
	struct text description;
	enum rule_trigger trigger;
	struct text cron; /* TRIGGER_CRON */
	struct text zone;
	int64_t every_ms; /* TRIGGER_EVERY */
	enum rule_catch_up catch_up;
	struct texts paths;      /* TRIGGER_FILES: folders, absolute */
	struct texts ignore;     /* names to skip, as globs */
	struct texts extensions; /* ".c"; none: any file */
	int64_t debounce_ms;
	/* TRIGGER_EVENT: everything given must match. The event is {type, source, payload}. */
	struct text type; /* equal, or a glob ("task.*") by koine's own rules */
	struct text source;
	struct text pattern; /* a regular expression over "type:source" */
	bool not_logged;     /* only what automation_event reports, not the log */
	const struct event_condition *conditions;
	unsigned n_conditions;
	enum rule_action action;
	struct text prompt; /* ACTION_TASK, with {{a.b}} of the event in it */
	struct text agent;
	struct text runner;
	struct text group;
	double priority;
	struct text command; /* ACTION_COMMAND, run by /bin/sh with the event in KOINE_EVENT_… */
	struct text url;     /* ACTION_WEBHOOK: POSTs the event as JSON */
	struct text message; /* ACTION_DESKTOP, with {{a.b}} */
	int64_t cooldown_ms;
	bool needs_approval;
	bool forbidden; /* it calls an address that our settings do not allow: refused */
	/* Trigger and action as they were written, for display; NULL: as they are here. */
	const struct value *written_trigger;
	const struct value *written_action;

	/* Its current state. */
	bool enabled;     /* set by hand, or as it was given */
	int64_t fired_ms; /* 0: never */
	int64_t next_ms;  /* for a schedule; 0: none */
	int64_t n_fired;
};

/* Flags of its members: which part of a rule they are. */
enum {
	RULE_NAME = MEMBER_OWN,          /* its name */
	RULE_STATE = MEMBER_OWN << 1,    /* its current state */
	RULE_LIMITS = MEMBER_OWN << 2,   /* what keeps it from acting */
	RULE_TRIGGERS = MEMBER_OWN << 3, /* four flags, one for each trigger */
	RULE_ACTIONS = MEMBER_OWN << 7,  /* four flags, one for each action */
};

#define RULE_OF_TRIGGER(trigger) ((uint32_t)RULE_TRIGGERS << (trigger))
#define RULE_OF_ACTION(action)   ((uint32_t)RULE_ACTIONS << (action))

/* The same, for tables. */
enum {
	RULE_IF_CRON = RULE_OF_TRIGGER(TRIGGER_CRON),
	RULE_IF_EVERY = RULE_OF_TRIGGER(TRIGGER_EVERY),
	RULE_IF_FILES = RULE_OF_TRIGGER(TRIGGER_FILES),
	RULE_IF_EVENT = RULE_OF_TRIGGER(TRIGGER_EVENT),
	RULE_DOES_TASK = RULE_OF_ACTION(ACTION_TASK),
	RULE_DOES_COMMAND = RULE_OF_ACTION(ACTION_COMMAND),
	RULE_DOES_WEBHOOK = RULE_OF_ACTION(ACTION_WEBHOOK),
	RULE_DOES_DESKTOP = RULE_OF_ACTION(ACTION_DESKTOP),
};

extern const struct schema rule_schema;

/* What its action works with: the prompt, command, address or message. */
struct text rule_subject(const struct rule *r);

/* Bytes of a command's output that are kept: the last ones. */
enum { RULE_OUTPUT_MAX = 4 << 10 };

/* What a rule did. */
struct rule_execution {
	struct text rule;
	struct text project;
	struct text event_type;
	struct text status; /* submitted, notified, webhook_sent, command_run, denied_by_approver,
			 * approval_expired, approval_superseded, skipped_no_approver,
			 * skipped_too_many_waiting, skipped_no_desktop, error */
	int64_t time_ms;
	struct text task;  /* {NULL, 0}: none */
	struct text error; /* {NULL, 0}: none */
	/* Of a program: */
	int64_t exit_status;  /* -1: none */
	int64_t signal;       /* 0: none */
	int64_t duration_ms;  /* -1: no program ran */
	struct text output;   /* the end of what it printed; {NULL, 0}: nothing */
	int64_t output_bytes; /* all that it printed */
};

extern const struct schema rule_execution_schema;

/* What a restart must preserve of a rule. */
struct rule_memory {
	struct text name; /* see rule_key */
	int64_t fired_ms; /* 0: never */
	int64_t enabled;  /* 1, 0, or -1: as the settings say */
	int64_t n_fired;  /* when storing: how many more */
};

extern const struct schema rule_memory_schema;

/* A job: a schedule that a client made at run time, as the store has it. */

struct job {
	struct text id;
	struct packed data; /* what its client specified, an object */
	int64_t created_ms;
	int64_t updated_ms;
};

extern const struct schema job_schema;

/* A record that a project was trusted, with the state of its file then. */

struct project_trust {
	struct text folder;
	struct text digest; /* of the file that was trusted */
	int64_t trusted_ms;
};

extern const struct schema trust_schema;
