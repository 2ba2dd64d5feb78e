/*
 * What connecting an agent, or taking koine out of it again, does to its files: made first, shown,
 * and only then carried out.
 */
#pragma once

#include <stdbool.h>

#include "cli/connect/edit.h"
#include "cli/connect/target.h"
#include "cli/kit/cli.h"

/* ---- agents.c ---- */

/*
 * The agents that koine connects, one row each: their files, and what is put into them.
 *
 * A path is a place (cli/kit/place.h). In a value stand for words of this
 * machine: %c the program, %a its arguments as a list, %l both in one list; %h the line of a hook
 * that waits for a human, and %t the time that it has, in the agent's own unit; %n and %s the same
 * of a hook that only tells koined of something. With --http: %u where koined takes hooks, %w the
 * headers of a hook that waits, and %x of one that only tells.
 */

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

struct connect_agent {
	const char *name;
	const char *title;
	const char *programs[AGENT_PROGRAMS_MAX];
	const char *folder;    /* it exists if the agent was ever used */
	bool measured;         /* tried with the agent itself; otherwise by its documentation */
	bool cuts_environment; /* of what it starts: the socket must be told */
	bool posts;            /* it can send its hooks by HTTP: --http */
	unsigned ticks;        /* of its time limits, in a second */
	/* Where its first file has the hashes of the hooks in its second that it may run, as
	 * trust.c says; or NULL. */
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
extern const struct connect_agent agents[];

/* NULL: none. */
const struct connect_agent *agent_find(const char *name);

/* ---- words.c ---- */

/* What the words of an agent's row, %c and the like, stand for on this machine. */

/* Where koined itself takes hooks: the port that it has for MCP, and the token of that. */
struct door {
	char url[160]; /* "http://127.0.0.1:8766/hook" */
	bool held;     /* by a socket unit, so that nobody else can take it while koined is away */
	char token[256]; /* "": it wants none */
};

/* Asks the daemon. 0 or an exit code; it has complained then, unless it was to be quiet. */
int door_find(struct cli *cli, bool quiet, struct door *ret);

struct connect_words {
	char program[PATH_MAX];
	char socket[PATH_MAX];   /* "": koine finds it by itself */
	const struct door *door; /* NULL: hooks are commands */
	bool starts;             /* koine mcp starts koined */
};

/*
 * Where koine and its socket are. In a project's files, which others have, too, the program is
 * named and not placed, and the socket is named only if --socket was given. 0 or an exit code; it
 * has complained then.
 */
int words_find(const struct cli *cli, const struct connect_agent *agent, bool is_shared,
	       struct connect_words *w);

/* Whether koine mcp must start koined: it is the user's own, and no service manager runs it. */
bool words_need_start(const struct cli *cli);

/* The value of a row. NULL: out of memory; the caller frees it. */
char *words_fill(const struct connect_words *w, const struct connect_agent *agent,
		 const char *value);

/* ---- plan.c ---- */

enum { TRUSTS_MAX = 8, PLAN_EDITS_MAX = AGENT_EDITS_MAX + TRUSTS_MAX };

/* Whether the agent will run the hooks that are to be written. */
enum plan_trust {
	TRUST_NOT_NEEDED,
	TRUST_UNKNOWN, /* its user must say so in the agent itself */
	TRUST_GIVEN,   /* among what is to be written, or already there */
};

struct plan_file {
	const struct agent_file *row;
	struct target target;
	struct edit edits[PLAN_EDITS_MAX]; /* all of the row's, those of --gate last; trust */
	unsigned n_edits;                  /* all */
	unsigned n_wanted;                 /* without those of --gate, unless it was given */
	struct buf after;
	bool changes;
	bool removes; /* nothing of it was there before us */
	bool backs_up;
	bool has_hooks; /* among what changes */
	bool has_ours;  /* something of ours is in it now */
};

struct connect_plan {
	const struct connect_agent *agent;
	const char *project; /* NULL: user-wide */
	bool gate;
	bool undo;
	bool starts;             /* koine mcp starts koined, where no service manager does */
	const struct door *door; /* for hooks by HTTP; NULL: they are commands */
	bool quiet;              /* does not complain of a file, but tells in `error` */
	struct error error;
	bool asks; /* the agent's program, where it alone can tell what must be written */
	enum plan_trust trust;
	struct plan_file files[AGENT_FILES_MAX];
	unsigned n;
};

/* 0 or an exit code; it has complained then. Call plan_done in any case. */
int plan_make(const struct cli *cli, struct connect_plan *p);
void plan_done(struct connect_plan *p);

bool plan_changes(const struct connect_plan *p);
/* Whether something of ours is in its files now. */
bool plan_has_ours(const struct connect_plan *p);

/* Whether any of these edits is in the file; `otherwise` if that cannot be told. */
bool plan_file_has(const struct plan_file *f, const struct edit *edits, unsigned n, bool otherwise);

/* Writes. 0 or an exit code, as above. */
int plan_carry_out(struct connect_plan *p);

/* Works out what becomes of a file, by its edits. 0 or as they say. */
int plan_work_out(const struct connect_plan *p, struct plan_file *f, struct error *error);

/* Adds to the first file what lets the agent run the hooks of the second. 0 or an exit code. */
int plan_add_trust(const struct cli *cli, struct connect_plan *p);
