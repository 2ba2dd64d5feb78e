/* The tokens that HTTP's clients must show. */
#pragma once

#include <stddef.h>

#include "base/why.h"

struct dialect;
struct settings;

/* That of a dialect: its own, else koine.token_file's where that is for it; "" for none. A file must
 * be private. */
int token_read(const struct settings *s, const struct dialect *d, char *out, size_t size,
	       struct why *why);

/* Its own alone; and that of koine.token_file. */
int token_read_own(const struct settings *s, const struct dialect *d, char *out, size_t size,
		   struct why *why);
int token_read_common(const struct settings *s, char *out, size_t size, struct why *why);
