#include "dialect/aiwg/project.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/aiwg/files.h"
#include "dialect/daemon.h"

enum {
	EVERY_MS = 30 * 1000,
	STATE_MAX = 1 << 20,
	HEARTBEAT_MAX = 4096,
};

struct heartbeat {
	const char *folder;
	const struct endpoint *endpoint;
	struct workers *workers;
	struct ticker *ticker;
	bool running; /* the pid file was written */
	/* Being written on a reader's thread: a slow disk must not block the loop. */
	struct work work;
	bool writing;
	struct buf state;
	struct buf beat;
};

static struct text aiwg_heartbeat_text_in(const struct buf *b)
{
	return (struct text) {.data = b->data, .len = b->len};
}

static void word_state(const struct heartbeat *h, const char *health, struct buf *out)
{
	CLEANUP(buf_donep) struct buf plain;
	struct json j;

	buf_init(&plain, STATE_MAX);
	j = json_writer(&plain);
	aiwg_write_state(&j, h->endpoint, health);
	if (plain.err != 0)
		out->err = plain.err;
	project_indent(aiwg_heartbeat_text_in(&plain), out);
}

static void word_beat(const struct heartbeat *h, struct buf *out)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_int(&j, "pid", getpid());
	json_member_str(&j, "timestamp", clock_iso_now());
	json_member_uint(&j, "uptime_seconds",
			 (clock_steady_ms() - h->endpoint->server->started_ms) / 1000);
	json_end_object(&j);
}

static int aiwg_heartbeat_put(const char *folder, const char *name, const struct buf *text)
{
	return text->err != 0 ? text->err
			      : project_file_write(folder, name, aiwg_heartbeat_text_in(text));
}

static int put_both(const char *folder, const struct buf *state, const struct buf *beat)
{
	int r = aiwg_heartbeat_put(folder, PROJECT_STATE, state);

	return r != 0 ? r : aiwg_heartbeat_put(folder, PROJECT_HEARTBEAT, beat);
}

/* Writes at the start and at the end, with buffers of its own: a thread may still be using the
 * others. */
static int write_now(const struct heartbeat *h, const char *health)
{
	CLEANUP(buf_donep) struct buf state;
	CLEANUP(buf_donep) struct buf beat;

	buf_init(&state, 4 * STATE_MAX);
	buf_init(&beat, HEARTBEAT_MAX);
	word_state(h, health, &state);
	word_beat(h, &beat);
	return put_both(h->folder, &state, &beat);
}

static int write_run(struct work *w, int lane)
{
	const struct heartbeat *h = list_entry(w, struct heartbeat, work);

	return put_both(h->folder, &h->state, &h->beat);
}

/* The folder may be gone or the disk full. No client depends on these files. */
static void write_finished(struct work *w, int result)
{
	struct heartbeat *h = list_entry(w, struct heartbeat, work);

	if (result != 0)
		log_debug("could not write heartbeat", "project=%s error=%s", h->folder,
			  strerror(-result));
	h->writing = false;
}

static void on_tick(void *arg)
{
	struct heartbeat *h = arg;

	if (h->writing || h->endpoint->server->stopping)
		return;
	buf_done(&h->state);
	buf_done(&h->beat);
	buf_init(&h->state, 4 * STATE_MAX);
	buf_init(&h->beat, HEARTBEAT_MAX);
	word_state(h, dialect_health(h->endpoint->server), &h->state);
	word_beat(h, &h->beat);
	h->work = (struct work) {.run = write_run, .finished = write_finished};
	h->writing = workers_submit(h->workers, &h->work, false) == 0;
}

static void write_first(struct heartbeat *h)
{
	int r = project_pid_write(h->folder);

	h->running = r == 0;
	if (r == 0)
		r = write_now(h, "healthy");
	if (r != 0)
		log_warn("could not write project files", "project=%s error=%s", h->folder,
			 strerror(-r));
}

int heartbeat_start(const struct dialect_means *daemon, const char *folder, struct endpoint *e,
		    int64_t every_ms, struct heartbeat **ret_heartbeat)
{
	struct heartbeat *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	h->folder = folder;
	h->endpoint = e;
	h->workers = daemon->workers;
	r = ticker_new(daemon->loop, every_ms > 0 ? (uint64_t)every_ms : EVERY_MS, on_tick, h,
		       &h->ticker);
	if (r != 0) {
		free(h);
		return r;
	}
	write_first(h);
	*ret_heartbeat = h;
	return 0;
}

void heartbeat_stop(struct heartbeat *h)
{
	if (!h || !h->running)
		return;
	h->running = false;
	(void)write_now(h, "stopped");
	project_pid_remove(h->folder);
}

void heartbeat_free(struct heartbeat *h)
{
	if (!h)
		return;
	ticker_free(h->ticker);
	buf_done(&h->state);
	buf_done(&h->beat);
	free(h);
}
