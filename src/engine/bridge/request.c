/* One request of a server, and its approvals. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/error.h"
#include "engine/bridge/inner.h"

/* ---- its end ---- */

void bridged_free(struct bridged *q)
{
	struct bridge *m = q->bridge;

	list_remove(&q->link);
	m->n_open--;
	for (unsigned i = 0; i < q->n_parts; i++) {
		approval_leave(q->parts[i].waiter);
		free(q->parts[i].comment);
	}
	free(q);
}

static void withdraw(struct bridged_part *p, const char *reason)
{
	const struct bridge *m = p->of->bridge;

	approval_withdraw(m->all->opts.approvals, text_of(p->id), text_of(m->name), reason);
}

void bridged_withdraw(struct bridged *q, const char *reason)
{
	for (unsigned i = 0; i < q->n_parts; i++) {
		struct bridged_part *p = &q->parts[i];

		if (p->state != PART_WAITS)
			continue;
		approval_leave(p->waiter);
		p->waiter = NULL;
		withdraw(p, reason);
	}
	bridged_free(q);
}

struct bridged *bridged_find(struct bridge *m, struct text id)
{
	list_for_each (at, following, &m->open) {
		struct bridged *q = list_entry(at, struct bridged, link);

		if (text_equal(q->id, id))
			return q;
	}
	return NULL;
}

/* ---- what was decided ---- */

static void on_sent(void *arg, int result)
{
	struct bridged *q = arg;
	struct bridge *m = q->bridge;

	if (result == REFUSE_PARAMS)
		log_warn("agent server rejected a reply", "server=%s request=%.*s", q->bridge->name,
			 TEXT_ARGS(q->id));
	bridged_free(q);
	bridge_settle(m);
}

void bridged_send(struct bridged *q)
{
	struct agent_server_reply reply = {
		.is_question = q->is_question,
		.id = q->id,
		.folder = q->folder,
		.n_answers = q->is_question ? q->n_parts : 0,
		.allow = q->parts[0].allow,
		.message = {.data = q->parts[0].comment, .len = q->parts[0].comment_len},
	};
	int r;

	for (unsigned i = 0; i < q->n_parts; i++) {
		const struct bridged_part *p = &q->parts[i];

		if (p->state != PART_DECIDED)
			return;
		reply.answers[i].text = (struct text) {.data = p->comment, .len = p->comment_len};
		reply.answers[i].several = p->several;
	}
	if (q->sending)
		return;
	r = agent_server_send(q->bridge->server, &reply, on_sent, q);
	q->sending = r == 0;
	/* Without a connection it is sent when the next one tells of it. */
	if (r != 0 && r != -ENOTCONN)
		log_warn("could not reply to agent server", "server=%s error=\"%s\"",
			 q->bridge->name, fault_words(r));
}

static void take_decision(struct bridged_part *p, const struct approval *a)
{
	bool decided = a->status == APPROVAL_APPROVED || a->status == APPROVAL_DENIED ||
		       a->status == APPROVAL_RESPONDED;

	p->state = decided ? PART_DECIDED : PART_LEFT;
	p->allow = a->status == APPROVAL_APPROVED;
	if (!decided || !a->comment.data)
		return;
	p->comment = malloc(a->comment.len + 1);
	if (!p->comment) {
		p->state = PART_LEFT;
		return;
	}
	memcpy(p->comment, a->comment.data, a->comment.len);
	p->comment_len = a->comment.len;
}

static void leave_part(struct bridged_part *p, int result, const struct error *error)
{
	const struct bridged *q = p->of;

	p->state = PART_LEFT;
	if (result != REFUSE_STOPPING)
		log_info("request must be decided in the agent's own dialog",
			 "server=%s request=%.*s reason=\"%s\"", q->bridge->name, TEXT_ARGS(q->id),
			 error_words(result, error));
}

/* The waiter is gone already. */
static void on_decided(void *arg, int result, const struct approval *approval,
		       const struct error *error)
{
	struct bridged_part *p = arg;

	p->waiter = NULL;
	if (result == 0)
		take_decision(p, approval);
	else
		leave_part(p, result, error);
	/* Something else is asked under this id now, as after a change of the server's URL. */
	if (result == REFUSE_CONFLICT)
		withdraw(p, "the agent server has changed the request");
	bridged_send(p->of);
}

/* ---- asking ---- */

static struct text copy_to(char **at, struct text t)
{
	char *start = *at;

	if (t.len > 0)
		memcpy(start, t.data, t.len);
	*at += t.len;
	return (struct text) {.data = start, .len = t.len};
}

static struct bridged *bridged_new(struct bridge *m, const struct agent_server_ask *ask)
{
	struct text folder = text_cut(ask->folder, BRIDGE_FOLDER_MAX);
	struct bridged *q = calloc(1, sizeof(*q) + ask->id.len + ask->session.len + folder.len + 1);
	char *at;

	if (!q)
		return NULL;
	at = q->own;
	q->bridge = m;
	q->is_question = ask->is_question;
	q->n_parts = ask->n_parts;
	q->id = copy_to(&at, ask->id);
	q->session = copy_to(&at, ask->session);
	q->folder = copy_to(&at, folder);
	list_append(&m->open, &q->link);
	m->n_open++;
	return q;
}

/*
 * The same request has the same ids for ever, so that nothing is asked twice. People type the
 * beginning of an id, so that must not be the same for all of a server's; two that begin alike
 * by chance are told apart by more of it.
 */
static void name_part(struct bridged *q, unsigned i)
{
	struct bridged_part *p = &q->parts[i];
	char part[8] = "";
	char whole[sizeof(p->id)];
	uint64_t h;

	if (q->n_parts > 1)
		snprintf(part, sizeof(part), ".%u", i + 1);
	snprintf(whole, sizeof(whole), "%s-%.*s%s", q->bridge->name, TEXT_ARGS(q->id), part);
	h = text_hash(TEXT_HASH, text_of(whole));
	snprintf(p->id, sizeof(p->id), "%08" PRIx32 "-%.*s", (uint32_t)(h ^ h >> 32),
		 BRIDGE_ID_REST, whole);
}

static int ask_part(struct bridged *q, const struct agent_server_ask *ask, unsigned i)
{
	const struct peer *peer = agent_server_peer(q->bridge->server);
	struct bridged_part *p = &q->parts[i];
	const struct approval_new new = {
		.id = text_of(p->id),
		.kind = q->is_question ? APPROVAL_CONTACT : APPROVAL_FUNCTION,
		.session = q->session,
		.agent = text_of(q->bridge->name),
		.origin = q->folder,
		.tool = ask->tool,
		.tool_use_id = ask->tool_use_id,
		.input = ask->parts[i].input,
		.from = {.is = peer->known, .peer = *peer},
	};
	struct error error;
	int r;

	p->several = ask->parts[i].several;
	bridge_left_take(q->bridge, p->id);
	r = approval_wait(q->bridge->all->opts.approvals, &new, NULL, on_decided, p, &p->waiter,
			  &error);
	if (r <= 0)
		return r;
	leave_part(p, r, &error);
	return 0;
}

static void ask_new(struct bridge *m, const struct agent_server_ask *ask)
{
	struct bridged *q;
	int r = 0;

	if (m->n_open == BRIDGE_OPEN_MAX) {
		if (!m->missed)
			log_info("agent server has too many open requests", "server=%s max=%d",
				 m->name, BRIDGE_OPEN_MAX);
		m->missed = true;
		return;
	}
	q = bridged_new(m, ask);
	if (!q)
		return; /* its own dialog still asks */
	q->seen = true;
	for (unsigned i = 0; i < q->n_parts; i++) {
		q->parts[i].of = q;
		name_part(q, i);
	}
	for (unsigned i = 0; r == 0 && i < q->n_parts; i++)
		r = ask_part(q, ask, i);
	if (r != 0)
		bridged_free(q);
}

void bridged_ask(struct bridge *m, const struct agent_server_ask *ask)
{
	struct bridged *q = bridged_find(m, ask->id);

	if (!q) {
		ask_new(m, ask);
		return;
	}
	q->seen = true;
	bridged_send(q);
}
