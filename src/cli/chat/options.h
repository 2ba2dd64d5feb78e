/* What the chat commands take beside the options of all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct chat_options {
	const char *conversation; /* NULL: the server's default */
	const char *agent;        /* NULL: the conversation's own */
	const char *request_id;   /* NULL: one is made */
	int64_t limit;            /* 0: the command's own */
	int64_t number;           /* of one that was ended; 0: none */
	bool ended;               /* those that were */
	bool all;
	bool no_stream;
};
