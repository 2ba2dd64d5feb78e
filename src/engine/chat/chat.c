/* The chat service: how it starts and stops, and what it accepts. */
#include "engine/chat/chat.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/chat/inner.h"
#include "engine/node/node.h"
#include "store/chat.h"
#include "store/store.h"

int chat_check_id(struct text id, const char *field, struct error *error)
{
	static const char marks[] = "._-:@";
	bool dots = true;

	if (id.len == 0 || id.len > CHAT_ID_MAX)
		return refuse_field(error, field, "%s must have 1 to %d characters", field,
				    CHAT_ID_MAX);
	for (size_t i = 0; i < id.len; i++) {
		char c = id.data[i];

		if (!ascii_alnum(c) && (c == '\0' || !strchr(marks, c)))
			return refuse_field(error, field,
					    "%s may contain only letters, digits and . _ - : @",
					    field);
		dots = dots && c == '.';
	}
	if (dots)
		return refuse_field(error, field, "%s must not consist only of dots", field);
	return 0;
}

/* ---- the service ---- */

static int interrupt_turns(void *arg)
{
	const struct chat *chat = arg;
	int64_t n = 0;
	int r = store_turn_interrupt(store_writer(chat->opts.store), 0, clock_utc_ms(), &n);

	if (r == 0 && n > 0)
		log_info("previous shutdown interrupted turns", "n=%lld", (long long)n);
	return r;
}

int chat_highest(struct chat *chat, const char *prefix, int64_t *ret_n)
{
	return store_conversation_highest(store_writer(chat->opts.store), text_of(prefix), ret_n);
}

struct text chat_system(const struct chat *chat)
{
	return text_of(chat ? chat->system : "");
}

void chat_new_name(struct chat *chat, char out[CHAT_ID_MAX + 1])
{

	snprintf(out, CHAT_ID_MAX + 1, "%.100s%lld", chat->numbered,
		 (long long)++chat->last_number);
}

static int set_up(struct chat *chat, const struct chat_opts *opts)
{
	struct text system = text_of(opts->system ? opts->system : "");

	chat->system = strndup(system.data, system.len);
	if (!chat->system)
		return -ENOMEM;
	chat->system_tokens = system.len > 0 ? message_tokens(system) : 0;
	return 0;
}

/* Each host counts for itself. */
static void name_numbered(struct chat *chat, const char *prefix)
{
	struct text host = node_name(chat->opts.node);
	char *at =
		chat->numbered + snprintf(chat->numbered, sizeof(chat->numbered), "%.40s", prefix);

	if (host.len == 0)
		return;
	snprintf(at, sizeof(chat->numbered) - (size_t)(at - chat->numbered), "%.*s-",
		 TEXT_ARGS(text_cut(host, HOST_NAME_MAX_BYTES)));
	for (; *at; at++) {
		if (!isalnum((unsigned char)*at) && *at != '-')
			*at = '.';
	}
}

/* Text that has arrived, and results. */
static void on_teller(void *arg)
{
	struct chat *chat = arg;
	struct list over, *first;

	turn_tell_all(chat);
	list_init(&over);
	list_splice(&over, &chat->over);
	while ((first = list_first(&over)))
		errand_report(list_entry(first, struct errand, link));
}

int chat_start(const struct chat_opts *opts, struct chat **ret_chat, struct error *error)
{
	struct chat *chat = calloc(1, sizeof(*chat));
	int r;

	if (!chat) {
		for (unsigned i = 0; i < opts->n_agents; i++)
			agent_free(opts->agents[i]);
		return -ENOMEM;
	}
	chat->opts = *opts;
	chat->opts.agents = NULL;
	chat->opts.agent = chat->opts.system = NULL;
	chat->started_ms = clock_utc_ms();
	name_numbered(chat, opts->numbered ? opts->numbered : "chat-");
	list_init(&chat->conversations);
	list_init(&chat->idle);
	list_init(&chat->telling);
	list_init(&chat->over);
	list_init(&chat->give_backs);
	r = chat_set_agents(chat, opts->agents, opts->n_agents, opts->agent, error) ?:
		set_up(chat, opts) ?:
		timer_new(chat->opts.loop, on_teller, chat, &chat->teller) ?:
		records_settle(chat->opts.store, chat->opts.events, interrupt_turns, chat) ?:
		chat_join(chat) ?:
		chat_highest(chat, chat->numbered, &chat->last_number);
	if (r != 0) {
		chat_free(chat);
		return r;
	}
	*ret_chat = chat;
	return 0;
}

bool chat_idle(const struct chat *chat)
{
	return !chat || chat->n_errands == 0;
}

/* A conversation that still has something to cancel; NULL: none. */
static struct live_conversation *find_busy(const struct chat *chat)
{
	list_for_each (at, following, &chat->conversations) {
		struct live_conversation *c = list_entry(at, struct live_conversation, link);

		if (c->n_waiting > 0 || (c->running && !c->running->cancelled))
			return c;
	}
	return NULL;
}

void chat_stop(struct chat *chat)
{
	struct live_conversation *c;

	if (!chat)
		return;
	chat->records.stopping = true;
	/* Ending one may remove others, so search anew each time. */
	while ((c = find_busy(chat)))
		conversation_cancel(c);
}

static void drop_errands(struct list *errands)
{
	struct list *first;

	while ((first = list_first(errands))) {
		struct errand *e = list_entry(first, struct errand, link);

		list_remove(first);
		e->ops->free(e);
	}
}

static void drop_conversation(struct live_conversation *c)
{
	if (c->running)
		c->running->ops->free(c->running);
	drop_errands(&c->waiting);
	free(c->destroy);
	conversation_free(c);
}

const struct spend *chat_spend(const struct chat *chat)
{
	return chat ? &chat->spend : NULL;
}

void chat_free(struct chat *chat)
{
	struct list *first;

	if (!chat)
		return;
	chat_leave(chat);
	/* From here on conversations only end, and none of them asks an agent. */
	rosters_free(chat);
	while ((first = list_first(&chat->conversations)))
		drop_conversation(list_entry(first, struct live_conversation, link));
	drop_errands(&chat->over);
	table_done(&chat->by_name);
	timer_free(chat->teller);
	free(chat->system);
	spend_done(&chat->spend);
	free(chat);
}
