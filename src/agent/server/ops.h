/*
 * What a kind of server is: its paths, and what its texts mean. No I/O: text in, calls of the sink
 * out.
 */
#pragma once

#include "agent/server/server.h"
#include "base/arena.h"
#include "base/buf.h"

enum { AGENT_SERVER_LISTS_MAX = 2 };

/* Where what was read goes. */
struct agent_server_sink {
	const struct agent_server_fns *fns;
	void *arg;
	/* Called for every folder that an event names; may be NULL. */
	void (*folder)(void *arg, struct text folder);
	void *folder_arg;
	unsigned skipped; /* asks that could not be shown */
};

struct agent_server_ops {
	const char *word;
	const char *probe;  /* answers 200 or 401 without a password */
	const char *stream; /* server-sent events, of all folders */
	const char *home;   /* says which folder the server works in */
	const char *lists[AGENT_SERVER_LISTS_MAX];

	/* REFUSE_PARSE: it is not what such a server sends. The arena is the caller's. */
	int (*read_event)(struct arena *a, struct text data, struct agent_server_sink *sink,
			  struct why *why);
	int (*read_home)(struct arena *a, struct text body, struct text *ret_folder,
			 struct why *why);
	int (*read_list)(struct arena *a, unsigned which, struct text body, struct text folder,
			 struct agent_server_sink *sink, struct why *why);
	/* Adds a query for the folder to a path. */
	void (*add_folder)(struct buf *path, struct text folder);
	void (*write_reply)(const struct agent_server_reply *reply, struct buf *path,
			    struct buf *body);
};
