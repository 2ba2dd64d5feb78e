/* The user's editor: that of VISUAL, else of EDITOR, else vi. */
#pragma once

#include <stddef.h>

#include "base/text.h"

struct edited_text {
	const char *name; /* a word of the file's name */
	struct text before;
	size_t max; /* bytes that may come back */
	/* Takes what came back, if it is not the same. 0 or an exit code. */
	int (*send)(void *arg, struct text after);
	void *arg;
};

/* Lets the user change a text. What was typed is never thrown away: its file stays if it cannot be
 * sent. 0 or an exit code. */
int editor_change(const struct edited_text *t);
