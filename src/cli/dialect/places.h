/*
 * Where each dialect listens, where its clients look, and who is there: as koined tells it, by
 * koined --dialects, and by daemon.status if one runs.
 */
#pragma once

#include "cli/kit/cli.h"

struct places {
	struct koine_doc *doc;       /* of koined --dialects */
	struct koine_answer *status; /* of the daemon that runs; NULL: none does */
};

/* 0 or an exit code; it has complained then. Call places_done in any case. */
int places_look(struct cli *cli, struct places *p);
void places_done(struct places *p);

/* The file with the settings, which may not exist. */
struct text places_config(const struct places *p);

/* A dialect, as koined tells it; NULL: there is none. */
const struct koine_value *places_find(const struct places *p, const char *dialect);

/* Whether it listens, or would if none runs. */
bool places_listens(const struct places *p, const struct koine_value *d);

/* The table, or the same as JSON. An exit code. */
int places_print(const struct cli *cli, const struct places *p);
