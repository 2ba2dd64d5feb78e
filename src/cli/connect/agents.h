/*
 * The agents that koine connects, one row each: their files, and what is put into them.
 *
 * A path begins with "~", or with "{VARIABLE|DEFAULT}". In a value stand for words of this
 * machine: %c the program, %a its arguments as a list, %l both in one list; %h the line of a hook
 * that waits for a human, and %t the time that it has, in the agent's own unit; %n and %s the same
 * of a hook that only tells koined of something. With --http: %u where koined takes hooks, %w the
 * headers of a hook that waits, and %x of one that only tells.
 */
#pragma once

#include "cli/connect/edit.h"

enum { AGENT_PROGRAMS_MAX = 2, AGENT_FILES_MAX = 2, AGENT_EDITS_MAX = 10, AGENT_OFF_MAX = 6 };

struct agent_edit {
	const char *path;
	const char *value;
	enum edit_kind kind;
	bool gate; /* only with --gate */
	bool stays;
	const char *http; /* the value with --http; NULL: the same */
};

/* A setting by which users switch off what koine has put into the file. */
struct agent_off {
	const char *path;  /* keys with slashes between them; "*" is any */
	const char *value; /* the setting's value, or an element of its list */
	const char *what;  /* is switched off */
	const char *file;  /* another one, of JSON, that has it; or NULL */
	bool allows;       /* a list that has something, but not this */
};

struct agent_file {
	const char *user;
	const char *project;       /* NULL: none that the agent reads */
	const char *other;         /* the same by another name, if it exists; or NULL */
	const char *project_other; /* or NULL */
	const struct editor *by;
	struct agent_edit edits[AGENT_EDITS_MAX];
	struct agent_off off[AGENT_OFF_MAX]; /* ends with a NULL path, if not full */
};

struct agent {
	const char *name;
	const char *title;
	const char *programs[AGENT_PROGRAMS_MAX];
	const char *folder;    /* it exists if the agent was ever used */
	bool measured;         /* tried with the agent itself; otherwise by its documentation */
	bool cuts_environment; /* of what it starts: the socket must be told */
	bool posts;            /* it can send its hooks by HTTP: --http */
	unsigned ticks;        /* of its time limits, in a second */
	/* Where its first file has the hashes of the hooks in its second that it may run, as
	 * trust.h says; or NULL. */
	const char *trust;
	const char *trust_note; /* said when hooks were written that it will not run; or NULL */
	const char *note;       /* said when anything was written; or NULL */
	struct agent_file files[AGENT_FILES_MAX];
};

/* How long a hook may take, and how long it waits: a little less. */
enum {
	HOOK_SECONDS = 600,
	HOOK_WAIT_SECONDS = 590,
	TOLD_SECONDS = 10,
	TOLD_WAIT_SECONDS = 5,
};

/* The last has no name. */
extern const struct agent agents[];

/* NULL: none. */
const struct agent *agent_find(const char *name);
