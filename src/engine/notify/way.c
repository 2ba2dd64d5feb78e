/* A notifier with its rule: what it wants to say, when it may, and how often it tries. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/pattern/pattern.h"
#include "engine/notify/inner.h"

struct way *way_find(const struct notify *n, struct text name)
{
	list_for_each (at, following, &n->ways) {
		struct way *w = list_entry(at, struct way, link);

		if (text_is(name, w->name))
			return w;
	}
	return NULL;
}

/* ---- what it is told ---- */

bool way_wants(const struct way *w, struct text type)
{
	struct text rest = text_of(w->on);
	struct text item;

	while (text_next(&rest, ',', &item)) {
		item = text_trim(item, " ");
		if (text_is(item, "approval"))
			item = TEXT("approval.requested");
		if (glob_fits(item, type))
			return true;
	}
	return false;
}

static int check_conditions(const struct notify_rule *rule, struct error *error)
{
	struct conditions c = {.n = 0};
	struct arena arena;
	int r;

	arena_init(&arena, RULE_ARENA_MAX);
	r = conditions_make(&c, &arena, rule->conditions, rule->n_conditions, error);
	conditions_done(&c);
	arena_done(&arena);
	return r;
}

static int refuse_types(struct error *error)
{
	return refuse_field(error, "on",
			    "invalid 'on': expected 1 to %d event types, separated by commas",
			    NOTIFY_TYPES_MAX);
}

int notify_check_rule(const struct notify_rule *rule, struct error *error)
{
	struct text rest = text_of(rule->on);
	struct quiet quiet = {.is = false};
	struct text item;
	unsigned n = 0;
	int r = quiet_parse(rule->quiet, rule->zone, &quiet, error);

	quiet_done(&quiet);
	while (r == 0 && text_next(&rest, ',', &item)) {
		item = text_trim(item, " ");
		if (item.len == 0 || item.len >= NOTIFY_TYPE_LEN || ++n > NOTIFY_TYPES_MAX)
			r = refuse_types(error);
	}
	if (r == 0 && n == 0)
		r = refuse_types(error);
	if (r == 0 && rule->per_minute > RATE_MAX)
		r = refuse_field(error, "per_minute",
				 "invalid per_minute '%u': expected at most %d", rule->per_minute,
				 RATE_MAX);
	return r == 0 ? check_conditions(rule, error) : r;
}

/* ---- one message ---- */

/* An id may be the asker's own words. */
static bool is_plain(const char *id)
{
	return id[0] && !id[strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789-_")];
}

/* An address at this machine is of no use to somebody who is elsewhere. */
struct text way_link(const struct way *w, const struct notify_message *m, char out[WAY_LINK_MAX])
{
	const struct notify_opts *o = &w->notify->opts;
	char base[NOTIFY_BASE_MAX];
	bool asks = m->about == ABOUT_APPROVAL && is_plain(m->id);

	if (w->web_link[0])
		return text_of(w->web_link);
	if (!o->base || !o->base(o->arg, base) || strncmp(base, "https://", 8) != 0)
		return (struct text) {.data = NULL};
	snprintf(out, WAY_LINK_MAX, "%s/%s%.100s", base, asks ? "#/inbox/" : "", asks ? m->id : "");
	return text_of(out);
}

static void notify_way_add(struct buf *out, const char *words)
{
	if (out->len > 0)
		buf_add_str(out, "\n\n");
	buf_add_str(out, words);
}

static void write_text(struct buf *out, const struct notify_message *m)
{
	char left_out[80];

	buf_add(out, m->text.data, m->text.len);
	if (m->outcome[0])
		notify_way_add(out, m->outcome);
	if (m->way->untold > 0 && !m->ref[0]) {
		snprintf(left_out, sizeof(left_out), "(%llu earlier messages omitted)",
			 (unsigned long long)m->way->untold);
		notify_way_add(out, left_out);
	}
}

/* What a notice needs until it is sent. */
struct offer {
	char tokens[NOTICE_BUTTONS_MAX][TOKEN_LEN + 1];
	char urls[NOTICE_BUTTONS_MAX][LINK_URL_MAX];
};

/* The two decisions: as buttons, or as links to our page, which asks once more. */
static int offer_decisions(struct notify_message *m, struct notice *notice, struct offer *o)
{
	static const struct {
		const char *label, *field;
		enum approval_status decision;
	} choices[NOTICE_BUTTONS_MAX] = {{"Approve", "approval.approve_url", APPROVAL_APPROVED},
					 {"Deny", "approval.deny_url", APPROVAL_DENIED}};
	struct way *w = m->way;
	const struct notify_opts *opts = &w->notify->opts;
	bool open = !m->outcome[0] && m->kind != APPROVAL_CONTACT;
	bool buttons = open && notifier_asks(w->notifier) && m->about != ABOUT_EVENT;
	char base[NOTIFY_BASE_MAX];
	bool links = open && !buttons && w->links && m->about == ABOUT_APPROVAL && opts->base &&
		     opts->base(opts->arg, base);

	if (!buttons && !links)
		return 0;
	tokens_forget(&w->tokens, m);
	for (unsigned i = 0; i < NOTICE_BUTTONS_MAX; i++) {
		int r = tokens_add(&w->tokens, m, choices[i].decision,
				   clock_utc_ms() + w->button_ms, o->tokens[i]);

		if (r != 0)
			return r;
		if (buttons)
			notice->buttons[notice->n_buttons++] =
				(struct notice_button) {choices[i].label, o->tokens[i]};
		if (!links || notice->n_fields == NOTICE_FIELDS_MAX)
			continue;
		snprintf(o->urls[i], LINK_URL_MAX, "%s/answer?token=%s", base, o->tokens[i]);
		notice->fields[notice->n_fields++] =
			(struct notice_field) {choices[i].field, text_of(o->urls[i])};
	}
	m->has_links = m->has_links || links;
	return 0;
}

static int send_message(struct notify_message *m)
{
	struct way *w = m->way;
	struct offer offer = {0};
	char link[WAY_LINK_MAX];
	struct notice notice = {
		.title = m->title,
		.link = way_link(w, m, link),
		.urgent = m->urgent,
		.silent = m->ref[0] != '\0',
		.ref = m->ref,
		.n_fields = m->n_fields,
	};
	struct buf text;
	int r;

	memcpy(notice.fields, m->fields, sizeof(notice.fields));
	buf_init(&text, NOTICE_TEXT_MAX + OUTCOME_MAX + 200);
	write_text(&text, m);
	notice.text = (struct text) {.data = text.data ? text.data : "", .len = text.len};
	r = text.err ?: offer_decisions(m, &notice, &offer) ?: notifier_send(w->notifier, &notice);
	buf_done(&text);
	return r;
}

/* ---- how it went ---- */

static void way_trouble(struct way *w, const char *what)
{
	snprintf(w->error, sizeof(w->error), "%s", what);
	w->failed_ms = clock_utc_ms();
	if (!w->failing)
		log_warn("notifier failed", "notifier=%s reason=\"%s\"", w->name, w->error);
	w->failing = true;
}

static void recovered(struct way *w)
{
	w->n_failures = 0;
	w->not_before_ms = 0;
	if (w->failing && !w->reading_fails) {
		log_info("notifier recovered", "notifier=%s", w->name);
		w->failing = false;
	}
}

static bool is_kept(const struct notify_message *m)
{
	if (m->gone)
		return false;
	/* Who comes too late is told so. */
	if (m->has_links)
		return true;
	if (m->outcome[0])
		return false;
	if (m->about == ABOUT_EVENT)
		return notifier_replaces(m->way->notifier);
	return notifier_asks(m->way->notifier);
}

static void succeeded(struct notify_message *m, const struct notice_sent *sent)
{
	struct way *w = m->way;
	bool is_new = !m->ref[0];
	bool says_all = m->stage == MESSAGE_SENT;

	recovered(w);
	m->n_tries = 0;
	m->stage = MESSAGE_SENT;
	snprintf(m->ref, sizeof(m->ref), "%s", sent->ref);
	if (is_new) {
		w->sent++;
		w->untold = 0;
		w->sent_ms = clock_utc_ms();
		if (m->about != ABOUT_TEST)
			rate_note(&w->rate, clock_steady_ms());
	}
	if (m->test && is_new)
		test_sent(m->test);
	/* The end may have come while the question was on its way. */
	if (m->outcome[0] && !says_all && !m->gone && notifier_replaces(w->notifier))
		m->changed = true;
	else if (!is_kept(m))
		message_drop(m);
}

static uint64_t pause_of(const struct way *w, unsigned retry_ms)
{
	unsigned doubled = w->n_failures < 7 ? w->n_failures - 1 : 6;
	uint64_t ms = (uint64_t)AGAIN_MS << doubled;

	if (ms > AGAIN_MAX_MS)
		ms = AGAIN_MAX_MS;
	if (retry_ms > ms)
		ms = retry_ms < RETRY_MAX_MS ? retry_ms : RETRY_MAX_MS;
	return ms;
}

static void notify_way_failed(struct notify_message *m, const struct notice_sent *sent)
{
	struct way *w = m->way;
	bool again = sent->passing && ++m->n_tries < NOTIFY_TRIES_MAX && !m->gone && !m->test;

	w->failed++;
	w->n_failures++;
	way_trouble(w, sent->text[0] ? sent->text : strerror(-sent->error));
	if (sent->passing)
		w->not_before_ms = clock_steady_ms() + pause_of(w, sent->retry_ms);
	if (m->test)
		test_failed(m->test, w->error);
	if (again && m->stage == MESSAGE_SENT) {
		m->changed = true;
		return;
	}
	if (again && !m->outcome[0]) {
		m->stage = MESSAGE_WAITS;
		return;
	}
	if (m->stage != MESSAGE_SENT && !m->outcome[0] && !m->gone) {
		w->dropped++;
		w->untold++;
	}
	message_drop(m);
}

static void on_sent(void *arg, const struct notice_sent *sent)
{
	struct way *w = arg;
	struct notify_message *m = w->going;

	w->going = NULL;
	if (sent->error == 0)
		succeeded(m, sent);
	else
		notify_way_failed(m, sent);
	way_pump(w);
}

static void notify_way_on_answer(void *arg, const struct notice_answer *answer)
{
	answer_take(arg, answer);
}

static void on_reading(void *arg, const char *trouble)
{
	struct way *w = arg;

	w->reading_fails = trouble != NULL;
	if (trouble)
		way_trouble(w, trouble);
	else if (w->n_failures == 0)
		recovered(w);
}

/* ---- what is next ---- */

static void shorten(int64_t *wait, int64_t left)
{
	if (left < *wait)
		*wait = left;
}

static struct notify_message *find_next(struct way *w, int64_t *wait)
{
	uint64_t now = clock_steady_ms();
	int64_t quiet = quiet_left(&w->quiet, clock_utc_ms());
	int64_t rate = rate_left(&w->rate, now);
	int64_t pause = w->not_before_ms > now ? (int64_t)(w->not_before_ms - now) : 0;
	int64_t first = quiet > rate ? quiet : rate;

	if (pause > first)
		first = pause;
	list_for_each (at, following, &w->messages) {
		struct notify_message *m = list_entry(at, struct notify_message, link);
		bool waits = m->stage == MESSAGE_WAITS;
		/* A change wakes nobody, so only a failure holds it up; a test waits for nothing. */
		int64_t left = m->about == ABOUT_TEST ? 0 : waits ? first : pause;

		if (!waits && !m->changed)
			continue;
		if (left == 0)
			return m;
		shorten(wait, left);
	}
	return NULL;
}

static void notify_way_begin(struct notify_message *m)
{
	struct way *w = m->way;
	struct notice_sent sent = {.passing = true};
	int r;

	w->going = m;
	m->changed = false;
	if (m->stage != MESSAGE_SENT)
		m->stage = MESSAGE_GOES;
	r = m->stage == MESSAGE_GOES && m->about == ABOUT_APPROVAL ? look_start(m)
								   : send_message(m);
	if (r == 0)
		return;
	sent.error = r;
	w->going = NULL;
	notify_way_failed(m, &sent);
	timer_start(w->timer, AGAIN_MS);
}

void way_looked(struct way *w, struct notify_message *m, bool shown)
{
	struct notice_sent sent = {.passing = true};

	if (shown && !m->gone)
		sent.error = send_message(m);
	if (shown && !m->gone && sent.error == 0)
		return;
	w->going = NULL;
	if (sent.error != 0)
		notify_way_failed(m, &sent);
	else
		message_drop(m);
	timer_start(w->timer, sent.error != 0 ? AGAIN_MS : 0);
}

void way_pump(struct way *w)
{
	int64_t wait = INT64_MAX;
	struct notify_message *m;

	if (w->going || w->notify->stopping || !w->notifier)
		return;
	m = find_next(w, &wait);
	if (m)
		notify_way_begin(m);
	else if (wait < INT64_MAX)
		timer_start(w->timer, (uint64_t)(wait < LOOK_AT_MS ? wait : LOOK_AT_MS));
}

/* ---- life ---- */

static void on_timer(void *arg)
{
	way_pump(arg);
}

static int way_new(struct notify *n, const struct notify_rule *rule, struct way **ret_way,
		   struct error *error)
{
	struct way *w;
	int r = notify_check_rule(rule, error);

	if (r != 0)
		return r;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	list_init(&w->link);
	list_init(&w->messages);
	arena_init(&w->arena, RULE_ARENA_MAX);
	w->notify = n;
	w->kind = rule->kind;
	w->button_ms = rule->button_ms;
	w->links = rule->links;
	w->rate.per_minute = rule->per_minute;
	snprintf(w->name, sizeof(w->name), "%s", rule->name);
	snprintf(w->on, sizeof(w->on), "%s", rule->on);
	w->web_link = strdup(rule->link);
	r = w->web_link ? quiet_parse(rule->quiet, rule->zone, &w->quiet, error) : -ENOMEM;
	if (r == 0)
		r = conditions_make(&w->conditions, &w->arena, rule->conditions, rule->n_conditions,
				    error)
			    ?: timer_new(n->opts.loop, on_timer, w, &w->timer);
	if (r == 0)
		*ret_way = w;
	else
		way_free(w);
	return r;
}

void way_free(struct way *w)
{
	struct list *first;

	notifier_free(w->notifier);
	w->going = NULL;
	while ((first = list_first(&w->messages))) {
		struct notify_message *m = list_entry(first, struct notify_message, link);

		if (m->test)
			test_failed(m->test, "interrupted by a reload of the settings");
		message_drop(m);
	}
	list_remove(&w->link);
	tokens_done(&w->tokens);
	quiet_done(&w->quiet);
	conditions_done(&w->conditions);
	arena_done(&w->arena);
	timer_free(w->timer);
	free(w->web_link);
	free(w);
}

static const struct notifier_events events = {
	.on_sent = on_sent, .on_answer = notify_way_on_answer, .on_reading = on_reading};

int notify_add(struct notify *n, const struct notify_rule *rule, struct notifier *notifier,
	       const char *trouble, struct error *error)
{
	struct way *w;
	int r = n->n_ways < NOTIFY_WAYS_MAX ? way_new(n, rule, &w, error) : -ENOBUFS;

	if (r == 0) {
		r = hear_start(n);
		if (r != 0)
			way_free(w);
	}
	if (r != 0) {
		notifier_free(notifier);
		return r;
	}
	w->notifier = notifier;
	list_append(&n->ways, &w->link);
	n->n_ways++;
	if (!notifier) {
		way_trouble(w, trouble);
		return 0;
	}
	notifier_start(notifier, &events, w);
	if (way_wants(w, TEXT("approval.requested")))
		look_at_pending(w);
	return 0;
}
