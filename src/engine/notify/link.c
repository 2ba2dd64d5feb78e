/*
 * Links to our page, which messages without buttons carry. Each has a token as a button has;
 * looking at it decides nothing, since programs look at addresses, too.
 */

#include "base/clock.h"
#include "base/log.h"
#include "engine/notify/inner.h"

/* ---- who comes by one ---- */

struct notify_link_found {
	struct way *way;
	struct notify_message *message;
	const struct token *token;
	enum token_state state;
};

static bool find_in(struct way *w, struct text token, int64_t now_ms, struct notify_link_found *ret)
{
	enum token_state state =
		w->links ? tokens_see(&w->tokens, token, now_ms, &ret->token) : TOKEN_UNKNOWN;

	if (state == TOKEN_UNKNOWN)
		return false;
	ret->way = w;
	ret->state = state;
	ret->message = message_of_token(w, ret->token->about);
	return ret->message != NULL;
}

/* The wrong ones are counted for all: nobody tries them in masses. */
static int refuse_unknown(struct notify *n, struct error *error)
{
	uint64_t now = clock_steady_ms();

	if (rate_left(&n->wrong, now) > 0)
		return refuse(error, REFUSE_LIMIT,
			      "Too many invalid links. Try again in a minute.");
	rate_note(&n->wrong, now);
	log_caused(LOG_LEVEL_INFO, "reply ignored", "reason=\"unknown link\"");
	return refuse(error, REFUSE_NOT_FOUND,
		      "Unknown link: it was altered, or a newer link has replaced it.");
}

static int refuse_this(struct notify_link_found *f, enum refusal code, const char *reason,
		       const char *words, struct error *error)
{
	f->way->ignored++;
	log_caused(LOG_LEVEL_INFO, "reply ignored", "notifier=%s reason=\"%s\"", f->way->name,
		   reason);
	return refuse(error, code, "%s%s%s", words, f->message->outcome[0] ? " " : "",
		      f->message->outcome);
}

static int notify_link_find(struct notify *n, struct text token, struct notify_link_found *ret,
			    struct error *error)
{
	bool is = false;

	if (!n || n->stopping)
		return refuse(error, REFUSE_UNAVAILABLE, "koined cannot accept decisions now.");
	list_for_each (at, following, &n->ways) {
		is = find_in(list_entry(at, struct way, link), token, clock_utc_ms(), ret);
		if (is)
			break;
	}
	if (!is)
		return refuse_unknown(n, error);
	if (ret->state == TOKEN_USED || ret->message->outcome[0])
		return refuse_this(ret, REFUSE_CONFLICT, "link already used",
				   "This request was already decided.", error);
	if (ret->state == TOKEN_LATE)
		return refuse_this(ret, REFUSE_FORBIDDEN, "link expired", "This link has expired.",
				   error);
	return 0;
}

int notify_link_look(struct notify *n, struct text token, struct notify_link *ret_link,
		     struct error *error)
{
	struct notify_link_found f = {.token = NULL};
	int r = notify_link_find(n, token, &f, error);

	if (r != 0)
		return r;
	*ret_link = (struct notify_link) {.title = f.message->title,
					  .text = f.message->text,
					  .decision = f.token->decision,
					  .until_ms = f.token->until_ms};
	return 0;
}

int notify_link_use(struct notify *n, struct text token, const struct approval_client *from,
		    notify_link_fn fn, void *arg, struct error *error)
{
	static const struct notice_answer nobody = {.ref = "", .who = "", .press = ""};
	enum approval_status decision = APPROVAL_DENIED;
	const void *about;
	struct notify_link_found f = {.token = NULL};
	int r = notify_link_find(n, token, &f, error);

	if (r != 0)
		return r;
	(void)tokens_use(&f.way->tokens, token, clock_utc_ms(), &about, &decision);
	r = answer_decide(f.way, f.message, &nobody, decision, from, fn, arg, error);
	if (r != 0)
		tokens_release(&f.way->tokens, about);
	return r;
}
