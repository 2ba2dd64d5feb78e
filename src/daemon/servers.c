/* The servers of agents that the settings name, mirrored into the inbox. */
#include <stdio.h>

#include "base/log.h"
#include "base/error.h"
#include "daemon/life.h"
#include "engine/bridge/bridge.h"

static const struct agent_server_ops *const kinds[] = {[AGENT_SERVER_OPENCODE] = &opencode_server};

static int servers_add(struct daemon *d, const struct agent_server_setting *s)
{
	const struct bridge_opts opts = {
		.ops = kinds[s->kind],
		.name = s->name,
		.url = s->url,
		.user = s->username,
		.password_env = s->password_env,
		.password_file = s->password_file,
		.idle_ms = s->idle_timeout_ms,
		.away_ms = s->away_ms,
	};

	return bridge_add(d->engine->bridges, &opts);
}

int servers_begin(struct daemon *d)
{
	const struct agent_server_settings *s = &d->settings->agent_servers;
	const struct bridges_opts opts = {
		.approvals = d->engine->approvals,
		.events = d->engine->events,
		.loop = d->loop,
		.workers = d->workers,
	};
	int r = bridges_new(&opts, &d->engine->bridges);

	for (unsigned i = 0; r == 0 && i < s->n; i++)
		r = servers_add(d, &s->list[i]);
	return r;
}

void servers_reload(struct daemon *d, const struct settings *fresh)
{
	const struct settings *old = d->settings;

	for (unsigned i = 0; i < old->agent_servers.n; i++) {
		const struct agent_server_setting *was = &old->agent_servers.list[i];
		const struct agent_server_setting *now =
			section_find(&agent_server_section, fresh, was->name);

		if (!now || !section_equal(&agent_server_section, was, now))
			bridge_remove(d->engine->bridges, was->name, now != NULL);
	}
	for (unsigned i = 0; i < fresh->agent_servers.n; i++) {
		const struct agent_server_setting *now = &fresh->agent_servers.list[i];
		const struct agent_server_setting *was =
			section_find(&agent_server_section, old, now->name);

		int r = was && section_equal(&agent_server_section, was, now) ? 0
									      : servers_add(d, now);

		if (r != 0)
			log_err("could not start bridge to agent server", "server=%s error=%s",
				now->name, fault_words(r));
	}
}

/* ---- --check ---- */

/* Whether the password is there. Whether the server answers, a running koined says. */
static int look_at(const struct agent_server_setting *s, struct error *error)
{
	return secret_check_variable(s->password_env, error)
		       ?: secret_check(s->password_file, "password", error);
}

void servers_check(const struct settings *s)
{
	for (unsigned i = 0; i < s->agent_servers.n; i++) {
		const struct agent_server_setting *a = &s->agent_servers.list[i];
		struct error error = {.text = "ok"};
		int r = look_at(a, &error);

		if (r < 0)
			refuse(&error, REFUSE_INTERNAL, "%s", fault_words(r));
		printf("would use     agent server %s (%s %s)  %s%s\n", a->name,
		       agent_server_kind_word(a->kind), a->url, r != 0 ? "not available: " : "",
		       error.text);
	}
}
