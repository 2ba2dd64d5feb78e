/* koine events: what its files share. */
#pragma once

#include "cli/kit/cli.h"

/* Prints one event as the options say: a line for people, or a JSON object. */
void event_print(const struct cli *cli, const struct koine_value *event);

/* Prints that so many are no longer kept. */
void event_print_gone(const struct cli *cli, int64_t n);
