/* Where a client connects to: an address of koine_dial, parsed. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

struct caller_target {
	struct {
		struct sockaddr_storage addr;
		socklen_t len;
	} at[2]; /* tried in turn: "localhost" has two */
	unsigned n_at;
	bool is_http; /* an http: address */
	char *socket; /* the path, where `at` is AF_UNIX; else NULL */
	char *shown;  /* for messages: "unix:/run/x.sock" */
	char *host;   /* what the Host header says */
	char *path;   /* what the request line asks for */
};

/* -EINVAL for what is no address, -ENAMETOOLONG for a path that no socket can have. Whatever it
 * returns, caller_target_done must follow. */
int caller_target_parse(const char *address, struct caller_target *ret_target);
void caller_target_done(struct caller_target *t);
