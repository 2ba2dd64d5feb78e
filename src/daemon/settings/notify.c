#include "daemon/settings/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/notify/notifier.h"
#include "engine/notify/notify.h"

static const char *const kind_words[] = {"", "ntfy", "telegram", "webhook", "command", NULL};

_Static_assert(sizeof(kind_words) / sizeof(kind_words[0]) == N_NOTIFIER_KINDS + 2, "all kinds");

enum {
	NTFY = 1 << (NOTIFIER_NTFY + 1),
	TELEGRAM = 1 << (NOTIFIER_TELEGRAM + 1),
	WEBHOOK = 1 << (NOTIFIER_WEBHOOK + 1),
	COMMAND = 1 << (NOTIFIER_COMMAND + 1),
	HTTP = NTFY | TELEGRAM | WEBHOOK,
};

#define AT(member)      offsetof(struct notify_setting, member)
#define TEXT_AT(member) SETTING_TEXT(struct notify_setting, member)

#define CONDITION(n, doc)                                                                          \
	{                                                                                          \
		"notify", "condition" #n, SET_TEXT, TEXT_AT(condition[(n)-1]), doc                 \
	}

static const struct setting rows[] = {
	{"notify", "kind", SET_WORD, AT(kind), 0, 0,
	 "kind of notifier: ntfy, telegram, webhook or command", .words = kind_words},
	{"notify", "on", SET_TEXT, TEXT_AT(on),
	 "types of events to send, separated by commas, such as approval, session.waiting, "
	 "task.failed or task.*"},
	CONDITION(1, "condition, as in a rule: FIELD OPERATOR VALUE; koined sends only matching "
		     "events"),
	CONDITION(2, "additional condition, in the same format as condition1"),
	CONDITION(3, "additional condition, in the same format as condition1"),
	CONDITION(4, "additional condition, in the same format as condition1"),
	CONDITION(5, "additional condition, in the same format as condition1"),
	CONDITION(6, "additional condition, in the same format as condition1"),
	CONDITION(7, "additional condition, in the same format as condition1"),
	CONDITION(8, "additional condition, in the same format as condition1"),
	CONDITION(9, "additional condition, in the same format as condition1"),
	{"notify", "url", SET_URL, TEXT_AT(url),
	 "URL of the server; for a webhook, the complete URL", .check = notifier_check_url,
	 .kinds = HTTP},
	{"notify", "key_env", SET_VARIABLE, TEXT_AT(key_env),
	 "environment variable that holds the API key", .kinds = HTTP},
	{"notify", "key_file", SET_PATH, TEXT_AT(key_file),
	 "file (mode 0600) with the key: the bot token (telegram), the access token (ntfy) or the "
	 "signing key (webhook)",
	 .kinds = HTTP},
	{"notify", "topic_env", SET_VARIABLE, TEXT_AT(topic_env),
	 "environment variable that holds the ntfy topic", .kinds = NTFY},
	{"notify", "topic_file", SET_PATH, TEXT_AT(topic_file),
	 "file (mode 0600) with the ntfy topic", .kinds = NTFY},
	{"notify", "reply_topic_env", SET_VARIABLE, TEXT_AT(reply_topic_env),
	 "environment variable that holds the topic for button replies", .kinds = NTFY},
	{"notify", "reply_topic_file", SET_PATH, TEXT_AT(reply_topic_file),
	 "file (mode 0600) with the topic for button replies; default: a new topic at each start",
	 .kinds = NTFY},
	{"notify", "chat", SET_TEXT, TEXT_AT(chat), "id of the Telegram chat", .kinds = TELEGRAM},
	{"notify", "user", SET_TEXT, TEXT_AT(user),
	 "id of the only Telegram user who may approve or deny requests; empty means all members "
	 "of the "
	 "chat",
	 .kinds = TELEGRAM},
	{"notify", "template", SET_TEXT, TEXT_AT(template),
	 "template of the request body, with fields such as {title} and {approval.tool}; empty "
	 "means "
	 "a JSON object with all fields",
	 .kinds = WEBHOOK},
	{"notify", "escape_html", SET_BOOL, AT(escape_html), 0, 0,
	 "escape &, < and > in inserted text as &amp;, &lt; and &gt;", .kinds = WEBHOOK},
	{"notify", "command", SET_TEXT, TEXT_AT(command),
	 "command for /bin/sh, with the text on stdin and the fields in KOINE_NOTIFY_… variables",
	 .kinds = COMMAND},
	{"notify", "link", SET_TEXT, TEXT_AT(link),
	 "URL of the page to include in messages; empty means the URL in page.behind, if the page "
	 "is enabled"},
	{"notify", "quiet", SET_TEXT, TEXT_AT(quiet),
	 "quiet hours, such as 22:00-07:00, in which koined sends no messages"},
	{"notify", "zone", SET_TEXT, TEXT_AT(zone),
	 "time zone of the quiet hours; empty means the time zone of the machine"},
	{"notify", "per_minute", SET_UNSIGNED, AT(per_minute), 1, 60,
	 "maximum number of messages per minute"},
	{"notify", "button_time", SET_SECONDS, AT(button_ms), 1, 604800,
	 "seconds after which a button or a link expires", .kinds = HTTP},
	{"notify", "links", SET_BOOL, AT(links), 0, 0,
	 "include links to the page on which the reader can approve or deny the request",
	 .kinds = WEBHOOK},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* ---- as a section ---- */

static void init(void *section, const char *name, const char *where)
{
	*(struct notify_setting *)section = (struct notify_setting) {
		.on = "approval",
		.per_minute = 10,
		.button_ms = 12 * 3600 * 1000,
		.links = true,
	};
}

/* ---- checks when all was read ---- */

static int wrong(const struct notify_setting *s, const char *what, struct error *error)
{
	return refuse(error, REFUSE_PARAMS, "[notify %s]: %s", s->name, what);
}

static bool is_number(const char *text)
{
	char *end;

	errno = 0;
	return strtoll(text, &end, 10) != 0 && *end == '\0' && errno == 0 && text[0] != ' ';
}

static int check_kinds(const struct notify_setting *s, struct error *error)
{
	int r = section_check_kinds(&notify_section, s, error);

	if (r != 0)
		return r;
	if (s->key_env[0] && s->key_file[0])
		return wrong(s, "set only one of key_env and key_file", error);
	if (s->topic_env[0] && s->topic_file[0])
		return wrong(s, "set only one of topic_env and topic_file", error);
	if (s->reply_topic_env[0] && s->reply_topic_file[0])
		return wrong(s, "set only one of reply_topic_env and reply_topic_file", error);
	return 0;
}

static int check_needs(const struct notify_setting *s, struct error *error)
{
	unsigned bit = 1U << s->kind;

	if (bit == NTFY && !s->topic_env[0] && !s->topic_file[0])
		return wrong(s, "kind ntfy requires topic_file or topic_env", error);
	if (bit == TELEGRAM && !s->key_env[0] && !s->key_file[0])
		return wrong(s, "kind telegram requires key_file or key_env", error);
	if (bit == TELEGRAM && !is_number(s->chat))
		return wrong(s, "kind telegram requires chat = NUMBER", error);
	if (s->user[0] && !is_number(s->user))
		return refuse(error, REFUSE_PARAMS,
			      "[notify %s]: invalid user '%.40s': expected a number", s->name,
			      s->user);
	if (bit == WEBHOOK && !s->url[0])
		return wrong(s, "kind webhook requires url", error);
	if (bit == COMMAND && !s->command[0])
		return wrong(s, "kind command requires command", error);
	return 0;
}

int notify_setting_conditions(const struct notify_setting *s, struct arena *a,
			      struct event_condition ret[NOTIFY_CONDITIONS_MAX], unsigned *ret_n,
			      struct error *error)
{
	unsigned n = 0;

	for (unsigned i = 0; i < NOTIFY_CONDITIONS_MAX; i++) {
		const char *text = s->condition[i];

		if (text[0] && condition_parse(text, a, &ret[n++]) != 0)
			return refuse(error, REFUSE_PARAMS,
				      "invalid condition%u '%.60s': expected FIELD OPERATOR VALUE",
				      i + 1, text);
	}
	*ret_n = n;
	return 0;
}

static int check_rule(const struct notify_setting *s, struct arena *a, struct error *error)
{
	struct event_condition conditions[NOTIFY_CONDITIONS_MAX];
	struct notify_rule rule = {.name = s->name,
				   .on = s->on,
				   .quiet = s->quiet,
				   .zone = s->zone,
				   .link = s->link,
				   .conditions = conditions,
				   .per_minute = s->per_minute};
	int r = notify_setting_conditions(s, a, conditions, &rule.n_conditions, error);

	return r == 0 ? notify_check_rule(&rule, error) : r;
}

static int check_one(const void *section, struct error *error)
{
	const struct notify_setting *s = section;
	struct error inner = {.text = ""};
	struct arena arena;
	int r;

	if (s->kind == 0)
		return wrong(s, "kind is required: ntfy, telegram, webhook or command", error);
	r = check_kinds(s, error) ?: check_needs(s, error);
	if (r == 0 && s->link[0] && notifier_check_url(s->link, NULL) != 0)
		r = refuse(error, REFUSE_PARAMS,
			   "[notify %s]: invalid link '%.60s': expected http://… or https://…",
			   s->name, s->link);
	if (r != 0)
		return r;
	arena_init(&arena, 4096);
	r = check_rule(s, &arena, &inner) ?: notifier_check_template(s->template, &inner);
	arena_done(&arena);
	return r > 0 ? wrong(s, inner.text, error) : r;
}

const struct section_kind notify_section = {
	.word = "notify",
	.several = "notifiers",
	.list = offsetof(struct settings, notifies.list),
	.n = offsetof(struct settings, notifies.n),
	.size = sizeof(struct notify_setting),
	.max = NOTIFIES_MAX,
	.n_keys = N_ROWS,
	.rows = rows,
	.init = init,
	.own_kind = offsetof(struct notify_setting, kind),
	.check = check_one,
};
