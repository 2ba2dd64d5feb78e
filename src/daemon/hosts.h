/* The dialects in this daemon: what each of them has here, and its part in a start and a stop. */
#pragma once

#include "daemon/dialects.h"
#include "daemon/environments.h"
#include "daemon/settings/settings.h"

enum { TOKEN_MAX = 256 };

struct hosts {
	struct dialect_means means;
	struct dialect_host list[DIALECTS_MAX]; /* as in the array of dialects */
	char tokens[DIALECTS_MAX][TOKEN_MAX];   /* "": none */
};

/* Call it before anything is opened; a refusal means a wrong setting. The hosts and `env` must not
 * move afterwards. */
int hosts_prepare(struct hosts *h, const struct settings *s, struct environments *env,
		  struct why *why);

/* NULL for none. */
const char *hosts_token(const struct hosts *h, const struct dialect *d);

/* As in dialect/life.h, for all dialects; the first failure ends it. */
int hosts_listening(struct hosts *h, const char *project, struct endpoint *e);
int hosts_open(struct hosts *h);
int hosts_start(struct hosts *h, struct why *why);
void hosts_reload(struct hosts *h, const struct settings *fresh);
void hosts_stopping(struct hosts *h);
void hosts_stopped(struct hosts *h);
void hosts_free(struct hosts *h);
