#include "dialect/aiwg/project.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/pack.h"
#include "base/utf8.h"
#include "dialect/aiwg/files.h"
#include "engine/event/event.h"

enum {
	DETAIL_MAX = 200,       /* bytes of a prompt or an error */
	WAITING_MAX = 64 << 10, /* bytes of lines not written yet; more are lost */
	FILE_MAX = 1 << 20,
};

struct project_log {
	struct text folder;
	struct workers *workers;
	struct event_subscriber *subscriber;
	struct buf waiting;
	struct buf writing; /* belongs to a thread while `busy` */
	struct work work;
	bool busy;
};

static void append(const struct project_log *l, const struct buf *lines)
{
	(void)project_file_append(l->folder.data, PROJECT_LOG,
				  (struct text) {.data = lines->data, .len = lines->len}, FILE_MAX);
}

static int on_thread(struct work *w, int lane)
{
	const struct project_log *l = list_entry(w, struct project_log, work);

	append(l, &l->writing);
	return 0;
}

static void swap(struct project_log *l)
{
	struct buf lines = l->waiting;

	l->waiting = l->writing;
	l->writing = lines;
}

static void write_waiting(void *arg);

static void written(struct work *w, int result)
{
	struct project_log *l = list_entry(w, struct project_log, work);

	buf_clear(&l->writing);
	l->busy = false;
	write_waiting(l);
}

/* Writes on a thread: a slow disk must not block the loop. */
static void write_waiting(void *arg)
{
	struct project_log *l = arg;

	if (l->busy || l->waiting.len == 0)
		return;
	swap(l);
	l->work = (struct work) {.run = on_thread, .finished = written};
	l->busy = workers_submit(l->workers, &l->work, false) == 0;
	if (!l->busy)
		swap(l);
}

/* Keeps any text on one line. */
static void add_clean(struct buf *out, struct text t)
{
	for (size_t i = 0; i < t.len; i++) {
		unsigned char c = (unsigned char)t.data[i];

		buf_add_char(out, c < ' ' || c == 0x7f ? ' ' : (char)c);
	}
}

static void aiwg_log_say(struct project_log *l, int64_t time_ms, const char *words,
			 struct text detail)
{
	char time[ISO_LEN + 1];

	if (l->waiting.len >= WAITING_MAX)
		return;
	clock_format_iso(time_ms, time);
	buf_printf(&l->waiting, "[%s] ", time);
	add_clean(&l->waiting, text_of(words));
	if (detail.len > DETAIL_MAX)
		detail.len = utf8_whole(detail.data, DETAIL_MAX);
	add_clean(&l->waiting, detail);
	buf_add_char(&l->waiting, '\n');
}

/* "task.failed" with its error becomes "Task ID failed: ERROR". */
static int aiwg_log_on_event(void *arg, const struct event *e)
{
	struct text detail = packed_text(packed_find(e->data, "prompt"));
	char words[160];

	if (!detail.data)
		detail = packed_text(packed_find(e->data, "error"));
	snprintf(words, sizeof(words), "Task %.*s %.*s%s", TEXT_ARGS(e->run), (int)e->type.len - 5,
		 e->type.data + 5, detail.len > 0 ? ": " : "");
	aiwg_log_say(arg, e->time_ms, words, detail);
	return 0;
}

static int aiwg_log_on_gone(void *arg, int64_t n)
{
	return 0;
}

/* Writes at once: the threads may not have started yet, or may have ended. */
static void say_of_us(struct project_log *l, const char *what)
{
	char words[64];

	snprintf(words, sizeof(words), "Daemon %s (PID: %d)", what, (int)getpid());
	aiwg_log_say(l, clock_utc_ms(), words, (struct text) {0});
	append(l, &l->waiting);
	buf_clear(&l->waiting);
}

int project_log_start(struct events *events, struct workers *workers, struct text folder,
		      struct project_log **ret_log)
{
	const struct text types[] = {TEXT("task.*")};
	const struct event_filter filter = {.types = types, .n_types = 1, .project = folder};
	struct project_log *l = calloc(1, sizeof(*l));
	const struct event_sink sink = {.on_event = aiwg_log_on_event,
					.on_gone = aiwg_log_on_gone,
					.flush = write_waiting,
					.arg = l};
	int r;

	if (!l)
		return -ENOMEM;
	r = event_subscribe(events, &filter, -1, &sink, &l->subscriber);
	if (r != 0) {
		free(l);
		return r;
	}
	l->folder = folder;
	l->workers = workers;
	buf_init(&l->waiting, 2 * WAITING_MAX);
	buf_init(&l->writing, 2 * WAITING_MAX);
	say_of_us(l, "started");
	*ret_log = l;
	return 0;
}

void project_log_free(struct project_log *l)
{
	if (!l)
		return;
	event_unsubscribe(l->subscriber);
	say_of_us(l, "stopped");
	buf_done(&l->waiting);
	buf_done(&l->writing);
	free(l);
}
