#include <stddef.h>

#include "cli/screen/terminal.h"

const struct terminal *const terminal_curses = NULL;
