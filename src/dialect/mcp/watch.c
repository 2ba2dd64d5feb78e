/*
 * Subscribers of resources learn of changes from the event log. Nothing is looked at while nobody
 * has subscribed to anything.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dialect/mcp/server.h"
#include "engine/event/event.h"

enum { URI_MAX = 512, DATA_MAX = 1 << 20 };

struct mcp_watch {
	struct mcp *mcp;
	struct event_subscriber *subscriber;
};

/* Which member of an event's data names what it is about. */
static const struct {
	const char *type; /* the beginning of the event's */
	const char *scheme;
	const char *member;
} sources[] = {
	{"memory.", "memory", "id"},
	{"task.", "task", "task_id"},
	{"session.", "session", "session_id"},
	{"chat.", "conversation", "conversation"},
};

static void mcp_watch_notify(struct mcp_watch *w, const char *scheme, struct text id)
{
	char uri[URI_MAX];
	int n = snprintf(uri, sizeof(uri), "%s://%.*s", scheme, TEXT_ARGS(id));

	if (id.len > 0 && n < (int)sizeof(uri))
		mcp_updated(w->mcp, (struct text) {uri, (size_t)n});
}

static int mcp_watch_on_event(void *arg, const struct event *e)
{
	struct mcp_watch *w = arg;
	struct value *data = NULL;
	struct arena a;

	if (!mcp_watched_any(w->mcp))
		return 0;
	arena_init(&a, DATA_MAX);
	if (value_unpack(&a, e->data, &data) == 0) {
		for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
			if (text_begins(e->type, text_of(sources[i].type)))
				mcp_watch_notify(w, sources[i].scheme,
						 value_text(value_find(data, sources[i].member)));
		}
	}
	arena_done(&a);
	return 0;
}

static int mcp_watch_on_gone(void *arg, int64_t n)
{
	return 0;
}

int watch_start(struct mcp *m, struct events *events, struct mcp_watch **ret_watch)
{
	static const struct text types[] = {TEXT("memory.*"), TEXT("task.*"), TEXT("session.*"),
					    TEXT("chat.*")};
	const struct event_filter filter = {.types = types,
					    .n_types = sizeof(types) / sizeof(types[0])};
	struct mcp_watch *w = calloc(1, sizeof(*w));
	const struct event_sink sink = {
		.on_event = mcp_watch_on_event, .on_gone = mcp_watch_on_gone, .arg = w};
	int r;

	if (!w)
		return -ENOMEM;
	w->mcp = m;
	r = event_subscribe(events, &filter, -1, &sink, &w->subscriber);
	if (r != 0) {
		free(w);
		return r;
	}
	*ret_watch = w;
	return 0;
}

void watch_stop(struct mcp_watch *w)
{
	if (!w)
		return;
	event_unsubscribe(w->subscriber);
	free(w);
}
