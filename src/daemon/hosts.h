/* The dialects in this daemon: the state of each, and its part in starting and stopping. */
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

/* Once the store is there: makes the token of a dialect that has one made for it. */
int hosts_make_token(struct hosts *h, const struct settings *s, const struct dialect *d,
		     struct why *why);

/* NULL for none. */
const char *hosts_token(const struct hosts *h, const struct dialect *d);

/* Notifies the endpoint's dialect. */
int hosts_listening(struct hosts *h, const char *project, struct endpoint *e);

/* Runs this step for each dialect; the first failure ends it. */
int hosts_step(struct hosts *h, enum dialect_step step, struct why *why);

struct reload_listener;

/* The settings were read again; renews sections that follow a reload. `report` may be NULL. */
void hosts_reload(struct hosts *h, const struct settings *fresh,
		  const struct reload_listener *report);
