/* The token that clients of a port must show. */
#include <string.h>

#include "base/secret.h"
#include "daemon/daemon.h"

int token_read(const char *file, char *out, size_t size, struct why *why)
{
	int r = secret_read(file, "token", out, size, why);

	if (r != 0)
		return r;
	if (strlen(out) < 16 || strlen(out) > 200)
		return refuse(why, REFUSE_PARAMS,
			      "the token in %.100s must have 16 to 200 characters", file);
	return 0;
}
