/*
 * What came back: a button's token, or a reply to a message. It becomes a decision by the same
 * door as everybody's, checked against what was shown in the transaction that keeps it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/approval/approval.h"
#include "engine/notify/inner.h"

/* A decision on its way. The way may be gone when it is kept, and the message, too. */
struct press {
	struct notify *notify;
	char way[NOTIFY_NAME_MAX + 1];
	char key[KEY_MAX];
	char id[128]; /* for notifier_acknowledge */
	char digest[NOTICE_DIGEST_LEN + 1];
	notify_link_fn told; /* or NULL */
	void *told_arg;
};

/* On the writer's thread. */
static int check_shown(const void *shown, const struct approval *row, struct error *error)
{
	const struct press *p = shown;
	char digest[NOTICE_DIGEST_LEN + 1];

	approval_digest(row, digest);
	if (strcmp(digest, p->digest) == 0)
		return 0;
	return refuse(error, REFUSE_FORBIDDEN, "the request has changed since it was shown");
}

static void word_result(int result, const struct approval *row, const struct error *error,
			char *out, size_t size)
{
	if ((result == 0 || result == REFUSE_CONFLICT) && row)
		words_of_outcome(row->status, row->decided_by, (struct text) {.data = NULL}, out,
				 size);
	else if (result > 0)
		snprintf(out, size, "Decision rejected: %.200s", error->text);
	else
		snprintf(out, size, "Could not store the decision. Try again.");
}

static void on_decided(void *arg, int result, const struct approval *row, const struct error *error)
{
	struct press *p = arg;
	struct way *w = way_find(p->notify, text_of(p->way));
	struct notify_message *m = w ? message_find(w, p->key) : NULL;
	char words[OUTCOME_MAX];

	word_result(result, row, error, words, sizeof(words));
	/* Also where it was refused: an agent that tries spoils nobody's button. */
	if (m && result != 0 && result != REFUSE_CONFLICT)
		tokens_release(&w->tokens, m);
	if (w && result == 0)
		w->answers++;
	else if (w && result > 0)
		w->ignored++;
	if (result > 0 && result != REFUSE_CONFLICT)
		log_caused(LOG_LEVEL_INFO, "reply ignored", "notifier=%s reason=\"%s\"", p->way,
			   error->text);
	if (w && w->notifier && !p->notify->stopping)
		notifier_acknowledge(w->notifier, p->id, words);
	if (p->told)
		p->told(p->told_arg, result, words);
	free(p);
}

static void name_decider(const struct way *w, const struct notice_answer *a, char out[BY_MAX])
{
	if (a->who[0])
		snprintf(out, BY_MAX, "%s:%s (%s)", notifier_kind_names[w->kind], w->name, a->who);
	else
		snprintf(out, BY_MAX, "%s:%s", notifier_kind_names[w->kind], w->name);
}

int answer_decide(struct way *w, const struct notify_message *m, const struct notice_answer *a,
		  enum approval_status decision, const struct approval_client *from,
		  notify_link_fn told, void *told_arg, struct error *error)
{
	struct press *p = calloc(1, sizeof(*p));
	struct approval_decision d = {
		.id = text_of(m->id), .status = decision, .via = TEXT("notify")};
	char by[BY_MAX];
	int r;

	if (!p)
		return -ENOMEM;
	p->notify = w->notify;
	p->told = told;
	p->told_arg = told_arg;
	snprintf(p->way, sizeof(p->way), "%s", w->name);
	snprintf(p->key, sizeof(p->key), "%s", m->key);
	snprintf(p->id, sizeof(p->id), "%s", a->press);
	memcpy(p->digest, m->digest, sizeof(p->digest));
	name_decider(w, a, by);
	d.by = text_of(by);
	d.comment = a->comment;
	d.check = check_shown;
	d.shown = p;
	if (from)
		d.from = *from;
	r = approval_decide(w->notify->opts.approvals, &d, on_decided, p, error);
	if (r != 0)
		free(p);
	return r;
}

static void ignore(struct way *w, const struct notice_answer *a, const char *reason,
		   const char *words)
{
	w->ignored++;
	log_caused(LOG_LEVEL_INFO, "reply ignored", "notifier=%s reason=\"%s\"", w->name, reason);
	notifier_acknowledge(w->notifier, a->press, words);
}

/* The message shows in any case what came of it. */
static void decide(struct way *w, const struct notify_message *m, const struct notice_answer *a,
		   enum approval_status decision)
{
	char words[OUTCOME_MAX];
	struct error error;
	int r = answer_decide(w, m, a, decision, NULL, NULL, NULL, &error);

	if (r == 0)
		return;
	tokens_release(&w->tokens, m);
	word_result(r, NULL, &error, words, sizeof(words));
	ignore(w, a, error_words(r, &error), words);
}

static void take_token(struct way *w, const struct notice_answer *a)
{
	enum approval_status decision = APPROVAL_DENIED;
	const void *about = NULL;
	enum token_state state =
		tokens_use(&w->tokens, a->token, clock_utc_ms(), &about, &decision);
	struct notify_message *m = message_of_token(w, about);
	char by[BY_MAX];

	if (state == TOKEN_UNKNOWN || !m || (m->about == ABOUT_TEST && !m->test)) {
		ignore(w, a, "unknown button token", "This button is no longer valid.");
	} else if (state == TOKEN_USED) {
		ignore(w, a, "button token already used",
		       m->outcome[0] ? m->outcome : "This request was already decided.");
	} else if (state == TOKEN_LATE) {
		ignore(w, a, "button token expired", "This button has expired.");
	} else if (m->test) {
		name_decider(w, a, by);
		w->answers++;
		notifier_acknowledge(w->notifier, a->press, "The button works.");
		words_of_outcome(decision, text_of(by), (struct text) {.data = NULL}, m->outcome,
				 sizeof(m->outcome));
		m->changed = m->stage == MESSAGE_SENT;
		test_pressed(m->test, decision, by);
		way_pump(w);
	} else {
		decide(w, m, a, decision);
	}
}

/* A reply to a question is its answer, and to a request a denial with a reason. */
static void take_reply(struct way *w, const struct notice_answer *a)
{
	struct notify_message *m = message_find_ref(w, a->ref);
	struct notice_answer one = *a;

	if (!m || m->about != ABOUT_APPROVAL || m->outcome[0]) {
		ignore(w, a, "no pending request for this reply", "");
		return;
	}
	one.comment = text_cut(a->comment, APPROVAL_COMMENT_MAX);
	decide(w, m, &one, m->kind == APPROVAL_CONTACT ? APPROVAL_RESPONDED : APPROVAL_DENIED);
}

void answer_take(struct way *w, const struct notice_answer *answer)
{
	if (w->notify->stopping)
		return;
	if (answer->token.data)
		take_token(w, answer);
	else
		take_reply(w, answer);
}
