/* The notifiers that the settings name: their secrets are read here, and they are made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/life.h"
#include "dialect/page/page.h"
#include "engine/notify/notify.h"

/* ---- secrets ---- */

struct secrets {
	char key[NOTIFIER_SECRET_MAX];
	char topic[NOTIFIER_SECRET_MAX];
	char reply_topic[NOTIFIER_SECRET_MAX];
};

static int read_secret(const char *variable, const char *file, const char *what,
		       char out[NOTIFIER_SECRET_MAX], struct error *error)
{
	const char *value = variable[0] ? getenv(variable) : "";

	out[0] = '\0';
	if (file[0])
		return file_read_secret(file, what, out, NOTIFIER_SECRET_MAX, error);
	if (secret_check_variable(variable, error) != 0)
		return REFUSE_NOT_FOUND;
	if (strlen(value) >= NOTIFIER_SECRET_MAX)
		return refuse(error, REFUSE_PARAMS,
			      "the value of environment variable %s is longer than %d bytes",
			      variable, NOTIFIER_SECRET_MAX - 1);
	snprintf(out, NOTIFIER_SECRET_MAX, "%s", value);
	return 0;
}

static int read_secrets(const struct notify_setting *s, struct secrets *out, struct error *error)
{
	return read_secret(s->key_env, s->key_file, "key", out->key, error)
			?: read_secret(s->topic_env, s->topic_file, "topic", out->topic, error)
			?: read_secret(s->reply_topic_env, s->reply_topic_file, "topic",
				       out->reply_topic, error);
}

/* ---- making them ---- */

static const char *url_of(const struct notify_setting *s)
{
	static const char *const usual[N_NOTIFIER_KINDS] = {
		[NOTIFIER_NTFY] = "https://ntfy.sh",
		[NOTIFIER_TELEGRAM] = "https://api.telegram.org",
	};
	const char *own = usual[s->kind - 1];

	return s->url[0] ? s->url : own ? own : "";
}

static int daemon_notify_make(struct loop *l, const struct notify_setting *s,
			      const struct environment *env, struct notifier **ret,
			      struct error *error)
{
	struct secrets secrets = {.key = ""};
	const struct notifier_opts opts = {
		.name = s->name,
		.kind = s->kind - 1,
		.url = url_of(s),
		.key = secrets.key,
		.topic = secrets.topic,
		.reply_topic = secrets.reply_topic,
		.chat = strtoll(s->chat, NULL, 10),
		.user = strtoll(s->user, NULL, 10),
		.template = s->template,
		.escape_html = s->escape_html,
		.command = s->command,
		.env = env,
	};
	int r = read_secrets(s, &secrets, error) ?: notifier_new(l, &opts, ret, error);

	explicit_bzero(&secrets, sizeof(secrets));
	return r;
}

/* One whose key cannot be read is there and says so; the others work. */
static int daemon_notify_add(struct daemon *d, const struct notify_setting *s, struct error *error)
{
	struct event_condition conditions[NOTIFY_CONDITIONS_MAX];
	struct notify_rule rule = {
		.name = s->name,
		.kind = s->kind - 1,
		.on = s->on,
		.conditions = conditions,
		.quiet = s->quiet,
		.zone = s->zone,
		.link = s->link,
		.per_minute = s->per_minute,
		.button_ms = s->button_ms,
		.links = s->links && s->kind - 1 == NOTIFIER_WEBHOOK,
	};
	struct notifier *notifier = NULL;
	struct error trouble = {.text = ""};
	struct arena arena;
	int r;

	arena_init(&arena, 4096);
	r = notify_setting_conditions(s, &arena, conditions, &rule.n_conditions, error)
		    ?: daemon_notify_make(d->loop, s, &d->environments.plain, &notifier, &trouble);
	/* One that could not be made is there, too. */
	if (r >= 0)
		r = notify_add(d->engine->notify, &rule, notifier, trouble.text, error);
	arena_done(&arena);
	return r;
}

static int add_all(struct daemon *d, struct error *error)
{
	const struct notify_settings *s = &d->settings->notifies;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < s->n; i++)
		r = daemon_notify_add(d, &s->list[i], error);
	return r;
}

/* Where links lead to. */
static bool find_page(void *arg, char out[NOTIFY_BASE_MAX])
{
	const struct daemon *d = arg;

	return page_base(d->server, out, NOTIFY_BASE_MAX);
}

int notify_begin(struct daemon *d, struct error *error)
{
	struct notify_opts opts = {
		.loop = d->loop,
		.workers = d->workers,
		.events = d->engine->events,
		.approvals = d->engine->approvals,
		.to_json = tree_json,
		.base = find_page,
		.arg = d,
	};
	int r;

	daemon_name_host(d->settings, opts.host);
	r = notify_new(&opts, &d->engine->notify);
	return r != 0 ? r : add_all(d, error);
}

void notify_reload(struct daemon *d)
{
	struct error error = {.text = ""};
	int r;

	notify_clear(d->engine->notify);
	r = add_all(d, &error);
	if (r != 0)
		log_err("could not reload notifiers", "reason=\"%s\"", error_words(r, &error));
}

/* ---- --check ---- */

void notify_check(const struct settings *s)
{
	for (unsigned i = 0; i < s->notifies.n; i++) {
		const struct notify_setting *n = &s->notifies.list[i];
		struct secrets secrets = {.key = ""};
		struct error error = {.text = ""};
		int r = read_secrets(n, &secrets, &error);

		explicit_bzero(&secrets, sizeof(secrets));
		if (r == 0)
			printf("would use     notifier %s (%s)  ok\n", n->name,
			       notifier_kind_names[n->kind - 1]);
		else
			printf("would use     notifier %s (%s)  error: %s\n", n->name,
			       notifier_kind_names[n->kind - 1], error_words(r, &error));
	}
}
