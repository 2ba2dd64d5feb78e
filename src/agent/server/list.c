/*
 * Lists of all that is open, one request after the other: first where the server works by itself,
 * then both lists of every folder. They are asked for when the stream speaks, so that whatever is
 * asked later comes as an event.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/inner.h"
#include "base/log.h"

enum {
	/* Folders may be new while we ask, and a list may be old when it comes: this many answers
	 * are enough for all of them, and an end. */
	ROUND_MAX = 4 * AGENT_SERVER_LISTS_MAX * AGENT_SERVER_FOLDERS_MAX,
};

static void list_next(struct agent_server *s);

/* ---- folders ---- */

static struct server_folder *folder_find(struct agent_server *s, struct text path)
{
	list_for_each (at, following, &s->folders) {
		struct server_folder *f = list_entry(at, struct server_folder, link);

		if (f->len == path.len && memcmp(f->path, path.data, path.len) == 0)
			return f;
	}
	return NULL;
}

static void forget_oldest(struct agent_server *s)
{
	struct server_folder *f = list_entry(s->folders.prev, struct server_folder, link);

	/* Its list is on its way: its turn comes next time. */
	if (f == s->at)
		f = list_entry(f->link.prev, struct server_folder, link);
	list_remove(&f->link);
	free(f);
	s->n_folders--;
}

void agent_server_know_folder(struct agent_server *s, struct text path)
{
	struct server_folder *f = folder_find(s, path);

	if (!f && path.len > 0 && path.len < SERVER_PATH_MAX / 8) {
		f = calloc(1, sizeof(*f) + path.len);
		if (!f)
			return; /* it is only a list that is not asked for */
		list_init(&f->link);
		f->len = path.len;
		memcpy(f->path, path.data, path.len);
		if (s->n_folders == AGENT_SERVER_FOLDERS_MAX)
			forget_oldest(s);
		s->n_folders++;
	}
	if (!f)
		return;
	list_remove(&f->link);
	list_append(s->folders.next, &f->link); /* before the first */
}

static struct server_folder *next_folder(struct agent_server *s)
{
	list_for_each (at, following, &s->folders) {
		struct server_folder *f = list_entry(at, struct server_folder, link);

		if (f->listed != s->round)
			return f;
	}
	return NULL;
}

/* ---- asking ---- */

static void server_list_ask(struct agent_server *s, const char *path, struct text folder,
			    void (*on_done)(void *, const struct http_answer *))
{
	struct http_fetch_opts opts = {
		.total_timeout_ms = SERVER_ANSWER_MS,
		.response_max = AGENT_SERVER_ANSWER_MAX,
		.on_done = on_done,
		.arg = s,
	};
	struct error error = {.text = ""};
	struct buf whole;
	int r;

	buf_init(&whole, SERVER_PATH_MAX);
	buf_add_str(&whole, path);
	if (folder.len > 0)
		s->ops->add_folder(&whole, folder);
	buf_add_char(&whole, '\0');
	r = whole.err ?: server_fetch(s, whole.data, &opts, &s->list, &error);
	buf_done(&whole);
	/* Ended from the timer: the stream's own callback may be running. */
	if (r != 0) {
		snprintf(s->trouble, sizeof(s->trouble), "%.150s", error_words(r, &error));
		timer_start(s->again, 0);
	}
}

static bool server_list_failed(struct agent_server *s, const struct http_answer *a)
{
	s->list = NULL;
	if (a->error == 0 && a->status == 200)
		return false;
	if (a->error != 0)
		server_fail(s, AGENT_SERVER_GONE, "%s", a->text);
	else
		server_fail(s, AGENT_SERVER_WRONG,
			    "the server returned HTTP %d for a list of its requests; check that "
			    "the server is %s",
			    a->status, s->ops->word);
	return true;
}

static void server_list_finish(struct agent_server *s)
{
	s->at = NULL;
	s->said = false;
	s->text[0] = '\0';
	if (s->state != AGENT_SERVER_CONNECTED)
		log_info("agent server connected", "server=%s kind=%s", s->name, s->ops->word);
	server_set_state(s, AGENT_SERVER_CONNECTED);
	s->sink.fns->listed(s->sink.arg);
	if (s->list_again)
		server_list_begin(s);
}

static void on_list(void *arg, const struct http_answer *a)
{
	struct agent_server *s = arg;
	struct server_folder *f = s->at;
	struct error error = {.text = ""};
	int r;

	if (server_list_failed(s, a))
		return;
	arena_reset(&s->arena);
	s->n_listed++;
	/* What was answered meanwhile may still be in this list. */
	if (s->sink.answered && s->n_listed < ROUND_MAX) {
		list_next(s);
		return;
	}
	r = s->ops->read_list(&s->arena, s->which, a->body,
			      (struct text) {.data = f->path, .len = f->len}, &s->sink, &error);
	server_say_skipped(s);
	if (r != 0) {
		server_fail(s, AGENT_SERVER_WRONG, "cannot read the server's %s: %.120s",
			    s->ops->lists[s->which], error_words(r, &error));
		return;
	}
	if (++s->which == AGENT_SERVER_LISTS_MAX) {
		f->listed = s->round;
		s->at = NULL;
	}
	list_next(s);
}

static void list_next(struct agent_server *s)
{
	if (!s->at) {
		s->at = s->n_listed < ROUND_MAX ? next_folder(s) : NULL;
		s->which = 0;
	}
	s->sink.answered = false;
	if (!s->at) {
		server_list_finish(s);
		return;
	}
	server_list_ask(s, s->ops->lists[s->which],
			(struct text) {.data = s->at->path, .len = s->at->len}, on_list);
}

static void on_home(void *arg, const struct http_answer *a)
{
	struct agent_server *s = arg;
	struct error error = {.text = ""};
	struct text folder;
	int r;

	if (server_list_failed(s, a))
		return;
	arena_reset(&s->arena);
	r = s->ops->read_home(&s->arena, a->body, &folder, &error);
	if (r != 0) {
		server_fail(s, AGENT_SERVER_WRONG, "cannot read the server's %s: %.120s",
			    s->ops->home, error_words(r, &error));
		return;
	}
	agent_server_know_folder(s, folder);
	list_next(s);
}

void server_list_begin(struct agent_server *s)
{
	s->list_again = false;
	s->round++;
	s->n_listed = 0;
	s->at = NULL;
	s->sink.fns->listing(s->sink.arg);
	server_list_ask(s, s->ops->home, (struct text) {0}, on_home);
}

void agent_server_list_again(struct agent_server *s)
{
	if (s->state != AGENT_SERVER_CONNECTED)
		return;
	if (s->list)
		s->list_again = true;
	else
		server_list_begin(s);
}
