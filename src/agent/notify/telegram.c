/*
 * Telegram: a bot's messages with buttons, and what is pressed or replied, by getUpdates, a
 * request that the server holds until there is something. No port of ours is open.
 *
 * Only the configured chat counts, and in it only the configured user where one is named. The
 * bot's key is a part of every address, so no address is ever logged.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/notify/inner.h"
#include "base/cleanup.h"
#include "base/list.h"
#include "base/log.h"
#include "wire/json.h"

enum {
	HOLD_S = 50, /* how long the server may hold a question */
	HOLD_MS = (HOLD_S + 20) * 1000,
	KEY_MAX = 128,
	ACKS_MAX = 16, /* under way at once; more are left out */
	ACK_MAX = 200,
	QUOTE_MAX = 140, /* of what it says is wrong */
};

struct telegram {
	struct notifier base;
	int64_t chat, user;
	int64_t offset; /* of the next update; 0: any */
	struct list acks;
	unsigned n_acks;
	char ref[NOTICE_REF_MAX + 1]; /* of the message that is replaced */
};

struct ack {
	struct list link;
	struct telegram *telegram;
	struct http_fetch *fetch;
};

static struct telegram *of(struct notifier *n)
{
	return list_entry(n, struct telegram, base);
}

static void address(const struct telegram *t, const char *method, char out[NOTIFIER_URL_MAX])
{
	snprintf(out, NOTIFIER_URL_MAX, "%.300s/bot%s/%s", t->base.url, t->base.key, method);
}

/* ---- sending ---- */

static void write_keyboard(struct json *j, const struct notice *notice)
{
	json_member_object(j, "reply_markup");
	json_member_array(j, "inline_keyboard");
	json_begin_array(j);
	for (unsigned i = 0; i < notice->n_buttons; i++) {
		json_begin_object(j);
		json_member_str(j, "text", notice->buttons[i].label);
		json_member_str(j, "callback_data", notice->buttons[i].token);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_array(j);
	json_end_object(j);
}

/* Without a parse_mode nothing in the text means anything to Telegram. */
static void write_notice(struct buf *out, const struct telegram *t, const struct notice *notice)
{
	CLEANUP(buf_donep) struct buf text;
	struct json j = json_writer(out);

	buf_init(&text, NOTIFIER_BODY_MAX);
	buf_add(&text, notice->title.data, notice->title.len);
	buf_add_str(&text, "\n\n");
	buf_add(&text, notice->text.data, notice->text.len);
	if (notice->link.data) {
		buf_add_str(&text, "\n\n");
		buf_add(&text, notice->link.data, notice->link.len);
	}
	json_begin_object(&j);
	json_member_int(&j, "chat_id", t->chat);
	if (notice->ref[0])
		json_member_int(&j, "message_id", strtoll(notice->ref, NULL, 10));
	json_member_text(&j, "text", buf_bytes(&text));
	json_member_object(&j, "link_preview_options");
	json_member_bool(&j, "is_disabled", true);
	json_end_object(&j);
	if (!notice->ref[0])
		json_member_bool(&j, "disable_notification", notice->silent);
	if (notice->n_buttons > 0)
		write_keyboard(&j, notice);
	json_end_object(&j);
	if (text.err != 0 && out->err == 0)
		out->err = text.err;
}

/* The key goes before anything is cut: no part of it stays. */
static void quote(const struct telegram *t, struct text words, struct notice_sent *sent)
{
	char said[QUOTE_MAX + 2 * KEY_MAX];

	snprintf(said, sizeof(said), "%.*s", TEXT_ARGS(text_cut(words, sizeof(said) - 1)));
	notifier_scrub(said, t->base.key);
	snprintf(sent->text, sizeof(sent->text), "%.*s",
		 TEXT_ARGS(text_cut(text_of(said), QUOTE_MAX)));
}

/* Telegram says in its answer what was wrong, and how long to wait. */
static void read_error(const struct telegram *t, const struct value *tree, struct notice_sent *sent)
{
	struct text words = value_text(value_find(tree, "description"));
	int64_t seconds = 0;

	if (words.data)
		quote(t, words, sent);
	if (value_int(value_find(value_find(tree, "parameters"), "retry_after"), &seconds) &&
	    seconds > 0 && seconds < 3600)
		sent->retry_ms = (unsigned)seconds * 1000;
}

static bool is_ok(const struct value *tree)
{
	const struct value *ok = value_find(tree, "ok");

	return ok && ok->kind == VALUE_TRUE;
}

/* The message says it already, since an earlier answer was lost; or somebody has deleted it. */
static bool is_settled(const struct telegram *t, const struct value *tree)
{
	static const char *const words[] = {"Bad Request: message is not modified",
					    "Bad Request: message to edit not found"};
	struct text said = value_text(value_find(tree, "description"));

	for (unsigned i = 0; t->ref[0] && i < sizeof(words) / sizeof(words[0]); i++) {
		if (said.len >= strlen(words[i]) &&
		    memcmp(said.data, words[i], strlen(words[i])) == 0)
			return true;
	}
	return false;
}

static void read_sent(const struct telegram *t, const struct value *tree, struct notice_sent *sent)
{
	int64_t id = 0;

	if (sent->error != 0 && is_settled(t, tree)) {
		*sent = (struct notice_sent) {.error = 0};
		snprintf(sent->ref, sizeof(sent->ref), "%s", t->ref);
	} else if (sent->error != 0) {
		read_error(t, tree, sent);
	} else if (!is_ok(tree)) {
		sent->error = -EBADMSG;
		snprintf(sent->text, sizeof(sent->text), "invalid response from Telegram");
	} else if (value_int(value_find(value_find(tree, "result"), "message_id"), &id)) {
		snprintf(sent->ref, sizeof(sent->ref), "%lld", (long long)id);
	} else {
		snprintf(sent->ref, sizeof(sent->ref), "%s", t->ref);
	}
}

static void on_sent(void *arg, const struct http_answer *a)
{
	struct telegram *t = arg;
	struct notice_sent sent = notifier_outcome(&t->base, a);
	struct arena arena;

	t->base.sending = NULL;
	arena_init(&arena, NOTIFIER_ARENA_MAX);
	read_sent(t, notifier_read(&arena, a->body), &sent);
	arena_done(&arena);
	notifier_scrub(sent.text, t->base.key);
	t->base.events.on_sent(t->base.arg, &sent);
}

static int send_notice(struct notifier *n, const struct notice *notice)
{
	struct telegram *t = of(n);
	char url[NOTIFIER_URL_MAX];
	CLEANUP(buf_donep) struct buf body;

	buf_init(&body, NOTIFIER_BODY_MAX);
	snprintf(t->ref, sizeof(t->ref), "%s", notice->ref);
	write_notice(&body, t, notice);
	address(t, notice->ref[0] ? "editMessageText" : "sendMessage", url);
	return notifier_post(n, url, NULL, &body, on_sent, t, &n->sending);
}

/* ---- telling who pressed ---- */

static void on_acknowledged(void *arg, const struct http_answer *a)
{
	struct ack *ack = arg;

	if (a->error != 0 || a->status != 200)
		log_debug("could not acknowledge button press", "notifier=%s status=%d",
			  ack->telegram->base.name, a->status);
	list_remove(&ack->link);
	ack->telegram->n_acks--;
	free(ack);
}

static void acknowledge(struct notifier *n, const char *press, const char *words)
{
	struct telegram *t = of(n);
	struct ack *ack = t->n_acks < ACKS_MAX ? calloc(1, sizeof(*ack)) : NULL;
	CLEANUP(buf_donep) struct buf body;
	char url[NOTIFIER_URL_MAX];
	struct json j;

	buf_init(&body, NOTIFIER_BODY_MAX);
	if (!ack)
		return;
	ack->telegram = t;
	j = json_writer(&body);
	json_begin_object(&j);
	json_member_str(&j, "callback_query_id", press);
	json_member_text(&j, "text", text_cut(text_of(words), ACK_MAX));
	json_end_object(&j);
	address(t, "answerCallbackQuery", url);
	if (notifier_post(n, url, NULL, &body, on_acknowledged, ack, &ack->fetch) != 0) {
		free(ack);
		return;
	}
	list_append(&t->acks, &ack->link);
	t->n_acks++;
}

/* ---- reading updates ---- */

/* A name that cannot pretend to be something else, or its number. */
static void name_person(const struct value *from, char out[NOTIFIER_WHO_MAX])
{
	struct text name = value_text(value_find(from, "username"));
	int64_t id = 0;

	(void)value_int(value_find(from, "id"), &id);
	if (notifier_is_word(name, 32))
		snprintf(out, NOTIFIER_WHO_MAX, "%.*s", TEXT_ARGS(name));
	else
		snprintf(out, NOTIFIER_WHO_MAX, "%lld", (long long)id);
}

static bool counts(const struct telegram *t, const struct value *message, const struct value *from)
{
	int64_t chat = 0, user = 0;

	(void)value_int(value_find(value_find(message, "chat"), "id"), &chat);
	(void)value_int(value_find(from, "id"), &user);
	if (chat == t->chat && user != 0 && (t->user == 0 || t->user == user))
		return true;
	log_caused(LOG_LEVEL_INFO, "reply ignored", "notifier=%s reason=\"from another %s\"",
		   t->base.name, chat == t->chat ? "user" : "chat");
	return false;
}

static void telegram_number_of(const struct value *message, char out[NOTICE_REF_MAX + 1])
{
	int64_t id = 0;

	out[0] = '\0';
	if (value_int(value_find(message, "message_id"), &id))
		snprintf(out, NOTICE_REF_MAX + 1, "%lld", (long long)id);
}

static void take_press(struct telegram *t, const struct value *query)
{
	const struct value *message = value_find(query, "message");
	const struct value *from = value_find(query, "from");
	struct text id = value_text(value_find(query, "id"));
	char who[NOTIFIER_WHO_MAX], ref[NOTICE_REF_MAX + 1], press[128] = "";
	struct notice_answer answer = {.token = value_text(value_find(query, "data")),
				       .ref = ref,
				       .who = who,
				       .press = press};

	if (!counts(t, message, from) || !answer.token.data)
		return;
	if (id.len > 0 && id.len < sizeof(press) && !memchr(id.data, '\0', id.len))
		snprintf(press, sizeof(press), "%.*s", TEXT_ARGS(id));
	name_person(from, who);
	telegram_number_of(message, ref);
	t->base.events.on_answer(t->base.arg, &answer);
}

/* Only a reply to a message of ours says what it is about. */
static void take_reply(struct telegram *t, const struct value *message)
{
	const struct value *to = value_find(message, "reply_to_message");
	const struct value *from = value_find(message, "from");
	char who[NOTIFIER_WHO_MAX], ref[NOTICE_REF_MAX + 1];
	struct notice_answer answer = {.comment = value_text(value_find(message, "text")),
				       .ref = ref,
				       .who = who,
				       .press = ""};

	if (!counts(t, message, from) || !to || answer.comment.len == 0)
		return;
	name_person(from, who);
	telegram_number_of(to, ref);
	if (ref[0])
		t->base.events.on_answer(t->base.arg, &answer);
}

static void take_updates(struct telegram *t, const struct value *list)
{
	value_each (update, list) {
		const struct value *query = value_find(update, "callback_query");
		const struct value *message = value_find(update, "message");
		int64_t id;

		if (!value_int(value_find(update, "update_id"), &id) || id < t->offset)
			continue;
		/* Asking for the next one tells Telegram that this one has come. */
		t->offset = id + 1;
		if (query)
			take_press(t, query);
		else if (message)
			take_reply(t, message);
	}
}

static void telegram_start(struct notifier *n);

static void on_updates(void *arg, const struct http_answer *a)
{
	struct telegram *t = arg;
	struct notice_sent how = notifier_outcome(&t->base, a);
	const struct value *tree, *list;
	struct arena arena;
	char text[200];

	t->base.reading = NULL;
	arena_init(&arena, NOTIFIER_ARENA_MAX);
	tree = notifier_read(&arena, a->body);
	list = value_find(tree, "result");
	if (how.error == 0 && is_ok(tree) && list && list->kind == VALUE_ARRAY) {
		notifier_reading_works(&t->base);
		take_updates(t, list);
		telegram_start(&t->base);
	} else {
		read_error(t, tree, &how);
		snprintf(text, sizeof(text), "cannot read replies: %s",
			 how.text[0] ? how.text : "invalid response from Telegram");
		notifier_reading_failed(&t->base, text, how.retry_ms);
	}
	arena_done(&arena);
}

static void write_question(struct buf *out, const struct telegram *t)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	if (t->offset > 0)
		json_member_int(&j, "offset", t->offset);
	json_member_int(&j, "timeout", HOLD_S);
	json_member_array(&j, "allowed_updates");
	json_str(&j, "callback_query");
	json_str(&j, "message");
	json_end_array(&j);
	json_end_object(&j);
}

static void telegram_start(struct notifier *n)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	struct telegram *t = of(n);
	CLEANUP(buf_donep) struct buf body;
	char url[NOTIFIER_URL_MAX];
	struct http_fetch_opts opts = {
		.url = url,
		.method = "POST",
		.headers = headers,
		.total_timeout_ms = HOLD_MS,
		.response_max = NOTIFIER_READ_MAX,
		.on_done = on_updates,
		.arg = t,
	};
	int r;

	buf_init(&body, NOTIFIER_BODY_MAX);
	write_question(&body, t);
	opts.body = buf_bytes(&body);
	address(t, "getUpdates", url);
	r = body.err != 0 ? body.err : http_client_fetch(n->http, &opts, &n->reading);
	if (r != 0)
		notifier_reading_failed(n, strerror(-r), 0);
}

/* ---- life ---- */

static int open_telegram(struct notifier *n, const struct notifier_opts *o, struct error *error)
{
	struct telegram *t = of(n);

	list_init(&t->acks);
	if (!o->key || !o->key[0] || strlen(o->key) > KEY_MAX || strpbrk(o->key, "/?#%\\"))
		return refuse_field(error, "key",
				    "invalid bot key: expected the token that BotFather sent");
	t->chat = o->chat;
	t->user = o->user;
	return 0;
}

static void close_telegram(struct notifier *n)
{
	struct telegram *t = of(n);

	list_for_each (at, following, &t->acks) {
		struct ack *ack = list_entry(at, struct ack, link);

		http_fetch_cancel(ack->fetch);
		free(ack);
	}
}

const struct notifier_ops telegram_notifier = {.size = sizeof(struct telegram),
					       .open = open_telegram,
					       .close = close_telegram,
					       .send = send_notice,
					       .acknowledge = acknowledge,
					       .start = telegram_start,
					       .asks = true,
					       .replaces = true};
