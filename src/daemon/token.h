/* The tokens that HTTP clients must present. */
#pragma once

#include <stddef.h>

#include "base/why.h"

struct dialect;
struct settings;

/* The token of a dialect: its own, or that of koine.token_file unless the dialect only accepts
 * its own. "": none. A token file must be private. */
int token_read(const struct settings *s, const struct dialect *d, char *out, size_t size,
	       struct why *why);

/* Makes the file of a dialect whose life says so, unless the settings name one or "off". */
int token_make(const struct settings *s, const struct dialect *d, char *out, size_t size,
	       struct why *why);

/* Where the token is that only this dialect has; "": none, or it is not in a file. */
void token_find_file(const struct settings *s, const struct dialect *d, char *out, size_t size);

/* Only its own; only that of koine.token_file. */
int token_read_own(const struct settings *s, const struct dialect *d, char *out, size_t size,
		   struct why *why);
int token_read_common(const struct settings *s, char *out, size_t size, struct why *why);
