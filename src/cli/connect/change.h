/* A change to a text, shown line by line with a few lines around it. */
#pragma once

#include "base/text.h"
#include "cli/kit/cli.h"

void change_print(const struct cli *cli, const char *path, struct text before, struct text after);

/* Asks whether to write what was shown. 0, or the exit code of leaving everything as it is. */
int change_ask(const struct cli *cli);
