/*
 * A pipe between an MCP client, on our standard input and output, and koined's socket. It changes
 * no message, and knows just enough of them to outlive the daemon:
 *
 * - what a client has asked and nobody has answered, so that it is told when the daemon is gone;
 * - the `initialize` of a legacy client, which it repeats when the daemon is back.
 *
 * While there is no daemon, what comes is held for a while and then refused.
 */
#pragma once

#include "base/buf.h"
#include "base/text.h"
#include "cli/kit/cli.h"

/* ---- calls.c ---- */

/* Requests that a client has sent and that nobody has answered yet, by their ids as they were
 * written. */
enum { CALLS_MAX = 4096, CALL_ID_MAX = 4096 };

struct calls {
	struct text *ids;
	unsigned n;
	unsigned cap;
};

/* ---- pipe.c ---- */

enum pipe_state {
	PIPE_AWAY,   /* there is no daemon */
	PIPE_RENEWS, /* our own requests are under way: what the client says waits */
	PIPE_SERVES,
};

struct pipe {
	struct cli *cli;
	const char *opening;       /* the params of mcp.open, as JSON */
	const char *plain_opening; /* without the folder, if that is refused; NULL once tried */
	bool (*start)(void *arg);  /* called once when there is no daemon; or NULL */
	void *start_arg;

	enum pipe_state state;
	struct koine_client *client;
	int fd; /* its socket; -1: none */
	struct buf from_client;
	struct buf from_daemon;
	struct buf to_daemon;
	struct buf held;    /* what the client has said meanwhile */
	struct calls calls; /* under way, or held */
	struct buf params;  /* of a legacy `initialize` */
	struct buf id;      /* of that, until it is answered */
	bool is_open;       /* it was answered: the session must be renewed */
	bool complained;    /* the user knows that there is no daemon */
	bool was_there;     /* we had one before */
	bool ended;         /* the client has closed its end, and all of it was read */
	bool hung_up;       /* it has closed its end, and there was no room to read the rest */
	uint64_t retry_ms;
	uint64_t give_up_ms; /* what is held is refused then */
	uint64_t end_ms;
};

/* Until the client closes its end. Returns an exit code. */
int pipe_run(struct pipe *p);
void pipe_done(struct pipe *p);
