/* Where the candidates of each kind come from: the tables, or the daemon. */
#pragma once

#include "cli/complete/offers.h"
#include "cli/kit/cli.h"

/* Offers all of that kind. Nothing is said, and nothing offered, where there is no daemon. */
void source_offer(struct cli *cli, enum completes what, struct offers *offers);

/* Commands: all of them (NULL), or the subs of one. */
void offer_commands(const struct cli *cli, const struct command *of, struct offers *offers);
