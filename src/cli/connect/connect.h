/* koine connect: what its files share. */
#pragma once

#include "cli/connect/plan.h"

struct connect_options {
	const char *project; /* "": none was given */
	bool yes;
	bool dry_run;
	bool undo;
	bool gate;
	bool http;
};

/* The project's folder, links followed; project is NULL without --project. 0 or an exit code. */
int connect_project(const struct connect_options *o, char folder[PATH_MAX], const char **ret);

/* Bare `koine connect`: which agents there are, and what is connected. */
int connect_list(struct cli *cli, const char *project);
