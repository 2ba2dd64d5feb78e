/*
 * What connecting an agent, or taking koine out of it again, does to its files: made first, shown,
 * and only then carried out.
 */
#pragma once

#include "cli/connect/agents.h"
#include "cli/connect/target.h"
#include "cli/connect/trust.h"
#include "cli/connect/words.h"

enum { PLAN_EDITS_MAX = AGENT_EDITS_MAX + TRUSTS_MAX };

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

struct plan {
	const struct agent *agent;
	const char *project; /* NULL: user-wide */
	bool gate;
	bool undo;
	bool starts;             /* koine mcp starts koined, where no service manager does */
	const struct door *door; /* for hooks by HTTP; NULL: they are commands */
	bool quiet;              /* does not complain of a file, but tells in `why` */
	struct why why;
	bool asks; /* the agent's program, where it alone can tell what must be written */
	enum plan_trust trust;
	struct plan_file files[AGENT_FILES_MAX];
	unsigned n;
};

/* 0 or an exit code; it has complained then. Call plan_done in any case. */
int plan_make(const struct cli *cli, struct plan *p);
void plan_done(struct plan *p);

bool plan_changes(const struct plan *p);

/* Writes. 0 or an exit code, as above. */
int plan_carry_out(struct plan *p);

/* Works out what becomes of a file, by its edits. 0 or as they say. */
int plan_work_out(const struct plan *p, struct plan_file *f, struct why *why);

/* Adds to the first file what lets the agent run the hooks of the second. 0 or an exit code. */
int plan_add_trust(const struct cli *cli, struct plan *p);

/* Whether a variable says where a row's file is. */
bool plan_is_moved(const char *row);

/* A row's path on this machine, and the folder that it must not leave. False: there is no home. */
bool plan_path(const char *row, char path[PATH_MAX], char base[PATH_MAX]);

/* ---- what koine connect and its list share ---- */

struct connect_options {
	const char *project; /* "": none was given */
	bool yes;
	bool dry_run;
	bool undo;
	bool gate;
	bool http;
};

/* Bare `koine connect`: which agents there are, and what is connected. */
int connect_list(struct cli *cli, const char *project);
