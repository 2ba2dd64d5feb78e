#include "daemon/life.h"

#include <errno.h>
#include <string.h>

static const struct dialect_life *life_of(const struct dialect_host *h)
{
	static const struct dialect_life none;

	return h->dialect->life ? h->dialect->life : &none;
}

/* A copy: the settings may be read again. */
static int copy_settings(struct dialect_host *h, const struct settings *s)
{
	const struct dialect_section *section = h->dialect->section;

	if (!section)
		return 0;
	h->settings = arena_alloc(h->daemon->arena, section->size);
	if (!h->settings)
		return -ENOMEM;
	memcpy(h->settings, settings_of(s, h->dialect), section->size);
	return 0;
}

int hosts_prepare(struct hosts *h, const struct settings *s, struct environments *env,
		  struct error *error)
{
	int r = 0;

	h->means.hosts = h->list;
	h->means.n_hosts = n_dialects;
	for (unsigned i = 0; r == 0 && i < n_dialects; i++) {
		h->list[i] = (struct dialect_host) {
			.dialect = dialects[i],
			.daemon = &h->means,
			.env = dialect_variables(dialects[i]) ? &env->dialects[i] : NULL,
		};
		r = copy_settings(&h->list[i], s)
			    ?: token_read(s, dialects[i], h->tokens[i], TOKEN_MAX, error);
	}
	return r != 0 ? r : hosts_step(h, DIALECT_PREPARE, error);
}

int hosts_make_token(struct hosts *h, const struct settings *s, const struct dialect *d,
		     struct error *error)
{
	char *token = h->tokens[dialect_index(d)];

	return token[0] ? 0 : token_make(s, d, token, TOKEN_MAX, error);
}

const char *hosts_token(const struct hosts *h, const struct dialect *d)
{
	const char *token = h->tokens[dialect_index(d)];

	return token[0] ? token : NULL;
}

int hosts_listening(struct hosts *h, const char *project, struct endpoint *e)
{
	struct dialect_host *host = &h->list[dialect_index(e->dialect)];

	return life_of(host)->listening ? life_of(host)->listening(host, project, e) : 0;
}

int hosts_step(struct hosts *h, enum dialect_step step, struct error *error)
{
	int r = 0;

	/* If a start failed, dialects that were not made yet are skipped. */
	for (unsigned i = 0; r == 0 && i < n_dialects && h->list[i].dialect; i++) {
		if (life_of(&h->list[i])->steps[step])
			r = life_of(&h->list[i])->steps[step](&h->list[i], error);
	}
	return r;
}

void hosts_reload(struct hosts *h, const struct settings *fresh,
		  const struct reload_listener *report)
{
	for (unsigned i = 0; i < n_dialects; i++) {
		const struct dialect_host *host = &h->list[i];
		const struct dialect_section *section = host->dialect->section;

		if (section && section->renewed)
			memcpy(host->settings, settings_of(fresh, host->dialect), section->size);
	}
	h->means.report = report;
	(void)hosts_step(h, DIALECT_RELOAD, NULL);
	h->means.report = NULL;
}
