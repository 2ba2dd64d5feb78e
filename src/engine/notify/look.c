/*
 * A look at an approval just before it is shown: as the store has it then, with all of its input.
 * What is shown and what the digest is made of are one row.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/error.h"
#include "engine/approval/approval.h"
#include "engine/notify/inner.h"

enum { INPUT_FIELD_MAX = 16 << 10 };

struct notify_look {
	struct work work;
	struct notify *notify;
	struct notify_message *message; /* NULL: it has left */
	struct arena arena;
	char id[sizeof(((struct notify_message *)0)->id)];
	struct approval row;
	struct text title, text, input;
	char digest[NOTICE_DIGEST_LEN + 1];
};

void approval_digest(const struct approval *row, char out[NOTICE_DIGEST_LEN + 1])
{
	const struct text parts[] = {row->id, text_of(approval_kind_name(row->kind)), row->agent,
				     row->tool, row->input.bytes};

	notice_digest(parts, sizeof(parts) / sizeof(parts[0]), out);
}

/* ---- on a reader's thread ---- */

static int word_input(struct notify_look *l)
{
	struct text json = TEXT("{}");
	int r = l->row.input.value ? l->notify->opts.to_json(&l->arena, l->row.input.value, &json)
				   : 0;

	return r == 0 ? words_plain(&l->arena, json, INPUT_FIELD_MAX, &l->input) : r;
}

static int look_run(struct work *w, int lane)
{
	struct notify_look *l = list_entry(w, struct notify_look, work);
	struct error error;
	int r = approval_get(l->notify->opts.approvals, lane, &l->arena, text_of(l->id), false,
			     &l->row, &error);

	if (r != 0 || l->row.status != APPROVAL_PENDING)
		return r;
	approval_digest(&l->row, l->digest);
	r = words_of_approval(&l->arena, &l->row, l->notify->opts.host, l->notify->opts.to_json,
			      &l->title, &l->text);
	return r == 0 ? word_input(l) : r;
}

/* ---- on the loop ---- */

static void show_fields(struct notify_message *m, const struct notify_look *l)
{
	const struct approval *row = &l->row;
	char time[ISO_LEN + 1], link[WAY_LINK_MAX];

	clock_format_iso(clock_utc_ms(), time);
	m->n_fields = 0;
	message_field(m, "event", TEXT("approval.requested"));
	message_field(m, "title", m->title);
	message_field(m, "text", m->text);
	message_field(m, "time", text_of(time));
	message_field(m, "host", row->host.len > 0 ? row->host : text_of(l->notify->opts.host));
	message_field(m, "id", row->id);
	message_field(m, "link", way_link(m->way, m, link));
	message_field(m, "approval.id", row->id);
	message_field(m, "approval.kind", text_of(approval_kind_name(row->kind)));
	message_field(m, "approval.tool", row->tool);
	message_field(m, "approval.agent", row->agent);
	message_field(m, "approval.input", l->input);
	message_field(m, "approval.session", row->session);
	message_field(m, "approval.origin", row->origin);
	message_field(m, "status", text_of(approval_status_name(row->status)));
}

static int notify_look_show(struct notify_message *m, const struct notify_look *l)
{
	int r = arena_copy_text(&m->arena, l->title, &m->title)
			?: arena_copy_text(&m->arena, l->text, &m->text);

	if (r != 0)
		return r;
	m->kind = l->row.kind;
	m->urgent = true;
	memcpy(m->digest, l->digest, sizeof(m->digest));
	show_fields(m, l);
	return 0;
}

static void look_finished(struct work *w, int result)
{
	struct notify_look *l = list_entry(w, struct notify_look, work);
	struct notify_message *m = l->message;
	bool shown = false;

	if (m) {
		m->look = NULL;
		arena_reset(&m->arena);
		if (result == 0 && l->row.status == APPROVAL_PENDING)
			shown = notify_look_show(m, l) == 0;
		if (result < 0 && result != -ECANCELED)
			log_warn("could not send approval notification", "notifier=%s error=%s",
				 m->way->name, fault_words(result));
		if (!l->notify->stopping)
			way_looked(m->way, m, shown);
	}
	arena_done(&l->arena);
	free(l);
}

int look_start(struct notify_message *m)
{
	struct notify_look *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	arena_init(&l->arena, LOOK_ARENA_MAX);
	l->notify = m->way->notify;
	l->message = m;
	memcpy(l->id, m->id, sizeof(l->id));
	l->work = (struct work) {.run = look_run, .finished = look_finished};
	m->look = l;
	workers_start(l->notify->opts.workers, &l->work, false);
	return 0;
}

void look_leave(struct notify_look *l)
{
	if (l)
		l->message = NULL;
}

/* ---- what waits already ---- */

struct survey {
	struct work work;
	struct notify *notify;
	struct arena arena;
	char way[NOTIFY_NAME_MAX + 1];
	struct approval *rows;
	unsigned n;
};

static int survey_run(struct work *w, int lane)
{
	struct survey *s = list_entry(w, struct survey, work);
	const struct approval_filter f = {.status = APPROVAL_PENDING,
					  .limit = NOTIFY_MESSAGES_MAX / 2};

	return approval_list(s->notify->opts.approvals, lane, &s->arena, &f, &s->rows, &s->n);
}

static void tell_pending(struct way *w, struct survey *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		if (hear_meant(w, &s->arena, &s->rows[i]) &&
		    approval_is_of_here(w->notify->opts.approvals, &s->rows[i]))
			message_ask(w, s->rows[i].id);
	}
	way_pump(w);
}

static void survey_finished(struct work *work, int result)
{
	struct survey *s = list_entry(work, struct survey, work);
	struct way *w = way_find(s->notify, text_of(s->way));

	if (w && result == 0 && !s->notify->stopping)
		tell_pending(w, s);
	arena_done(&s->arena);
	free(s);
}

void look_at_pending(struct way *w)
{
	struct survey *s = calloc(1, sizeof(*s));

	if (!s)
		return;
	arena_init(&s->arena, LOOK_ARENA_MAX);
	s->notify = w->notify;
	snprintf(s->way, sizeof(s->way), "%s", w->name);
	s->work = (struct work) {.run = survey_run, .finished = survey_finished};
	workers_start(w->notify->opts.workers, &s->work, false);
}
