/* What koine has put into a file is known by the program that it starts. */
#pragma once

#include <koine/koine.h>
#include <stdbool.h>

#include "base/text.h"

/* "koine", "/usr/bin/koine", "'/a b/koine' hook --timeout 590": koine itself, or its hook. */
bool ours_is_command(struct text command);

/* Whether every command in it is ours; *ret_mixed: only some are. */
bool ours_is(const struct koine_value *v, bool *ret_mixed);
