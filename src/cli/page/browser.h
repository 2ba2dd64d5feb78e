/* Opening a link of the page in the user's browser. */
#pragma once

#include <stdbool.h>

/* Whether there is a display to open one at. */
bool browser_may_open(void);

/*
 * Nothing waits for the browser, and it outlives us. The link lets in whoever has it, and everybody
 * can read our arguments, so the browser is given a file of ours (0600) that leads there. False: it
 * could not be written, or the browser is packaged so that it cannot read it; the user must open the
 * link then.
 */
bool browser_open(const char *link);
