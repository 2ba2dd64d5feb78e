/* One request of a server, and its approvals. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/why.h"
#include "engine/mirror/inner.h"

/* ---- its end ---- */

void mirrored_free(struct mirrored *q)
{
	struct mirror *m = q->mirror;

	list_remove(&q->link);
	m->n_open--;
	for (unsigned i = 0; i < q->n_parts; i++) {
		approval_leave(q->parts[i].waiter);
		free(q->parts[i].comment);
	}
	free(q);
}

static void withdraw(struct mirrored_part *p, const char *why)
{
	const struct mirror *m = p->of->mirror;

	approval_withdraw(m->all->opts.approvals, text_of(p->id), text_of(m->name), why);
}

void mirrored_withdraw(struct mirrored *q, const char *why)
{
	for (unsigned i = 0; i < q->n_parts; i++) {
		struct mirrored_part *p = &q->parts[i];

		if (p->state != PART_WAITS)
			continue;
		approval_leave(p->waiter);
		p->waiter = NULL;
		withdraw(p, why);
	}
	mirrored_free(q);
}

struct mirrored *mirrored_find(struct mirror *m, struct text id)
{
	list_for_each (at, following, &m->open) {
		struct mirrored *q = list_entry(at, struct mirrored, link);

		if (text_equal(q->id, id))
			return q;
	}
	return NULL;
}

/* ---- what was decided ---- */

static void on_sent(void *arg, int result)
{
	struct mirrored *q = arg;
	struct mirror *m = q->mirror;

	if (result == REFUSE_PARAMS)
		log_warn("agent server rejected a reply", "server=%s request=%.*s", q->mirror->name,
			 TEXT_ARGS(q->id));
	mirrored_free(q);
	mirror_settle(m);
}

void mirrored_send(struct mirrored *q)
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
		const struct mirrored_part *p = &q->parts[i];

		if (p->state != PART_DECIDED)
			return;
		reply.answers[i].text = (struct text) {.data = p->comment, .len = p->comment_len};
		reply.answers[i].several = p->several;
	}
	if (q->sending)
		return;
	r = agent_server_send(q->mirror->server, &reply, on_sent, q);
	q->sending = r == 0;
	/* Without a connection it is sent when the next one tells of it. */
	if (r != 0 && r != -ENOTCONN)
		log_warn("could not reply to agent server", "server=%s error=\"%s\"",
			 q->mirror->name, fault_words(r));
}

static void take_decision(struct mirrored_part *p, const struct approval *a)
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

static void leave_part(struct mirrored_part *p, int result, const struct why *why)
{
	const struct mirrored *q = p->of;

	p->state = PART_LEFT;
	if (result != REFUSE_STOPPING)
		log_info("request requires a decision in the agent",
			 "server=%s request=%.*s reason=\"%s\"", q->mirror->name, TEXT_ARGS(q->id),
			 result > 0 ? why->text : fault_words(result));
}

/* The waiter is gone already. */
static void on_decided(void *arg, int result, const struct approval *approval,
		       const struct why *why)
{
	struct mirrored_part *p = arg;

	p->waiter = NULL;
	if (result == 0)
		take_decision(p, approval);
	else
		leave_part(p, result, why);
	/* Something else is asked under this id now, as after a change of the server's URL. */
	if (result == REFUSE_CONFLICT)
		withdraw(p, "the agent server has changed the request");
	mirrored_send(p->of);
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

static struct mirrored *mirrored_new(struct mirror *m, const struct agent_server_ask *ask)
{
	struct text folder = text_cut(ask->folder, MIRROR_FOLDER_MAX);
	struct mirrored *q =
		calloc(1, sizeof(*q) + ask->id.len + ask->session.len + folder.len + 1);
	char *at;

	if (!q)
		return NULL;
	at = q->own;
	q->mirror = m;
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
static void name_part(struct mirrored *q, unsigned i)
{
	struct mirrored_part *p = &q->parts[i];
	char part[8] = "";
	char whole[sizeof(p->id)];
	uint64_t h;

	if (q->n_parts > 1)
		snprintf(part, sizeof(part), ".%u", i + 1);
	snprintf(whole, sizeof(whole), "%s-%.*s%s", q->mirror->name, TEXT_ARGS(q->id), part);
	h = text_hash(TEXT_HASH, text_of(whole));
	snprintf(p->id, sizeof(p->id), "%08" PRIx32 "-%.*s", (uint32_t)(h ^ h >> 32),
		 MIRROR_ID_REST, whole);
}

static int ask_part(struct mirrored *q, const struct agent_server_ask *ask, unsigned i)
{
	const struct peer *peer = agent_server_peer(q->mirror->server);
	struct mirrored_part *p = &q->parts[i];
	const struct approval_new new = {
		.id = text_of(p->id),
		.kind = q->is_question ? APPROVAL_CONTACT : APPROVAL_FUNCTION,
		.session = q->session,
		.agent = text_of(q->mirror->name),
		.origin = q->folder,
		.tool = ask->tool,
		.tool_use_id = ask->tool_use_id,
		.input = ask->parts[i].input,
		.from = {.is = peer->known, .peer = *peer},
	};
	struct why why;
	int r;

	p->several = ask->parts[i].several;
	mirror_left_take(q->mirror, p->id);
	r = approval_wait(q->mirror->all->opts.approvals, &new, NULL, on_decided, p, &p->waiter,
			  &why);
	if (r <= 0)
		return r;
	leave_part(p, r, &why);
	return 0;
}

static void ask_new(struct mirror *m, const struct agent_server_ask *ask)
{
	struct mirrored *q;
	int r = 0;

	if (m->n_open == MIRROR_OPEN_MAX) {
		if (!m->missed)
			log_info("agent server has too many open requests", "server=%s max=%d",
				 m->name, MIRROR_OPEN_MAX);
		m->missed = true;
		return;
	}
	q = mirrored_new(m, ask);
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
		mirrored_free(q);
}

void mirrored_ask(struct mirror *m, const struct agent_server_ask *ask)
{
	struct mirrored *q = mirrored_find(m, ask->id);

	if (!q) {
		ask_new(m, ask);
		return;
	}
	q->seen = true;
	mirrored_send(q);
}
