/* Messages of a way: those that wait, the one under way, and those that may be changed later. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/approval/approval.h"
#include "engine/notify/inner.h"

static struct notify_message *notify_message_find(const struct way *w, const char *key,
						  const char *ref, const void *about)
{
	list_for_each (at, following, &w->messages) {
		struct notify_message *m = list_entry(at, struct notify_message, link);

		if (!m->gone && ((about && m == about) || (key && strcmp(m->key, key) == 0) ||
				 (ref && m->ref[0] && strcmp(m->ref, ref) == 0)))
			return m;
	}
	return NULL;
}

struct notify_message *message_find(const struct way *w, const char *key)
{
	return notify_message_find(w, key, NULL, NULL);
}

struct notify_message *message_find_ref(const struct way *w, const char *ref)
{
	return notify_message_find(w, NULL, ref, NULL);
}

struct notify_message *message_of_token(const struct way *w, const void *about)
{
	return notify_message_find(w, NULL, NULL, about);
}

void message_drop(struct notify_message *m)
{
	struct way *w = m->way;

	if (m == w->going) {
		m->gone = true;
		return;
	}
	list_remove(&m->link);
	w->n_messages--;
	tokens_forget(&w->tokens, m);
	look_leave(m->look);
	if (m->test)
		m->test->message = NULL;
	arena_done(&m->arena);
	free(m);
}

/* What can best be spared: what was sent and is over, then the oldest links, then what is only
 * news. */
static struct notify_message *find_spare(const struct way *w)
{
	struct notify_message *news = NULL, *linked = NULL;

	list_for_each (at, following, &w->messages) {
		struct notify_message *m = list_entry(at, struct notify_message, link);

		if (m == w->going)
			continue;
		if (m->stage == MESSAGE_SENT &&
		    (m->about == ABOUT_EVENT || (m->has_links && m->outcome[0])))
			return m;
		if (m->stage == MESSAGE_SENT && m->has_links)
			linked = linked ? linked : m;
		else if (m->about == ABOUT_EVENT)
			news = news ? news : m;
	}
	return linked ? linked : news;
}

static bool notify_message_make_room(struct way *w)
{
	struct notify_message *spare;

	if (w->n_messages < NOTIFY_MESSAGES_MAX)
		return true;
	spare = find_spare(w);
	if (!spare || spare->stage != MESSAGE_SENT) {
		w->dropped++;
		w->untold++;
	}
	if (spare)
		message_drop(spare);
	return spare != NULL;
}

void message_shrink(struct notify_message *m)
{
	arena_reset(&m->arena);
	m->title = m->text = (struct text) {.data = NULL};
	m->n_fields = 0;
}

/* News about what a message tells already: the message says the new thing instead. */
static struct notify_message *begin_anew(struct notify_message *m)
{
	message_shrink(m);
	m->n_tries = 0;
	m->changed = m->stage == MESSAGE_SENT;
	return m;
}

struct notify_message *message_get(struct way *w, enum message_about about, const char *key)
{
	struct notify_message *m = message_find(w, key);

	/* What is under way is not touched, nor what was sent and cannot be changed: the news gets
	 * a message of its own. */
	if (m && m != w->going && (m->stage != MESSAGE_SENT || notifier_replaces(w->notifier)))
		return begin_anew(m);
	if (!notify_message_make_room(w))
		return NULL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	arena_init(&m->arena, MESSAGE_ARENA_MAX);
	m->way = w;
	m->about = about;
	snprintf(m->key, sizeof(m->key), "%s", key);
	list_append(&w->messages, &m->link);
	w->n_messages++;
	return m;
}

static void approval_key(char key[KEY_MAX], struct text id)
{
	snprintf(key, KEY_MAX, "approval:%.*s", TEXT_ARGS(text_cut(id, APPROVAL_ID_MAX)));
}

struct notify_message *message_asking(const struct way *w, struct text id)
{
	char key[KEY_MAX];

	approval_key(key, id);
	return message_find(w, key);
}

void message_ask(struct way *w, struct text id)
{
	struct notify_message *m;
	char key[KEY_MAX];

	approval_key(key, id);
	m = message_find(w, key) ? NULL : message_get(w, ABOUT_APPROVAL, key);
	if (m)
		snprintf(m->id, sizeof(m->id), "%.*s", TEXT_ARGS(text_cut(id, APPROVAL_ID_MAX)));
}

void message_field(struct notify_message *m, const char *name, struct text value)
{
	struct text copy;

	if (m->n_fields < NOTICE_FIELDS_MAX && value.data &&
	    arena_copy_text(&m->arena, value, &copy) == 0)
		m->fields[m->n_fields++] = (struct notice_field) {name, copy};
}
