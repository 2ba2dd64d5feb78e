#include "daemon/token.h"

#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "base/text.h"
#include "daemon/dialects.h"
#include "daemon/settings/settings.h"

enum { SHORTEST = 16, LONGEST = 200 };

static int read_file(const char *file, char *out, size_t size, struct why *why)
{
	int r = secret_read(file, "token", out, size, why);

	if (r != 0)
		return r;
	if (strlen(out) < SHORTEST || strlen(out) > LONGEST)
		return refuse(why, REFUSE_PARAMS,
			      "the token in %.100s must have 16 to 200 characters", file);
	return 0;
}

/* White space around the token does not count; a script may have left some. */
static int read_variable(const char *name, char *out, size_t size, struct why *why)
{
	const char *value = getenv(name);
	size_t n;

	if (!value)
		return 0;
	value += strspn(value, " \t\r\n");
	n = strlen(value);
	while (n > 0 && strchr(" \t\r\n", value[n - 1]))
		n--;
	if (n > LONGEST || n >= size)
		return refuse(why, REFUSE_PARAMS, "%s is longer than 200 characters", name);
	memcpy(out, value, n);
	out[n] = '\0';
	return 0;
}

int token_read_own(const struct settings *s, const struct dialect *d, char *out, size_t size,
		   struct why *why)
{
	const struct dialect_token *token = d->life ? d->life->token : NULL;
	const char *file = token ? (const char *)settings_of(s, d) + token->file : "";

	out[0] = '\0';
	if (file[0])
		return read_file(file, out, size, why);
	return token && token->variable ? read_variable(token->variable, out, size, why) : 0;
}

int token_read_common(const struct settings *s, char *out, size_t size, struct why *why)
{
	out[0] = '\0';
	return s->token_file[0] ? read_file(s->token_file, out, size, why) : 0;
}

int token_read(const struct settings *s, const struct dialect *d, char *out, size_t size,
	       struct why *why)
{
	bool only = d->life && d->life->token && d->life->token->only;
	int r = token_read_own(s, d, out, size, why);

	return r != 0 || out[0] || only ? r : token_read_common(s, out, size, why);
}
